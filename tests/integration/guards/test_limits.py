"""What keeps too many from being in flight: the lock, and the count under it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.leased import LeasedParcel, Source
from betimes.domain.terms import Terms
from betimes.store.admit import admit, declare
from betimes.store.ceilings import close_ledger, open_ledger
from betimes.store.database import Database
from betimes.store.lease import LeaseOrder, place_of
from betimes.store.parcels import Parcels
from betimes.store.pool import Lane
from betimes.store.release import Freed, release
from betimes.testing import ManualClock
from integration.guards.conftest import judged, promise, without
from worker_kit import QUEUE, SHARD, TENANT, enqueue, rows, worker_id

TTL = timedelta(seconds=30)
SOURCE = Source(SHARD, QUEUE, TENANT)
NO_LOCK = (r"FOR UPDATE OF limits", "")
WAITING = "SELECT FROM pg_locks WHERE NOT granted"

Work = Callable[[Any], Awaitable[None]]


async def side_by_side(database: Database, first: Work, second: Work) -> None:
    """Two transactions: the second one begins when the first has done everything but commit."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def held_open(connection: Any) -> None:
        await first(connection)
        begun.set()
        await go_on.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(database.transact(held_open, lane=Lane.ENGINE, repeatable=False))
        await begun.wait()
        other = group.create_task(database.transact(second, lane=Lane.COMPLETE, repeatable=False))
        while not other.done() and not await rows(database, WAITING):
            pass  # until it waits for us, or does not
        go_on.set()


async def in_flight(database: Database, condition: str) -> int:
    found = await rows(database, f"SELECT count(*) AS n FROM betimes.parcels WHERE {condition}")
    return int(found[0]["n"])


async def two_gated(database: Database, clock: ManualClock) -> list[LeasedParcel]:
    """Two parcels behind a gate for one, leased by two workers."""

    async def say(connection: Any) -> None:
        await declare(connection, TENANT, {"k": 1}, now=clock.now())

    await database.transact(say, lane=Lane.ENGINE, repeatable=True)
    await enqueue(database, clock.now(), ["noop"] * 2, terms=Terms(gate="k"))
    leased = []
    for number in (1, 2):
        lot = await Parcels(database, worker_id(number)).lease(
            [SOURCE], slots=1, parcels_max=1, ttl=TTL, now=clock.now()
        )
        leased += lot.leased
    return leased


def admits(clock: ManualClock, number: int, parcel: LeasedParcel) -> Work:
    async def work(connection: Any) -> None:
        await admit(connection, worker_id(number), [parcel.applicant(1)], now=clock.now())

    return work


async def test_a_gate_is_locked_while_somebody_is_let_in(
    database: Database, clock: ManualClock, guard: str
) -> None:
    one, two = await two_gated(database, clock)
    with judged(guard), without(guard, "limits", "lock_limits", *NO_LOCK):
        await side_by_side(database, admits(clock, 1, one), admits(clock, 2, two))
        promise(await in_flight(database, "slot") == 1, "two went through a gate for one")


async def test_a_gate_counts_who_is_inside(
    database: Database, clock: ManualClock, guard: str
) -> None:
    one, two = await two_gated(database, clock)
    with judged(guard), without(guard, "limits", "count_slots", r"count\(\*\)", "0 * count(*)"):
        for number, parcel in ((1, one), (2, two)):
            await database.transact(
                admits(clock, number, parcel), lane=Lane.ENGINE, repeatable=True
            )
        promise(await in_flight(database, "slot") == 1, "two went through a gate for one")


async def test_a_token_is_used_by_whoever_is_let_in(
    database: Database, clock: ManualClock, guard: str
) -> None:
    """Two one after the other at a rate of one a second: the second one waits."""
    await rows(
        database,
        "INSERT INTO betimes.limits (tenant_id, kind, key, rate_limit, rate_per_ms)"
        " VALUES ($1, 'rate', 'r', 1, 1000)",
        TENANT,
    )
    await enqueue(database, clock.now(), ["noop"] * 2, terms=Terms(rate="r"))
    unwritten = (r"SET tokens = left_over.tokens", "SET tokens = limits.tokens")
    with judged(guard), without(guard, "limits", "write_tokens", *unwritten):
        for number in (1, 2):
            lot = await Parcels(database, worker_id(number)).lease(
                [SOURCE], slots=1, parcels_max=1, ttl=TTL, now=clock.now()
            )
            for parcel in lot.leased:
                await database.transact(
                    admits(clock, number, parcel), lane=Lane.ENGINE, repeatable=True
                )
        promise(await in_flight(database, "slot") == 1, "two started at a rate of one")


