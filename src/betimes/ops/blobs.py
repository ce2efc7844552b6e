"""Blobs: payloads and results that are too large for a row of their own kind.

What is kept is sealed under the tenant's data key, wherever it is kept. Content that lies outside
the database is written before its row and removed before its row: a crash between the two leaves a
file that nobody refers to, or a row whose turn comes again, and never a row without its content.
No transaction is open while somebody else's store is asked.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.errors import Invalid, Locked, NotFound, TooLarge
from betimes.domain.ids import ShardId, TenantId, from_text, random_ids, to_ms, to_text
from betimes.ops.checks import check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.secrets import vault_of
from betimes.ops.vault import Keyring, Sealed
from betimes.store import blobs as rows
from betimes.store.blobs import BlobRow, Located
from betimes.store.pool import Connection
from betimes.wire.base import shown_duration

__all__ = [
    "RETENTIONS",
    "Blob",
    "BlobRow",
    "create_blob",
    "find_blobs",
    "forget_expired",
    "forget_objects",
    "get_blob",
    "get_blob_row",
    "keep_blob",
    "new_blob",
    "read_reference",
    "reseal_blobs",
    "sealed_blob",
    "unshelve",
]

TTL_MAX = timedelta(days=3_660)
BLOB_BYTES_MAX = 32 << 20
RETENTIONS: Mapping[str, timedelta] = {
    "brief": timedelta(days=1),
    "standard": timedelta(days=7),
    "long": timedelta(days=90),
    "archive": timedelta(days=3_660),
}
"""Classes of how long something is kept."""
STANDARD = "standard"
BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Something large, open."""

    id: UUID
    created_at: datetime
    expires_at: datetime | None
    size: int
    media_type: str
    retention: str
    content: bytes


def new_blob(
    desk: Desk,
    content: bytes,
    *,
    media_type: str,
    ttl: timedelta | None = None,
    retention: str = STANDARD,
) -> Blob:
    """A blob nobody has stored yet; a class says how long it is kept, unless `ttl` does."""
    check_text(media_type, what="a media type", most=200, pointer="")
    if len(content) > BLOB_BYTES_MAX:
        raise TooLarge(f"expected at most {BLOB_BYTES_MAX} bytes, got {len(content)}")
    if retention not in RETENTIONS:
        raise Invalid(f"expected one of {', '.join(RETENTIONS)}, got {retention[:40]!r}")
    lasts = RETENTIONS[retention] if ttl is None else ttl
    if not timedelta(0) < lasts <= TTL_MAX:
        raise Invalid(
            f"expected to keep a blob for at most {TTL_MAX.days} days, got {shown_duration(lasts)}"
        )
    now = desk.clock.now()
    (identity,) = random_ids(to_ms(now), desk.next_shard(), desk.entropy(TAIL_BYTES))
    return Blob(
        id=identity,
        created_at=now,
        expires_at=now + lasts,
        size=len(content),
        media_type=media_type,
        retention=retention,
        content=content,
    )


async def sealed_blob(desk: Desk, tenant: TenantId, blob: Blob) -> BlobRow:
    """The blob as its row, sealed; its content is on its shelf already, if there is one."""
    vault = vault_of(desk)

    async def work(connection: Connection) -> Sealed:
        return await vault.seal(connection, tenant, _place(blob.id), blob.content)

    sealed = await desk.transact(work, tenant=tenant)
    row = BlobRow(
        id=blob.id,
        created_at=blob.created_at,
        expires_at=blob.expires_at,
        size=blob.size,
        media_type=blob.media_type,
        retention=blob.retention,
        key_version=sealed.key_version,
        location=None,
        content=sealed.content,
    )
    return await _shelved(desk, tenant, row)


async def create_blob(desk: Desk, tenant: TenantId, row: BlobRow) -> BlobRow:
    """Keep the row of a blob."""

    async def work(connection: Connection) -> BlobRow:
        await rows.insert_blob(connection, tenant, row)
        return row

    return await desk.transact(work, tenant=tenant)


async def keep_blob(desk: Desk, tenant: TenantId, blob: Blob) -> str:
    """Seal and keep a blob; its reference."""
    row = await create_blob(desk, tenant, await sealed_blob(desk, tenant, blob))
    return to_text("blob", row.id)


async def get_blob(desk: Desk, tenant: TenantId, blob: UUID) -> Blob:
    """One blob of the tenant, open."""

    async def work(connection: Connection) -> tuple[BlobRow, Keyring | None]:
        found = await rows.read_blob(connection, tenant, blob, now=desk.clock.stated())
        if found is None:
            raise NotFound(f"there is no blob {to_text('blob', blob)}")
        keys = None
        if found.key_version:
            keys = await vault_of(desk).keyring(connection, tenant)
        return found, keys

    row, keys = await desk.transact(work, tenant=tenant)
    content = await _content(desk, row)
    if keys is not None:
        content = keys.open(_place(row.id), Sealed(row.key_version, content))
    return Blob(
        id=row.id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        size=row.size,
        media_type=row.media_type,
        retention=row.retention,
        content=content,
    )


