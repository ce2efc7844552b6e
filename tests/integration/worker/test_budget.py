"""What a run of a user's task costs at most: calls of Python functions, and statements.

Counted and not timed, so the same on every machine. The cost of one run is the difference between
two sizes: what a claim costs once is not in it.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, cast

import pytest

from betimes.executing.processes import Processes
from betimes.executing.threads import Threads
from betimes.runtime.task_handlers import Service, handlers_of
from betimes.sdk.application import App
from betimes.store.database import Database
from betimes.store.queries import Query
from betimes.testing import ManualClock
from betimes.worker.handlers import Handlers
from worker_kit import a_worker, enqueue, settle_down

RUNS = 64
CALLS_ASYNC_MAX = 27
CALLS_PLAIN_MAX = 36
"""Calls of Python functions on the event loop's thread for one run, from the claim to the flush."""


class Nobody:
    """A service that must not be asked for anything."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a task that says nothing asked for {name}")


def handlers(called: list[int]) -> Handlers:
    app = App("http://127.0.0.1:1", name="tests")

    @app.task
    async def tick(number: int) -> None:
        called.append(number)

    @app.task
    def tock(number: int) -> None:
        called.append(number)

    return handlers_of(app, cast("Service", Nobody()), Processes(1))


@contextmanager
def counting_calls() -> Iterator[Counter[str]]:
    """Calls of Python functions in this thread."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@contextmanager
def counting_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Statements by name."""
    counted: Counter[str] = Counter()
    arguments = cast("Callable[..., Any]", Query.arguments)

    def note(query: Query, *given: Any, **named: Any) -> Any:
        counted[query.name] += 1
        return arguments(query, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Query, "arguments", note)
        yield counted


async def calls_of(database: Database, clock: ManualClock, task: str, runs: int) -> Counter[str]:
    """One claim of so many runs, from the look for work until their ends are written."""
    called: list[int] = []
    due = clock.now() - timedelta(seconds=1)
    await enqueue(database, due, [task] * runs, payload=b'{"number":7}')
    async with a_worker(database, clock, handlers=handlers(called), slots=1_000) as worker:
        threads = worker.parts.resources.threads
        threads._wake_one = lambda: None  # type: ignore[method-assign]
        with counting_calls() as calls:
            assert await worker.parts.lookout.tick() == runs
            while worker.parts.reporter.unwritten < runs:
                await settle_down()
                work_off(threads)
            await worker.parts.reporter.flush()
        assert worker.parts.slots.idle
    assert called == [7] * runs
    return calls


def work_off(threads: Threads) -> None:
    """One thread makes all calls while the event loop waits, so that it is woken once."""
    thread = threading.Thread(target=threads._work_off)
    thread.start()
    thread.join()


@pytest.mark.parametrize(("task", "most"), [("tick", CALLS_ASYNC_MAX), ("tock", CALLS_PLAIN_MAX)])
async def test_calls_for_each_run(
    database: Database, clock: ManualClock, task: str, most: int
) -> None:
    await calls_of(database, clock, task, 1)  # what is worked out once is not counted
    few = await calls_of(database, clock, task, RUNS)
    many = await calls_of(database, clock, task, 3 * RUNS)
    waiting = {"settle_down", "work_off", "sleep", "__sleep0"}
    each = {
        name: (many[name] - few[name]) / (2 * RUNS)
        for name in many
        if name not in waiting and many[name] - few[name] >= RUNS
    }
    assert sum(each.values()) <= most, each


@pytest.mark.parametrize("task", ["tick", "tock"])
async def test_statements_for_each_claim(
    database: Database, clock: ManualClock, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two to claim and three to finish, whatever the number of runs."""
    called: list[int] = []
    due = clock.now() - timedelta(seconds=1)
    async with a_worker(database, clock, handlers=handlers(called), slots=1_000) as worker:
        await worker.parts.lookout.tick()  # reads rules and the time, and finds nothing
        await enqueue(database, due, [task] * RUNS, payload=b'{"number":7}')
        clock.advance(1)
        with counting_statements(monkeypatch) as claimed:
            assert await worker.parts.lookout.tick() == RUNS
        while worker.parts.reporter.unwritten < RUNS:
            await settle_down()
        with counting_statements(monkeypatch) as finished:
            await worker.parts.reporter.flush()
    assert claimed == {"find_waiting": 1, "lease_parcels": 1, "read_wanted_runs": 1}
    assert finished.total() <= 3, finished
