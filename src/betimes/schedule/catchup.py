"""After an outage: which missed fires still run, and which are recorded as skipped.

The work is bounded by the answer, not by the outage: a schedule that fires every second and was
down for ten years is counted, not walked.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from betimes.schedule.bounds import EVALUATION_STEPS_MAX
from betimes.schedule.budget import Budget
from betimes.schedule.fire import Fire
from betimes.schedule.members import Catchup
from betimes.schedule.moment import to_datetime, to_instant
from betimes.schedule.schedule import FIRE_STEPS, Schedule
from betimes.schedule.series import Series

NONE = "CATCHUP_NONE"
WINDOW_EXCEEDED = "CATCHUP_WINDOW_EXCEEDED"
COALESCED = "CATCHUP_COALESCED"
MAX_REACHED = "CATCHUP_MAX_REACHED"
NO_GRACE = timedelta(0)
MICROSECOND = timedelta(microseconds=1)
CATCHUP_STEPS_MAX = 2 * EVALUATION_STEPS_MAX
"""Steps that deciding about a whole outage may take: it is asked once, not for every pass."""

LISTED_MAX = 64
"""Fires that are listed rather than counted."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A run of consecutive fires that will not run, first and last included."""

    first: datetime
    last: datetime
    count: int
    code: str


@dataclass(frozen=True, slots=True)
class CatchupPlan:
    """What to run, oldest first, and what to record. Together: every fire in (last, now]."""

    runs: tuple[Fire, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class Accounted:
    """Fires about which nothing is left to decide: they have a run, or a recorded decision."""

    runs: Collection[datetime] = frozenset()
    decided: Collection[tuple[datetime, datetime]] = ()
    """From the first through the last fire of each decision."""

    def __bool__(self) -> bool:
        return bool(self.runs or self.decided)

    @property
    def last(self) -> datetime:
        """The last of them; there must be one."""
        return max([*self.runs, *(through for _, through in self.decided)])

    def covers(self, fire: datetime) -> bool:
        """Whether a fire has its account already."""
        return fire in self.runs or self.range_of(fire) is not None

    def range_of(self, fire: datetime) -> tuple[datetime, datetime] | None:
        """The decision that is about a fire."""
        return next((one for one in self.decided if one[0] <= fire <= one[1]), None)


NOTHING = Accounted()


def plan_catchup(
    schedule: Schedule,
    last: datetime,
    now: datetime,
    policy: Catchup | None = None,
    *,
    grace: timedelta = NO_GRACE,
    budget: Budget | None = None,
) -> CatchupPlan:
    """Decide about every fire later than `last` and not later than `now`.

    Fires within `grace` of now are simply on time and always run. Older ones run when the policy
    says so and they are not older than its window: the newest (`latest`), or the newest `max`.
    """
    chosen = policy or schedule.catchup
    series = schedule.series
    budget = budget or Budget(CATCHUP_STEPS_MAX)
    begin, end = to_instant(last), to_instant(now)
    on_time = max(end - _micros(grace), begin)
    oldest = min(max(end - chosen.window, begin), on_time)
    if chosen.policy == "none":
        oldest = on_time
    keep = {"none": 0, "latest": 1, "all": chosen.max}[chosen.policy]
    if chosen.policy == "latest" and series.count(on_time, end, budget):
        keep = 0
    caught = newest(series, oldest, on_time, keep, budget)
    cut = caught[0] - 1 if caught else on_time
    code = COALESCED if chosen.policy == "latest" else MAX_REACHED
    early = NONE if chosen.policy == "none" else WINDOW_EXCEEDED
    ranges = (
        _skipped(series, begin, oldest, early, budget),
        _skipped(series, oldest, cut, code, budget),
    )
    fresh = series.between(on_time, end, 1 << 20, budget)
    budget.spend(FIRE_STEPS * (len(caught) + len(fresh)))
    return CatchupPlan(
        tuple(schedule.fire(instant, budget=budget) for instant in [*caught, *fresh]),
        tuple(entry for entry in ranges if entry is not None),
    )


def left_of(
    schedule: Schedule, skipped: Skipped, accounted: Accounted, budget: Budget
) -> Iterator[Skipped]:
    """The parts of a range between what is accounted for, so that no fire is counted twice."""
    after = skipped.first - MICROSECOND
    spans = [*((fire, fire) for fire in accounted.runs), *accounted.decided]
    inside = sorted(span for span in spans if span[0] <= skipped.last and span[1] >= skipped.first)
    for first, last in [*inside, (skipped.last + MICROSECOND, skipped.last)]:
        before = first - MICROSECOND
        part = _skipped(
            schedule.series, to_instant(after), to_instant(before), skipped.code, budget
        )
        if part is not None:
            yield part
        after = max(after, last)


def last_undecided(
    schedule: Schedule, first: datetime, last: datetime, accounted: Accounted, budget: Budget
) -> datetime | None:
    """The end of a span without the fires at its end that were decided; None if all were."""
    end = last
    while end >= first:
        found = newest(schedule.series, to_instant(first) - 1, to_instant(end), 1, budget)
        if not found:
            return None
        decided = accounted.range_of(to_datetime(found[0]))
        if decided is None:
            return end
        end = decided[0] - MICROSECOND
    return None


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _skipped(series: Series, after: int, until: int, code: str, budget: Budget) -> Skipped | None:
    """The fires in (after, until] as one range."""
    first = series.next(after, budget)
    if first is None or first > until:
        return None
    last = newest(series, after, until, 1, budget)[0]
    return Skipped(to_datetime(first), to_datetime(last), series.count(after, until, budget), code)


def newest(series: Series, after: int, until: int, number: int, budget: Budget) -> list[int]:
    """The last `number` instants of a series in (after, until], oldest first.

    Found by halving the span and counting, so that little more than the answer is enumerated.
    """
    if number <= 0 or until <= after:
        return []
    low, high = after, until
    size = series.count(low, until, budget)
    while size > number + LISTED_MAX and high - low > 1:
        middle = (low + high) // 2
        found = series.count(middle, until, budget)
        if found >= number:
            low, size = middle, found
        else:
            high = middle
    return series.between(low, until, max(size, number), budget)[-number:]
