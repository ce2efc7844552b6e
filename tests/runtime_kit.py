"""What tests of the runtime share: a worker of an app beside a served API, over either line."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from api_kit import DEFAULT, Served, half
from betimes import App
from betimes.app.direct import DirectNotes
from betimes.app.task_worker import Grounds, TaskWorker
from betimes.config.settings import DatabaseSettings, WorkerSettings
from betimes.coordinator.advancer import Advancer
from betimes.domain.clock import Clock
from betimes.rhythm import Stopping
from betimes.runtime.http_line import http_lines
from betimes.runtime.line import OpenLine
from betimes.runtime.worker import Worker, WorkerOptions
from betimes.store.database import Database
from betimes.store.listen import Listener
from betimes.store.pool import Lane
from betimes.telemetry import Recorder, Telemetry
from betimes.testing.real_clock import RealClock
from betimes.worker import Chance
from betimes.worker.hints import CHANNEL

HTTP, DIRECT = "http", "direct"


@dataclass(frozen=True)
class Direct:
    """The way to the service that is the database itself."""

    served: Served
    dsn: str

    @asynccontextmanager
    async def grounds(self, clock: Clock) -> AsyncIterator[Grounds]:
        """What a worker there stands on, with connections of its own."""
        service = self.served.service
        database = await Database.open(DatabaseSettings(), dsn=self.dsn, clock=clock, roll=half)
        desk = replace(service.desk, database=database, clock=clock)
        ttl = service.settings.lease_ttl
        try:
            yield Grounds(
                desk=desk,
                tenant=DEFAULT,
                chance=Chance(roll=half, entropy=os.urandom),
                open_database=lambda: self._beside(clock),
                listen=lambda hear: Listener(
                    dsn=self.dsn,
                    settings=DatabaseSettings(),
                    channels=[CHANNEL],
                    hear=hear,
                    clock=clock,
                    roll=half,
                ),
                notes=DirectNotes(desk, DEFAULT),
                settings=WorkerSettings(),
                ttl=ttl,
            )
        finally:
            await database.close()

    @asynccontextmanager
    async def _beside(self, clock: Clock) -> AsyncIterator[Database]:
        database = await Database.open(
            DatabaseSettings(), dsn=self.dsn, clock=clock, roll=half, lanes=(Lane.LEASE,)
        )
        try:
            yield database
        finally:
            await database.close()


Way = OpenLine | Direct


@dataclass
class Crew:
    """A worker at work, and what it told."""

    worker: Worker | TaskWorker
    stopping: Stopping
    recorder: Recorder
    ended: "asyncio.Task[None]" = field(init=False)

    def events(self, name: str) -> list[Any]:
        return [event for event in self.recorder.events if event.name == name]


@asynccontextmanager
async def working(
    app: App, way: Way, *, clock: Clock | None = None, **wishes: Any
) -> AsyncIterator[Crew]:
    """A worker that works inside the block and drains at its end."""
    clock, recorder = clock or RealClock(), Recorder()
    usual = {"concurrency": 10, "grace": timedelta(seconds=10), "pid": os.getpid()}
    options = WorkerOptions(name="w", **{**usual, **wishes})
    telemetry = Telemetry(clock=clock, handlers=[recorder])
    async with AsyncExitStack() as stack:
        worker: Worker | TaskWorker
        if isinstance(way, Direct):
            grounds = await stack.enter_async_context(way.grounds(clock))
            worker = TaskWorker(
                app=app, grounds=grounds, clock=clock, options=options, telemetry=telemetry
            )
        else:
            worker = Worker(
                app=app,
                open_line=way,
                clock=clock,
                roll=half,
                options=options,
                telemetry=telemetry,
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
