"""Gates and lines: never too many in flight, nobody forgotten, nothing paid without one."""

from typing import Any
from uuid import UUID

import pytest

from betimes.domain.ids import JobId, compose, to_ms
from betimes.domain.states import RunState
from betimes.domain.terms import SKIP, Terms
from betimes.store.admit import declare
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.reap import Reaping
from betimes.store.repair import FIRST_GATE, FIRST_LINE, Repairing
from betimes.testing import ManualClock
from worker_kit import (
    SHARD,
    TENANT,
    Bench,
    a_worker,
    enqueue,
    parcels,
    rows,
    settle_down,
    state_of,
)

GATED = Terms(gate="k")
SLEEP = b'{"seconds": 5}'
LINED = "SELECT count(*) AS n FROM betimes.parcels WHERE slot AND line IS NOT NULL"


async def in_flight(database: Database) -> int:
    (row,) = await rows(database, "SELECT count(*) AS n FROM betimes.parcels WHERE slot")
    return int(row["n"])


async def allow(database: Database, clock: ManualClock, **mosts: int | None) -> None:
    async def work(connection: Any) -> None:
        await declare(connection, TENANT, mosts, now=clock.now())

    await database.transact(work, lane=Lane.ENGINE, repeatable=True)


async def sleepers(
    database: Database, clock: ManualClock, count: int, terms: Terms, **more: Any
) -> list[Any]:
    return await enqueue(
        database,
        clock.now(),
        ["sleep"] * count,
        payload=b'{"seconds": 5}',
        terms=terms,
        **more,
    )


async def pass_time(worker: Bench, clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds)
    await settle_down()
    await worker.parts.reporter.flush()


async def test_no_more_than_the_limit_runs_and_the_rest_follows(
    database: Database, clock: ManualClock
) -> None:
    await allow(database, clock, k=2)
    runs = await sleepers(database, clock, 5, GATED)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await in_flight(database) == 2
        assert [row["held"] for row in await parcels(database)].count(1) == 3
        for left in (3, 1, 0):
            await pass_time(worker, clock, 5)
            # What became free was offered with the end, so no poll is needed to find it.
            while await worker.once():
                pass
            assert await in_flight(database) == min(2, left)
            assert len(await parcels(database)) == left
    assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}
    attempts = await rows(database, "SELECT attempt FROM betimes.runs")
    assert {row["attempt"] for row in attempts} == {1}, "waiting costs no attempt"


async def test_without_a_declared_limit_the_queue_decides_and_else_it_is_one(
    database: Database, clock: ManualClock
) -> None:
    await sleepers(database, clock, 3, GATED)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await in_flight(database) == 1
        await rows(
            database,
            "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'a', 'A')",
            TENANT,
        )
        await rows(
            database,
            "INSERT INTO betimes.queues (tenant_id, name, settings)"
            " SELECT tenant_id, queue, '{\"per_key_concurrency\": 3}' FROM betimes.parcels LIMIT 1",
        )
        await Repairing(database).gates(FIRST_GATE, now=None)
        await worker.poll_once()
        assert await in_flight(database) == 3


async def test_who_would_rather_not_wait_is_skipped_with_the_reason(
    database: Database, clock: ManualClock
) -> None:
    runs = await sleepers(database, clock, 3, GATED._replace(when_full=SKIP))
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        states = [await state_of(database, run) for run in runs]
        assert sorted(states) == [RunState.QUEUED, RunState.SKIPPED, RunState.SKIPPED]
        found = await rows(database, "SELECT DISTINCT reason FROM betimes.runs WHERE state = 7")
        assert [row["reason"] for row in found] == ["CONCURRENCY_KEY_FULL"]
        assert await in_flight(database) == 1


async def test_the_runs_of_a_line_go_one_after_the_other_in_order(
    database: Database, clock: ManualClock
) -> None:
    line = JobId(compose(to_ms(clock.now()), SHARD, 5))
    first, second = [
        (await sleepers(database, clock, 1, Terms(line=line)))[0],
        (await sleepers(database, clock, 1, Terms(line=line)))[0],
    ]
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await in_flight(database) == 1
        await pass_time(worker, clock, 5)
        await worker.once()
        assert await state_of(database, first) is RunState.SUCCEEDED
        assert await in_flight(database) == 1
        await pass_time(worker, clock, 5)
        assert await state_of(database, second) is RunState.SUCCEEDED


