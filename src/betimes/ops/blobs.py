"""Blobs: payloads and results that are too large for a row of their own kind."""

from datetime import timedelta
from uuid import UUID

from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import TenantId, random_ids, to_ms, to_text
from betimes.ops.checks import check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store import blobs as rows
from betimes.store.blobs import Blob
from betimes.store.pool import Connection

__all__ = ["Blob", "create_blob", "get_blob", "new_blob"]

TTL_MAX = timedelta(days=366)


def new_blob(desk: Desk, content: bytes, *, media_type: str, ttl: timedelta) -> Blob:
    """A blob nobody has stored yet."""
    check_text(media_type, what="a media type", most=200, pointer="")
    if not timedelta(0) < ttl <= TTL_MAX:
        raise Invalid(f"expected to keep a blob for at most {TTL_MAX.days} days, got {ttl}")
    now = desk.clock.now()
    (identity,) = random_ids(to_ms(now), desk.next_shard(), desk.entropy(TAIL_BYTES))
    return Blob(
        id=identity,
        created_at=now,
        expires_at=now + ttl,
        size=len(content),
        media_type=media_type,
        content=content,
    )


async def create_blob(desk: Desk, tenant: TenantId, blob: Blob) -> Blob:
    """Keep a blob."""

    async def work(connection: Connection) -> Blob:
        await rows.insert_blob(connection, tenant, blob)
        return blob

    return await desk.transact(work, tenant=tenant)


async def get_blob(desk: Desk, tenant: TenantId, blob: UUID) -> Blob:
    """One blob of the tenant."""

    async def work(connection: Connection) -> Blob:
        found = await rows.read_blob(connection, tenant, blob, now=desk.clock.stated())
        if found is None:
            raise NotFound(f"there is no blob {to_text('blob', blob)}")
        return found

    return await desk.transact(work, tenant=tenant)
