"""From a due job to its next step: which runs, which dropped fires, and where it goes on. Pure.

Jobs that share a schedule share the work: the fires of one window are computed once per pass and
specification, and only ids are made per job.

A job that is behind goes on at once with the fires of now, and leaves a gap behind. The gap is
settled later, when everything that is on time has been planned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from betimes.domain.errors import Refused
from betimes.domain.ids import RunId, ShardId, occurrences, to_us
from betimes.domain.job import SCHEDULE_UNREADABLE
from betimes.fairness.overlap import policy_of
from betimes.schedule import (
    NOTHING,
    Accounted,
    Budget,
    Schedule,
    ScheduleCache,
    last_undecided,
    left_of,
    plan_catchup,
)
from betimes.schedule.catchup import CATCHUP_STEPS_MAX
from betimes.store.catchup import Gap, Settled
from betimes.store.plan import DroppedFires, DueJob, Span, Step

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NO_GRACE = timedelta(0)
FIRES_PER_JOB_MAX = 1_000
REAL_TIME = frozenset({"interval", "once", "delay", "manual"})
HOUR_US = 3_600_000_000
LOOK_BACK_US = (HOUR_US, 25 * HOUR_US, 8 * 24 * HOUR_US, 63 * 24 * HOUR_US, 400 * 24 * HOUR_US)
LATE_AFTER = timedelta(seconds=10)
"""A fire that is planned this late is missed, and catch-up decides about it."""

_GOLDEN_RATIO = 0.6180339887498949
"""Its multiples, taken modulo one, are spread evenly however many there are."""


@dataclass(frozen=True, slots=True)
class Window:
    """The fires of one specification from one instant on, through the horizon."""

    fires_us: Sequence[int]
    fires: Sequence[datetime]
    next_fire_at: datetime | None
    dropped: Sequence[DroppedFires]


class Pass:
    """One planning pass over a shard: every window of it ends at the same instant."""

    def __init__(self, schedules: ScheduleCache, *, now: datetime, until: datetime) -> None:
        self._schedules = schedules
        self._until_us = to_us(until)
        self._windows: dict[tuple[str, datetime | None], Window] = {}
        self._earlier: dict[tuple[str, datetime], list[DroppedFires]] = {}
        self.edge = now - LATE_AFTER
        """What should have fired up to here was missed."""
        self._edge_us = to_us(self.edge)

    def step(self, job: DueJob, budget: Budget) -> Step:
        """What to do with one job now.

        Raises:
            Refused: it cannot be read, or takes more steps than one job may take in a pass.

        """
        seed = str(job.id)
        schedule = self._schedules.get(job.schedule, seed, budget=budget)
        behind = job.next_fire_at <= self.edge and not schedule.is_fixed_delay
        window = self._window(job, schedule, budget, behind=behind)
        ids, dues = planned(job, schedule, window.fires_us, window.fires, seed)
        ends = window.next_fire_at is None and not schedule.is_fixed_delay
        return Step(
            job=job,
            next_fire_at=window.next_fire_at,
            ids=ids,
            fires=window.fires,
            dues=dues,
            overlap=policy_of(schedule.overlap, fixed_delay=schedule.is_fixed_delay),
            dropped=[*self._denied_before(job, schedule, budget), *window.dropped],
            completed=ends and not behind,
            gap=Span(job.next_fire_at, self.edge, completes=ends) if behind else None,
        )

    def _window(self, job: DueJob, schedule: Schedule, budget: Budget, *, behind: bool) -> Window:
        if schedule.is_fixed_delay:
            # Its one fire is the one it waits for; the next follows the end of that run.
            return Window([to_us(job.next_fire_at)], [job.next_fire_at], None, ())
        before_us = self._edge_us if behind else to_us(job.next_fire_at) - 1
        if schedule.is_seeded:
            return self._compute(schedule, before_us, budget)
        key = (job.schedule, None if behind else job.next_fire_at)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = self._compute(schedule, before_us, budget)
        return window

    def _denied_before(self, job: DueJob, schedule: Schedule, budget: Budget) -> list[DroppedFires]:
        """What was taken away between the last fire and this one, since the job is as it is.

        A pass ends at its horizon and the next one begins with the next fire: what lay between
        them is written down now, by when it has really passed.
        """
        if job.since is None or not may_drop(schedule):
            return []
        key = (schedule.key, job.next_fire_at)
        found = self._earlier.get(key)
        if found is None:
            until_us = to_us(job.next_fire_at) - 1
            found = denied(schedule, last_before(schedule, until_us, budget), until_us, budget)
            self._earlier[key] = found
        return [one for one in found if one.fire_at > job.since]

    def _compute(self, schedule: Schedule, before_us: int, budget: Budget) -> Window:
        until_us = self._until_us
        fires = schedule.instants(before_us, until_us, FIRES_PER_JOB_MAX, budget=budget)
        if len(fires) == FIRES_PER_JOB_MAX:
            until_us = fires[-1]
        following = schedule.next_instant(until_us, budget=budget)
        return Window(
            fires,
            [instant(us) for us in fires],
            None if following is None else instant(following),
            denied(schedule, before_us, until_us, budget),
        )


class Settling:
    """Decides about gaps; those of jobs that share a schedule and a span are decided once."""

    def __init__(self, schedules: ScheduleCache) -> None:
        self._schedules = schedules
        self._known: dict[tuple[str, datetime, datetime], Caught] = {}

    def settle(self, gap: Gap, accounted: Accounted = NOTHING) -> Settled:
        """Every fire of a gap without an account: it runs late, or why not is recorded."""
        job, seed = gap.job, str(gap.job.id)
        key = (job.schedule, job.next_fire_at, gap.until_at)
        budget = Budget(CATCHUP_STEPS_MAX)
        try:
            schedule = self._schedules.get(job.schedule, seed, budget=budget)
            shares = not schedule.is_seeded and not accounted
            caught = self._known.get(key) if shares else None
            if caught is None:
                caught = catch_up(schedule, job.next_fire_at, gap.until_at, budget, accounted)
                if shares:
                    self._known[key] = caught
        except Refused as error:
            # It could be read when it was planned, and cannot any more, or takes more steps than it
            # may: nobody can count its fires.
            why = msgspec.json.encode({"detail": error.sentence}).decode()
            decided = [first - MICROSECOND for first, _ in accounted.decided]
            last = max(job.next_fire_at, min([gap.until_at, *decided]))
            lost = DroppedFires(job.next_fire_at, SCHEDULE_UNREADABLE, last, detail=why)
            return Settled(gap=gap, ids=[], fires=[], dues=[], dropped=[lost])
        ids, dues = planned(job, schedule, caught.fires_us, caught.fires, seed)
        return Settled(gap=gap, ids=ids, fires=caught.fires, dues=dues, dropped=caught.dropped)


@dataclass(frozen=True, slots=True)
class Caught:
    """What becomes of the fires of a gap."""

    fires_us: Sequence[int]
    fires: Sequence[datetime]
    dropped: Sequence[DroppedFires]


def catch_up(
    schedule: Schedule,
    first: datetime,
    last: datetime,
    budget: Budget,
    accounted: Accounted = NOTHING,
) -> Caught:
    """The policy of the schedule about every fire from `first` up to `last` without an account.

    What came within `LATE_AFTER` after the gap was planned as usual; the policy counts it, and it
    counts what has a run. What was decided at the end of the gap was not missed: the latest of
    those that were is the latest.
    """
    end = last_undecided(schedule, first, last, accounted, budget) if accounted else last
    fires: list[datetime] = []
    dropped: list[DroppedFires] = []
    if end is not None:
        grace = LATE_AFTER if end == last else NO_GRACE
        plan = plan_catchup(schedule, first - MICROSECOND, end + grace, grace=grace, budget=budget)
        fires = [
            fire.nominal
            for fire in plan.runs
            if fire.nominal <= end and not accounted.covers(fire.nominal)
        ]
        dropped = [
            DroppedFires(gap.first, gap.code, None if gap.count == 1 else gap.last, gap.count)
            for skipped in plan.skipped
            for gap in (left_of(schedule, skipped, accounted, budget) if accounted else [skipped])
        ]
    dropped += denied(schedule, to_us(first) - 1, to_us(last), budget)
    return Caught([to_us(fire) for fire in fires], fires, dropped)


def plan_until(shard: ShardId, now: datetime, horizon: timedelta) -> datetime:
    """How far a shard is planned: between the half and the whole of the horizon.

    Each shard has marks of its own, half a horizon apart, and is planned up to the last one within
    the horizon. Its jobs come due again when that mark is half a horizon away, so every shard is
    planned once per half horizon and the shards take turns, also when all their jobs were created
    or taken over in the same moment.
    """
    half = horizon / 2
    offset = half * (shard * _GOLDEN_RATIO % 1.0)
    latest = now + horizon
    return latest - (latest - EPOCH - offset) % half


def planned(
    job: DueJob,
    schedule: Schedule,
    fires_us: Sequence[int],
    fires: Sequence[datetime],
    seed: str,
) -> tuple[list[RunId], Sequence[datetime]]:
    """The runs of these fires: ids, functions of the job and the fire, and due times."""
    if not schedule.moves_starts:
        return occurrences(job.id, [(us, us // 1_000) for us in fires_us]), fires
    due_us = [schedule.effective(us, seed) for us in fires_us]
    pairs = zip(fires_us, (us // 1_000 for us in due_us), strict=True)
    return occurrences(job.id, pairs), [instant(us) for us in due_us]


def may_drop(schedule: Schedule) -> bool:
    """Whether DST or a calendar can take occurrences away; rates in real time lose none."""
    return bool(schedule.common.calendars) or schedule.kind not in REAL_TIME


def last_before(schedule: Schedule, until_us: int, budget: Budget) -> int:
    """An instant that no fire lies after, up to `until_us`; not looked for beyond a year."""
    for span_us in LOOK_BACK_US:
        found = schedule.instants(until_us - span_us, until_us, FIRES_PER_JOB_MAX, budget=budget)
        if found:
            return found[-1]
    return until_us - LOOK_BACK_US[-1]


def denied(schedule: Schedule, after_us: int, until_us: int, budget: Budget) -> list[DroppedFires]:
    """Occurrences that DST or a calendar took away, as decisions to record."""
    drops = schedule.dropped(instant(after_us), instant(until_us), FIRES_PER_JOB_MAX, budget=budget)
    return [
        DroppedFires(drop.nominal, drop.code, detail=local_detail(drop.local)) for drop in drops
    ]


def local_detail(local: str) -> str:
    """What the wall clock would have shown, as the stored detail."""
    return msgspec.json.encode({"local": local}).decode()


def instant(microseconds: int) -> datetime:
    """A datetime from microseconds since 1970."""
    return EPOCH + microseconds * MICROSECOND