async def test_a_rate_is_locked_while_somebody_is_let_in(
    database: Database, clock: ManualClock, guard: str
) -> None:
    await rows(
        database,
        "INSERT INTO betimes.limits (tenant_id, kind, key, rate_limit, rate_per_ms, tokens,"
        " refilled_at) VALUES ($1, 'rate', 'r', 1, 1000, 1, $2)",
        TENANT,
        clock.now(),
    )
    await enqueue(database, clock.now(), ["noop"] * 2, terms=Terms(rate="r"))
    leased: list[LeasedParcel] = []
    for number in (1, 2):
        lot = await Parcels(database, worker_id(number)).lease(
            [SOURCE], slots=1, parcels_max=1, ttl=TTL, now=clock.now()
        )
        leased += lot.leased
    one, two = leased
    with judged(guard), without(guard, "limits", "lock_limits", *NO_LOCK):
        await side_by_side(database, admits(clock, 1, one), admits(clock, 2, two))
        promise(await in_flight(database, "slot") == 1, "two took one token")


async def a_ceiling_of_one(database: Database, clock: ManualClock) -> None:
    tenant = "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'a', 'A')"
    await rows(database, tenant, TENANT)
    await rows(
        database,
        "INSERT INTO betimes.queues (tenant_id, name, max_concurrency) VALUES ($1, $2, 1)",
        TENANT,
        QUEUE,
    )
    for _ in range(2):
        await enqueue(database, clock.now(), ["noop"])

    async def make(connection: Any) -> None:
        await open_ledger(connection, [place_of(SOURCE)], now=clock.now())

    # The rows are there before: a new one would keep the second waiting by itself.
    await database.transact(make, lane=Lane.ENGINE, repeatable=True)


def leases(clock: ManualClock, number: int) -> Work:
    order = LeaseOrder(
        worker=worker_id(number), parcels_max=1, suspects=False, ttl=TTL, now=clock.now()
    )

    async def work(connection: Any) -> None:
        ledger = await open_ledger(connection, [place_of(SOURCE)], now=clock.now())
        await order.lease(connection, [SOURCE], 9, ledger, [SOURCE])
        await close_ledger(connection, ledger)

    return work


async def test_a_ceiling_is_locked_while_somebody_leases(
    database: Database, clock: ManualClock, guard: str
) -> None:
    await a_ceiling_of_one(database, clock)
    with judged(guard), without(guard, "ceilings", "lock_ceilings", *NO_LOCK):
        await side_by_side(database, leases(clock, 1), leases(clock, 2))
        count = await in_flight(database, "worker_id IS NOT NULL")
        promise(count == 1, "two are in flight under a ceiling of one")


async def test_a_ceiling_counts_what_is_leased(
    database: Database, clock: ManualClock, guard: str
) -> None:
    await a_ceiling_of_one(database, clock)
    counted = r"coalesce\(sum"
    with judged(guard), without(guard, "ceilings", "count_in_flight", counted, "0 * coalesce(sum"):
        for number in (1, 2):
            await database.transact(leases(clock, number), lane=Lane.ENGINE, repeatable=True)
        count = await in_flight(database, "worker_id IS NOT NULL")
        promise(count == 1, "two are in flight under a ceiling of one")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_who_frees_a_slot_and_who_is_held_do_not_miss_each_other(
    database: Database, clock: ManualClock, order: tuple[int, int], guard: str
) -> None:
    """The end of one run and the holding of the next, side by side: somebody is always offered."""
    one, two = await two_gated(database, clock)
    await database.transact(admits(clock, 1, one), lane=Lane.ENGINE, repeatable=True)

    async def ends(connection: Any) -> None:
        await connection.execute("DELETE FROM betimes.parcels WHERE id = $1", one.id)
        freed = Freed()
        freed.note(TENANT, QUEUE, one.terms)
        await release(connection, freed)

    works = [ends, admits(clock, 2, two)]
    with judged(guard), without(guard, "limits", "lock_limits", *NO_LOCK):
        await side_by_side(database, works[order[0]], works[order[1]])
        promise(await in_flight(database, "held = 1") == 0, "it is held although there is room")
