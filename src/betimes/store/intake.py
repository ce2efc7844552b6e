"""The intake in the store: what was asked for inside transactions of others, and by whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import asyncpg

from betimes.domain.dedupe import Dedupe, DedupeForm
from betimes.domain.ids import RunId, ShardId, TenantId, shard_of
from betimes.domain.run import NewRun
from betimes.store.ask import execute, many, maybe, one
from betimes.store.database import Database
from betimes.store.jobs import from_json
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("intake")
HINTS = "betimes_intake"
"""The channel on which the function tells that something waits."""
SHARDS_MAX = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run that somebody's committed transaction has asked for."""

    id: RunId
    tenant: TenantId
    producer: str
    due_at: datetime
    new: NewRun
    known: bool = True
    """Whether its tenant is still there."""


class Producer(NamedTuple):
    """A database role that may ask, and for whom."""

    role: str
    tenant: str
    hints: bool


async def has_silent_producers(database: Database) -> bool:
    """Whether somebody enqueues whose commits do not notify."""
    return bool(await database.many(SQL["find_silent_producers"], lane=Lane.ENGINE))


async def waiting_shards(connection: Connection) -> list[ShardId]:
    """Where something waits."""
    rows = await many(connection, SQL["find_intake"], most=SHARDS_MAX)
    return [row["shard"] for row in rows]


async def lock_asked(connection: Connection, shard: ShardId, *, most: int) -> list[Asked]:
    """Some of what waits in a shard and nobody else is making, oldest first."""
    rows = await many(connection, SQL["lock_intake"], shard=shard, most=most)
    return [_asked(row) for row in rows]


async def delete_asked(connection: Connection, shard: ShardId, runs: Sequence[RunId]) -> None:
    """They are made."""
    await execute(connection, SQL["delete_intake"], shard=shard, ids=list(runs))


async def refuse_asked(connection: Connection, run: RunId, why: str) -> None:
    """It cannot be made; it stays, for somebody to look at."""
    await execute(connection, SQL["refuse_intake"], shard=shard_of(run), id=run, why=why)


async def read_asked(connection: Connection, run: RunId) -> Asked | None:
    """One that is not made yet."""
    row = await maybe(connection, SQL["read_intake"], shard=shard_of(run), id=run)
    return None if row is None else _asked(row)


async def admit_producer(
    connection: Connection, role: str, tenant: TenantId, *, hints: bool
) -> None:
    """Let a database role enqueue for a tenant."""
    await one(connection, SQL["admit_producer"], role=role, tenant=tenant, hints=hints)


async def dismiss_producer(connection: Connection, role: str, tenant: TenantId) -> bool:
    """Do not let it any longer; whether it was let before."""
    row = await one(connection, SQL["dismiss_producer"], role=role, tenant=tenant)
    return bool(row["dismissed"])


async def list_producers(connection: Connection) -> list[Producer]:
    """Everybody who may, by role and tenant."""
    return [Producer(*row.values()) for row in await many(connection, SQL["list_producers"])]


def _asked(row: asyncpg.Record) -> Asked:
    dedupe = None
    if row["dedupe_key"] is not None:
        window = row["dedupe_ms"]
        dedupe = Dedupe(
            key=row["dedupe_key"],
            window=None if window is None else timedelta(milliseconds=window),
            form=DedupeForm(row["dedupe_form"]),
        )
    return Asked(
        id=row["id"],
        tenant=row["tenant_id"],
        producer=row["producer"],
        due_at=row["due_at"],
        new=NewRun(
            handler=row["handler"],
            payload=row["payload"],
            queue=row["queue"],
            priority=row["priority"],
            due_at=row["due_at"],
            options=from_json(row["options"]),
            dedupe=dedupe,
        ),
        known=row["known"],
    )
