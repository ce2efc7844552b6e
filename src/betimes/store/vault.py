"""Data keys in the store: wrapped, never open."""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from betimes.domain.ids import TenantId
from betimes.store.ask import execute, many, maybe
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("vault")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedKey:
    """A data key of a tenant under a master key."""

    version: int
    master: bytes
    wrapped: bytes
    created_at: datetime
    inline: bool = False
    """Whether it seals what lies in rows of runs and jobs."""


async def adopt_master(database: Database, master: bytes) -> bytes:
    """Which master key this cell is used with; ours if it had none."""
    row = await database.maybe(SQL["adopt_master"], lane=Lane.API, master=master)
    kept: bytes = b"" if row is None else row["master_check"]
    return kept


async def follow_master(connection: Connection, master: bytes) -> None:
    """From now on another one is the one to have."""
    await execute(connection, SQL["follow_master"], master=master)


async def read_data_keys(connection: Connection, tenant: TenantId) -> list[WrappedKey]:
    """The data keys of a tenant, newest first."""
    return [key_of(row) for row in await many(connection, SQL["read_data_keys"], tenant=tenant)]


async def insert_data_key(connection: Connection, tenant: TenantId, key: WrappedKey) -> bool:
    """Keep a new data key; False when somebody else was quicker."""
    row = await maybe(
        connection,
        SQL["insert_data_key"],
        tenant=tenant,
        version=key.version,
        master=key.master,
        wrapped=key.wrapped,
        now=key.created_at,
    )
    return row is not None


async def mark_inline(connection: Connection, tenant: TenantId, version: int) -> None:
    """Note that a data key seals what lies in rows of runs and jobs."""
    await execute(connection, SQL["mark_inline_key"], tenant=tenant, version=version)


async def under_other_masters(
    connection: Connection, master: bytes, *, most: int
) -> list[tuple[TenantId, WrappedKey]]:
    """Some data keys that are wrapped under another master key."""
    rows = await many(connection, SQL["keys_under_other_masters"], master=master, most=most)
    return [(TenantId(row["tenant_id"]), key_of(row)) for row in rows]


async def rewrap(
    connection: Connection, tenant: TenantId, key: WrappedKey, *, master: bytes, wrapped: bytes
) -> bool:
    """Keep a data key under another master key; False when somebody else has moved it."""
    row = await maybe(
        connection,
        SQL["rewrap_data_key"],
        tenant=tenant,
        version=key.version,
        was=key.master,
        master=master,
        wrapped=wrapped,
    )
    return row is not None


async def aged(connection: Connection, *, before: datetime, most: int) -> list[TenantId]:
    """Tenants whose newest data key was made before an instant."""
    rows = await many(connection, SQL["aged_data_keys"], before=before, most=most)
    return [TenantId(row["tenant_id"]) for row in rows]


async def with_old_keys(connection: Connection, *, after: TenantId, most: int) -> list[TenantId]:
    """Tenants that have more than one data key, in order."""
    rows = await many(connection, SQL["tenants_with_old_keys"], after=after, most=most)
    return [TenantId(row["tenant_id"]) for row in rows]


async def drop_unused(connection: Connection, tenant: TenantId, *, before: datetime) -> int:
    """Forget data keys that seal nothing and were replaced before an instant; how many."""
    rows = await many(connection, SQL["drop_unused_data_keys"], tenant=tenant, before=before)
    return len(rows)


def key_of(row: asyncpg.Record) -> WrappedKey:
    """A row as a value."""
    return WrappedKey(
        version=row["version"],
        master=row["master"],
        wrapped=row["wrapped"],
        created_at=row["created_at"],
        inline=row["inline"],
    )
