"""Jobs in the store: rows in, domain values out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from betimes.domain.ids import JobId, ShardId, TenantId, shard_of
from betimes.domain.job import AfterCompletion, Definition, Job
from betimes.domain.states import JobState
from betimes.store.ask import execute, many, maybe
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("jobs")
ENDPOINTS = load("endpoints")
NOTIFY = "notify"
REVISIONS_MAX = 1_000
_object = msgspec.json.Decoder(dict[str, Any]).decode


def to_json(value: Mapping[str, Any]) -> str:
    """JSON text for a jsonb column."""
    return msgspec.json.encode(value).decode()


def to_optional_json(value: Mapping[str, Any]) -> str | None:
    """The same, with nothing for nothing."""
    return to_json(value) if value else None


def to_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """JSON text for a statement that takes many rows by the names of their columns."""
    return msgspec.json.encode(rows).decode()


def from_json(text: str | None) -> Mapping[str, Any]:
    """What `to_json` or `to_optional_json` wrote."""
    return _object(text) if text else {}


async def insert_jobs(connection: Connection, jobs: Sequence[Job]) -> set[JobId]:
    """Insert jobs of one shard; returns those whose id and name were free."""
    for tenant in {job.tenant for job in jobs if NOTIFY in job.definition.options}:
        await follow_events(connection, tenant)
    rows = await many(
        connection,
        SQL["insert_jobs"],
        shard=jobs[0].shard,
        tzdata=jobs[0].tzdata,
        fresh_jobs=to_rows([_fresh(job) for job in jobs]),
        payloads=[job.definition.payload for job in jobs],
    )
    return {row["id"] for row in rows}


def _fresh(job: Job) -> dict[str, Any]:
    """A job by the names of its columns, without what is not JSON."""
    definition = job.definition
    return {
        "id": job.id,
        "tenant_id": job.tenant,
        "job_group": job.group,
        "name": job.name,
        "next_fire_at": job.next_fire_at,
        "created_at": job.created_at,
        "fires": job.fires,
        "state": int(job.state),
        "priority": definition.priority,
        "after_completion": int(definition.after_completion),
        "queue": definition.queue,
        "handler": definition.handler,
        "schedule": definition.schedule,
        "target": definition.target,
        "options": definition.options or None,
        "created_by": job.created_by,
        "state_reason": job.state_reason or None,
    }


async def follow_events(connection: Connection, tenant: TenantId) -> None:
    """Hand out the events of a tenant: somebody wants to be called back."""
    await execute(connection, ENDPOINTS["begin_routing"], tenant=tenant)


async def read_job(connection: Connection, job: JobId) -> Job | None:
    """One job as it is now."""
    row = await maybe(connection, SQL["read_job"], shard=shard_of(job), id=job)
    return None if row is None else job_of(row)


async def read_jobs(connection: Connection, jobs: Sequence[JobId]) -> dict[JobId, Job]:
    """Those of some jobs that are there."""
    rows = await many(
        connection, SQL["read_jobs"], shards=[shard_of(job) for job in jobs], ids=list(jobs)
    )
    return {row["id"]: job_of(row) for row in rows}


async def read_named_job(
    connection: Connection, shard: ShardId, tenant: TenantId, group: str, name: str
) -> Job | None:
    """One job by its name, which is what its shard was made of."""
    row = await maybe(
        connection, SQL["read_named_job"], shard=shard, tenant=tenant, group=group, name=name
    )
    return None if row is None else job_of(row)


async def hold_jobs(connection: Connection, shard: ShardId, jobs: Collection[JobId]) -> None:
    """Hold jobs until the transaction ends; whoever needs parcels as well takes them afterwards."""
    if jobs:
        await many(connection, SQL["hold_jobs"], shard=shard, ids=list(jobs))


async def lock_job(connection: Connection, job: JobId) -> Job | None:
    """One job, held until the transaction ends."""
    row = await maybe(connection, SQL["lock_job"], shard=shard_of(job), id=job)
    return None if row is None else job_of(row)


async def list_jobs(
    connection: Connection, tenant: TenantId, *, after: JobId, most: int
) -> list[Job]:
    """A page of a tenant's jobs."""
    rows = await many(connection, SQL["list_jobs"], tenant=tenant, after=after, most=most)
    return [job_of(row) for row in rows]


