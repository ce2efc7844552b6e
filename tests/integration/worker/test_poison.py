"""Deliveries that came to nothing count, and what kills its workers ends among the dead letters."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.config.settings import JanitorSettings
from betimes.domain.errors import Unavailable
from betimes.domain.outcome import OutcomeKind
from betimes.domain.states import RunState
from betimes.janitor.reap import Reaper
from betimes.store.database import Database
from betimes.store.reap import Reaping
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from worker_kit import a_worker, enqueue, parcels, read_run, rows, run_id, state_of

TTL = timedelta(seconds=30)
OPTIONS = {"retry": {"max_attempts": 3, "initial_ms": 1000, "backoff": "fixed", "jitter": "none"}}


async def a_death(database: Database, clock: ManualClock, number: int) -> int:
    """A worker leases what it may and is never heard of again; how many runs it had."""
    async with a_worker(database, clock, number=number) as bench:
        leased = await bench.parts.lookout.tick()
        leased = leased or await bench.parts.lookout.tick()
    clock.advance(TTL + timedelta(seconds=1))
    await Reaper(
        reaping=Reaping(database, lambda: run_id(clock.now())),
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=JanitorSettings(),
    ).tick()
    return leased


async def test_an_attempt_is_numbered_by_what_was_counted_and_what_was_lost(
    database: Database, clock: ManualClock
) -> None:
    (run,) = await enqueue(database, clock.now(), ["fail"], options=OPTIONS, attempt=1)
    await a_death(database, clock, 1)
    async with a_worker(database, clock, number=2) as bench:
        await bench.once()
    assert await state_of(database, run) is RunState.DEAD
    assert (await read_run(database, run))["attempt"] == 3
    history = await rows(database, "SELECT number, outcome FROM betimes.attempts ORDER BY number")
    assert [tuple(row) for row in history] == [(2, OutcomeKind.ABANDONED), (3, OutcomeKind.FAILED)]


async def test_what_killed_every_worker_is_laid_aside_without_being_executed(
    database: Database, clock: ManualClock
) -> None:
    (run,) = await enqueue(database, clock.now(), ["noop"], options=OPTIONS)
    for number in range(1, 4):
        assert await a_death(database, clock, number) == 1
    async with a_worker(database, clock, number=4) as bench:
        await bench.once()
        await bench.once()
    row = await read_run(database, run)
    assert (row["state"], row["attempt"], row["reason"]) == (RunState.DEAD, 3, "RETRIES_EXHAUSTED")
    (letter,) = await rows(database, "SELECT * FROM betimes.dead_letters")
    assert (letter["run_id"], letter["attempts"]) == (run, 3)
    assert await parcels(database) == []
    assert bench.counted("betimes_runs_total", outcome="dead") == 1
    assert bench.parts.slots.idle


async def test_a_delivery_that_is_given_back_costs_nothing(
    database: Database, clock: ManualClock
) -> None:
    (run,) = await enqueue(database, clock.now(), ["echo"], options=OPTIONS)
    async with a_worker(database, clock, number=1) as bench:
        await bench.parts.lookout.tick()
        (held,) = bench.parts.held
        await bench.parts.parcels.give_back(
            held.leased.shard, [(held.leased.id, held.leased.fence)]
        )
    async with a_worker(database, clock, number=2) as bench:
        await bench.once()
    assert (await read_run(database, run))["attempt"] == 1


async def test_suspects_of_one_place_are_taken_one_after_the_other(
    database: Database, clock: ManualClock
) -> None:
    """A worker that has become empty does not go back to ordinary work after the first of them."""
    runs = [
        (await enqueue(database, clock.now(), ["noop"], options=OPTIONS, deliveries=2))[0]
        for _ in range(5)
    ]
    async with a_worker(database, clock) as bench:
        for _ in range(8):
            await bench.once()
    assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}


@pytest.mark.parametrize(("slots", "many"), [(1, 2), (4, 10), (64, 40)])
async def test_a_worker_that_is_never_empty_takes_suspects_in_beside_the_others(
    database: Database, clock: ManualClock, slots: int, many: int
) -> None:
    """Its tasks take long and never end together: no suspect may wait for ever behind them."""
    begun: list[str] = []
    handlers = Handlers()

    async def long(context: Context) -> None:
        await clock.sleep(20.0)

    async def mark(context: Context) -> None:
        begun.append(context.run_id)

    handlers.add("long", long)
    handlers.add("mark", mark)
    async with a_worker(database, clock, handlers=handlers, slots=slots) as bench:
        await enqueue(database, clock.now(), ["long"])
        await bench.parts.lookout.tick()
        for _ in range(many):
            await enqueue(database, clock.now(), ["mark"], options=OPTIONS, deliveries=2)
        for _ in range(60):
            await enqueue(database, clock.now(), ["long"])
            for _ in range(4):
                clock.advance(0.5)
                await bench.poll_once()
        assert len(begun) == len(set(begun)) == many


async def test_a_claim_that_waits_does_not_end_the_outage(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the pauses never grow, and a worker hammers a database that is away."""

    async def away(_: object) -> object:
        raise Unavailable("the database is away")

    async with a_worker(database, clock) as bench:
        monkeypatch.setattr(database, "_acquire", away)
        lookout = bench.parts.lookout
        for failures in range(1, 8):
            await lookout.tick()
            assert lookout._outage.failures == failures
            await lookout.tick()
            clock.advance(2.0)


async def test_a_lease_that_ran_out_before_the_runs_were_read_is_not_begun(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was frozen between the two statements: others may be at it by now."""
    begun: list[str] = []
    handlers = Handlers()

    async def work(context: Context) -> None:
        begun.append(context.run_id)

    handlers.add("work", work)
    await enqueue(database, clock.now(), ["work"])
    async with a_worker(database, clock, handlers=handlers) as bench:
        real = type(bench.parts.parcels).wanted

        async def frozen(*arguments: Any) -> Any:
            clock.advance(TTL)
            return await real(*arguments)

        monkeypatch.setattr(type(bench.parts.parcels), "wanted", frozen)
        await bench.once()
        assert begun == []
        assert bench.parts.slots.idle
        assert not len(bench.parts.held)
