"""The audit in the store, and the bytes its digests are made of."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from betimes.domain.ids import ShardId, TenantId, to_us
from betimes.store.ask import execute, many, maybe, one
from betimes.store.jobs import from_json, to_json, to_optional_json, to_rows
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("audit")
CHAIN_PAGE = 1_000


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did."""

    tenant: TenantId
    at: datetime
    actor: Mapping[str, Any]
    action: str
    resource: str
    request_id: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None

    def content(self) -> bytes:
        """What the digest covers, made only from what is stored, in one canonical form."""
        return msgspec.json.encode(
            [
                str(self.tenant),
                to_us(self.at),
                self.actor,
                self.action,
                self.resource,
                self.request_id,
                self.before or None,
                self.after or None,
            ],
            order="sorted",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An act as it is kept."""

    shard: ShardId
    number: int
    act: Act
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Something that happened, for those who asked to be told."""

    id: UUID
    type: str
    subject: str
    body: Mapping[str, Any]
    created_at: datetime


async def append(
    connection: Connection,
    shard: ShardId,
    act: Act,
    *,
    event: str | None,
    event_id: UUID,
    event_body: Mapping[str, Any],
) -> int:
    """Add an act to its chain; returns its number."""
    row = await one(
        connection,
        SQL["append_audit"],
        shard=shard,
        tenant=act.tenant,
        content=act.content(),
        now=act.at,
        actor=to_json(act.actor),
        action=act.action,
        resource=act.resource,
        request=act.request_id,
        before=to_optional_json(act.before or {}),
        after=to_optional_json(act.after or {}),
        event=event,
        event_id=event_id,
        event_body=to_json(event_body),
    )
    return int(row["number"])


class Telling(NamedTuple):
    """An act with the event that tells of it."""

    act: Act
    event: str | None
    event_id: UUID
    event_body: Mapping[str, Any]


async def append_many(
    connection: Connection, tenant: TenantId, shard: ShardId, tellings: Sequence[Telling]
) -> None:
    """Add acts of one moment to the chain of one shard."""
    head = await one(connection, SQL["lock_head"], shard=shard, tenant=tenant)
    digests: list[bytes] = []
    for telling in tellings:
        previous = digests[-1] if digests else head["digest"]
        digests.append(hashlib.sha256(previous + telling.act.content()).digest())
    numbers = range(head["number"] + 1, head["number"] + 1 + len(tellings))
    await execute(
        connection,
        SQL["append_many"],
        shard=shard,
        tenant=tenant,
        now=tellings[0].act.at,
        fresh_acts=to_rows(
            [
                _row(number, telling, digest)
                for number, telling, digest in zip(numbers, tellings, digests, strict=True)
            ]
        ),
        last=numbers[-1],
        head=digests[-1],
    )


def _row(number: int, telling: Telling, digest: bytes) -> dict[str, Any]:
    """An act and its event by the names the statement gives them."""
    act = telling.act
    return {
        "number": number,
        "actor": act.actor,
        "action": act.action,
        "resource": act.resource,
        "request": act.request_id,
        "before": act.before or None,
        "after": act.after or None,
        "digest": digest.hex(),
        "event_id": telling.event_id,
        "event": telling.event,
        "body": telling.event_body,
    }


async def is_noted(
    connection: Connection, tenant: TenantId, request: str, *, since: datetime
) -> bool:
    """Whether an act of a request is in the audit already."""
    row = await maybe(connection, SQL["find_act"], tenant=tenant, request=request, since=since)
    return row is not None


async def list_acts(
    connection: Connection,
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
    rows = await many(
        connection,
        SQL["list_audit"],
        tenant=tenant,
        before_at=before[0],
        before_shard=before[1],
        before_number=before[2],
        since=since,
        action=action,
        resource=resource,
        actor=actor,
        most=most,
    )
    return [entry_of(row, tenant) for row in rows]


async def read_act(
    connection: Connection, tenant: TenantId, shard: int, number: int
) -> Entry | None:
    """One act."""
    row = await maybe(connection, SQL["read_audit"], tenant=tenant, shard=shard, number=number)
    return None if row is None else entry_of(row, tenant)


async def heads(connection: Connection, tenant: TenantId) -> list[tuple[ShardId, int, bytes]]:
    """Where each chain of a tenant ends."""
    rows = await many(connection, SQL["read_heads"], tenant=tenant)
    return [(row["shard"], row["number"], row["digest"]) for row in rows]


async def chain(
    connection: Connection, tenant: TenantId, shard: ShardId, *, after: int
) -> list[Entry]:
    """The next stretch of a chain."""
    rows = await many(
        connection,
        SQL["read_chain"],
        tenant=tenant,
        shard=shard,
        after_number=after,
        most=CHAIN_PAGE,
    )
    return [entry_of(row, tenant) for row in rows]


def linked(previous: bytes, entry: Entry) -> bool:
    """Whether an entry's digest follows from the one before it."""
    return hashlib.sha256(previous + entry.act.content()).digest() == entry.digest


async def list_events(
    connection: Connection,
    tenant: TenantId,
    *,
    low: UUID,
    high: UUID,
    types: Sequence[str] | None,
    most: int,
) -> list[EventRow]:
    """Events with ids between two bounds, both excluded."""
    rows = await many(
        connection,
        SQL["list_events"],
        tenant=tenant,
        low=low,
        high=high,
        types=None if types is None else list(types),
        most=most,
    )
    return [
        EventRow(
            id=row["id"],
            type=row["type"],
            subject=row["subject"],
            body=from_json(row["body"]),
            created_at=row["created_at"],
        )
        for row in rows
    ]


def entry_of(row: asyncpg.Record, tenant: TenantId) -> Entry:
    """A row as an entry."""
    return Entry(
        shard=row["shard"],
        number=row["number"],
        digest=row["digest"],
        act=Act(
            tenant=tenant,
            at=row["at"],
            actor=from_json(row["actor"]),
            action=row["action"],
            resource=row["resource"],
            request_id=row["request_id"],
            before=from_json(row["before"]) or None,
            after=from_json(row["after"]) or None,
        ),
    )
