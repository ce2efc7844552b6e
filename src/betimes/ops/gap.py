"""The gap a pause leaves: from the first fire nobody has accounted for up to its end. Pure."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from betimes.domain.errors import TooExpensive
from betimes.domain.ids import to_us
from betimes.domain.job import GAP_FROM, PAUSED_AT, SCHEDULE_UNREADABLE, Job
from betimes.ops.outlook import just_before
from betimes.schedule import (
    NOTHING,
    Accounted,
    Budget,
    Catchup,
    Fire,
    Schedule,
    left_of,
    plan_catchup,
)
from betimes.schedule.catchup import CATCHUP_STEPS_MAX, MAX_REACHED
from betimes.store.occurrences import Dropped

JOB_PAUSED = "JOB_PAUSED"
JOB_AUTO_PAUSED = "JOB_AUTO_PAUSED"
RUN_ALL_MAX = 1_000
"""Most missed fires that resuming runs; the older ones are recorded."""
FOREVER_US = 1 << 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Missed(StrEnum):
    """What to do with fires that fell into a pause."""

    SKIP = "skip"
    RUN_LATEST = "run_latest"
    RUN_ALL = "run_all"


POLICIES = {Missed.SKIP: "none", Missed.RUN_LATEST: "latest", Missed.RUN_ALL: "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Every fire of a gap: either it runs now, or it is recorded."""

    runs: Sequence[Fire] = ()
    dropped: Sequence[Dropped] = ()


def open_gap(job: Job, forgotten: Sequence[datetime], now: datetime) -> dict[str, int]:
    """What a pause must remember: the first fire that was planned and forgotten, or not planned."""
    first = min([*forgotten, now if job.next_fire_at is None else job.next_fire_at])
    return {GAP_FROM: to_us(first), PAUSED_AT: to_us(now)}


def gap_start(job: Job) -> datetime:
    """Where the gap of a paused job begins."""
    first = job.state_reason.get(GAP_FROM)
    # A job that was set aside by a rule has kept no cursor; it stopped when it was last written.
    return job.updated_at if first is None else EPOCH + timedelta(microseconds=first)


def paused_at(job: Job) -> datetime:
    """Since when no fire of a paused job, as it is defined now, has run."""
    since = job.state_reason.get(PAUSED_AT)
    return job.updated_at if since is None else EPOCH + timedelta(microseconds=since)


def close_gap(
    job: Job,
    timetable: Schedule,
    *,
    until: datetime,
    missed: Missed,
    accounted: Accounted = NOTHING,
    stopped: AbstractSet[datetime] = frozenset(),
) -> Closed:
    """Decide about every fire of the gap up to `until` that has no run and no decision.

    Fires that were `stopped` when the pause began run if they are wanted. If not, their rows
    already say that they were skipped, and why.
    """
    begin = min([gap_start(job), *stopped])
    if timetable.is_fixed_delay or until < begin:
        return Closed()
    try:
        return _close(job, timetable, begin, until, missed, accounted, stopped)
    except TooExpensive:
        # Nobody can count its fires; that must not keep its owner from giving it another schedule.
        return close_unreadable(job, until=until, accounted=accounted)


def _close(
    job: Job,
    timetable: Schedule,
    begin: datetime,
    until: datetime,
    missed: Missed,
    accounted: Accounted,
    stopped: AbstractSet[datetime],
) -> Closed:
    budget = Budget(CATCHUP_STEPS_MAX)
    policy = Catchup(policy=POLICIES[missed], window=FOREVER_US, max=RUN_ALL_MAX)
    plan = plan_catchup(timetable, just_before(begin), until, policy, budget=budget)
    runs, decided = set(accounted.runs) - stopped, accounted.decided
    rows = Accounted(runs | stopped, decided)
    dropped = [
        Dropped(
            job=job.id,
            tenant=job.tenant,
            fire_at=gap.first,
            until_at=None if gap.count == 1 else gap.last,
            fires=gap.count,
            revision=job.revision,
            code=MAX_REACHED if gap.code == MAX_REACHED else JOB_PAUSED,
        )
        for skipped in plan.skipped
        for gap in left_of(timetable, skipped, rows, budget)
    ]
    known = Accounted(runs, decided)
    return Closed(
        runs=tuple(fire for fire in plan.runs if not known.covers(fire.nominal)), dropped=dropped
    )


def close_unreadable(job: Job, *, until: datetime, accounted: Accounted = NOTHING) -> Closed:
    """The gap of a schedule that cannot be read any more: one record, as nobody can count it."""
    begin = gap_start(job)
    last = min([until, *(just_before(first) for first, _ in accounted.decided)])
    if last < begin:
        return Closed()
    lost = Dropped(
        job=job.id,
        tenant=job.tenant,
        fire_at=begin,
        until_at=last,
        fires=1,
        revision=job.revision,
        code=SCHEDULE_UNREADABLE,
    )
    return Closed(dropped=[lost])
