"""Endpoints in the store: rows in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.ids import ShardId, TenantId, shard_of
from betimes.domain.notice import Filter, wants_failures, wants_successes
from betimes.store.ask import execute, many, maybe, one
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("endpoints")
ROUTING = load("routing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Somebody who wants to be told."""

    id: UUID
    tenant: TenantId
    kind: str
    name: str
    address: str
    """What may be shown of where it is; the rest may be in `sealed`."""
    event_types: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    listens_since: datetime
    sealed: bytes | None = field(default=None, repr=False)
    key_version: int = 0
    """Which data key of the tenant it is sealed under."""
    filter: Filter = field(default_factory=Filter)
    settings: Mapping[str, Any] = field(default_factory=dict)
    secret_version: int = 1
    secret_until: datetime | None = None
    is_callback: bool = False
    disabled_at: datetime | None = None
    disabled_reason: str | None = None
    revision: int = 1
    created_by: str | None = None

    @property
    def shard(self) -> ShardId:
        """Its id says where its mailbox lies."""
        return shard_of(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxView:
    """How an endpoint fares, for people."""

    next_due_at: datetime | None
    failures: int
    failing_since: datetime | None
    held_until: datetime | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    last_error: str | None


async def insert_endpoint(connection: Connection, endpoint: Endpoint) -> None:
    """Keep an endpoint with its mailbox, and follow the events of its tenant."""
    await insert_callback(connection, endpoint)
    await execute(connection, SQL["begin_routing"], tenant=endpoint.tenant)
    await open_mailbox(connection, endpoint, due_at=None)


async def insert_callback(connection: Connection, endpoint: Endpoint) -> None:
    """Keep an endpoint unless it is known; whoever puts something into its mailbox makes that."""
    await maybe(
        connection,
        SQL["insert_endpoint"],
        **_definition(endpoint),
        kind=endpoint.kind,
        is_callback=endpoint.is_callback,
        created_by=endpoint.created_by,
    )


async def prune_callbacks(
    connection: Connection, shard: ShardId, *, before: datetime, most: int
) -> int:
    """Forget the endpoints of callbacks to which nothing was sent for long; how many."""
    idle = await many(connection, SQL["idle_callbacks"], shard=shard, before=before, most=most)
    if idle:
        ids = [row["endpoint_id"] for row in idle]
        tenants = [row["tenant_id"] for row in idle]
        await execute(connection, SQL["drop_callbacks"], tenants=tenants, ids=ids)
        await execute(connection, SQL["drop_mailboxes"], shard=shard, ids=ids)
    return len(idle)


async def change_endpoint(
    connection: Connection, endpoint: Endpoint, *, replaces: int
) -> int | None:
    """Write an endpoint over a revision; the new revision, or None on a conflict."""
    row = await maybe(
        connection,
        SQL["change_endpoint"],
        **{
            name: value
            for name, value in _definition(endpoint).items()
            if name in SQL["change_endpoint"].parameters
        },
        secret_version=endpoint.secret_version,
        secret_until=endpoint.secret_until,
        revision=replaces,
    )
    return None if row is None else int(row["revision"])


async def read_endpoint(
    connection: Connection, tenant: TenantId, endpoint: UUID
) -> Endpoint | None:
    """One endpoint of a tenant."""
    row = await maybe(connection, SQL["read_endpoint"], tenant=tenant, id=endpoint)
    return None if row is None else endpoint_of(row, tenant)


async def list_endpoints(
    connection: Connection, tenant: TenantId, *, after: UUID, callbacks: bool, most: int
) -> list[Endpoint]:
    """A page of endpoints."""
    rows = await many(
        connection,
        SQL["list_endpoints"],
        tenant=tenant,
        after=after,
        callbacks=callbacks,
        most=most,
    )
    return [endpoint_of(row, tenant) for row in rows]


async def name_endpoints(connection: Connection, tenant: TenantId) -> dict[UUID, str]:
    """What the endpoints of a tenant are called, by their ids."""
    rows = await many(connection, SQL["name_endpoints"], tenant=tenant)
    return {row["id"]: row["name"] for row in rows}


async def count_endpoints(connection: Connection, tenant: TenantId) -> int:
    """How many there are."""
    return int((await one(connection, SQL["count_endpoints"], tenant=tenant))["endpoints"])


async def listeners_of(
    connection: Connection, tenants: Sequence[TenantId]
) -> dict[TenantId, list[Endpoint]]:
    """Whoever listens, by tenant."""
    found: dict[TenantId, list[Endpoint]] = {}
    for row in await many(connection, SQL["read_listeners"], tenants=list(tenants)):
        found.setdefault(row["tenant_id"], []).append(endpoint_of(row, row["tenant_id"]))
    return found


async def under_old_keys(
    connection: Connection, tenant: TenantId, *, newest: int, most: int
) -> list[tuple[UUID, bytes, int]]:
    """Credentials that are sealed under old keys: whose, what, and which key."""
    rows = await many(
        connection, SQL["endpoints_under_old_keys"], tenant=tenant, newest=newest, most=most
    )
    return [(row["id"], row["sealed"], row["key_version"]) for row in rows]


async def reseal(
    connection: Connection,
    tenant: TenantId,
    endpoint: UUID,
    *,
    sealed: bytes,
    key_version: int,
    was: int,
) -> None:
    """Keep a credential under another key, unless it was changed meanwhile."""
    await maybe(
        connection,
        SQL["reseal_endpoint"],
        tenant=tenant,
        id=endpoint,
        sealed=sealed,
        key_version=key_version,
        was=was,
    )


async def delete_endpoint(connection: Connection, endpoint: Endpoint) -> bool:
    """Forget an endpoint with its mailbox; False when it is gone already."""
    row = await maybe(connection, SQL["delete_endpoint"], tenant=endpoint.tenant, id=endpoint.id)
    await execute(connection, SQL["drop_mailbox"], shard=endpoint.shard, id=endpoint.id)
    return row is not None


async def disable_endpoint(
    connection: Connection, endpoint: Endpoint, *, reason: str, now: datetime
) -> bool:
    """Send nothing more to it; False when that is so already."""
    row = await maybe(
        connection,
        SQL["disable_endpoint"],
        tenant=endpoint.tenant,
        id=endpoint.id,
        reason=reason,
        now=now,
    )
    return row is not None


async def open_mailbox(
    connection: Connection, endpoint: Endpoint, *, due_at: datetime | None
) -> None:
    """Make its mailbox, or forget how it fared and look into it again."""
    await execute(
        connection,
        SQL["open_mailbox"],
        shard=endpoint.shard,
        id=endpoint.id,
        tenant=endpoint.tenant,
        due_at=due_at,
    )


async def wake_mailbox(connection: Connection, endpoint: Endpoint, *, due_at: datetime) -> None:
    """Say that something is due in it."""
    await execute(
        connection,
        ROUTING["wake_mailboxes"],
        tenant=endpoint.tenant,
        shards=[endpoint.shard],
        endpoints=[endpoint.id],
        now=due_at,
    )


async def close_mailbox(connection: Connection, endpoint: Endpoint) -> None:
    """Look into it no more."""
    await execute(connection, SQL["close_mailbox"], shard=endpoint.shard, id=endpoint.id)


async def read_mailboxes(
    connection: Connection, endpoints: Sequence[Endpoint]
) -> dict[UUID, MailboxView]:
    """How some endpoints fare."""
    rows = await many(
        connection,
        SQL["read_mailboxes"],
        shards=[one.shard for one in endpoints],
        ids=[one.id for one in endpoints],
    )
    return {
        row["endpoint_id"]: MailboxView(
            next_due_at=row["next_due_at"],
            failures=row["failures"],
            failing_since=row["failing_since"],
            held_until=row["held_until"],
            last_success_at=row["last_success_at"],
            last_failure_at=row["last_failure_at"],
            last_error=row["last_error"],
        )
        for row in rows
    }


def _definition(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "tenant": endpoint.tenant,
        "id": endpoint.id,
        "name": endpoint.name,
        "address": endpoint.address,
        "sealed": endpoint.sealed,
        "key_version": endpoint.key_version,
        "event_types": list(endpoint.event_types),
        "filter": to_json(endpoint.filter.to_json()),
        "settings": to_json(endpoint.settings),
        "wants_successes": wants_successes(endpoint.event_types, endpoint.filter),
        "wants_failures": wants_failures(endpoint.event_types, endpoint.filter),
        "listens_since": endpoint.listens_since,
        "disabled_at": endpoint.disabled_at,
        "disabled_reason": endpoint.disabled_reason,
        "now": endpoint.updated_at,
    }


def endpoint_of(row: asyncpg.Record, tenant: TenantId) -> Endpoint:
    """A row as an endpoint."""
    return Endpoint(
        id=row["id"],
        tenant=tenant,
        kind=row["kind"],
        name=row["name"],
        address=row["address"],
        sealed=row["sealed"],
        key_version=row["key_version"],
        event_types=tuple(row["event_types"]),
        filter=Filter.from_json(from_json(row["filter"])),
        settings=from_json(row["settings"]),
        secret_version=row["secret_version"],
        secret_until=row["secret_until"],
        is_callback=row["is_callback"],
        listens_since=row["listens_since"],
        disabled_at=row["disabled_at"],
        disabled_reason=row["disabled_reason"],
        revision=row["revision"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        updated_at=row["updated_at"],
    )
