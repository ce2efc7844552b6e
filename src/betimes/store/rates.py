"""Rates by key in the store: what was said about a rate limit key of a tenant."""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from betimes.domain.ids import TenantId
from betimes.store.admit import SQL
from betimes.store.ask import many, maybe, one
from betimes.store.pool import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRate:
    """So many starts of the runs of one key in so many milliseconds."""

    key: str
    limit: int
    per_ms: int


async def put_rate(
    connection: Connection, tenant: TenantId, rate: KeyRate, *, now: datetime
) -> KeyRate:
    """Say what holds from now on."""
    return _rate_of(
        await one(
            connection,
            SQL["put_rate"],
            tenant=tenant,
            key=rate.key,
            rate_limit=rate.limit,
            rate_per_ms=rate.per_ms,
            now=now,
        )
    )


async def read_rate(connection: Connection, tenant: TenantId, key: str) -> KeyRate | None:
    """What was said about a key."""
    row = await maybe(connection, SQL["read_rate"], tenant=tenant, key=key)
    return None if row is None else _rate_of(row)


async def list_rates(
    connection: Connection, tenant: TenantId, *, after: str, most: int
) -> list[KeyRate]:
    """A page of keys about which something was said."""
    rows = await many(connection, SQL["list_rates"], tenant=tenant, after=after, most=most)
    return [_rate_of(row) for row in rows]


async def forget_rate(connection: Connection, tenant: TenantId, key: str) -> bool:
    """Say nothing about a key any more."""
    return await maybe(connection, SQL["forget_rate"], tenant=tenant, key=key) is not None


def _rate_of(row: asyncpg.Record) -> KeyRate:
    return KeyRate(key=row["key"], limit=row["rate_limit"], per_ms=row["rate_per_ms"])
