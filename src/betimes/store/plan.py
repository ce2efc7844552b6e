"""Fires become runs: the planner's reads, and its one fenced transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from json import dumps
from uuid import UUID

from betimes.domain.ids import (
    JobId,
    NodeId,
    RunId,
    ShardId,
    TenantId,
    compose,
    to_ms,
    to_text,
    to_us,
)
from betimes.domain.job import GAP_FROM, SCHEDULE_UNREADABLE
from betimes.domain.parcel import Parcel
from betimes.domain.spec import start_deadline_of_text
from betimes.domain.states import RunState, Trigger
from betimes.domain.terms import terms_of_text
from betimes.fairness.overlap import OverlapPolicy
from betimes.store.database import Database
from betimes.store.occurrences import Occurrence, insert_planned
from betimes.store.pool import Connection, Lane
from betimes.store.publish import place_runs
from betimes.store.queries import load
from betimes.store.shards import Claim, HeldShard, hold_shard
from betimes.store.telling import Completed, tell_completed

SQL = load("plan")
FAILURES = load("failures")
CATCHUP = load("catchup")
ONCE = '"type": "once"'


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job whose next fire is near, with what planning needs to know."""

    id: JobId
    tenant: TenantId
    revision: int
    next_fire_at: datetime
    fires: int
    queue: str
    priority: int
    handler: str | None
    schedule: str
    options: str | None
    since: datetime | None = None
    """When it became what it is; None where that is not known."""


@dataclass(frozen=True, slots=True)
class DroppedFires:
    """Fires that shall not become runs, and why; a range when there are many."""

    fire_at: datetime
    code: str
    until_at: datetime | None = None
    fires: int = 1
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Missed fires from `first` through `last`, which somebody will settle."""

    first: datetime
    last: datetime
    completes: bool = False
    """Nothing follows: with the gap, the job is complete."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far one job goes in one pass, its runs as columns: there are very many of them."""

    job: DueJob
    next_fire_at: datetime | None
    ids: Sequence[RunId]
    fires: Sequence[datetime]
    dues: Sequence[datetime]
    """The same list as `fires` where the schedule moves no start."""
    overlap: OverlapPolicy = OverlapPolicy.SKIP
    dropped: Sequence[DroppedFires] = ()
    completed: bool = False
    gap: Span | None = None


@dataclass(slots=True)
class Planned:
    """What a transaction has done."""

    jobs: int = 0
    runs: int = 0
    parcels: list[Parcel] = field(default_factory=list)
    skipped: int = 0
    """Runs that gave way to an earlier one of their job."""


@dataclass(frozen=True, slots=True)
class ToPlan:
    """In which shards there is something to do."""

    due: frozenset[ShardId] = frozenset()
    """Jobs whose next fire is near."""
    late: frozenset[ShardId] = frozenset()
    """Jobs whose next fire has passed."""
    gaps: frozenset[ShardId] = frozenset()
    """Missed fires that are to be settled."""


