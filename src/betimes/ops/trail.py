"""Reading the trail: the audit, its chains, and the events of a tenant."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.errors import NotFound
from betimes.domain.ids import ShardId, TenantId, floor_of, to_ms
from betimes.ops.desk import Desk
from betimes.ops.sayings import open_events
from betimes.store import audit as rows
from betimes.store.audit import Entry, EventRow
from betimes.store.pool import Connection

__all__ = ["ChainCheck", "Entry", "EventRow", "get_act", "list_acts", "list_events", "verify"]

SETTLED_AFTER = timedelta(seconds=6)
"""Longer than any transaction lives: nothing older can still appear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCheck:
    """What the check of one chain has found."""

    shard: ShardId
    entries: int
    head: bytes
    broken_at: int | None


async def list_acts(
    desk: Desk,
    tenant: TenantId,
    *,
    before: tuple[datetime, int, int],
    since: datetime,
    action: str | None,
    resource: str | None,
    actor: str | None,
    most: int,
) -> list[Entry]:
    """A page of acts, newest first."""

    async def work(connection: Connection) -> list[Entry]:
        return await rows.list_acts(
            connection,
            tenant,
            before=before,
            since=since,
            action=action,
            resource=resource,
            actor=actor,
            most=most,
        )

    return await desk.transact(work, tenant=tenant)


async def get_act(desk: Desk, tenant: TenantId, shard: int, number: int) -> Entry:
    """One act."""

    async def work(connection: Connection) -> Entry:
        found = await rows.read_act(connection, tenant, shard, number)
        if found is None:
            raise NotFound("there is no such act")
        return found

    return await desk.transact(work, tenant=tenant)


async def verify(desk: Desk, tenant: TenantId) -> list[ChainCheck]:
    """Recompute every chain of a tenant and compare it with its head."""

    async def read_heads(connection: Connection) -> list[tuple[ShardId, int, bytes]]:
        return await rows.heads(connection, tenant)

    heads = await desk.transact(read_heads, tenant=tenant)
    return [await _check(desk, tenant, shard, number, digest) for shard, number, digest in heads]


async def _check(
    desk: Desk, tenant: TenantId, shard: ShardId, number: int, head: bytes
) -> ChainCheck:
    """One chain, a stretch at a time; what was added after the head was read does not matter."""
    previous, last = b"", 0
    while last < number:

        async def read(connection: Connection, after: int = last) -> list[Entry]:
            return await rows.chain(connection, tenant, shard, after=after)

        stretch = await desk.transact(read, tenant=tenant)
        if not stretch:
            return ChainCheck(shard=shard, entries=last, head=head, broken_at=last + 1)
        for entry in stretch:
            if entry.number > number:
                break
            if entry.number != last + 1 or not rows.linked(previous, entry):
                return ChainCheck(shard=shard, entries=last, head=head, broken_at=last + 1)
            previous, last = entry.digest, entry.number
    intact = previous == head
    return ChainCheck(shard=shard, entries=last, head=head, broken_at=None if intact else last)


async def list_events(
    desk: Desk,
    tenant: TenantId,
    *,
    after: UUID,
    types: Sequence[str] | None,
    most: int,
    settled: bool,
) -> list[EventRow]:
    """Events after an id, in order; `settled` leaves out those that others may still precede."""

    async def work(connection: Connection) -> list[EventRow]:
        now = await desk.now(connection)
        high = floor_of(to_ms(now - SETTLED_AFTER if settled else now + SETTLED_AFTER))
        found = await rows.list_events(
            connection, tenant, low=after, high=high, types=types, most=most
        )
        return await open_events(desk, connection, tenant, found)

    return await desk.transact(work, tenant=tenant)
