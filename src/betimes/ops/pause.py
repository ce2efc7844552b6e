"""Pausing and resuming jobs, and accounting for what was missed meanwhile.

A paused job has no next fire. The first fire that nobody has accounted for is kept with the reason
of the pause; resuming begins there: every fire up to now becomes a run or part of a recorded range.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from betimes.domain.errors import IllegalTransition, Invalid, NotFound, Refused
from betimes.domain.ids import JobId, ShardId, TenantId, floor_of, to_ms, to_text, to_us
from betimes.domain.job import GAP_FROM, PAUSED_AT, Job
from betimes.domain.parcel import Lane, Parcel
from betimes.domain.states import JobState, RunState, check_job
from betimes.ops.ahead import look_at_one
from betimes.ops.checks import check_instant, check_reason
from betimes.ops.create import announce
from betimes.ops.desk import Desk
from betimes.ops.gap import (
    JOB_AUTO_PAUSED,
    JOB_PAUSED,
    Missed,
    close_gap,
    gap_start,
    open_gap,
    paused_at,
)
from betimes.ops.grip import (
    Grip,
    Running,
    check_revision,
    grip,
    is_under_way,
    stop_everything,
    stop_future,
    strange_through,
)
from betimes.ops.outlook import Outlook, just_before, look_ahead
from betimes.ops.placing import insert_fires
from betimes.ops.telling import tell_completion, tell_job
from betimes.ops.timetable import read_timetable
from betimes.schedule import NOTHING, Accounted, Budget
from betimes.schedule.catchup import CATCHUP_STEPS_MAX
from betimes.store.control import find_stopped
from betimes.store.jobs import elapsed_pauses, steer_job
from betimes.store.occurrences import accounted_for, insert_decisions
from betimes.store.pool import Connection
from betimes.telemetry import Each, in_turn

SCHEDULE_UNREADABLE = "SCHEDULE_UNREADABLE"
PAUSED = (JobState.PAUSED, JobState.AUTO_PAUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A job that goes on, and the missed fires that run now."""

    job: Job
    caught_up: Sequence[datetime]


async def pause_job(
    desk: Desk,
    tenant: TenantId,
    job: JobId,
    *,
    reason: str = "",
    until: datetime | None = None,
    running: Running = Running.LEAVE,
    actor: str | None = None,
    expected_revision: int | None = None,
    by_rule: bool = False,
) -> Job:
    """No fire later than now runs until the job is resumed; pausing again changes the reason.

    A pause `by_rule` is shown as such, and never takes the place of one that somebody asked for.
    """
    paused_state = JobState.AUTO_PAUSED if by_rule else JobState.PAUSED
    check_reason(reason)
    if until is not None:
        check_instant(until, pointer="/until")
        if until <= (now := desk.clock.now()):
            raise Invalid(
                f"expected an end in the future, got {until.isoformat()}, and it is "
                f"{now.isoformat(timespec='seconds')}",
                pointer="/until",
            )

    async def work(connection: Connection) -> Job:
        held = await grip(desk, connection, tenant, job)
        check_revision(held.job, expected_revision)
        if by_rule and held.job.state is JobState.PAUSED:
            return held.job
        if held.job.state is not paused_state:
            check_job(held.job.state, paused_state)
        forgotten = await _stop(connection, held, running)
        since = {
            GAP_FROM: to_us(gap_start(held.job)),
            PAUSED_AT: to_us(paused_at(held.job)),
        }
        if held.job.state is JobState.ACTIVE:
            since = open_gap(held.job, forgotten, held.now)
        paused = replace(
            held.job,
            state=paused_state,
            state_reason={
                "code": JOB_AUTO_PAUSED if by_rule else JOB_PAUSED,
                "reason": reason,
                "by": actor,
                **since,
            },
            paused_until=until,
            next_fire_at=None,
            fires=held.job.fires - len(forgotten),
            updated_at=held.now,
        )
        await steer_job(connection, paused, now=held.now)
        if by_rule and held.job.state is not paused_state:
            told = {"code": JOB_AUTO_PAUSED, "reason": reason}
            await tell_job(desk, connection, paused, "job.auto_paused", now=held.now, **told)
        return paused

    return await desk.transact(work, tenant=tenant)


async def _stop(connection: Connection, held: Grip, running: Running) -> Sequence[datetime]:
    """End what lies ahead; returns the fires that were planned and are forgotten."""
    stopped = await stop_future(connection, held, state=RunState.SKIPPED, reason=JOB_PAUSED)
    if running is Running.CANCEL:
        await stop_everything(connection, held, running=running, reason=JOB_PAUSED)
    return stopped.dropped


async def resume_job(
    desk: Desk,
    tenant: TenantId,
    job: JobId,
    *,
    missed: Missed = Missed.SKIP,
    as_of: datetime | None = None,
    expected_revision: int | None = None,
) -> Resumed:
    """Go on with the fires after now, or after the end the pause was given (`as_of`)."""

    async def work(connection: Connection) -> tuple[Resumed, list[Parcel]]:
        held = await grip(desk, connection, tenant, job)
        check_revision(held.job, expected_revision)
        if held.job.state is JobState.ACTIVE:
            return Resumed(job=held.job, caught_up=()), []
        if held.job.state not in PAUSED:
            raise IllegalTransition(
                f"expected a paused job to resume, got one that is {held.job.state.name.lower()}"
            )
        return await _resume(connection, held, missed, until=as_of or held.now)

    resumed, parcels = await desk.transact(work, tenant=tenant)
    announce(desk, [resumed.job], parcels)
    return resumed


