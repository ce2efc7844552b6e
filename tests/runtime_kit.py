"""What tests of the runtime share: a worker of an app beside a served API, over either line."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from api_kit import DEFAULT, Served, half
from betimes import App
from betimes.app.direct import DirectLine
from betimes.config.settings import DatabaseSettings
from betimes.coordinator.advancer import Advancer
from betimes.domain.clock import Clock
from betimes.rhythm import Stopping
from betimes.runtime.http_line import http_lines
from betimes.runtime.line import Line, OpenLine
from betimes.runtime.worker import Worker, WorkerOptions
from betimes.store.database import Database
from betimes.telemetry import Recorder, Telemetry
from betimes.testing.real_clock import RealClock

HTTP, DIRECT = "http", "direct"
SECRET = bytes(32)


def direct_lines(served: Served, dsn: str) -> OpenLine:
    """Lines on the test's database, each with connections of its own."""
    service = served.service

    @asynccontextmanager
    async def opened() -> AsyncIterator[Line]:
        clock = RealClock()
        database = await Database.open(DatabaseSettings(), dsn=dsn, clock=clock, roll=half)
        try:
            yield DirectLine(
                desk=replace(service.desk, database=database, clock=clock),
                tenant=DEFAULT,
                waiters=service.waiters,
                secret=SECRET,
                roll=half,
                ttl=service.settings.lease_ttl,
            )
        finally:
            await database.close()

    return opened


@dataclass
class Crew:
    """A worker at work, and what it told."""

    worker: Worker
    stopping: Stopping
    recorder: Recorder
    ended: "asyncio.Task[None]" = field(init=False)

    def events(self, name: str) -> list[Any]:
        return [event for event in self.recorder.events if event.name == name]


@asynccontextmanager
async def working(
    app: App, lines: OpenLine, *, clock: Clock | None = None, **wishes: Any
) -> AsyncIterator[Crew]:
    """A worker that works inside the block and drains at its end."""
    clock, recorder = clock or RealClock(), Recorder()
    usual = {"concurrency": 10, "grace": timedelta(seconds=10), "pid": os.getpid()}
    options = WorkerOptions(name="w", **{**usual, **wishes})
    worker = Worker(
        app=app,
        open_line=lines,
        clock=clock,
        roll=half,
        options=options,
        telemetry=Telemetry(clock=clock, handlers=[recorder]),
    )
    crew = Crew(worker, Stopping(), recorder)
    async with asyncio.TaskGroup() as group:
        crew.ended = group.create_task(worker.run(crew.stopping))
        try:
            yield crew
        finally:
            crew.stopping.request("the test is over")


@asynccontextmanager
async def advancing(served: Served) -> AsyncIterator[None]:
    """Workflows move on inside the block, as a coordinator lets them."""
    clock, stopping = RealClock(), Stopping()
    advancer = Advancer(
        desk=served.service.desk,
        clock=clock,
        telemetry=Telemetry(clock=clock),
        every=timedelta(milliseconds=50),
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(advancer.run(stopping))
        try:
            yield
        finally:
            stopping.request("the test is over")


async def eventually(look: Callable[[], Awaitable[Any]], *, seconds: float = 20.0) -> Any:
    """The first answer that is true."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):
            await RealClock().sleep(0.02)
    return found


def http(served: Served, key: str) -> OpenLine:
    return http_lines(f"http://127.0.0.1:{served.port}", key)
