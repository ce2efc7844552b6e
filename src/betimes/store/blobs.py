"""Blobs in the store: sealed rows, with their content or the place where it is."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from betimes.domain.ids import ShardId, TenantId, shard_of
from betimes.store.ask import many, maybe
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("blobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRow:
    """Something large, sealed: `content` holds it, or `location` says where it is."""

    id: UUID
    created_at: datetime
    expires_at: datetime | None
    size: int
    media_type: str
    retention: str
    key_version: int
    location: str | None
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Located:
    """A blob that lies outside the database."""

    tenant: TenantId
    id: UUID
    location: str


async def insert_blob(connection: Connection, tenant: TenantId, blob: BlobRow) -> None:
    """Keep a blob."""
    await maybe(
        connection,
        SQL["insert_blob"],
        shard=shard_of(blob.id),
        tenant=tenant,
        id=blob.id,
        now=blob.created_at,
        expires_at=blob.expires_at,
        size=blob.size,
        media_type=blob.media_type,
        retention=blob.retention,
        key_version=blob.key_version,
        location=blob.location,
        content=blob.content,
    )


async def read_blob(
    connection: Connection, tenant: TenantId, blob: UUID, *, now: datetime | None
) -> BlobRow | None:
    """One blob that has not expired."""
    row = await maybe(
        connection, SQL["read_blob"], shard=shard_of(blob), tenant=tenant, id=blob, now=now
    )
    return None if row is None else BlobRow(**dict(row))


async def find_blobs(
    connection: Connection, tenant: TenantId, blobs: Collection[UUID], *, now: datetime | None
) -> frozenset[UUID]:
    """Those that are there and have not expired."""
    ids = list(blobs)
    shards = [shard_of(blob) for blob in ids]
    rows = await many(connection, SQL["find_blobs"], tenant=tenant, shards=shards, ids=ids, now=now)
    return frozenset(row["id"] for row in rows)


async def expired_objects(
    connection: Connection, shard: ShardId, *, now: datetime | None, most: int
) -> list[Located]:
    """Blobs of a shard outside the database whose time is up."""
    rows = await many(connection, SQL["expired_objects"], shard=shard, now=now, most=most)
    return [_located(row) for row in rows]


async def objects_of(connection: Connection, tenant: TenantId, *, most: int) -> list[Located]:
    """Some blobs of a tenant outside the database."""
    rows = await many(connection, SQL["objects_of_tenant"], tenant=tenant, most=most)
    return [_located(row) for row in rows]


async def delete_blob(connection: Connection, tenant: TenantId, blob: UUID) -> None:
    """Forget a blob."""
    await maybe(connection, SQL["delete_blob"], shard=shard_of(blob), tenant=tenant, id=blob)


async def under_old_keys(
    connection: Connection, tenant: TenantId, *, newest: int, most: int
) -> list[BlobRow]:
    """Some blobs that are sealed under an older data key."""
    rows = await many(
        connection, SQL["blobs_under_old_keys"], tenant=tenant, newest=newest, most=most
    )
    return [BlobRow(**dict(row)) for row in rows]


async def reseal(connection: Connection, tenant: TenantId, blob: BlobRow, *, was: int) -> bool:
    """Keep a blob under a newer data key; False when somebody else has moved it."""
    row = await maybe(
        connection,
        SQL["reseal_blob"],
        shard=shard_of(blob.id),
        tenant=tenant,
        id=blob.id,
        key_version=blob.key_version,
        location=blob.location,
        content=blob.content,
        was=was,
    )
    return row is not None


def _located(row: asyncpg.Record) -> Located:
    return Located(TenantId(row["tenant_id"]), row["id"], row["location"])
