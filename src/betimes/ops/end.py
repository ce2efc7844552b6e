"""Ending jobs: cancelling for good, deleting, and deleting one-off jobs that are done."""

from dataclasses import replace
from enum import StrEnum

from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId, ShardId, TenantId, to_text
from betimes.domain.job import AfterCompletion, Job
from betimes.domain.states import JobState, RunState, check_job
from betimes.ops.checks import check_reason
from betimes.ops.desk import Desk
from betimes.ops.grip import (
    Running,
    check_revision,
    grip,
    leave_gap,
    stop_everything,
    stop_future,
)
from betimes.ops.telling import tell_job
from betimes.store.control import find_parcelled
from betimes.store.jobs import delete_job as delete_row
from betimes.store.jobs import keep_revision, spent_jobs, steer_job
from betimes.store.pool import Connection
from betimes.telemetry import Each, in_turn

JOB_CANCELLED = "JOB_CANCELLED"
JOB_DELETED = "JOB_DELETED"


class RunsOf(StrEnum):
    """What becomes of the runs of a job that is deleted."""

    KEEP = "keep"
    CANCEL = "cancel"


async def cancel_job(
    desk: Desk,
    tenant: TenantId,
    job: JobId,
    *,
    reason: str = "",
    running: Running = Running.LEAVE,
    actor: str | None = None,
    expected_revision: int | None = None,
) -> Job:
    """End a job for good: once this is acknowledged, no attempt of any of its runs starts."""
    check_reason(reason)

    async def work(connection: Connection) -> Job:
        held = await grip(desk, connection, tenant, job)
        check_revision(held.job, expected_revision)
        if held.job.state is JobState.CANCELLED:
            return held.job
        check_job(held.job.state, JobState.CANCELLED)
        await leave_gap(connection, held)
        stopped = await stop_everything(connection, held, running=running, reason=JOB_CANCELLED)
        cancelled = replace(
            held.job,
            state=JobState.CANCELLED,
            state_reason={"code": JOB_CANCELLED, "reason": reason, "by": actor},
            paused_until=None,
            next_fire_at=None,
            fires=held.job.fires - len(stopped.dropped),
            updated_at=held.now,
        )
        await steer_job(connection, cancelled, now=held.now)
        return cancelled

    return await desk.transact(work, tenant=tenant)


async def delete_job(
    desk: Desk,
    tenant: TenantId,
    job: JobId,
    *,
    runs: RunsOf = RunsOf.KEEP,
    actor: str | None = None,
    expected_revision: int | None = None,
) -> None:
    """Forget a job: its name is free at once, its history stays readable.

    With `keep`, runs that are due already are still executed, from the definition that is kept;
    fires later than now never are.
    """
    seen = False

    async def work(connection: Connection) -> None:
        nonlocal seen
        try:
            held = await grip(desk, connection, tenant, job)
        except NotFound:
            if seen:
                return  # our own commit, whose reply was lost
            raise
        seen = True
        check_revision(held.job, expected_revision)
        await leave_gap(connection, held)
        if runs is RunsOf.CANCEL:
            await stop_everything(connection, held, running=Running.CANCEL, reason=JOB_DELETED)
        else:
            await stop_future(connection, held, state=RunState.SKIPPED, reason=JOB_DELETED)
        await keep_revision(connection, held.job, now=held.now, actor=actor)
        await delete_row(connection, job)

    await desk.transact(work, tenant=tenant)


async def delete_spent(
    desk: Desk, shard: ShardId, *, most: int = 100, each: Each = in_turn
) -> list[JobId]:
    """Delete jobs of a shard that are complete and asked for it; for the janitor.

    A run that waits for a retry is in a parcel, so looking into the parcels under the job's lock is
    enough to know that nothing of it will ever start again.
    """

    async def find(connection: Connection) -> list[tuple[TenantId, JobId]]:
        return await spent_jobs(connection, shard, most=most)

    found = {to_text("job", pair[1]): pair for pair in await desk.transact(find, tenant=None)}

    async def delete(text: str) -> JobId | None:
        tenant, job = found[text]
        return job if await _delete_if_spent(desk, tenant, job) else None

    return [job for job in await each(found, delete) if job is not None]


async def _delete_if_spent(desk: Desk, tenant: TenantId, job: JobId) -> bool:
    async def work(connection: Connection) -> bool:
        try:
            held = await grip(desk, connection, tenant, job)
        except NotFound:
            return True
        wants = held.job.definition.after_completion is AfterCompletion.DELETE
        if held.job.state is not JobState.COMPLETED or not wants:
            return False  # edited meanwhile
        if await find_parcelled(connection, held.shard, tenant, job):
            return False
        await keep_revision(connection, held.job, now=held.now, actor=None)
        await delete_row(connection, job)
        await tell_job(desk, connection, held.job, "job.deleted", now=held.now)
        return True

    return await desk.transact(work, tenant=tenant)
