"""Queues in the store: rows in, values out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import asyncpg

from betimes.domain.ids import TenantId
from betimes.store.ask import many, maybe, one
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("queues")
NAMES_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue with its settings; without a row it has the defaults."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    paused_reason: str | None = None
    draining: bool = False
    drain_until: datetime | None = None
    drain_reason: str | None = None
    revision: int = 0
    updated_at: datetime | None = None

    def is_paused(self, now: datetime) -> bool:
        """Whether nothing of it is leased; a pause that has an end ends by itself."""
        until = self.paused_until
        return self.paused_at is not None and (until is None or until > now)

    def is_draining(self, now: datetime) -> bool:
        """Whether nothing new is accepted for it; the same for an end of that."""
        return self.draining and (self.drain_until is None or self.drain_until > now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How a queue is served."""

    weight: float = 1.0
    fairness: str = "tenant"
    max_concurrency: int | None = None
    rate_limit: int | None = None
    rate_per_ms: int | None = None
    key_rate_limit: int | None = None
    key_rate_per_ms: int | None = None
    retain_ms: int | None = None
    dead_letter: bool = True
    """Whether runs that are out of attempts are laid aside."""


SERVICE_DEFAULT = Service()


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """What is in a queue."""

    waiting: int
    running: int
    later: int
    oldest: datetime | None
    now: datetime


async def list_queues(
    connection: Connection, tenant: TenantId, *, after: str, most: int
) -> list[Queue]:
    """A page of queues that have settings."""
    rows = await many(connection, SQL["list_queues"], tenant=tenant, after=after, most=most)
    return [queue_of(row) for row in rows]


async def names_in_use(connection: Connection, tenant: TenantId) -> list[str]:
    """Queues in which something waits or runs."""
    rows = await many(connection, SQL["names_in_use"], tenant=tenant, most=NAMES_MAX)
    return [row["name"] for row in rows]


async def count_queues(connection: Connection, tenant: TenantId, *, beside: str = "") -> int:
    """How many queues have settings, not counting one."""
    row = await one(connection, SQL["count_queues"], tenant=tenant, beside=beside)
    return int(row["queues"])


async def read_queue(connection: Connection, tenant: TenantId, name: str) -> Queue | None:
    """One queue, if it has settings."""
    row = await maybe(connection, SQL["read_queue"], tenant=tenant, name=name)
    return None if row is None else queue_of(row)


async def put_queue(
    connection: Connection,
    tenant: TenantId,
    name: str,
    settings: Mapping[str, Any],
    service: Service = SERVICE_DEFAULT,
    *,
    now: datetime,
) -> None:
    """Store settings."""
    await one(
        connection,
        SQL["put_queue"],
        tenant=tenant,
        name=name,
        settings=to_json(settings),
        weight=service.weight,
        fairness=service.fairness,
        max_concurrency=service.max_concurrency,
        rate_limit=service.rate_limit,
        rate_per_ms=service.rate_per_ms,
        key_rate_limit=service.key_rate_limit,
        key_rate_per_ms=service.key_rate_per_ms,
        retain_ms=service.retain_ms,
        dead_letter=service.dead_letter,
        now=now,
    )


async def pause_queue(
    connection: Connection,
    tenant: TenantId,
    name: str,
    *,
    paused_at: datetime | None,
    until: datetime | None,
    reason: str | None,
    now: datetime,
) -> None:
    """Pause, or resume with no time."""
    await one(
        connection,
        SQL["pause_queue"],
        tenant=tenant,
        name=name,
        paused_at=paused_at,
        until=until,
        reason=reason,
        now=now,
    )


async def drain_queue(
    connection: Connection,
    tenant: TenantId,
    name: str,
    *,
    draining: bool,
    until: datetime | None = None,
    reason: str | None = None,
    now: datetime,
) -> None:
    """Accept nothing new, or do so again."""
    await one(
        connection,
        SQL["drain_queue"],
        tenant=tenant,
        name=name,
        draining=draining,
        until=until,
        reason=reason,
        now=now,
    )


async def draining_queues(connection: Connection, tenant: TenantId) -> dict[str, str | None]:
    """The queues of a tenant that accept nothing new, and why."""
    rows = await many(connection, SQL["draining_queues"], tenant=tenant, most=NAMES_MAX)
    return {row["name"]: row["drain_reason"] for row in rows}


async def delete_queue(connection: Connection, tenant: TenantId, name: str) -> bool:
    """Forget settings."""
    return await maybe(connection, SQL["delete_queue"], tenant=tenant, name=name) is not None


async def measure(connection: Connection, tenant: TenantId, name: str) -> Depth:
    """What is in a queue."""
    return Depth(**dict(await one(connection, SQL["measure_queue"], tenant=tenant, name=name)))


def queue_of(row: asyncpg.Record) -> Queue:
    """A row as a queue."""
    return Queue(
        name=row["name"],
        settings=from_json(row["settings"]),
        paused_at=row["paused_at"],
        paused_until=row["paused_until"],
        paused_reason=row["paused_reason"],
        draining=row["draining"],
        drain_until=row["drain_until"],
        drain_reason=row["drain_reason"],
        revision=row["revision"],
        updated_at=row["updated_at"],
    )
