"""Holding a job still, and ending what must not happen any more.

The argument. The job's row is locked, so no planner advances it; the shard's cursor is frozen, so
no publisher moves. A run that is due later than now + margin has no parcel and cannot have been
read ahead by any publisher (it reads at most margin - transaction bound ahead, and we commit
within that bound), so it is deleted as if it had never been planned, and may be planned again.
Whatever is due sooner may be in a parcel or on its way into one; it keeps its row, and the end is
written there, where every lease looks. Parcels are locked before rows are written: a run is either
held by a worker already, and asked to end, or cannot be leased until our transaction has ended it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from betimes.domain.errors import NotFound, VersionMismatch
from betimes.domain.ids import JobId, RunId, ShardId, TenantId, floor_of, shard_of, to_ms, to_text
from betimes.domain.job import Job
from betimes.domain.states import JobState, RunState, Trigger
from betimes.ops.desk import Desk
from betimes.store.ahead import find_unended
from betimes.store.control import (
    AFTER_THIS_ATTEMPT,
    HeldParcel,
    ask_to_end,
    drop_unpublished,
    end_runs,
    find_parcelled,
    find_planned,
    freeze,
    hold,
    last_strange,
)
from betimes.store.jobs import lock_job
from betimes.store.plan import Span, insert_gaps
from betimes.store.pool import Connection


class Running(StrEnum):
    """What to do with attempts under way."""

    LEAVE = "leave"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grip:
    """A job held still: nothing of it is planned, published or advanced until we are done."""

    job: Job
    now: datetime
    near: datetime
    published_through: datetime | None

    @property
    def shard(self) -> ShardId:
        """Where the job lives."""
        return self.job.shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What became of the future of a job."""

    dropped: Sequence[datetime]
    ended: set[RunId]
    asked: set[RunId]


async def grip(desk: Desk, connection: Connection, tenant: TenantId, job: JobId) -> Grip:
    """Freeze the shard, then lock the job; in this order, as the planner does."""
    frozen = await freeze(connection, shard_of(job), now=desk.clock.stated())
    found = await lock_job(connection, job)
    if found is None or found.tenant != tenant:
        raise no_such_job(job)
    if found.state is JobState.COMPLETED and await find_unended(connection, [job]):
        # Its last fires are planned, but not over: whatever stops a job stops them.
        found = replace(found, state=JobState.ACTIVE)
    near = frozen.now + desk.margin
    if frozen.published_through is not None:
        near = max(near, frozen.published_through)
    return Grip(job=found, now=frozen.now, near=near, published_through=frozen.published_through)


def no_such_job(job: JobId) -> NotFound:
    """The same sentence for what is missing and for what belongs to somebody else."""
    return NotFound(f"there is no job {to_text('job', job)}")


def check_revision(job: Job, expected: int | None) -> None:
    """Refuse to write over an edit the caller has not seen."""
    if expected is not None and job.revision != expected:
        raise VersionMismatch(
            f"expected revision {expected} of the job, got {job.revision}: it was edited meanwhile"
        )


async def stop_future(
    connection: Connection, held: Grip, *, state: RunState, reason: str
) -> Stopped:
    """Scheduled fires that are due later than now will not run.

    What somebody was handed once goes its way: that it is due later than now means only that the
    clock of the database was set back. It may have been executed, so its row stays what it is.
    """
    dropped = await forget_planned(connection, held)
    rows = await find_planned(connection, held.shard, held.job.id, low=floor_of(to_ms(held.now)))
    runs = [
        row.id
        for row in rows
        if row.due_at > held.now
        and row.trigger is Trigger.SCHEDULE
        and row.state is not RunState.RETRY_WAIT
    ]
    parcels = await hold(connection, held.shard, held.job.tenant, runs)
    runs = [run for run in runs if run not in parcels or parcels[run].fence == 0]
    return await _stop(
        connection, held, runs, dropped=dropped, state=state, reason=reason, running=Running.LEAVE
    )


async def stop_everything(
    connection: Connection, held: Grip, *, running: Running, reason: str
) -> Stopped:
    """No new attempt of any run of the job starts; attempts under way end soon, or in peace."""
    dropped = await forget_planned(connection, held)
    runs = await open_runs(connection, held)
    return await _stop(
        connection,
        held,
        runs,
        dropped=dropped,
        state=RunState.CANCELLED,
        reason=reason,
        running=running,
        every_attempt=True,
    )


async def open_runs(connection: Connection, held: Grip) -> list[RunId]:
    """Runs of the job that are not over: in parcels, or planned beyond what was published."""
    through = held.published_through
    low = floor_of(0 if through is None else to_ms(min(through, held.now)))
    planned = await find_planned(connection, held.shard, held.job.id, low=low)
    parcelled = await find_parcelled(connection, held.shard, held.job.tenant, held.job.id)
    return list({*parcelled, *(row.id for row in planned)})


async def waiting_runs(connection: Connection, held: Grip) -> list[RunId]:
    """Those of them that no worker has; nobody leases them until the transaction ends."""
    runs = await open_runs(connection, held)
    parcels = await hold(connection, held.shard, held.job.tenant, runs)
    return [run for run in runs if not _is_leased(parcels.get(run))]


async def leave_gap(connection: Connection, held: Grip) -> None:
    """Fires up to now that no planner has come to: they stay accounted for, whatever we do next."""
    first = held.job.next_fire_at
    if first is None or first > held.now or held.job.definition.has_fixed_delay:
        return
    await insert_gaps(connection, held.shard, {held.job.id: Span(first, held.now)})


async def strange_through(connection: Connection, held: Grip) -> datetime | None:
    """Up to where the planner must not go: fires ahead that have run or were decided otherwise.

    There are none, unless the clock of the database was set back: then a time comes again whose
    fires have runs under ids that the planner does not give, or decisions.
    """
    low = floor_of(to_ms(held.now))
    last = await last_strange(connection, held.shard, held.job.id, low=low)
    return None if last is None or last <= held.now else last


async def is_under_way(connection: Connection, held: Grip) -> bool:
    """Whether some run of the job waits in a parcel, is being executed or waits for a retry."""
    return bool(await find_parcelled(connection, held.shard, held.job.tenant, held.job.id))


async def forget_planned(connection: Connection, held: Grip) -> list[datetime]:
    """Delete what no publisher can have read; returns the fires that may be planned again."""
    return await drop_unpublished(
        connection, held.shard, held.job.id, low=floor_of(to_ms(held.near) + 1)
    )


async def _stop(
    connection: Connection,
    held: Grip,
    runs: Sequence[RunId],
    *,
    dropped: Sequence[datetime],
    state: RunState,
    reason: str,
    running: Running,
    every_attempt: bool = False,
) -> Stopped:
    parcels = await hold(connection, held.shard, held.job.tenant, runs)
    leased = [run for run in runs if _is_leased(parcels.get(run))]
    waiting = [run for run in runs if not _is_leased(parcels.get(run))]
    ended = await end_runs(
        connection, held.shard, waiting, state=state, reason=reason, now=held.now
    )
    asked: set[RunId] = set()
    if every_attempt:
        at = held.now if running is Running.CANCEL else AFTER_THIS_ATTEMPT
        asked = await ask_to_end(connection, held.shard, leased, at=at, reason=reason)
    return Stopped(dropped=dropped, ended=ended, asked=asked)


def _is_leased(parcel: HeldParcel | None) -> bool:
    return parcel is not None and parcel.worker is not None
