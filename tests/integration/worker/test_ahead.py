"""Leasing ahead: more than may be executed at once, never longer than a moment."""

import asyncio
from datetime import timedelta

from betimes.domain.ids import RunId
from betimes.domain.states import RunState
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from betimes.worker.execute import PATIENCE_SECONDS
from betimes.worker.slots import MOMENT_SECONDS
from worker_kit import Bench, a_worker, enqueue, read_run, rows, settle_down

SLOTS, RUNS = 2, 8


class Gate:
    """A handler that waits until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._go_on = asyncio.Semaphore(0)

    async def wait(self, context: Context) -> None:
        self.begun.append(context.run_id)
        await self._go_on.acquire()

    def let_go(self, count: int) -> None:
        for _ in range(count):
            self._go_on.release()


def been_busy(worker: Bench, clock: ManualClock) -> None:
    """As if as many short runs had ended in the last moment as there are now."""
    slots = worker.parts.slots
    slots.look(clock.monotonic())
    for _ in range(RUNS // SLOTS):
        slots.release(slots.reserve(SLOTS))
    clock.advance(MOMENT_SECONDS)


async def waiting(
    database: Database, clock: ManualClock, worker: Bench, *, task: str = "wait"
) -> list[RunId]:
    runs = await enqueue(database, clock.now() - timedelta(seconds=1), [task] * RUNS)
    been_busy(worker, clock)
    assert await worker.parts.lookout.tick() == RUNS
    await settle_down()
    return runs


async def test_what_is_leased_ahead_begins_only_when_there_is_room(
    database: Database, clock: ManualClock
) -> None:
    gate, handlers = Gate(), Handlers()
    handlers.add("wait", gate.wait)
    async with a_worker(database, clock, handlers=handlers, slots=SLOTS) as worker:
        await waiting(database, clock, worker)
        for begun in range(SLOTS, RUNS + 1, SLOTS):
            assert len(gate.begun) == begun
            assert len(worker.parts.executor.running) == SLOTS
            gate.let_go(SLOTS)
            await settle_down()
            clock.advance(PATIENCE_SECONDS / 2)  # not all of it: something has begun meanwhile
        await worker.parts.reporter.flush()
        assert worker.parts.slots.idle
    assert len(await rows(database, "SELECT FROM betimes.runs WHERE state = 4")) == RUNS


async def test_what_cannot_begin_soon_is_given_back(database: Database, clock: ManualClock) -> None:
    """Others can have it at once, no attempt is counted, and nothing is leased ahead for now."""
    gate, handlers = Gate(), Handlers()
    handlers.add("wait", gate.wait)
    async with (
        a_worker(database, clock, handlers=handlers, slots=SLOTS) as worker,
        a_worker(database, clock, handlers=handlers, slots=RUNS, number=2) as other,
    ):
        runs = await waiting(database, clock, worker)
        clock.advance(PATIENCE_SECONDS)
        await settle_down()
        await worker.parts.reporter.flush()
        found = [await read_run(database, run) for run in runs]
        given_back = [row for row in found if row["reason"] == "RELEASED"]
        assert len(given_back) == RUNS - SLOTS
        assert {(row["state"], row["attempt"]) for row in given_back} == {(RunState.QUEUED, 0)}
        assert (worker.parts.slots.free, worker.parts.slots.ahead) == (0, 0)
        assert await other.poll_once() == RUNS - SLOTS
        assert len(gate.begun) == len(set(gate.begun)) == RUNS
        gate.let_go(RUNS)
        await settle_down()
        for bench in (worker, other):
            await bench.parts.reporter.flush()
            assert bench.parts.slots.idle


async def test_what_ends_as_it_begins_needs_no_room(database: Database, clock: ManualClock) -> None:
    """All of one claim end in it, though only two may be executed at once."""
    async with a_worker(database, clock, slots=SLOTS) as worker:
        await waiting(database, clock, worker, task="noop")
        assert await worker.parts.reporter.flush() == RUNS
        assert worker.parts.slots.idle


async def test_nothing_is_leased_ahead_after_a_pause(
    database: Database, clock: ManualClock
) -> None:
    await enqueue(database, clock.now() - timedelta(seconds=1), ["noop"] * RUNS)
    async with a_worker(database, clock, slots=SLOTS) as worker:
        been_busy(worker, clock)
        clock.advance(1)
        assert await worker.parts.lookout.tick() == SLOTS
