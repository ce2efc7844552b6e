"""Stored schedules, read back for one job."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from betimes.domain.errors import Refused
from betimes.domain.ids import JobId
from betimes.domain.job import Definition
from betimes.ops.evaluating import Evaluations
from betimes.schedule import Budget, Schedule, ScheduleCache
from betimes.store.jobs import to_json


def read_timetable(
    schedule: Mapping[str, Any], job: JobId, budget: Budget | None = None
) -> Schedule:
    """The schedule of a job; its id is the seed of jitter and hashed fields, as in the planner.

    Raises:
        BadSchedule: with a pointer into the definition.

    """
    try:
        return Schedule.from_dict(schedule, seed=str(job), budget=budget)
    except Refused as refused:
        refused.pointer = f"/schedule{refused.pointer}"
        raise


def shared_timetable(
    cache: ScheduleCache, schedule: Mapping[str, Any], job: JobId, budget: Budget | None = None
) -> Schedule:
    """The same, sharing one schedule among all jobs whose fires do not depend on their id.

    Raises:
        BadSchedule: with a pointer into the definition.

    """
    try:
        found = cache.get(to_json(schedule), str(job), budget=budget)
    except Refused as refused:
        refused.pointer = f"/schedule{refused.pointer}"
        raise
    if found.is_seeded or not (found.common.jitter or found.common.window):
        return found
    return read_timetable(schedule, job, budget)


async def counted(definition: Definition, now: datetime, evaluations: Evaluations) -> Definition:
    """A definition whose delay, if it has one, begins at the time of this transaction.

    Whoever read it had another clock: by the one that judges it, it could be over already.
    """
    if definition.recount is None:
        return definition
    schedule = await evaluations.run(partial(definition.recount, now))
    return replace(definition, schedule=schedule, recount=None)
