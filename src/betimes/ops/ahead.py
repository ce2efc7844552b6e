"""Jobs as they are shown: with the fire that comes next, and not complete before the last is over.

What is stored is where the planner goes on. It is some minutes ahead of the clock, and a job whose
last fire it has planned is stored as complete. Storing the rest, too, would cost a write for each
fire; so it is read from the runs when somebody asks.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from betimes.domain.ids import floor_of, to_ms
from betimes.domain.job import Job
from betimes.domain.states import JobState
from betimes.ops.timetable import read_timetable
from betimes.schedule import Fire
from betimes.store.ahead import NEWEST_MAX, Ahead, find_ahead, find_unended
from betimes.store.pool import Connection

GOES_ON = (JobState.ACTIVE, JobState.COMPLETED)


async def look(connection: Connection, jobs: Sequence[Job], *, now: datetime) -> list[Job]:
    """Jobs as they are shown, in the same order."""
    asked = [job.id for job in jobs if job.state in GOES_ON]
    ahead = await find_ahead(connection, asked, low=floor_of(to_ms(now)))
    planned = {job for job, found in ahead.items() if found.fire_at is not None}
    done = [job.id for job in jobs if job.state is JobState.COMPLETED and job.id not in planned]
    unended = planned | await find_unended(connection, done)
    return [
        replace(
            job,
            state=JobState.ACTIVE if is_unended(job, job.id in unended) else job.state,
            coming_fire_at=_coming(job, ahead.get(job.id)),
        )
        for job in jobs
    ]


async def look_at_one(connection: Connection, job: Job, *, now: datetime) -> Job:
    """One job as it is shown."""
    (shown,) = await look(connection, [job], now=now)
    return shown


def is_unended(job: Job, unended: bool) -> bool:
    """Whether a job has planned its last fire, but not seen its end."""
    return job.state is JobState.COMPLETED and unended


def with_fires(job: Job, fires: Sequence[Fire], *, now: datetime) -> Job:
    """A job as it is shown when these fires of it have just become runs."""
    coming = min((fire.nominal for fire in fires if fire.nominal > now), default=None)
    return replace(
        job,
        state=JobState.ACTIVE if is_unended(job, bool(fires)) else job.state,
        coming_fire_at=coming or job.next_fire_at,
    )


def _coming(job: Job, ahead: Ahead | None) -> datetime | None:
    if ahead is None or job.state not in GOES_ON:
        return job.next_fire_at
    if ahead.fire_at is not None:
        return ahead.fire_at
    if job.next_fire_at is None or job.next_fire_at not in ahead.over:
        return job.next_fire_at
    # Somebody has skipped it before its planner came to it.
    timetable = read_timetable(job.definition.schedule, job.id)
    following = timetable.fires(job.next_fire_at, limit=NEWEST_MAX)
    return next((fire.nominal for fire in following if fire.nominal not in ahead.over), None)
