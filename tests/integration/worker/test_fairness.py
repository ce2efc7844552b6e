"""Shares on the real store: a crowd next door, weights, and more places than one look can hold."""

import asyncio
from collections import Counter
from uuid import UUID

import pytest

from betimes.domain.ids import ShardId, TenantId
from betimes.domain.terms import Terms
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker import lookout, slots
from betimes.worker.slots import MOMENT_SECONDS, STALE_SECONDS
from worker_kit import QUEUE, a_worker, enqueue, rows, settle_down

HOT, SMALL = TenantId(UUID(int=501)), TenantId(UUID(int=502))
AHEAD = 40
"""Slots and what is leased beyond them, together."""


async def done(database: Database) -> dict[UUID, int]:
    found = await rows(
        database,
        "SELECT tenant_id, count(*) AS n FROM betimes.runs WHERE state = 4 GROUP BY tenant_id",
    )
    return {row["tenant_id"]: row["n"] for row in found}


async def weigh(database: Database, tenant: TenantId, weight: float) -> None:
    await rows(
        database,
        "INSERT INTO betimes.tenants (id, slug, name, weight) VALUES ($1, $2, 'x', $3)",
        tenant,
        f"t{tenant.int}",
        weight,
    )


async def test_a_hundred_times_the_load_next_door_costs_at_most_one_helping(
    database: Database, clock: ManualClock
) -> None:
    for _ in range(20):
        await enqueue(database, clock.now(), ["noop"] * 20, tenant=HOT)
    await enqueue(database, clock.now(), ["noop"] * 4, tenant=SMALL)
    async with a_worker(database, clock, slots=4) as worker:
        await worker.once()
        await worker.once()
        clock.advance(0.01)
        await worker.once()
        assert (await done(database)).get(SMALL) == 4


async def test_backlogged_tenants_get_their_weights_part(
    database: Database, clock: ManualClock
) -> None:
    await weigh(database, HOT, 3.0)
    await weigh(database, SMALL, 1.0)
    for tenant in (HOT, SMALL):
        for _ in range(10):
            await enqueue(database, clock.now(), ["noop"] * 20, tenant=tenant)
    async with a_worker(database, clock, slots=4) as worker:
        for _ in range(60):
            await worker.once()
            clock.advance(STALE_SECONDS)  # slowly: nothing is leased ahead
        had = await done(database)
    assert had[HOT] + had[SMALL] < 400, "both still have a backlog"
    assert had[HOT] / (had[HOT] + had[SMALL]) == pytest.approx(0.75, rel=0.1)


@pytest.mark.parametrize("claims", [1, 2])
async def test_weights_are_kept_while_a_worker_leases_ahead(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, claims: int
) -> None:
    """Helpings are ten times the slots then; claims that are under way at once share as well."""
    monkeypatch.setattr(slots, "AHEAD_MAX", AHEAD)
    await weigh(database, HOT, 3.0)
    await weigh(database, SMALL, 1.0)
    for tenant in (HOT, SMALL):
        for number in range(60):
            shard = ShardId(1 + number % 3)
            await enqueue(database, clock.now(), ["noop"] * 50, tenant=tenant, shard=shard)
    async with a_worker(database, clock, slots=4) as worker:

        async def work(passes: int) -> Counter[UUID]:
            for _ in range(passes):
                await asyncio.gather(*(worker.parts.lookout.tick() for _ in range(claims)))
                await settle_down()
                await worker.parts.reporter.flush()
                clock.advance(MOMENT_SECONDS / 2)
            return Counter(await done(database))

        before = await work(15)
        assert worker.parts.slots.ahead == AHEAD - 4, "it leases ahead by now, as much as it may"
        after = await work(80)
        had = after - before
    assert after[HOT] < 3_000, "both still have a backlog"
    assert had.total() >= 80 * AHEAD * 0.9
    assert had[HOT] / had.total() == pytest.approx(0.75, rel=0.05)


async def test_fairness_keys_take_turns(database: Database, clock: ManualClock) -> None:
    await weigh(database, HOT, 1.0)
    await rows(
        database,
        "INSERT INTO betimes.queues (tenant_id, name, fairness) VALUES ($1, $2, 'key')",
        HOT,
        QUEUE,
    )
    for _ in range(10):
        await enqueue(database, clock.now(), ["noop"] * 20, tenant=HOT, terms=Terms(fair=7))
    (late,) = await enqueue(database, clock.now(), ["noop"], tenant=HOT, terms=Terms(fair=8))
    async with a_worker(database, clock, slots=4) as worker:
        for _ in range(3):
            await worker.once()
            clock.advance(0.01)
    (row,) = await rows(database, "SELECT state FROM betimes.runs WHERE id = $1", late)
    assert row["state"] == 4


async def test_with_more_places_than_a_look_can_hold_none_stays_unseen(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "SOURCES_MAX", 2)
    tenants = [TenantId(UUID(int=600 + number)) for number in range(5)]
    for tenant in tenants:
        for _ in range(3):
            await enqueue(database, clock.now(), ["noop"], tenant=tenant)
    async with a_worker(database, clock, slots=1) as worker:
        seen = set()
        for _ in range(3):
            seen |= {one.tenant for one in await worker.parts.lookout._find(suspects=False)}
    assert seen == set(tenants)
