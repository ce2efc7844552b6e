"""The next fires of jobs, as answers show them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from betimes.domain.errors import TooExpensive
from betimes.domain.job import Job
from betimes.domain.states import JobState
from betimes.ops.evaluating import INLINE_STEPS_MAX
from betimes.ops.timetable import shared_timetable
from betimes.schedule import Budget, ScheduleCache
from betimes.wire import jobs as wire
from betimes.wire.base import shown_instant

KNOWN_MAX = 4_096
TOO_EXPENSIVE: Literal["schedule_too_expensive"] = "schedule_too_expensive"


def show_next_fires(
    cache: ScheduleCache, job: Job, shown: wire.Job, *, now: datetime, most: int
) -> None:
    """Show the next fires of a job that fires, or why they are not shown."""
    try:
        shown.next_fires = _next_fires(cache, job, now=now, most=most)
    except TooExpensive:
        # Who wants to know asks for them, and that is evaluated beside the event loop.
        shown.next_fires_omitted = TOO_EXPENSIVE


def _next_fires(cache: ScheduleCache, job: Job, *, now: datetime, most: int) -> list[str] | None:
    if job.state is not JobState.ACTIVE:
        return None
    schedule = job.definition.schedule
    known = _AHEAD.get(id(schedule))
    if known is not None and known.schedule is schedule and known.since <= now < known.first:
        return list(known.shown[:most])
    budget = Budget(INLINE_STEPS_MAX)
    timetable = shared_timetable(cache, schedule, job.id, budget)
    fires = [fire.nominal for fire in timetable.fires(now, limit=most, budget=budget)]
    shown = [shown_instant(fire) for fire in fires]
    if fires and not timetable.is_seeded and not timetable.is_fixed_delay:
        if len(_AHEAD) >= KNOWN_MAX:
            _AHEAD.clear()
        _AHEAD[id(schedule)] = Ahead(schedule, now, fires[0], shown)
    return shown


class Ahead(NamedTuple):
    """The next fires of a stored schedule that jobs share, true until the first of them."""

    schedule: Mapping[str, Any]
    since: datetime
    first: datetime
    shown: list[str]


_AHEAD: dict[int, Ahead] = {}
"""By the identity of the stored form, which is shared among those who ask for the same."""
