"""Threads, processes, and handlers that do not wait."""

import asyncio
import contextvars
import json
import os
import threading
from datetime import timedelta

from betimes.domain.states import RunState
from betimes.store.database import Database
from betimes.testing import ManualClock, Signal
from betimes.worker import Context, Handlers, Kind, WorkerSignals
from worker_handlers import complain, die, double, spin
from worker_kit import Bench, a_worker, enqueue, read_run, settle_down, state_of


async def flushed(bench: Bench, count: int) -> None:
    """Wait until so many outcomes were taken, and write them."""
    async with asyncio.timeout(20):
        while bench.parts.reporter.unwritten < count:  # noqa: ASYNC110 -- a thread tells nobody
            await asyncio.sleep(0.005)  # noqa: TID251 -- threads and processes take real time
    await bench.parts.reporter.flush()


async def test_a_plain_function_runs_in_a_thread(database: Database, clock: ManualClock) -> None:
    handlers = Handlers()
    handlers.add("where", lambda _: threading.current_thread().name)
    runs = await enqueue(database, clock.now(), ["where"] * 5)
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.parts.lookout.tick()
        await flushed(bench, 5)
    for run in runs:
        row = await read_run(database, run)
        assert (row["state"], json.loads(row["result"])) == (4, "betimes-handler")


async def test_a_thread_that_exceeds_its_time_keeps_its_place(
    database: Database, clock: ManualClock
) -> None:
    """It is reported, it is told, and its place is free when it ends."""
    handlers, began, end = Handlers(), threading.Event(), threading.Event()

    def block(context: Context) -> bool:
        began.set()
        return end.wait(20) and context.cancelled

    handlers.add("block", block)
    started = Signal[int]()
    (run,) = await enqueue(database, clock.now(), ["block"], options={"timeout_ms": 1000})
    signals = WorkerSignals(suspended=started.send)
    async with a_worker(database, clock, handlers=handlers, signals=signals) as bench:
        await bench.parts.lookout.tick()
        await started.wait()
        assert await asyncio.to_thread(began.wait, 20)
        clock.advance(1)
        bench.parts.executor.running.tick()
        await settle_down()
        await bench.parts.reporter.flush()
        assert await state_of(database, run) is RunState.RETRY_WAIT
        assert not bench.parts.slots.idle
        end.set()
        async with asyncio.timeout(10):
            while not bench.parts.slots.idle:  # noqa: ASYNC110 -- a thread tells nobody
                await asyncio.sleep(0.005)  # noqa: TID251 -- the thread takes real time


