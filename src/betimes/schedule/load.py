"""Load ahead: how many fires fall into each step of a span. Pure.

Jobs that share a specification share the work: its fires are computed once and counted for all of
them. Where fires or starts depend on the job (`H`, jitter, a window), some of the jobs are computed
and stand for the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from betimes.domain.errors import Refused
from betimes.schedule.batch import ScheduleCache
from betimes.schedule.bounds import EVALUATION_STEPS_MAX
from betimes.schedule.budget import Budget
from betimes.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Steps:
    """A span of `count` equal steps, in microseconds since 1970."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        """The first instant after the span."""
        return self.start + self.step * self.count

    def one(self, number: int) -> "Steps":
        """One of the steps, as a span of its own."""
        return Steps(self.start + number * self.step, self.step, 1)


@dataclass(frozen=True, slots=True)
class Alike:
    """About so many jobs with one specification; `seeds` are the ids of some of them."""

    schedule: str
    jobs: float
    seeds: Sequence[str]


@dataclass(slots=True)
class Tally:
    """Expected fires in each step; exact unless something was cut short or stands for others."""

    fires: list[float]
    exact: bool = True


def tally(alike: Alike, steps: Steps, schedules: ScheduleCache, *, fires_max: int) -> Tally:
    """Count the starts of one specification; one that cannot be read starts nothing."""
    told = Tally([0.0] * steps.count)
    try:
        schedule = schedules.get(alike.schedule, alike.seeds[0])
        if not (schedule.is_seeded or schedule.moves_starts):
            _count(schedule, None, alike.jobs, steps, told, fires_max)
            return told
        weight = alike.jobs / len(alike.seeds)
        told.exact = weight == 1.0
        for seed in alike.seeds:
            schedule = schedules.get(alike.schedule, seed)
            _count(schedule, seed, weight, steps, told, fires_max // len(alike.seeds) + 1)
    except Refused:
        # The planner sets such a job aside with its reason; here it only does not count.
        told.exact = False
    return told


def _count(
    schedule: Schedule,
    seed: str | None,
    weight: float,
    steps: Steps,
    told: Tally,
    fires_max: int,
) -> None:
    delay = schedule.built.delay
    if delay is not None:
        _spread(told, steps, steps.start, weight / max(delay.elapsed(), 1))
        return
    reach = schedule.common.jitter + schedule.common.window
    # What fired before the span may start inside it.
    budget = Budget(EVALUATION_STEPS_MAX + fires_max)
    found = schedule.instants(steps.start - 1 - reach, steps.end - 1, fires_max, budget=budget)
    fires, start, step, count = told.fires, steps.start, steps.step, steps.count
    for instant in found:
        begins = schedule.effective(instant, seed) if reach else instant
        place = (begins - start) // step
        if 0 <= place < count:
            fires[place] += weight
    if len(found) == fires_max and found[-1] > found[0]:
        _spread(told, steps, found[-1], weight * (len(found) - 1) / (found[-1] - found[0]))


def _spread(told: Tally, steps: Steps, since: int, per_microsecond: float) -> None:
    """Too many fires to compute each: the rest of the span goes on as it began."""
    told.exact = False
    first = max(0, (since - steps.start) // steps.step)
    for place in range(first, steps.count):
        begins = steps.start + place * steps.step
        open_for = begins + steps.step - max(begins, since)
        told.fires[place] += per_microsecond * max(0, open_for)
