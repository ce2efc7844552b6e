"""What is due soon, as it is stored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from betimes.domain.ids import JobId, RunId, ShardId, TenantId, shard_of, time_of
from betimes.domain.states import RunState
from betimes.store.ask import many, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("upcoming")


@dataclass(frozen=True, slots=True, kw_only=True)
class SoonFilter:
    """Whose, and which; what is None does not matter."""

    tenant: TenantId
    queue: str | None = None
    job: JobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SoonRun:
    """A run that exists and is due soon."""

    id: RunId
    due_at: datetime
    fire_at: datetime | None
    job: JobId | None
    queue: str
    priority: int
    state: RunState
    handler: str | None
    place: UUID
    """Where it stands among the others: its id, unless it is due for another time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringJob:
    """A job whose next fire is not planned yet."""

    id: JobId
    next_fire_at: datetime
    queue: str
    priority: int
    schedule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Title:
    """What a job is called, and what it calls."""

    group: str
    name: str | None
    handler: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Brakes:
    """What is held as a whole; a queue is paused until an instant, or until somebody resumes it."""

    cluster_paused: bool
    tenant_state: int
    queues: Mapping[str, datetime | None]


async def read_runs(
    connection: Connection, chosen: SoonFilter, *, low: UUID, high: UUID, most: int
) -> list[SoonRun]:
    """Runs with ids between two bounds, both excluded."""
    rows = await many(
        connection,
        SQL["read_upcoming_runs"],
        tenant=chosen.tenant,
        queue=chosen.queue,
        job=chosen.job,
        low=low,
        high=high,
        most=most,
    )
    return [_soon(row, row["id"]) for row in rows]


async def read_retries(
    connection: Connection, chosen: SoonFilter, *, low: UUID, high: UUID, most: int
) -> list[SoonRun]:
    """Runs that are tried again, with places between two bounds, both excluded."""
    rows = await many(
        connection,
        SQL["read_upcoming_retries"],
        tenant=chosen.tenant,
        queue=chosen.queue,
        job=chosen.job,
        since=time_of(low),
        until=time_of(high),
        low=low,
        high=high,
        most=most,
    )
    return [_soon(row, row["place"]) for row in rows]


def _soon(row: asyncpg.Record, place: UUID) -> SoonRun:
    return SoonRun(
        id=row["id"],
        due_at=row["due_at"],
        fire_at=row["fire_at"],
        job=row["job_id"],
        queue=row["queue"],
        priority=row["priority"],
        state=RunState(row["state"]),
        handler=row["handler"],
        place=place,
    )


async def read_titles(connection: Connection, jobs: Collection[JobId]) -> dict[JobId, Title]:
    """What jobs are called; without those that are gone."""
    rows = await many(
        connection,
        SQL["read_job_titles"],
        shards=[shard_of(job) for job in jobs],
        ids=list(jobs),
    )
    return {
        row["id"]: Title(group=row["job_group"], name=row["name"], handler=row["handler"])
        for row in rows
    }


async def read_jobs(
    connection: Connection,
    chosen: SoonFilter,
    *,
    shards: Sequence[ShardId],
    until: datetime,
    most: int,
) -> list[FiringJob]:
    """Jobs that fire by an instant, soonest first."""
    rows = await many(
        connection,
        SQL["read_firing_jobs"],
        tenant=chosen.tenant,
        queue=chosen.queue,
        job=chosen.job,
        shards=list(shards),
        until=until,
        most=most,
    )
    return [FiringJob(**dict(row)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long runs of a queue have waited, how many ended since when, and how many wait now."""

    lag: timedelta | None
    ended: int
    since: datetime | None
    waiting: int


async def read_paces(
    connection: Connection,
    tenant: TenantId,
    queues: Collection[str],
    *,
    now: datetime,
    low: UUID,
    high: UUID,
    most: int,
    crowd: int,
) -> dict[str, Pace]:
    """The pace of some queues; `most` runs and `crowd` parcels are looked at."""
    rows = await many(
        connection,
        SQL["read_paces"],
        tenant=tenant,
        names=list(queues),
        now=now,
        low=low,
        high=high,
        most=most,
        crowd=crowd,
    )
    return {
        row["queue"]: Pace(
            lag=row["lag"], ended=row["ended"], since=row["since"], waiting=row["waiting"]
        )
        for row in rows
    }


async def read_ended(
    connection: Connection, tenant: TenantId, runs: Sequence[RunId]
) -> dict[RunId, str | None]:
    """Which of these will not run, and why."""
    rows = await many(connection, SQL["read_ended_runs"], tenant=tenant, runs=list(runs))
    return {row["id"]: row["reason"] for row in rows}


async def read_brakes(connection: Connection, tenant: TenantId, queues: Collection[str]) -> Brakes:
    """Whether the cluster, the tenant, or some of these queues are held."""
    above = await one(connection, SQL["read_brakes"], tenant=tenant)
    rows = await many(connection, SQL["read_paused_queues"], tenant=tenant, names=list(queues))
    return Brakes(**dict(above), queues={row["name"]: row["paused_until"] for row in rows})
