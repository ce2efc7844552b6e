"""Circuit breakers in the store: what workers tell each other about origins."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.clock import Clock
from betimes.domain.ids import ShardId, TenantId, WorkerId
from betimes.store.ask import execute, many, maybe
from betimes.store.database import Database
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("breakers")
BROKEN_MAX = 10_000
WOKEN_MAX = 1_000
"""Most parcels that are brought forward in one transaction."""
RAMP_START, RAMP_DOUBLES_SECONDS = 10.0, 5.0
"""How fast an origin that comes back is asked, as gates do it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRow:
    """What is known about one origin of one tenant."""

    tenant: TenantId
    origin: str
    state: int
    failures: int
    opened_at: datetime | None
    probe_at: datetime | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    updated_at: datetime | None = None
    changed: bool = True
    """Whether a worker tells it as news."""


@dataclass(frozen=True, slots=True)
class Breakers:
    """The breakers, as one worker sees them."""

    database: Database
    worker: WorkerId
    clock: Clock

    async def write(self, rows: Sequence[BreakerRow]) -> None:
        """Tell what is known; in one order, so that two workers never wait for each other."""
        if not rows:
            return
        ordered = sorted(rows, key=lambda row: (row.tenant, row.origin))
        await self.database.many(
            SQL["write_breakers"],
            lane=Lane.ENGINE,
            tenants=[row.tenant for row in ordered],
            origins=[row.origin for row in ordered],
            states=[row.state for row in ordered],
            failures=[row.failures for row in ordered],
            opened=[row.opened_at for row in ordered],
            probes=[row.probe_at for row in ordered],
            facts=[to_json(row.facts) for row in ordered],
            news=[row.changed for row in ordered],
            worker=self.worker,
            now=self.clock.stated(),
        )

    async def call_probers(self, probes: Mapping[tuple[TenantId, str], float]) -> None:
        """Have one run of those that wait for each origin come in so many seconds, to probe.

        Nobody is called where somebody comes by then, or probes already.
        """
        if not probes:
            return
        ordered = sorted(probes)

        async def work(connection: Connection) -> None:
            found = await many(
                connection,
                SQL["find_probers"],
                tenants=[tenant for tenant, _ in ordered],
                origins=[origin for _, origin in ordered],
                now=self.clock.stated(),
            )
            for row in sorted(found, key=lambda row: (row["shard"], row["id"])):
                pause = max(0.0, probes[ordered[row["number"] - 1]])
                at = row["now"] + timedelta(seconds=pause)
                if at < row["visible_at"]:
                    rank = row["rank"] - (row["visible_at"] - at)
                    given = {"shard": row["shard"], "id": row["id"], "at": at, "rank": rank}
                    await execute(connection, SQL["call_prober"], **given)

        await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def wake(self, closed: Collection[tuple[TenantId, str]]) -> int:
        """Bring forward what waits for origins that are well again; how many parcels."""

        async def work(connection: Connection) -> int:
            return await wake_waiting(connection, closed, now=self.clock.stated())

        total = 0
        while closed:
            woken = await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)
            total += woken
            if woken < WOKEN_MAX:
                break
        return total

    async def broken(self) -> tuple[datetime, list[BreakerRow]]:
        """The time, and every breaker that is not closed."""
        stated = self.clock.stated()
        rows = await self.database.many(
            SQL["broken_breakers"], lane=Lane.ENGINE, now=stated, most=BROKEN_MAX
        )
        now = rows[0]["now"] if rows else stated or datetime.fromtimestamp(0, UTC)
        return now, [breaker_of(row) for row in rows]

    async def claim(self, tenant: TenantId, origin: str, *, seconds: float) -> bool:
        """Be the one who probes; False when somebody else is."""
        rows = await self.database.many(
            SQL["claim_probe"],
            lane=Lane.ENGINE,
            tenant=tenant,
            origin=origin,
            worker=self.worker,
            patience=timedelta(seconds=seconds),
            now=self.clock.stated(),
        )
        return bool(rows)


async def reset_breaker(
    connection: Connection, tenant: TenantId, origin: str, *, now: datetime | None
) -> BreakerRow | None:
    """Close a breaker by hand; None when nothing is known about the origin."""
    row = await maybe(connection, SQL["reset_breaker"], tenant=tenant, origin=origin, now=now)
    if row is None:
        return None
    while await wake_waiting(connection, [(tenant, origin)], now=now) >= WOKEN_MAX:
        continue
    return breaker_of(row)


async def wake_waiting(
    connection: Connection, closed: Collection[tuple[TenantId, str]], *, now: datetime | None
) -> int:
    """Bring some of what waits for origins forward, along the ramp they begin with; how many."""
    ordered = sorted(closed)
    rows = await many(
        connection,
        SQL["find_behind"],
        tenants=[tenant for tenant, _ in ordered],
        origins=[origin for _, origin in ordered],
        most=WOKEN_MAX,
        now=now,
    )
    places: Counter[tuple[TenantId, str]] = Counter()
    by_shard: dict[ShardId, list[tuple[UUID, datetime, datetime]]] = {}
    for row in rows:
        key = row["tenant_id"], row["origin"]
        places[key] += row["runs"]
        at = min(row["visible_at"], row["now"] + _ramp(places[key]))
        rank = row["rank"] - (row["visible_at"] - at)
        by_shard.setdefault(row["shard"], []).append((row["id"], at, rank))
    for shard in sorted(by_shard):
        moved = sorted(by_shard[shard])
        await execute(
            connection,
            SQL["bring_forward"],
            shard=shard,
            ids=[one for one, _, _ in moved],
            times=[at for _, at, _ in moved],
            ranks=[rank for _, _, rank in moved],
        )
    return len(rows)


def _ramp(place: int) -> timedelta:
    """After how long the run at a place has its turn, when as many come as the origin is asked."""
    scale = RAMP_START * RAMP_DOUBLES_SECONDS
    return timedelta(seconds=RAMP_DOUBLES_SECONDS * math.log2(1.0 + place / scale))


async def list_breakers(
    connection: Connection, tenant: TenantId, *, after: str, most: int
) -> list[BreakerRow]:
    """A page of what is known about a tenant's origins."""
    rows = await many(connection, SQL["list_breakers"], tenant=tenant, after=after, most=most)
    return [breaker_of(row) for row in rows]


def breaker_of(row: asyncpg.Record) -> BreakerRow:
    """A row as a value."""
    return BreakerRow(
        tenant=row["tenant_id"],
        origin=row["origin"],
        state=row["state"],
        failures=row["failures"],
        opened_at=row["opened_at"],
        probe_at=row["probe_at"],
        facts=from_json(row["facts"]),
        updated_at=row["updated_at"],
    )