async def test_a_parcel_in_front_of_two_doors_passes_both_or_none(
    database: Database, clock: ManualClock
) -> None:
    """Three of one line and one of nobody's, all through one gate for two."""
    await allow(database, clock, k=2)
    line = JobId(compose(to_ms(clock.now()), SHARD, 5))
    await sleepers(database, clock, 3, GATED._replace(line=line))
    other = await sleepers(database, clock, 1, GATED)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await in_flight(database) == 2
        for _ in range(3):
            await pass_time(worker, clock, 5)
            while await worker.once():
                pass
            lined = await rows(
                database,
                "SELECT count(*) AS n FROM betimes.parcels WHERE slot AND line IS NOT NULL",
            )
            assert lined[0]["n"] <= 1
    assert await state_of(database, other[0]) is RunState.SUCCEEDED
    assert await parcels(database) == []


async def test_a_crash_frees_the_slot_when_the_lease_ends(
    database: Database, clock: ManualClock
) -> None:
    await sleepers(database, clock, 2, GATED)
    async with a_worker(database, clock, number=1) as dead:
        await dead.poll_once()
        assert await in_flight(database) == 1
        clock.advance(3600)
        async with a_worker(database, clock, number=2) as heir:
            numbers = iter(range(1, 1000))
            reaping = Reaping(database, lambda: UUID(int=next(numbers)))
            assert len(await reaping.reap(SHARD, most=10, now=clock.now())) == 1
            assert await in_flight(database) == 0
            await Repairing(database).gates(FIRST_GATE, now=None)
            await heir.poll_once()
            assert await in_flight(database) == 1
            for _ in range(2):
                await pass_time(heir, clock, 5)
                while await heir.once():
                    pass
    assert await parcels(database) == []


async def test_a_drain_gives_the_slot_back_without_an_attempt(
    database: Database, clock: ManualClock
) -> None:
    await sleepers(database, clock, 1, GATED)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        (held,) = list(worker.parts.held)
        back = await worker.parts.parcels.give_back(SHARD, [(held.leased.id, held.leased.fence)])
        assert back == 1
        (row,) = await parcels(database)
        assert (row["slot"], row["held"], row["deliveries"]) == (False, 0, 0)


async def test_a_retry_keeps_its_terms(database: Database, clock: ManualClock) -> None:
    terms = Terms(fair=9, gate="k", when_full=SKIP)
    await enqueue(database, clock.now(), ["fail"], terms=terms)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    (row,) = await parcels(database)
    assert (row["fair"], row["gate"], row["when_full"], row["slot"]) == (9, "k", SKIP, False)


async def test_what_was_cancelled_behind_a_gate_hides_nobody(
    database: Database, clock: ManualClock
) -> None:
    """An offered parcel that nobody wants passes its offer on."""
    runs = await sleepers(database, clock, 5, GATED)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        going = {one.run.id for one in worker.parts.executor.running}
        unwanted = [run for run in runs if run not in going][:3]
        end = "UPDATE betimes.runs SET state = 6, finished_at = now() WHERE id = ANY ($1::uuid[])"
        await rows(database, end, unwanted)
        await pass_time(worker, clock, 5)
        while await worker.once():
            pass
        assert await in_flight(database) == 1


async def test_repair_offers_what_was_forgotten(database: Database, clock: ManualClock) -> None:
    line = JobId(compose(to_ms(clock.now()), SHARD, 5))
    await sleepers(database, clock, 1, GATED)
    await sleepers(database, clock, 1, Terms(line=line))
    await rows(database, "UPDATE betimes.parcels SET held = 1, held_at = now()")
    repairing = Repairing(database, most=1)
    offered, place = await repairing.gates(FIRST_GATE, now=None)
    assert (len(offered), place) == (1, (TENANT, "k"))
    assert await repairing.gates(place or FIRST_GATE, now=None) == ([], None)
    offered, _ = await repairing.lines(FIRST_LINE, now=None)
    assert len(offered) == 1
    assert {row["held"] for row in await parcels(database)} == {0}


async def test_limits_that_nobody_needs_are_forgotten(
    database: Database, clock: ManualClock
) -> None:
    await allow(database, clock, k=2, other=3)
    await sleepers(database, clock, 1, GATED)
    repairing = Repairing(database)
    assert await repairing.forget(now=clock.now()) == 0
    clock.advance(2 * 86_400)
    assert await repairing.forget(now=clock.now()) == 1
    (row,) = await rows(database, "SELECT key, max_inflight FROM betimes.limits")
    assert (row["key"], row["max_inflight"]) == ("k", 2)


@pytest.mark.parametrize("gated", [False, True])
async def test_a_bare_run_pays_nothing(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, *, gated: bool
) -> None:
    asked: list[str] = []
    plain = Database.transact

    async def counted(self: Database, work: Any, **given: Any) -> Any:
        asked.append(work.__qualname__)
        return await plain(self, work, **given)

    monkeypatch.setattr(Database, "transact", counted)
    await enqueue(database, clock.now(), ["noop"] * 3, terms=GATED if gated else Terms())
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    assert any("admit" in name for name in asked) == gated
    assert await rows(database, "SELECT FROM betimes.limits") == [] or gated
