"""What lies ahead of a job: fires that become runs now, and where the planner goes on. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from betimes.domain.errors import BadSchedule, NeverFires
from betimes.domain.ids import JobId, RunId, TenantId, occurrence, to_ms, to_us
from betimes.domain.job import Definition
from betimes.domain.states import JobState, RunState
from betimes.ops.timetable import Fire, Timetable
from betimes.store.occurrences import PlannedRun

NEAR_FIRES_MAX = 100
"""Most fires that a verb plans itself; the planner takes the rest, which is then near as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Fires near enough to plan at once, and the first one left to the planner."""

    near: tuple[Fire, ...]
    next_fire_at: datetime | None
    state: JobState


def look_ahead(
    timetable: Timetable, definition: Definition, *, after: datetime, near: datetime, fired: int = 0
) -> Outlook:
    """Fires after `after`: those up to `near` are planned now, the next one is the planner's.

    `fired` is how many there were before, for a schedule that allows only so many.
    """
    most = allowed(definition, fired)
    upcoming = islice(timetable.fires(after), most)
    taken: list[Fire] = []
    for fire in upcoming:
        if fire.nominal > near or len(taken) == NEAR_FIRES_MAX:
            return Outlook(near=tuple(taken), next_fire_at=fire.nominal, state=JobState.ACTIVE)
        taken.append(fire)
        if definition.has_fixed_delay:
            # The next fire is known when this one's run has ended; then the worker writes it.
            return Outlook(near=tuple(taken), next_fire_at=None, state=JobState.ACTIVE)
    ends = not definition.is_manual
    return Outlook(
        near=tuple(taken),
        next_fire_at=None,
        state=JobState.COMPLETED if ends else JobState.ACTIVE,
    )


def allowed(definition: Definition, fired: int) -> int | None:
    """How many more fires the schedule allows; None for no end."""
    most = definition.schedule.get("max_fires")
    return None if most is None else max(0, int(most) - fired)


def require_a_future(outlook: Outlook, definition: Definition) -> None:
    """Refuse a job that would be over before it began."""
    if outlook.near or outlook.next_fire_at is not None or definition.is_manual:
        return
    if definition.schedule.get("type") == "once":
        raise BadSchedule(
            "expected a time in the future, got one that has passed",
            code="time_in_past",
            pointer="/schedule/at",
        )
    raise NeverFires("expected a schedule with a fire in the future, got none", pointer="/schedule")


def runs_of(
    fires: Iterable[Fire],
    definition: Definition,
    *,
    job: JobId,
    tenant: TenantId,
    revision: int,
    near: datetime,
) -> list[PlannedRun]:
    """The runs these fires become, with the ids the planner would give them."""
    return [
        PlannedRun(
            id=run_id(job, fire),
            tenant=tenant,
            job=job,
            due_at=fire.effective,
            fire_at=fire.nominal,
            revision=revision,
            state=RunState.QUEUED if fire.effective <= near else RunState.SCHEDULED,
            priority=definition.priority,
            queue=definition.queue,
            handler=definition.handler,
        )
        for fire in fires
    ]


def run_id(job: JobId, fire: Fire) -> RunId:
    """The id of an occurrence, as everybody computes it."""
    return occurrence(job, to_us(fire.nominal), to_ms(fire.effective))


def just_before(instant: datetime) -> datetime:
    """So that `fires(after)` begins with the instant itself."""
    return instant - timedelta(microseconds=1)
