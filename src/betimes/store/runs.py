"""Single runs in the store: rows in, domain values out."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import asyncpg

from betimes.domain.ids import Fence, JobId, RunId, ShardId, TenantId, shard_of
from betimes.domain.run import Holding, Run, bounds
from betimes.domain.states import RunState, Trigger
from betimes.domain.terms import BARE, Terms
from betimes.fairness.overlap import OverlapPolicy
from betimes.store.ask import many, maybe
from betimes.store.jobs import from_json
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.telling import tell_ended

RUNS = load("runs")
CONTROL = load("control")
PARCELS = load("parcels")
LAST_WITHOUT_LINE = OverlapPolicy.SKIP.number


class Revived(NamedTuple):
    """A run that goes back into the queue."""

    fence: Fence
    queue: str
    priority: int
    terms: Terms


async def ended_runs(connection: Connection, runs: Sequence[RunId]) -> list[RunId]:
    """Those of some runs, of any shard, that are over."""
    shards = [shard_of(run) for run in runs]
    rows = await many(connection, RUNS["find_ended"], shards=shards, ids=list(runs))
    return [row["id"] for row in rows]


async def read_run(connection: Connection, run: RunId) -> Run | None:
    """One run as it is stored."""
    row = await maybe(connection, RUNS["read_run"], shard=shard_of(run), id=run)
    return None if row is None else run_of(row)


async def lock_run(connection: Connection, run: RunId) -> Run | None:
    """One run, held until the transaction ends. Its parcel comes first: everybody's order."""
    row = await maybe(connection, CONTROL["lock_run"], shard=shard_of(run), id=run)
    return None if row is None else run_of(row)


async def read_holding(connection: Connection, run: RunId) -> Holding | None:
    """The parcel that holds a run, if one does."""
    row = await maybe(connection, PARCELS["read_parcelled"], shard=shard_of(run), runs=[run])
    if row is None:
        return None
    return Holding(
        parcel=row["parcel_id"],
        worker=row["worker_id"],
        fence=row["fence"],
        lease_until=row["lease_until"],
        visible_at=row["visible_at"],
        deliveries=row["deliveries"],
        leased_at=row["leased_at"],
    )


async def insert_manual(
    connection: Connection, run: Run, *, options: str | None, now: datetime
) -> bool:
    """Insert a run of a job that somebody asked for; False when it is there already."""
    row = await maybe(
        connection,
        CONTROL["insert_manual_run"],
        shard=run.shard,
        id=run.id,
        tenant=run.tenant,
        job=run.job,
        due_at=run.due_at,
        fire_at=run.fire_at,
        revision=run.revision,
        state=int(run.state),
        trigger=int(run.trigger),
        priority=run.priority,
        queue=run.queue,
        handler=run.handler,
        now=now,
        payload=run.payload,
        options=options,
        fair=run.terms.fair,
        when_full=run.terms.when_full,
        gate=run.terms.gate,
        rate_key=run.terms.rate,
        overlap=run.overlap,
        start_by=run.start_by,
    )
    return row is not None


async def insert_skipped(
    connection: Connection,
    template: Run,
    fires: Sequence[tuple[RunId, datetime, datetime]],
    *,
    now: datetime,
    reason: str,
) -> None:
    """Write fires, each with its id, due and fire time, as runs of a job that are over."""
    if not fires:
        return
    rows = await many(
        connection,
        CONTROL["insert_skipped_runs"],
        shard=template.shard,
        tenant=template.tenant,
        job=template.job,
        revision=template.revision,
        priority=template.priority,
        queue=template.queue,
        handler=template.handler,
        ids=[run for run, _, _ in fires],
        dues=[due for _, due, _ in fires],
        fires=[fire for _, _, fire in fires],
        now=now,
        reason=reason,
    )
    await tell_ended(connection, template.shard, rows, state=RunState.SKIPPED, reason=reason)


async def change_run(connection: Connection, run: Run, *, moved: bool = False) -> None:
    """Store when, where and how urgently a run that waits is due.

    `moved` says that its parcel is not where its id says; another time says so by itself.
    """
    await maybe(
        connection,
        CONTROL["change_run"],
        shard=run.shard,
        id=run.id,
        due_at=run.due_at,
        queue=run.queue,
        priority=run.priority,
        state=int(run.state),
        moved=moved,
    )


async def revive(
    connection: Connection,
    shard: ShardId,
    runs: Sequence[RunId],
    *,
    reason: str,
    reset_attempts: bool,
    queue: str | None = None,
    payload: bytes | None = None,
) -> dict[RunId, Revived]:
    """Back into the queue; returns what their new parcels need, of those that could be."""
    low, high = bounds(runs)
    rows = await many(
        connection,
        CONTROL["revive_runs"],
        shard=shard,
        runs=list(runs),
        low=low,
        high=high,
        reason=reason,
        reset_attempts=reset_attempts,
        queue=queue,
        payload=payload,
    )
    return {
        row["id"]: Revived(row["fence"], row["queue"], row["priority"], _terms(row)) for row in rows
    }


def new_run(
    *,
    run: RunId,
    tenant: TenantId,
    job: JobId | None,
    revision: int | None,
    trigger: Trigger,
    state: RunState,
    due_at: datetime,
    fire_at: datetime | None,
    queue: str,
    priority: int,
    handler: str | None,
    payload: bytes | None,
    terms: Terms = BARE,
) -> Run:
    """A run nothing has happened to yet."""
    return Run(
        id=run,
        tenant=tenant,
        job=job,
        revision=revision,
        state=state,
        trigger=trigger,
        priority=priority,
        attempt=0,
        fence=Fence(0),
        queue=queue,
        handler=handler,
        due_at=due_at,
        fire_at=fire_at,
        created_at=None,
        first_started_at=None,
        started_at=None,
        finished_at=None,
        cancel_at=None,
        worker=None,
        reason=None,
        payload=payload,
        options={},
        result=None,
        error=None,
        terms=terms,
    )


def run_of(row: asyncpg.Record) -> Run:
    """A row of one of the reading statements as a run."""
    return Run(
        id=row["id"],
        tenant=row["tenant_id"],
        job=row["job_id"],
        revision=row["revision"],
        state=RunState(row["state"]),
        trigger=Trigger(row["trigger"]),
        priority=row["priority"],
        attempt=row["attempt"],
        fence=row["fence"],
        queue=row["queue"],
        handler=row["handler"],
        due_at=row["due_at"],
        fire_at=row["fire_at"],
        created_at=row["created_at"],
        first_started_at=row["first_started_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        cancel_at=row["cancel_at"],
        worker=row["worker_id"],
        reason=row["reason"],
        payload=row["payload"],
        options=from_json(row["options"]),
        result=row["result"],
        error=from_json(row["error"]) or None,
        terms=_terms(row),
        overlap=row.get("overlap", 0),
        workflow_run=row.get("workflow_run_id"),
        node=row.get("node"),
    )


def _terms(row: asyncpg.Record) -> Terms:
    line = row["job_id"] if row.get("overlap", 0) > LAST_WITHOUT_LINE else None
    return Terms(row["fair"], row["gate"], row["when_full"], line, row["rate_key"])
