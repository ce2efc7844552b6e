"""Why something did or did not run, as far as it is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, unique
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.ids import JobId, RunId, ShardId, TenantId, WorkerId, shard_of
from betimes.domain.parcel import Lane
from betimes.fairness.bucket import Bucket, Rate
from betimes.store.admit import RATE
from betimes.store.ask import many, maybe, one
from betimes.store.jobs import from_json
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.rules import MILLISECOND, bucket_of, rate_of

SQL = load("explain")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """A fire, or a range of them, that did not become a run."""

    fire_at: datetime
    until_at: datetime | None
    fires: int
    decided_at: datetime
    code: str
    detail: Mapping[str, Any]


async def read_decision(connection: Connection, job: JobId, at: datetime) -> DecisionRow | None:
    """The decision about one fire."""
    row = await maybe(connection, SQL["read_decision"], shard=shard_of(job), job=job, at=at)
    return None if row is None else _decision(row)


async def list_decisions(connection: Connection, job: JobId, *, most: int) -> list[DecisionRow]:
    """The latest decisions about a job."""
    rows = await many(connection, SQL["list_decisions"], shard=shard_of(job), job=job, most=most)
    return [_decision(row) for row in rows]


@unique
class HeldFor(IntEnum):
    """Why a parcel is not offered to workers; the numbers are stored."""

    NOTHING = 0
    FULL = 1
    """Its gate or its line is full."""
    OVERLAP = 2
    """Overlap is decided when it is due."""
    APPROVAL = 3
    RATE = 4
    """Its rate is used up for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The parcel that holds a run, with everything that decides when it is leased."""

    id: UUID
    worker: WorkerId | None
    rank: datetime
    visible_at: datetime
    lease_until: datetime | None
    deliveries: int
    lane: Lane
    fair: int
    held: HeldFor
    held_at: datetime | None
    line: JobId | None
    gate: str | None
    rate_key: str | None = None
    episode: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Who is in front at a gate or in a line."""

    limit: int | None
    in_flight: int
    holders: Sequence[RunId]
    ahead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is offered earlier in the same queue; whether other fairness keys wait there, too."""

    ahead: int
    higher: int
    others: bool
    more: bool = False
    """Whether there are more ahead than were counted."""
    head: datetime | None = None
    """When the first one there became visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Workers that serve a queue."""

    serving: int
    able: int
    draining: int
    slots: int
    busy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What stands above a run."""

    cluster_paused_at: datetime | None
    tenant_state: int
    tenant_reason: str | None
    quotas: Mapping[str, Any]
    owner: UUID | None
    lease_until: datetime | None
    published_through: datetime | None


async def read_place(connection: Connection, run: RunId) -> Place | None:
    """Where a run waits or is executed."""
    row = await maybe(connection, SQL["read_parcel_of"], shard=shard_of(run), run=run)
    if row is None:
        return None
    told = dict(row)
    told |= {"worker": told.pop("worker_id"), "lane": Lane(row["lane"])}
    return Place(**{**told, "held": HeldFor(row["held"])})


