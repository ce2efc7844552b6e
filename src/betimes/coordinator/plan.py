"""From a due job to its next step: which runs, which dropped fires, and where it goes on. Pure.

Jobs that share a schedule share the work: the fires of one window are computed once per pass and
specification, and only ids are made per job.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from betimes.domain.ids import RunId, occurrences, to_us
from betimes.fairness.overlap import policy_of
from betimes.schedule import Schedule, ScheduleCache, plan_catchup
from betimes.store.plan import LATE_AFTER, DroppedFires, DueJob, Step

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRES_PER_JOB_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Window:
    """The fires of one specification from one instant on, through the horizon."""

    fires_us: Sequence[int]
    fires: Sequence[datetime]
    next_fire_at: datetime | None
    dropped: Sequence[DroppedFires]


class Pass:
    """One planning pass: every window of it ends at the same horizon."""

    def __init__(self, schedules: ScheduleCache, *, now: datetime, until: datetime) -> None:
        self._schedules = schedules
        self._now_us = to_us(now)
        self._until_us = to_us(until)
        self._windows: dict[tuple[str, datetime], Window] = {}

    def step(self, job: DueJob) -> Step:
        """What to do with one job now."""
        seed = str(job.id)
        schedule = self._schedules.get(job.schedule, seed)
        window = self._window(job, schedule)
        ids, dues = planned(job, schedule, window, seed)
        return Step(
            job=job,
            next_fire_at=window.next_fire_at,
            ids=ids,
            fires=window.fires,
            dues=dues,
            overlap=policy_of(schedule.overlap, fixed_delay=schedule.is_fixed_delay),
            dropped=window.dropped,
            completed=window.next_fire_at is None and not schedule.is_fixed_delay,
        )

    def _window(self, job: DueJob, schedule: Schedule) -> Window:
        if schedule.is_fixed_delay:
            # Its one fire is the one it waits for; the next follows the end of that run.
            return Window([to_us(job.next_fire_at)], [job.next_fire_at], None, ())
        if schedule.is_seeded:
            return self._compute(job, schedule)
        key = (job.schedule, job.next_fire_at)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = self._compute(job, schedule)
        return window

    def _compute(self, job: DueJob, schedule: Schedule) -> Window:
        before_us = to_us(job.next_fire_at) - 1
        fires: list[int] = []
        dropped: list[DroppedFires] = []
        if before_us < self._now_us:
            fires, dropped = self._catch_up(schedule, before_us)
        after_us = max(before_us, self._now_us)
        until_us = self._until_us
        ahead = schedule.instants(after_us, until_us, FIRES_PER_JOB_MAX)
        if len(ahead) == FIRES_PER_JOB_MAX:
            until_us = ahead[-1]
        dropped += denied(schedule, before_us, until_us)
        following = schedule.next_instant(until_us)
        every = [*fires, *ahead]
        return Window(
            every,
            [instant(us) for us in every],
            None if following is None else instant(following),
            dropped,
        )

    def _catch_up(self, schedule: Schedule, before_us: int) -> tuple[list[int], list[DroppedFires]]:
        """Fires that are past already: what is barely late runs, the rest is up to the policy."""
        plan = plan_catchup(schedule, instant(before_us), instant(self._now_us), grace=LATE_AFTER)
        skipped = [
            DroppedFires(gap.first, gap.code, None if gap.count == 1 else gap.last, gap.count)
            for gap in plan.skipped
        ]
        return [to_us(fire.nominal) for fire in plan.runs], skipped


def planned(
    job: DueJob, schedule: Schedule, window: Window, seed: str
) -> tuple[list[RunId], Sequence[datetime]]:
    """The runs of one window: their ids, functions of the job and the fire, and their due times."""
    if not schedule.moves_starts:
        return occurrences(job.id, [(us, us // 1_000) for us in window.fires_us]), window.fires
    due_us = [schedule.effective(us, seed) for us in window.fires_us]
    pairs = zip(window.fires_us, (us // 1_000 for us in due_us), strict=True)
    return occurrences(job.id, pairs), [instant(us) for us in due_us]


def denied(schedule: Schedule, after_us: int, until_us: int) -> list[DroppedFires]:
    """Occurrences that DST or a calendar took away, as decisions to record."""
    drops = schedule.dropped(instant(after_us), instant(until_us), FIRES_PER_JOB_MAX)
    return [
        DroppedFires(drop.nominal, drop.code, detail=local_detail(drop.local)) for drop in drops
    ]


def local_detail(local: str) -> str:
    """What the wall clock would have shown, as the stored detail."""
    return msgspec.json.encode({"local": local}).decode()


def instant(microseconds: int) -> datetime:
    """A datetime from microseconds since 1970."""
    return EPOCH + microseconds * MICROSECOND
