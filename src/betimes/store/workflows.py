"""Definitions of workflows in the store: rows in, values out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from betimes.domain.ids import JobId, ShardId, TenantId
from betimes.store.ask import many, maybe
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("workflows")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    """One version of a workflow; its definition may be sealed."""

    name: str
    version: int
    id: UUID
    definition: bytes
    digest: bytes
    created_at: datetime
    created_by: str | None


@dataclass(frozen=True, slots=True)
class Newest:
    """The latest version there ever was of a name."""

    version: int
    digest: bytes
    is_deleted: bool


async def lock_newest(
    connection: Connection, shard: ShardId, tenant: TenantId, name: str
) -> Newest | None:
    """The newest version, held; None when the name was never used."""
    row = await maybe(
        connection, SQL["lock_newest_workflow"], shard=shard, tenant=tenant, name=name
    )
    if row is None:
        return None
    return Newest(row["version"], row["digest"], row["deleted_at"] is not None)


async def insert_workflow(
    connection: Connection, shard: ShardId, tenant: TenantId, row: WorkflowRow
) -> bool:
    """Keep a version; False when somebody else has just made it."""
    made = await maybe(
        connection,
        SQL["insert_workflow"],
        shard=shard,
        tenant=tenant,
        name=row.name,
        version=row.version,
        id=row.id,
        definition=row.definition,
        digest=row.digest,
        now=row.created_at,
        by=row.created_by,
    )
    return made is not None


async def read_workflow(
    connection: Connection, shard: ShardId, tenant: TenantId, name: str, version: int | None
) -> WorkflowRow | None:
    """One version, or the newest."""
    row = await maybe(
        connection, SQL["read_workflow"], shard=shard, tenant=tenant, name=name, version=version
    )
    return None if row is None else _workflow(row)


async def list_workflows(
    connection: Connection, tenant: TenantId, *, after: str, most: int, bytes_max: int
) -> list[WorkflowRow]:
    """A page of workflows by name, each in its newest version."""
    rows = await many(
        connection, SQL["list_workflows"], tenant=tenant, after=after, most=most, bytes=bytes_max
    )
    return [_workflow(row) for row in rows]


async def list_versions(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    name: str,
    *,
    before: int,
    most: int,
    bytes_max: int,
) -> list[WorkflowRow]:
    """A page of versions, newest first."""
    rows = await many(
        connection,
        SQL["list_workflow_versions"],
        shard=shard,
        tenant=tenant,
        name=name,
        before=before,
        most=most,
        bytes=bytes_max,
    )
    return [_workflow(row) for row in rows]


async def delete_workflow(
    connection: Connection, shard: ShardId, tenant: TenantId, name: str, *, now: datetime
) -> Sequence[int]:
    """Mark all versions as deleted; which."""
    rows = await many(
        connection, SQL["delete_workflow"], shard=shard, tenant=tenant, name=name, now=now
    )
    return sorted(row["version"] for row in rows)


async def jobs_with_workflow(
    connection: Connection, tenant: TenantId, name: str, *, most: int
) -> list[JobId]:
    """Some of the jobs that would start it."""
    rows = await many(connection, SQL["find_workflow_jobs"], tenant=tenant, name=name, most=most)
    return [row["id"] for row in rows]


def _workflow(row: asyncpg.Record) -> WorkflowRow:
    return WorkflowRow(
        name=row["name"],
        version=row["version"],
        id=row["id"],
        definition=row["definition"],
        digest=row["digest"],
        created_at=row["created_at"],
        created_by=row["created_by"],
    )