async def read_blocker(connection: Connection, run: RunId) -> RunId | None:
    """The run that stood in the way when this one was skipped for overlap."""
    row = await maybe(connection, SQL["read_blocker"], shard=shard_of(run), run=run)
    return None if row is None else row["blocked_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """How many of the last fires of a job gave way to an earlier run, and to which the last did."""

    looked_at: int
    skipped: int
    since: datetime | None
    blocked_by: RunId | None


async def read_overlaps(connection: Connection, job: JobId, *, high: UUID, most: int) -> Overlaps:
    """Look at the last fires of a job that were due."""
    row = await one(
        connection, SQL["read_overlaps"], shard=shard_of(job), job=job, high=high, most=most
    )
    return Overlaps(**dict(row))


async def read_gate(
    connection: Connection, tenant: TenantId, gate: str, *, rank: datetime, most: int
) -> Crowd:
    """Who is in front at a concurrency key."""
    row = await one(connection, SQL["read_gate"], tenant=tenant, gate=gate, rank=rank, most=most)
    return Crowd(
        limit=row["max_inflight"],
        in_flight=row["in_flight"],
        holders=row["holders"],
        ahead=row["ahead"],
    )


async def read_line(
    connection: Connection, shard: ShardId, job: JobId, *, rank: datetime, most: int
) -> Crowd:
    """Who is in front in the line of a job."""
    row = await one(connection, SQL["read_line"], shard=shard, job=job, rank=rank, most=most)
    holders = row["holders"]
    return Crowd(limit=1, in_flight=len(holders), holders=holders, ahead=row["ahead"])


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedRate:
    """A rate that a run stands under, and what is left of it."""

    kind: str
    name: str
    rate: Rate
    bucket: Bucket


async def read_rates(
    connection: Connection, tenant: TenantId, queue: str, rate_key: str | None, *, now: datetime
) -> list[UsedRate]:
    """The rates of a tenant, of one of its queues, and of a key."""
    rows = await many(connection, SQL["read_rates"], tenant=tenant, queue=queue, rate_key=rate_key)
    found: list[UsedRate] = []
    for row in rows:
        rate = rate_of(row["rate_limit"], (row["rate_per_ms"] or 0) * MILLISECOND)
        if rate is not None:
            bucket = bucket_of(rate, row["tokens"], row["refilled_at"], now)
            kind = "key" if row["kind"] == RATE else row["kind"]
            found.append(UsedRate(kind=kind, name=row["key"], rate=rate, bucket=bucket))
    return found


async def count_rated(connection: Connection, tenant: TenantId, place: Place, *, most: int) -> int:
    """How many wait for the same rate by key, and come first."""
    row = await one(
        connection,
        SQL["count_rated"],
        tenant=tenant,
        rate_key=place.rate_key,
        rank=place.rank,
        most=most,
    )
    ahead: int = row["ahead"]
    return ahead


async def read_standing(
    connection: Connection,
    tenant: TenantId,
    place: Place,
    *,
    shards: Sequence[int],
    queue: str,
    priority: int,
    most: int,
) -> Standing:
    """What goes first in the same queue; of each shard `most` parcels are looked at."""
    row = await one(
        connection,
        SQL["read_standing"],
        shards=list(shards),
        queue=queue,
        tenant=tenant,
        fair=place.fair,
        rank=place.rank,
        parcel=place.id,
        priority=priority,
        most=most,
    )
    return Standing(**dict(row))


async def read_job_pace(
    connection: Connection, job: JobId, *, high: UUID, most: int
) -> timedelta | None:
    """How long the last runs of a job took; None where none has ended."""
    row = await one(
        connection, SQL["read_job_pace"], shard=shard_of(job), job=job, high=high, most=most
    )
    took: timedelta | None = row["took"]
    return took


async def read_places(
    connection: Connection, tenant: TenantId, queue: str, handler: str | None, *, since: datetime
) -> Places:
    """Who could take it. The workers of the service belong to no tenant: only it sees them."""
    row = await one(
        connection, SQL["read_places"], tenant=tenant, queue=queue, handler=handler, since=since
    )
    return Places(**dict(row))


async def read_crowd(connection: Connection, tenant: TenantId, queue: str) -> tuple[int, int]:
    """What is in flight of a tenant, and of one of its queues."""
    row = await one(connection, SQL["read_crowd"], tenant=tenant, queue=queue)
    return row["of_tenant"], row["of_queue"]


async def read_pace(
    connection: Connection,
    tenant: TenantId,
    queue: str,
    *,
    low: UUID,
    high: UUID,
    since: datetime,
    most: int,
) -> tuple[int, datetime | None]:
    """How many runs of a queue ended lately, and since when; `most` rows are looked at."""
    row = await one(
        connection,
        SQL["read_pace"],
        tenant=tenant,
        queue=queue,
        low=low,
        high=high,
        since=since,
        most=most,
    )
    return row["ended"], row["since"]


async def read_surroundings(
    connection: Connection, tenant: TenantId, shard: ShardId
) -> Surroundings:
    """Cluster, tenant and shard of a run."""
    row = await one(connection, SQL["read_surroundings"], tenant=tenant, shard=shard)
    return Surroundings(**{**dict(row), "quotas": from_json(row["quotas"])})


def _decision(row: asyncpg.Record) -> DecisionRow:
    return DecisionRow(**{**dict(row), "detail": from_json(row["detail"])})
