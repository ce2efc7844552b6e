"""A worker of an app that wakes after a freeze begins nothing under a lease that may be over."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from betimes import App
from betimes.runtime.attempt import Attempt, Stop
from betimes.runtime.courier import Courier
from betimes.runtime.executor import Executor
from betimes.runtime.line import Grant
from betimes.runtime.places import Places
from betimes.testing import ManualClock
from betimes.wire.workers import ReportOne
from worker_kit import settle_down

CALLED: list[str] = []
AT = datetime(2026, 3, 1, tzinfo=UTC)


def note() -> None:
    """A task that runs in a process needs a name that can be imported."""
    CALLED.append("process")


def a_grant(lease: str = "lea_1", **more: Any) -> Grant:
    return Grant(
        run_id="run_1",
        lease_id=lease,
        fence=1,
        attempt=1,
        max_attempts=3,
        due_at=AT,
        queue="default",
        priority=5,
        idempotency_key="run_1",
        traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
        **more,
    )


class Crew:
    """An executor that reports to a list."""

    def __init__(self, clock: ManualClock, group: asyncio.TaskGroup, fetch: Any = None) -> None:
        self.places = Places(10)
        self.reports: list[ReportOne] = []
        self.lost: list[str] = []
        loop = asyncio.get_running_loop()
        self.executor = Executor(
            places=self.places,
            courier=Courier(line=None, clock=clock, loop=loop),  # type: ignore[arg-type]
            report=self.report,
            fetch=fetch,
            group=group,
            now=clock.now,
            monotonic=clock.monotonic,
            lost=lambda attempt: self.lost.append(attempt.lease),
            processes=1,
        )

    def start(self, grant: Grant, task: Any, *, trusted_until: float) -> Attempt:
        assert self.places.reserve(1) == 1
        return self.executor.start(grant, task, trusted_until=trusted_until)

    def report(self, attempt: Attempt, end: ReportOne) -> None:
        self.reports.append(end)
        self.executor.attempts.remove(attempt)


def tasks_of(app: App, called: list[str]) -> dict[str, Any]:
    @app.task(name="async")
    async def on_loop() -> None:
        called.append("async")

    @app.task(name="thread")
    def in_thread() -> None:
        called.append("thread")

    return {"async": on_loop, "thread": in_thread, "process": app.task(pool="process")(note)}


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_nothing_begins_under_a_lease_that_is_over(clock: ManualClock, kind: str) -> None:
    called: list[str] = []
    task = tasks_of(App("http://127.0.0.1:1", name="tests"), called)[kind]
    async with asyncio.TaskGroup() as group:
        crew = Crew(clock, group)
        attempt = crew.start(a_grant(), task, trusted_until=clock.monotonic() + 10)
        clock.advance(11)  # frozen between the lease and the first step
        await crew.executor.attempts.empty.wait()
        crew.executor.close()
    assert (called, crew.reports, crew.lost) == ([], [], ["lea_1"])
    assert attempt.stop is Stop.LOST
    assert crew.places.free == crew.places.total


async def test_a_payload_that_came_too_late_begins_nothing(clock: ManualClock) -> None:
    called: list[str] = []
    task = tasks_of(App("http://127.0.0.1:1", name="tests"), called)["async"]

    async def fetch(_: Grant) -> bytes:
        clock.advance(11)
        return b"null"

    async with asyncio.TaskGroup() as group:
        crew = Crew(clock, group, fetch)
        grant = a_grant(payload_ref="blob_1")
        crew.start(grant, task, trusted_until=clock.monotonic() + 10)
        await crew.executor.attempts.empty.wait()
        crew.executor.close()
    assert (called, crew.reports, crew.lost) == ([], [], ["lea_1"])


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
        crew = Crew(clock, group)
        crew.executor._threads._most = 1
        until = clock.monotonic() + 10
        crew.start(a_grant("lea_1"), block, trusted_until=until)
        await asyncio.to_thread(began.wait, 20)
        crew.start(a_grant("lea_2"), block, trusted_until=until)
        await settle_down()
        assert len(crew.executor._threads._calls) == 1
        clock.advance(11)
        go_on.set()
        await crew.executor.attempts.empty.wait()
        crew.executor.close()
    assert (len(called), crew.lost) == (1, ["lea_2"])
    assert [one.lease_id for one in crew.reports] == ["lea_1"]
