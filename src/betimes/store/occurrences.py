"""Occurrences of jobs, inserted as the planner does: the same ids, the same statements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from betimes.domain.ids import JobId, RunId, ShardId, TenantId, floor_of, to_ms
from betimes.domain.parcel import Waiting
from betimes.domain.states import RunState, Trigger
from betimes.domain.terms import BARE, Terms
from betimes.schedule import Accounted
from betimes.store.ask import execute, many
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("plan")
CATCHUP = load("catchup")
Stretch = tuple[JobId, datetime, datetime]
"""Fires of a job from a first through a last instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """An occurrence on its way into the store."""

    id: RunId
    tenant: TenantId
    job: JobId
    due_at: datetime
    fire_at: datetime | None
    revision: int
    state: RunState
    priority: int
    queue: str
    handler: str | None
    terms: Terms = BARE
    overlap: int = 0
    """The number of its overlap policy."""
    start_by: datetime | None = None

    def waiting(self, at: datetime | None = None) -> Waiting:
        """It on its way into a parcel, visible when it is due or at another time."""
        return Waiting(
            self.id,
            self.tenant,
            self.due_at if at is None else at,
            self.priority,
            self.queue,
            *self.terms,
            self.job,
            self.overlap,
            self.handler,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Fires that did not become runs: one, or all from `fire_at` up to and including `until_at`."""

    job: JobId
    tenant: TenantId
    fire_at: datetime
    until_at: datetime | None
    fires: int
    revision: int
    code: str
    detail: str | None = None


async def insert_planned(
    connection: Connection, shard: ShardId, runs: Sequence[Occurrence], *, trigger: Trigger
) -> set[RunId]:
    """Insert occurrences; those that existed already are missing from the answer."""
    if not runs:
        return set()
    rows = await many(
        connection,
        SQL["insert_planned_runs"],
        shard=shard,
        trigger=int(trigger),
        ids=[run.id for run in runs],
        tenants=[run.tenant for run in runs],
        jobs=[run.job for run in runs],
        dues=[run.due_at for run in runs],
        fires=[run.fire_at for run in runs],
        revisions=[run.revision for run in runs],
        states=[int(run.state) for run in runs],
        priorities=[run.priority for run in runs],
        queues=[run.queue for run in runs],
        handlers=[run.handler for run in runs],
        fairs=[run.terms.fair for run in runs],
        whens=[run.terms.when_full for run in runs],
        gates=[run.terms.gate for run in runs],
        rate_keys=[run.terms.rate for run in runs],
        overlaps=[run.overlap for run in runs],
        starts=[run.start_by for run in runs],
    )
    return {row["id"] for row in rows}


async def accounted_for(
    connection: Connection, shard: ShardId, stretches: Iterable[Stretch]
) -> Mapping[tuple[JobId, datetime], Accounted]:
    """What has a run or a decision already, by job and first instant; the caller holds the jobs.

    Every fire has one account. Whoever makes runs or decisions for a stretch of fires, and has not
    moved the job past them in the same transaction, asks here first and leaves these out.
    """
    asked = list(stretches)
    if not asked:
        return {}
    rows = await many(
        connection,
        CATCHUP["find_accounted"],
        shard=shard,
        jobs=[job for job, _, _ in asked],
        firsts=[first for _, first, _ in asked],
        lasts=[last for _, _, last in asked],
        lows=[floor_of(to_ms(first)) for _, first, _ in asked],
    )
    runs: dict[tuple[JobId, datetime], set[datetime]] = {}
    decided: dict[tuple[JobId, datetime], list[tuple[datetime, datetime]]] = {}
    for row in rows:
        key = (row["job_id"], row["first"])
        if row["until_at"] is None:
            runs.setdefault(key, set()).add(row["fire_at"])
        else:
            decided.setdefault(key, []).append((row["fire_at"], row["until_at"]))
    return {
        key: Accounted(runs.get(key, frozenset()), decided.get(key, ()))
        for key in runs.keys() | decided.keys()
    }


async def insert_decisions(
    connection: Connection, shard: ShardId, dropped: Sequence[Dropped], *, now: datetime
) -> None:
    """Record why fires did not become runs; the first reason for a fire stands."""
    await insert_decisions_together(connection, [shard] * len(dropped), dropped, now=now)


async def insert_decisions_together(
    connection: Connection, shards: Sequence[ShardId], dropped: Sequence[Dropped], *, now: datetime
) -> None:
    """Record them for fires of several shards; each stands beside its shard."""
    if not dropped:
        return
    await execute(
        connection,
        SQL["insert_decisions"],
        shards=list(shards),
        now=now,
        jobs=[one.job for one in dropped],
        fires_at=[one.fire_at for one in dropped],
        until=[one.until_at for one in dropped],
        counts=[one.fires for one in dropped],
        tenants=[one.tenant for one in dropped],
        revisions=[one.revision for one in dropped],
        codes=[one.code for one in dropped],
        details=[one.detail for one in dropped],
    )