async def get_blob_row(desk: Desk, tenant: TenantId, blob: UUID) -> BlobRow:
    """What is known about a blob, sealed as it is."""

    async def work(connection: Connection) -> BlobRow:
        found = await rows.read_blob(connection, tenant, blob, now=desk.clock.stated())
        if found is None:
            raise NotFound(f"there is no blob {to_text('blob', blob)}")
        return found

    return await desk.transact(work, tenant=tenant)


async def find_blobs(desk: Desk, tenant: TenantId, blobs: Collection[UUID]) -> frozenset[UUID]:
    """Those of the blobs that are there and have not expired."""
    if not blobs:
        return frozenset()

    async def work(connection: Connection) -> frozenset[UUID]:
        return await rows.find_blobs(connection, tenant, blobs, now=desk.clock.stated())

    return await desk.transact(work, tenant=tenant)


async def read_reference(desk: Desk, tenant: TenantId, reference: str) -> bytes:
    """What a reference such as `blob_…` stands for."""
    try:
        identity = from_text("blob", reference)
    except Invalid:
        raise NotFound(f"there is no blob {reference[:100]!r}") from None
    return (await get_blob(desk, tenant, identity)).content


async def unshelve(desk: Desk, row: BlobRow) -> None:
    """Take the content of a row that was never kept off its shelf again."""
    if row.location is not None and desk.shelf is not None:
        await desk.shelf.delete(_name_of(row.location))


async def forget_expired(desk: Desk, shard: ShardId) -> int:
    """Remove what has expired outside the database, content first; how many."""

    async def work(connection: Connection) -> list[Located]:
        now = desk.clock.stated()
        return await rows.expired_objects(connection, shard, now=now, most=BATCH)

    return await _forget(desk, await desk.transact(work, tenant=None))


async def forget_objects(desk: Desk, tenant: TenantId) -> int:
    """Remove some of what a tenant has outside the database; how many."""

    async def work(connection: Connection) -> list[Located]:
        return await rows.objects_of(connection, tenant, most=BATCH)

    return await _forget(desk, await desk.transact(work, tenant=None))


async def reseal_blobs(desk: Desk, tenant: TenantId, *, most: int) -> int:
    """Seal some blobs anew under the newest data key; how many were looked at."""
    vault = vault_of(desk)

    async def find(connection: Connection) -> tuple[list[BlobRow], Keyring]:
        newest = await vault.newest(connection, tenant)
        found = await rows.under_old_keys(connection, tenant, newest=newest, most=most)
        return found, await vault.keyring(connection, tenant)

    found, keys = await desk.transact(find, tenant=None)
    for row in found:
        content = await _content(desk, row)
        if row.key_version:
            content = keys.open(_place(row.id), Sealed(row.key_version, content))
        await _reseal(desk, tenant, row, content)
    return len(found)


async def _reseal(desk: Desk, tenant: TenantId, row: BlobRow, content: bytes) -> None:
    vault = vault_of(desk)

    async def seal(connection: Connection) -> Sealed:
        return await vault.seal(connection, tenant, _place(row.id), content)

    sealed = await desk.transact(seal, tenant=None)
    fresh = replace(row, key_version=sealed.key_version, content=sealed.content, location=None)
    fresh = await _shelved(desk, tenant, fresh)

    async def keep(connection: Connection) -> bool:
        return await rows.reseal(connection, tenant, fresh, was=row.key_version)

    kept = await desk.transact(keep, tenant=None)
    await unshelve(desk, row if kept else fresh)


async def _shelved(desk: Desk, tenant: TenantId, row: BlobRow) -> BlobRow:
    if desk.shelf is None or row.content is None:
        return row
    # The version is in the name: what is sealed anew never overwrites what a row still refers to.
    name = f"{tenant}/{row.id}.{row.key_version}"
    await desk.shelf.put(name, row.content)
    return replace(row, content=None, location=f"{desk.shelf.scheme}:{name}")


async def _content(desk: Desk, row: BlobRow) -> bytes:
    """The sealed bytes, wherever they are."""
    if row.content is not None:
        return row.content
    location = row.location or ""
    scheme = location.partition(":")[0]
    if desk.shelf is None or desk.shelf.scheme != scheme:
        raise Locked(f"this node has no access to where the blob is kept ({scheme})")
    content = await desk.shelf.get(_name_of(location))
    if content is None:
        raise NotFound(f"the content of {to_text('blob', row.id)} is not where it was put")
    return content


async def _forget(desk: Desk, located: list[Located]) -> int:
    gone = 0
    for one in located:
        if desk.shelf is None or not one.location.startswith(f"{desk.shelf.scheme}:"):
            continue  # another node may reach it
        await desk.shelf.delete(_name_of(one.location))
        gone += 1

        async def work(connection: Connection, one: Located = one) -> None:
            await rows.delete_blob(connection, one.tenant, one.id)

        await desk.transact(work, tenant=None)
    return gone


def _place(blob: UUID) -> tuple[object, ...]:
    return "blobs", blob, "content"


def _name_of(location: str) -> str:
    return location.partition(":")[2]