@dataclass(frozen=True, slots=True)
class Planning:
    """The planner's side of the store."""

    database: Database
    node: NodeId
    margin: timedelta

    async def look(self, limits: Mapping[ShardId, datetime], *, edge: datetime) -> ToPlan:
        """What there is to do in shards that are planned up to an instant of their own.

        What fires before `edge` is behind. One statement for all, because mostly there is nothing.
        """
        rows = await self.database.many(
            SQL["look_for_plans"],
            lane=Lane.ENGINE,
            shards=list(limits),
            limits=list(limits.values()),
            edge=edge,
        )
        return ToPlan(
            due=frozenset(ShardId(row["shard"]) for row in rows if row["due"]),
            late=frozenset(ShardId(row["shard"]) for row in rows if row["late"]),
            gaps=frozenset(ShardId(row["shard"]) for row in rows if row["gap"]),
        )

    async def due_jobs(
        self, shard: ShardId, *, before: datetime, after: tuple[datetime, UUID], most: int
    ) -> list[DueJob]:
        """The next page of jobs in the order of their next fire."""
        rows = await self.database.many(
            SQL["read_due_jobs"],
            lane=Lane.ENGINE,
            shard=shard,
            before=before,
            after_at=after[0],
            after_id=after[1],
            most=most,
        )
        return [DueJob(*row.values()) for row in rows]

    async def set_aside(
        self, shard: ShardId, broken: Sequence[tuple[DueJob, str]], *, now: datetime | None
    ) -> list[tuple[DueJob, str]]:
        """Pause jobs whose schedule cannot be read, and tell it; those that nobody has edited."""

        async def work(connection: Connection) -> list[tuple[DueJob, str]]:
            rows = await SQL["auto_pause_jobs"].fetch(
                connection,
                shard=shard,
                ids=[job.id for job, _ in broken],
                revisions=[job.revision for job, _ in broken],
                expected=[job.next_fire_at for job, _ in broken],
                reasons=[dumps(_reason(job, why)) for job, why in broken],
                now=now,
            )
            paused_at = {row["id"]: row["updated_at"] for row in rows}
            aside = [(job, why) for job, why in broken if job.id in paused_at]
            for job, why in aside:
                await _tell_aside(connection, shard, job, why, at=paused_at[job.id])
            return aside

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def commit(
        self, claim: Claim, steps: Sequence[Step], *, tzdata: str, now: datetime | None
    ) -> Planned:
        """Advance the jobs and insert their runs in one transaction under our epoch.

        Jobs that were edited or advanced meanwhile are left alone, with their runs. Safe to
        repeat: what has advanced does not advance again.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> Planned:
            held = await hold_shard(connection, claim, node=self.node, now=now)
            advanced = await self._advance(connection, claim.shard, steps, tzdata=tzdata)
            moved = [step for step in steps if step.job.id in advanced]
            await record_dropped(
                connection,
                claim.shard,
                [(step.job, dropped) for step in moved for dropped in step.dropped],
                now=now,
            )
            await tell_completed(
                connection,
                claim.shard,
                [completed_of(step.job) for step in moved if step.completed],
            )
            gaps = {step.job.id: step.gap for step in moved if step.gap is not None}
            await insert_gaps(connection, claim.shard, gaps)
            return await self._insert(connection, claim.shard, moved, held)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _advance(
        self, connection: Connection, shard: ShardId, steps: Sequence[Step], *, tzdata: str
    ) -> set[UUID]:
        rows = await SQL["advance_jobs"].fetch(
            connection,
            shard=shard,
            tzdata=tzdata,
            ids=[step.job.id for step in steps],
            revisions=[step.job.revision for step in steps],
            expected=[step.job.next_fire_at for step in steps],
            next_fires=[step.next_fire_at for step in steps],
            fired=[len(step.ids) for step in steps],
            completed=[step.completed for step in steps],
        )
        return {row["id"] for row in rows}

    async def _insert(
        self, connection: Connection, shard: ShardId, steps: Sequence[Step], held: HeldShard
    ) -> Planned:
        soon = held.now + self.margin
        near: list[Occurrence] = []
        far: list[Step] = []
        for step in steps:
            if step.dues and min(step.dues) <= soon:
                soonest, step = split_near(step, soon)  # noqa: PLW2901 -- what is left of it
                near += soonest
            if step.ids:
                far.append(step)
        inserted = await insert_planned(connection, shard, near, trigger=Trigger.SCHEDULE)
        placed = await place_runs(
            connection,
            shard,
            [run.waiting() for run in near if run.id in inserted],
            now=held.now,
            reach=held.published_through,
        )
        runs = len(inserted) + await self._insert_far(connection, shard, far)
        return Planned(
            jobs=len(steps), runs=runs, parcels=placed.parcels, skipped=len(placed.skipped)
        )

    async def _insert_far(
        self, connection: Connection, shard: ShardId, steps: Sequence[Step]
    ) -> int:
        if not steps:
            return 0
        lasts = list(accumulate(len(step.ids) for step in steps))
        moved = any(step.dues is not step.fires for step in steps)
        jobs = [step.job for step in steps]
        terms = [terms_of_text(job.options) for job in jobs]
        return await SQL["insert_far_runs"].count(
            connection,
            shard=shard,
            trigger=Trigger.SCHEDULE,
            jobs=[job.id for job in jobs],
            tenants=[job.tenant for job in jobs],
            revisions=[job.revision for job in jobs],
            priorities=[job.priority for job in jobs],
            queues=[job.queue for job in jobs],
            handlers=[job.handler for job in jobs],
            fairs=[one.fair for one in terms],
            whens=[one.when_full for one in terms],
            gates=[one.gate for one in terms],
            rate_keys=[one.rate for one in terms],
            overlaps=[step.overlap.number for step in steps],
            firsts=[last - len(step.ids) + 1 for last, step in zip(lasts, steps, strict=True)],
            lasts=lasts,
            ids=[run for step in steps for run in step.ids],
            dues=[due for step in steps for due in step.dues],
            fires=[fire for step in steps for fire in step.fires] if moved else [],
            starts=_starts(steps),
        )


def _reason(job: DueJob, why: str) -> dict[str, str | int]:
    return {"code": SCHEDULE_UNREADABLE, "detail": why, GAP_FROM: to_us(job.next_fire_at)}


async def _tell_aside(
    connection: Connection, shard: ShardId, job: DueJob, why: str, *, at: datetime
) -> None:
    name = to_text("job", job.id)
    await FAILURES["tell_auto_paused"].execute(
        connection,
        shard=shard,
        id=compose(to_ms(at), shard, job.id.int),
        tenant=job.tenant,
        subject=name,
        body=dumps({"job_id": name, "code": SCHEDULE_UNREADABLE, "reason": why}),
        now=at,
    )


async def record_dropped(
    connection: Connection,
    shard: ShardId,
    pairs: Sequence[tuple[DueJob, DroppedFires]],
    *,
    now: datetime | None,
) -> None:
    """Write down why fires did not become runs."""
    if not pairs:
        return
    await SQL["insert_decisions"].execute(
        connection,
        shards=[shard] * len(pairs),
        now=now,
        jobs=[job.id for job, _ in pairs],
        fires_at=[dropped.fire_at for _, dropped in pairs],
        until=[dropped.until_at for _, dropped in pairs],
        counts=[dropped.fires for _, dropped in pairs],
        tenants=[job.tenant for job, _ in pairs],
        revisions=[job.revision for job, _ in pairs],
        codes=[dropped.code for _, dropped in pairs],
        details=[dropped.detail for _, dropped in pairs],
    )


async def insert_gaps(connection: Connection, shard: ShardId, gaps: Mapping[JobId, Span]) -> None:
    """Leave missed fires of jobs for later, as the jobs are now; the caller holds their rows."""
    if not gaps:
        return
    await CATCHUP["insert_gaps"].execute(
        connection,
        shard=shard,
        jobs=list(gaps),
        firsts=[span.first for span in gaps.values()],
        lasts=[span.last for span in gaps.values()],
        completes=[span.completes for span in gaps.values()],
    )


def _starts(steps: Sequence[Step]) -> list[datetime | None]:
    """Until when the runs of steps may start; nothing is sent where no job has a deadline."""
    deadlines = [start_deadline_of_text(step.job.options) for step in steps]
    if all(deadline is None for deadline in deadlines):
        return []
    return [
        None if deadline is None else due + deadline
        for step, deadline in zip(steps, deadlines, strict=True)
        for due in step.dues
    ]


def split_near(step: Step, soon: datetime) -> tuple[list[Occurrence], Step]:
    """The runs of a step that need a parcel at once, and a step with the others."""
    job = step.job
    deadline = start_deadline_of_text(job.options)
    near: list[Occurrence] = []
    far: list[tuple[RunId, datetime, datetime]] = []
    for run, fire_at, due_at in zip(step.ids, step.fires, step.dues, strict=True):
        if due_at > soon:
            far.append((run, fire_at, due_at))
            continue
        near.append(
            Occurrence(
                id=run,
                tenant=job.tenant,
                job=job.id,
                due_at=due_at,
                fire_at=fire_at,
                revision=job.revision,
                state=RunState.QUEUED,
                priority=job.priority,
                queue=job.queue,
                handler=job.handler,
                terms=terms_of_text(job.options),
                overlap=step.overlap.number,
                start_by=None if deadline is None else due_at + deadline,
            )
        )
    return near, replace(
        step,
        ids=[run for run, _, _ in far],
        fires=[fire_at for _, fire_at, _ in far],
        dues=[due_at for _, _, due_at in far],
    )


def completed_of(job: DueJob) -> Completed:
    """A job that has come to its end, as it is told."""
    return Completed(job.id, job.revision, is_single=ONCE in job.schedule)
