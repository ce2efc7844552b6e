"""Editing jobs: a new revision for fires that nobody has published, the old one for the rest.

With `pending` also what waits already is done as the job is then: with its handler, payload, target
and way to retry. It stays where it waits: queue, priority and limits are those it came with.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime

from betimes.domain.errors import BadSchedule, Bug, IllegalTransition, VersionMismatch
from betimes.domain.ids import JobId, TenantId, floor_of, to_ms, to_us
from betimes.domain.job import GAP_FROM, Definition, Job, Recount
from betimes.domain.parcel import Parcel
from betimes.domain.states import JobState, Trigger
from betimes.ops.ahead import look_at_one
from betimes.ops.contents import sealed_definition
from betimes.ops.create import announce, check_definition, declare_gates
from betimes.ops.desk import Desk
from betimes.ops.evaluating import Evaluations
from betimes.ops.gap import (
    Closed,
    Missed,
    close_gap,
    close_unreadable,
    gap_start,
    open_gap,
    paused_at,
)
from betimes.ops.grip import (
    Grip,
    check_revision,
    forget_planned,
    grip,
    leave_gap,
    strange_through,
    waiting_runs,
)
from betimes.ops.outlook import Outlook, look_ahead, require_a_future
from betimes.ops.placing import insert_fires
from betimes.ops.read import get_job
from betimes.ops.telling import tell_completion
from betimes.ops.timetable import counted, read_timetable
from betimes.schedule import NOTHING, Accounted, Budget, Schedule
from betimes.schedule.catchup import CATCHUP_STEPS_MAX
from betimes.store.control import find_planned, renew_revision
from betimes.store.jobs import edit_job, keep_revision
from betimes.store.occurrences import accounted_for, insert_decisions
from betimes.store.pool import Connection

PAUSED = (JobState.PAUSED, JobState.AUTO_PAUSED)
ANCHOR = "anchor"


async def update_job(
    desk: Desk,
    tenant: TenantId,
    job: JobId,
    definition: Definition,
    *,
    expected_revision: int | None = None,
    actor: str | None = None,
    pending: bool = False,
) -> Job:
    """Replace a definition. Of several writers that expect the same revision exactly one wins."""
    check_definition(definition)
    timetable = read_timetable(definition.schedule, job)
    edit = Edit(
        desk=desk,
        definition=replace(definition, recount=None),
        timetable=timetable,
        recount=definition.recount,
        expected_revision=expected_revision,
        actor=actor,
    )

    async def work(connection: Connection) -> tuple[Job, list[Parcel]]:
        held = await grip(desk, connection, tenant, job)
        edited, made = await edit.apply(connection, held)
        if pending:
            await renew_revision(
                connection,
                held.shard,
                await waiting_runs(connection, held),
                revision=edited.revision,
                handler=definition.handler,
            )
        return edited, made

    edited, parcels = await desk.transact(work, tenant=tenant)
    announce(desk, [edited], parcels)
    return edited


async def change_job(
    desk: Desk,
    tenant: TenantId,
    job: JobId,
    change: Callable[[Job], Awaitable[Definition]],
    *,
    actor: str | None,
) -> Job:
    """Read a job and write what `change` makes of it, inside the desk's transaction.

    Somebody may edit it between the two. The first try has locked it then: the second one reads
    and writes under that lock.
    """
    for is_last in (False, True):
        found = await get_job(desk, tenant, job)
        definition = await change(found)
        try:
            return await update_job(
                desk, tenant, job, definition, expected_revision=found.revision, actor=actor
            )
        except VersionMismatch:
            if is_last:
                raise
    raise Bug("the second try has an end")


def kept_anchor(new: Definition, old: Definition) -> Definition:
    """A definition whose period goes on counting from where it began, if it is the same period."""
    begun = old.schedule.get(ANCHOR)
    if begun is None or {**new.schedule, ANCHOR: begun} != old.schedule:
        return new
    return replace(new, schedule=old.schedule, recount=None)


@dataclass(slots=True, kw_only=True)
class Edit:
    """One edit of one job; it may be applied again when the reply of its commit was lost."""

    desk: Desk
    definition: Definition
    timetable: Schedule
    recount: Recount | None
    expected_revision: int | None
    actor: str | None
    replaces: int | None = None
    written: Definition | None = None
    """What an earlier try has written, for all we know."""

    async def apply(self, connection: Connection, held: Grip) -> tuple[Job, list[Parcel]]:
        """Keep the old definition, forget what is planned of it, go on with the new one."""
        job = held.job
        if self.replaces == job.revision - 1 and job.definition == self.written:
            return job, []  # our own commit, whose reply was lost
        await self._count(job, held.now)
        self.definition = await sealed_definition(
            self.desk, connection, job.tenant, self.definition
        )
        check_revision(job, self.expected_revision)
        if job.state is JobState.CANCELLED:
            raise IllegalTransition("a job that is cancelled cannot be edited; create a new one")
        if self._changes_nothing(job):
            return await look_at_one(connection, job, now=held.now), []
        self.replaces, self.written = job.revision, self.definition
        await declare_gates(connection, job.tenant, [self.definition], now=held.now)
        await leave_gap(connection, held)
        await keep_revision(connection, job, now=held.now, actor=self.actor)
        forgotten = await forget_planned(connection, held)
        kept = await _last_kept(connection, held)
        if job.state in PAUSED:
            return await self._apply_to_paused(connection, held, len(forgotten))
        # What lies before its creation is no fire of it, also when that time comes again.
        after = max(held.now, kept, job.created_at)
        strange = await strange_through(connection, held)
        reach = max(filter(None, [after, held.near, strange]))
        known = await accounted_for(connection, job.shard, [(job.id, after, reach)])
        outlook = look_ahead(
            self.timetable,
            self.definition,
            Budget(CATCHUP_STEPS_MAX),
            after=after,
            near=held.near,
            strange=strange,
            accounted=known.get((job.id, after), NOTHING),
        )
        self._check(job, outlook)
        edited = replace(
            job,
            definition=self.definition,
            state=outlook.state,
            state_reason={},
            next_fire_at=outlook.next_fire_at,
            fires=job.fires - len(forgotten) + len(outlook.near),
            tzdata=self.desk.tzdata,
            updated_at=held.now,
        )
        edited = await _store(connection, edited, held.now)
        await tell_completion(connection, job, edited)
        parcels = await insert_fires(connection, held, outlook.near, job=edited)
        return await look_at_one(connection, edited, now=held.now), parcels

    async def _count(self, job: Job, now: datetime) -> None:
        """Let a delay begin now, each time."""
        if self.recount is None:
            return
        definition = replace(self.definition, recount=self.recount)
        self.definition = await counted(definition, now, Evaluations())
        self.timetable = read_timetable(self.definition.schedule, job.id)

    def _changes_nothing(self, job: Job) -> bool:
        """Whether a job that goes on is asked to be what it is: then nothing is planned anew."""
        same = job.definition == self.definition and job.tzdata == self.desk.tzdata
        return same and job.state is JobState.ACTIVE

    def _check(self, job: Job, outlook: Outlook) -> None:
        """A schedule that is over may stay as it is, but nobody may give a job a new one."""
        goes_on = job.state is JobState.ACTIVE and job.next_fire_at is not None
        if job.definition.schedule != self.definition.schedule or goes_on:
            require_a_future(outlook, self.definition)

    async def _apply_to_paused(
        self, connection: Connection, held: Grip, forgotten: int
    ) -> tuple[Job, list[Parcel]]:
        """The gap so far belongs to the old schedule; a new gap begins with the new one.

        Not before the job was made, also when that time comes again.
        """
        job = held.job
        begin = gap_start(job)
        known = await accounted_for(connection, job.shard, [(job.id, begin, held.now)])
        closed = _closed(job, held.now, known.get((job.id, begin), NOTHING))
        await insert_decisions(connection, job.shard, closed.dropped, now=held.now)
        paused = max(held.now, paused_at(job))
        reason = dict(job.state_reason) | open_gap(job, (), paused)
        reason[GAP_FROM] = to_us(max(paused, job.created_at)) + 1
        edited = replace(
            job,
            definition=self.definition,
            state_reason=reason,
            fires=job.fires - forgotten,
            tzdata=self.desk.tzdata,
            updated_at=held.now,
        )
        return await _store(connection, edited, held.now), []


def _closed(job: Job, until: datetime, accounted: Accounted) -> Closed:
    try:
        timetable = read_timetable(job.definition.schedule, job.id)
    except BadSchedule:
        # It was set aside for that; another schedule is what it waits for.
        return close_unreadable(job, until=until, accounted=accounted)
    return close_gap(job, timetable, until=until, missed=Missed.SKIP, accounted=accounted)


async def _last_kept(connection: Connection, held: Grip) -> datetime:
    """The last fire that keeps its run under the old revision; new fires begin after it."""
    rows = await find_planned(connection, held.shard, held.job.id, low=floor_of(to_ms(held.now)))
    fires = [
        row.fire_at
        for row in rows
        if row.fire_at is not None and row.trigger is Trigger.SCHEDULE and row.fire_at <= held.near
    ]
    return max([held.now, *fires])


async def _store(connection: Connection, edited: Job, now: datetime) -> Job:
    revision = await edit_job(connection, edited, now=now)
    # The row is locked and its revision was read under the lock, so there is always an answer.
    return replace(edited, revision=edited.revision + 1 if revision is None else revision)