async def resume_elapsed(
    desk: Desk, shard: ShardId, *, most: int = 100, each: Each = in_turn
) -> list[JobId]:
    """Resume the jobs of a shard whose pause was to end by now; for the janitor."""

    async def work(connection: Connection) -> list[tuple[TenantId, JobId]]:
        return await elapsed_pauses(connection, shard, now=desk.clock.stated(), most=most)

    found = {to_text("job", pair[1]): pair for pair in await desk.transact(work, tenant=None)}

    async def resume(text: str) -> JobId | None:
        tenant, job = found[text]
        return job if await _resume_if_elapsed(desk, tenant, job) else None

    return [job for job in await each(found, resume) if job is not None]


async def _resume_if_elapsed(desk: Desk, tenant: TenantId, job: JobId) -> bool:
    async def work(connection: Connection) -> tuple[Resumed, list[Parcel]] | None:
        try:
            held = await grip(desk, connection, tenant, job)
        except NotFound:
            return None  # deleted meanwhile
        until = held.job.paused_until
        if held.job.state not in PAUSED or until is None or until > held.now:
            return None  # resumed, or given another end meanwhile
        try:
            read_timetable(held.job.definition.schedule, job)
        except Refused as refused:
            await _set_aside(desk, connection, held, refused.sentence)
            return None
        # The fires between the given end and now are late, not missed.
        resumed, parcels = await _resume(connection, held, Missed.SKIP, until=until)
        await tell_job(desk, connection, resumed.job, "job.resumed", now=held.now)
        return resumed, parcels

    answer = await desk.transact(work, tenant=tenant)
    if answer is None:
        return False
    announce(desk, [answer[0].job], answer[1])
    return True


async def _set_aside(desk: Desk, connection: Connection, held: Grip, why: str) -> None:
    """A job whose schedule can no longer be read stays paused, without an end, and says why.

    The planner does the same with an active one. An edit that gives it a schedule ends it.
    """
    since = {GAP_FROM: to_us(gap_start(held.job)), PAUSED_AT: to_us(paused_at(held.job))}
    aside = replace(
        held.job,
        state=JobState.AUTO_PAUSED,
        state_reason={"code": SCHEDULE_UNREADABLE, "detail": why, **since},
        paused_until=None,
        updated_at=held.now,
    )
    await steer_job(connection, aside, now=held.now)
    told = {"code": SCHEDULE_UNREADABLE, "reason": why}
    await tell_job(desk, connection, aside, "job.auto_paused", now=held.now, **told)


async def _resume(
    connection: Connection, held: Grip, missed: Missed, *, until: datetime
) -> tuple[Resumed, list[Parcel]]:
    job = held.job
    timetable = read_timetable(job.definition.schedule, job.id)
    stopped = await find_stopped(
        connection,
        job.shard,
        job.id,
        low=floor_of(to_ms(paused_at(job))),
        reasons=(JOB_PAUSED, JOB_AUTO_PAUSED),
    )
    begin = min([gap_start(job), *stopped])
    strange = max(filter(None, [*stopped, await strange_through(connection, held)]), default=None)
    reach = max(filter(None, [until, held.near, strange]))
    found = await accounted_for(connection, job.shard, [(job.id, begin, reach)])
    known = found.get((job.id, begin), NOTHING)
    closed = close_gap(
        job,
        timetable,
        until=until,
        missed=missed,
        accounted=known,
        stopped=stopped.keys(),
    )
    await insert_decisions(connection, job.shard, closed.dropped, now=held.now)
    # Whatever came before the gap is accounted for, wherever the pause was to end.
    after = max(until, just_before(begin))
    outlook = look_ahead(
        timetable,
        job.definition,
        Budget(CATCHUP_STEPS_MAX),
        after=after,
        near=held.near,
        strange=strange,
        accounted=Accounted(set(known.runs) - stopped.keys(), known.decided),
    )
    if timetable.is_fixed_delay and await is_under_way(connection, held):
        # The end of that run writes the next fire; a second one would start a second chain.
        outlook = Outlook(near=(), next_fire_at=None, state=JobState.ACTIVE)
    late = await insert_fires(
        connection, held, closed.runs, job=job, lane=Lane.CATCH_UP, instead_of=stopped
    )
    ahead = await insert_fires(
        connection, held, outlook.near, job=job, near=reach, instead_of=stopped
    )
    fresh = [fire for fire in (*closed.runs, *outlook.near) if fire.nominal not in stopped]
    resumed = replace(
        job,
        state=outlook.state,
        state_reason={},
        paused_until=None,
        next_fire_at=outlook.next_fire_at,
        fires=job.fires + len(fresh),
        updated_at=held.now,
    )
    await steer_job(connection, resumed, now=held.now)
    await tell_completion(connection, job, resumed)
    caught_up = tuple(fire.nominal for fire in closed.runs)
    shown = await look_at_one(connection, resumed, now=held.now)
    return Resumed(job=shown, caught_up=caught_up), [*late, *ahead]
