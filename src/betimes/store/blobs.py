"""Blobs in the store."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from betimes.domain.ids import TenantId, shard_of
from betimes.store.ask import maybe
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("blobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Something large, by reference."""

    id: UUID
    created_at: datetime
    expires_at: datetime | None
    size: int
    media_type: str
    content: bytes


async def insert_blob(connection: Connection, tenant: TenantId, blob: Blob) -> None:
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
        content=blob.content,
    )


async def read_blob(
    connection: Connection, tenant: TenantId, blob: UUID, *, now: datetime | None
) -> Blob | None:
    """One blob that has not expired."""
    row = await maybe(
        connection, SQL["read_blob"], shard=shard_of(blob), tenant=tenant, id=blob, now=now
    )
    return None if row is None else Blob(**dict(row))
