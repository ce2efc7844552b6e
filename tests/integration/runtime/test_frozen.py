"""A worker of an app that wakes after a freeze begins nothing under a lease that may be over."""

import asyncio
import threading
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from betimes import App
from betimes.domain.errors import Unavailable
from betimes.rhythm import Stopping
from betimes.runtime.line import Grant, GrantedRun, Grants, Line
from betimes.runtime.worker import Parts, Worker, WorkerOptions
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from betimes.wire.base import shown_duration, shown_instant
from betimes.wire.parcels import ParcelReport, ParcelReported
from betimes.wire.workers import Registered
from worker_kit import settle_down

CALLED: list[str] = []
AT = datetime(2026, 3, 1, tzinfo=UTC)
TTL = timedelta(seconds=10)


def note() -> None:
    """A task that runs in a process needs a name that can be imported."""
    CALLED.append("process")


class Scripted:
    """A line that grants what it was told to, and keeps what is reported."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.grants: list[Grants] = []
        self.reports: list[ParcelReport] = []
        self.late = timedelta(0)

    async def register(self, _: Any) -> Registered:
        return Registered(
            worker_id="wrk_1",
            heartbeat_interval=shown_duration(TTL / 3),
            lease_duration=shown_duration(TTL),
            server_time=shown_instant(self._clock.now()),
        )

    async def lease(self, _: str, __: Any) -> Grants:
        return self.grants.pop()

    async def fetch(self, _: str) -> bytes:
        self._clock.advance(self.late)
        return b"null"

    async def report(self, reports: list[ParcelReport]) -> list[ParcelReported]:
        self.reports += reports
        return [ParcelReported(lease_id=one.lease_id) for one in reports]


def granted(task: str, *numbers: int, **definition: Any) -> Grants:
    """A parcel for each number, with one run in it."""
    return Grants(
        parcels=[
            Grant(
                lease_id=f"lea_{number}",
                fence=1,
                attempt=1,
                queue="default",
                priority=5,
                runs=[GrantedRun(UUID(int=number), 0, AT)],
            )
            for number in numbers
        ],
        definitions=[
            msgspec.Raw(msgspec.json.encode({"handler": task, "max_attempts": 3, **definition}))
        ],
        server_time=AT,
    )


class Crew:
    """A worker on a scripted line."""

    def __init__(self, parts: Parts, line: Scripted, recorder: Recorder) -> None:
        self.parts, self.line, self.recorder = parts, line, recorder

    @classmethod
    async def made(cls, app: App, clock: ManualClock, group: asyncio.TaskGroup) -> "Crew":
        line, recorder = Scripted(clock), Recorder()

        def nowhere() -> AbstractAsyncContextManager[Line]:
            raise Unavailable("there is no heartbeat in this test")

        worker = Worker(
            app=app,
            open_line=nowhere,
            clock=clock,
            roll=lambda: 0.5,
            options=WorkerOptions(name="w"),
            telemetry=Telemetry(clock=clock, handlers=[recorder]),
        )
        parts = await worker.enter(line, Stopping())  # type: ignore[arg-type]  # as much as is used
        parts.wire(group)
        return cls(parts, line, recorder)

    async def take(self, grants: Grants) -> None:
        self.line.grants.append(grants)
        await self.parts.transport.tick(wait=0.0)

    async def empty(self) -> None:
        """Until nothing is held; what has ended is told."""
        while len(self.parts.resources.held) or self.parts.resources.busy:
            await settle_down()
            await self.parts.transport.reports.flush()
        self.parts.resources.close()
        self.parts.close()

    @property
    def lost(self) -> int:
        return sum(one.name == "worker.lease_lost" for one in self.recorder.events)


def app_with_tasks(called: list[str]) -> App:
    app = App("http://127.0.0.1:1", name="tests")

    @app.task(name="async")
    async def on_loop() -> None:
        called.append("async")

    @app.task(name="thread")
    def in_thread() -> None:
        called.append("thread")

    app.task(name="process", pool="process")(note)
    return app


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_nothing_begins_under_a_lease_that_is_over(clock: ManualClock, kind: str) -> None:
    called: list[str] = []
    async with asyncio.TaskGroup() as group:
        crew = await Crew.made(app_with_tasks(called), clock, group)
        await crew.take(granted(kind, 1))
        clock.advance(11)  # frozen between the lease and the first step
        await crew.empty()
    assert (called, crew.line.reports, crew.lost) == ([], [], 1)


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_payload_that_came_too_late_begins_nothing(clock: ManualClock, kind: str) -> None:
    called: list[str] = []
    async with asyncio.TaskGroup() as group:
        crew = await Crew.made(app_with_tasks(called), clock, group)
        crew.line.late = timedelta(seconds=11)
        await crew.take(granted(kind, 1, payload_path="/v1/grants/x"))
        await crew.empty()
    assert (called, crew.line.reports, crew.lost) == ([], [], 1)


async def test_what_waits_for_a_thread_begins_only_while_its_lease_is_good(
    clock: ManualClock,
) -> None:
    began, go_on = threading.Event(), threading.Event()
    called: list[int] = []
    app = App("http://127.0.0.1:1", name="tests")

    @app.task
    def block() -> None:
        called.append(1)
        began.set()
        go_on.wait(20)

    async with asyncio.TaskGroup() as group:
        crew = await Crew.made(app, clock, group)
        threads = crew.parts.resources.threads
        threads._most = 1
        await crew.take(granted("block", 1))
        await asyncio.to_thread(began.wait, 20)
        await crew.take(granted("block", 2))
        await settle_down()
        assert len(threads._calls) == 1
        clock.advance(11)
        go_on.set()
        await crew.empty()
    assert (len(called), crew.lost) == (1, 1)
    assert [one.lease_id for one in crew.line.reports] == ["lea_1"]
