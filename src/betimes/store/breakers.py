"""Circuit breakers in the store: what workers tell each other about origins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from betimes.domain.clock import Clock
from betimes.domain.ids import TenantId, WorkerId
from betimes.store.ask import many, maybe
from betimes.store.database import Database
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("breakers")
BROKEN_MAX = 10_000


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
            now=self.clock.stated(),
        )

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
    return None if row is None else breaker_of(row)


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