class LastWords:
    """Something to wait for before a call in a thread, and after it until it is let go."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def prepare(self, _: Context) -> bool:
        return False

    async def ready(self, _: Context) -> None:
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait

    async def conclude(self, _: Context) -> None:
        await self.go_on.wait()


async def test_a_thread_that_ends_during_the_last_words_frees_its_place_once(
    database: Database, clock: ManualClock
) -> None:
    """Its time was over, what it said is still being told, and then it ends by itself."""
    handlers, began, end = Handlers(), threading.Event(), threading.Event()

    def block(_: Context) -> None:
        began.set()
        end.wait(20)

    words, started = LastWords(), Signal[int]()
    handlers.add("block", block, hooks=words)
    await enqueue(database, clock.now(), ["block"], options={"timeout_ms": 1000})
    signals = WorkerSignals(suspended=started.send)
    async with a_worker(database, clock, handlers=handlers, signals=signals, slots=2) as bench:
        slots = bench.parts.slots
        await bench.parts.lookout.tick()
        await started.wait()
        assert await asyncio.to_thread(began.wait, 20)
        clock.advance(1)
        bench.parts.executor.running.tick()
        await settle_down()
        assert (slots.begun, slots.free) == (1, 1)
        end.set()
        async with asyncio.timeout(10):
            while slots.begun:  # noqa: ASYNC110 -- a thread tells nobody
                await asyncio.sleep(0.005)  # noqa: TID251 -- the thread takes real time
        words.go_on.set()
        await flushed(bench, 1)
        assert (slots.begun, slots.free) == (0, 2)


async def test_what_a_thread_has_said_is_told_before_a_drain_gives_its_run_back(
    database: Database, clock: ManualClock
) -> None:
    """After that nobody would take it: the lease is over."""
    handlers, began, end = Handlers(), threading.Event(), threading.Event()
    told: list[bool] = []

    class Words(LastWords):
        def prepare(self, _: Context) -> bool:
            return True

        async def conclude(self, context: Context) -> None:
            await settle_down()
            told.append(context.is_held())

    def block(_: Context) -> None:
        began.set()
        end.wait(20)

    handlers.add("block", block, hooks=Words())
    (run,) = await enqueue(database, clock.now(), ["block"])
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.parts.lookout.tick()
        await settle_down()
        assert await asyncio.to_thread(began.wait, 20)
        assert await bench.parts.runner.drain(timedelta(0)) == 0
        assert told == [True]
        end.set()
    assert await state_of(database, run) is RunState.QUEUED


async def test_a_process_that_dies_is_a_failed_attempt_and_no_more(
    database: Database, clock: ManualClock
) -> None:
    """The worker lives, its other runs too, and the next run gets a new process."""
    handlers = Handlers()
    for function in (double, die, complain):
        handlers.add(function.__name__, function, kind=Kind.PROCESS)
    runs = await enqueue(database, clock.now(), ["die", "double", "complain", "double"])
    async with a_worker(database, clock, handlers=handlers, processes=1) as bench:
        await bench.parts.lookout.tick()
        await flushed(bench, 4)
    died, first, complained, second = [await read_run(database, run) for run in runs]
    assert died["state"] == RunState.RETRY_WAIT
    assert json.loads(died["error"])["type"] == "ProcessDied"
    assert json.loads(complained["error"])["message"] == "cannot compute"
    told = [json.loads(row["result"]) for row in (first, second)]
    assert [one["attempt"] for one in told] == [1, 1]
    assert os.getpid() not in {one["pid"] for one in told}
    assert told[0]["run"].startswith("run_")


async def test_a_process_that_exceeds_its_time_is_killed(
    database: Database, clock: ManualClock
) -> None:
    handlers, started = Handlers(), Signal[int]()
    handlers.add("spin", spin, kind=Kind.PROCESS)
    (run,) = await enqueue(database, clock.now(), ["spin"], options={"timeout_ms": 1000})
    signals = WorkerSignals(suspended=started.send)
    async with a_worker(database, clock, handlers=handlers, signals=signals) as bench:
        await bench.parts.lookout.tick()
        await started.wait()
        clock.advance(1)
        bench.parts.executor.running.tick()
        await flushed(bench, 1)
        assert bench.parts.slots.idle
    assert await state_of(database, run) is RunState.RETRY_WAIT


async def test_handlers_that_do_not_wait_behave_as_in_a_task_of_their_own(
    database: Database, clock: ManualClock
) -> None:
    """Timeouts and task groups work from the first step on; variables of others are not seen."""
    handlers = Handlers()
    seen: list[object] = []
    variable = contextvars.ContextVar("variable", default="nobody")

    async def group(_: Context) -> None:
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            tasks.create_task(clock.sleep(0))

    async def look(context: Context) -> None:
        seen.append(variable.get())
        variable.set(context.run_id)
        await clock.sleep(0)
        seen.append(variable.get() == context.run_id)

    async def give_up(_: Context) -> None:
        raise asyncio.CancelledError

    for function in (group, look, give_up):
        handlers.add(function.__name__, function)
    names = ["group", "look", "look", "give_up", "group", "look"]
    runs = await enqueue(database, clock.now(), names)
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
    states = [await state_of(database, run) for run in runs]
    assert [state.name for state in states] == [
        "RETRY_WAIT" if name == "give_up" else "SUCCEEDED" for name in names
    ]
    assert sorted(map(str, seen)) == ["True", "True", "True", "nobody", "nobody", "nobody"]


async def test_a_result_that_is_too_large_is_replaced_by_a_note(
    database: Database, clock: ManualClock
) -> None:
    handlers = Handlers()

    async def talk(_: Context) -> bytes:
        return b"x" * 100_000

    handlers.add("talk", talk)
    (run,) = await enqueue(database, clock.now(), ["talk"], options={"timeout_ms": 10_000})
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
    row = await read_run(database, run)
    assert row["state"] == RunState.SUCCEEDED
    assert json.loads(row["result"])["bytes"] == 100_000
    assert row["finished_at"] - row["started_at"] == timedelta(0)