async def edit_job(connection: Connection, edited: Job, *, now: datetime) -> int | None:
    """Store a new definition over the revision it was made from; the new revision, or None."""
    definition = edited.definition
    if NOTIFY in definition.options:
        await follow_events(connection, edited.tenant)
    row = await maybe(
        connection,
        SQL["edit_job"],
        shard=edited.shard,
        id=edited.id,
        revision=edited.revision,
        now=now,
        next_fire_at=edited.next_fire_at,
        fires=edited.fires,
        state=int(edited.state),
        state_reason=to_optional_json(edited.state_reason),
        priority=definition.priority,
        after_completion=int(definition.after_completion),
        queue=definition.queue,
        handler=definition.handler,
        tzdata=edited.tzdata,
        schedule=to_json(definition.schedule),
        target=to_json(definition.target),
        payload=definition.payload,
        options=to_optional_json(definition.options),
    )
    return None if row is None else int(row["revision"])


async def steer_job(connection: Connection, job: Job, *, now: datetime) -> None:
    """Store state, reason and next fire of a job the caller holds."""
    await maybe(
        connection,
        SQL["steer_job"],
        shard=job.shard,
        id=job.id,
        state=int(job.state),
        state_reason=to_optional_json(job.state_reason),
        paused_until=job.paused_until,
        next_fire_at=job.next_fire_at,
        fires=job.fires,
        tzdata=job.tzdata,
        now=now,
    )


async def keep_revision(
    connection: Connection, job: Job, *, now: datetime, actor: str | None
) -> None:
    """Keep the definition a job has now."""
    await execute(
        connection,
        SQL["keep_revision"],
        shard=job.shard,
        job=job.id,
        revision=job.revision,
        tenant=job.tenant,
        now=now,
        actor=actor,
        definition=to_json(definition_to_json(job.definition)),
        payload=job.definition.payload,
    )


async def delete_job(connection: Connection, job: JobId) -> None:
    """Forget a job the caller holds."""
    await maybe(connection, SQL["delete_job"], shard=shard_of(job), id=job)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A definition as it was before an edit."""

    revision: int
    replaced_at: datetime
    replaced_by: str | None
    definition: Definition


async def list_revisions(connection: Connection, tenant: TenantId, job: JobId) -> list[Revision]:
    """What a job was before, newest first."""
    rows = await many(
        connection,
        SQL["list_revisions"],
        shard=shard_of(job),
        job=job,
        tenant=tenant,
        most=REVISIONS_MAX,
    )
    return [
        Revision(
            revision=row["revision"],
            replaced_at=row["replaced_at"],
            replaced_by=row["replaced_by"],
            definition=definition_from_json(from_json(row["definition"]), row["payload"]),
        )
        for row in rows
    ]


async def elapsed_pauses(
    connection: Connection, shard: ShardId, *, now: datetime | None, most: int
) -> list[tuple[TenantId, JobId]]:
    """Jobs whose pause was to end by now."""
    rows = await many(connection, SQL["find_elapsed_pauses"], shard=shard, now=now, most=most)
    return [(row["tenant_id"], row["id"]) for row in rows]


async def spent_jobs(
    connection: Connection, shard: ShardId, *, most: int
) -> list[tuple[TenantId, JobId]]:
    """Completed jobs that asked to be deleted and have nothing under way."""
    rows = await many(connection, SQL["find_spent_jobs"], shard=shard, most=most)
    return [(row["tenant_id"], row["id"]) for row in rows]


def definition_to_json(definition: Definition) -> dict[str, Any]:
    """A definition without its payload, as old revisions are kept; workers read it back."""
    return {
        "schedule": definition.schedule,
        "target": definition.target,
        "handler": definition.handler,
        "queue": definition.queue,
        "priority": definition.priority,
        "options": definition.options,
        "after_completion": int(definition.after_completion),
    }


def definition_from_json(stored: Mapping[str, Any], payload: bytes | None) -> Definition:
    """What `definition_to_json` wrote."""
    return Definition(
        schedule=stored["schedule"],
        target=stored["target"],
        handler=stored["handler"],
        payload=payload,
        queue=stored["queue"],
        priority=stored["priority"],
        options=stored["options"],
        after_completion=AfterCompletion(stored["after_completion"]),
    )


def job_of(row: asyncpg.Record) -> Job:
    """A row of one of the reading statements as a job."""
    return Job(
        id=row["id"],
        tenant=row["tenant_id"],
        group=row["job_group"],
        name=row["name"],
        definition=Definition(
            schedule=from_json(row["schedule"]),
            target=from_json(row["target"]),
            handler=row["handler"],
            payload=row["payload"],
            queue=row["queue"],
            priority=row["priority"],
            options=from_json(row["options"]),
            after_completion=AfterCompletion(row["after_completion"]),
        ),
        state=JobState(row["state"]),
        revision=row["revision"],
        fires=row["fires"],
        next_fire_at=row["next_fire_at"],
        paused_until=row["paused_until"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        tzdata=row["tzdata"],
        state_reason=from_json(row["state_reason"]),
        created_by=row["created_by"],
    )
