"""What lies ahead of a job: fires that become runs now, and where the planner goes on. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from betimes.domain.errors import BadSchedule, NeverFires
from betimes.domain.ids import JobId, RunId, TenantId, occurrence, to_ms, to_us
from betimes.domain.job import Definition
from betimes.domain.spec import start_deadline_of
from betimes.domain.states import JobState, RunState
from betimes.domain.terms import terms_of
from betimes.fairness.overlap import policy_of
from betimes.schedule import NOTHING, Accounted, Budget, Fire, Schedule
from betimes.store.occurrences import Occurrence

NEAR_FIRES_MAX = 100
"""Most fires that a verb plans itself; the planner takes the rest, which is then near as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Fires near enough to plan at once, and the first one left to the planner."""

    near: tuple[Fire, ...]
    next_fire_at: datetime | None
    state: JobState

    def set_aside(self) -> "Outlook":
        """The same for a job that begins paused: nothing is planned, by anybody."""
        return Outlook(near=(), next_fire_at=None, state=JobState.PAUSED)


def look_ahead(
    timetable: Schedule,
    definition: Definition,
    budget: Budget | None = None,
    *,
    after: datetime,
    near: datetime,
    strange: datetime | None = None,
    accounted: Accounted = NOTHING,
) -> Outlook:
    """Fires after `after`: those up to `near` are planned now, the next one is the planner's.

    What is accounted for already is left out, and the planner begins after `strange`, up to where
    it would not recognise all of that.
    """
    if timetable.is_fixed_delay:
        return _look_ahead_of_delay(timetable, after, near)
    taken: list[Fire] = []
    for fire in timetable.fires(after, budget=budget or Budget()):
        is_strange = strange is not None and fire.nominal <= strange
        if not is_strange and (fire.nominal > near or len(taken) >= NEAR_FIRES_MAX):
            return Outlook(near=tuple(taken), next_fire_at=fire.nominal, state=JobState.ACTIVE)
        if not accounted.covers(fire.nominal):
            taken.append(fire)
    state = JobState.ACTIVE if definition.is_manual else JobState.COMPLETED
    return Outlook(near=tuple(taken), next_fire_at=None, state=state)


def _look_ahead_of_delay(timetable: Schedule, after: datetime, near: datetime) -> Outlook:
    """One fire, as if a run had ended just now; what follows is written when its run has ended."""
    fire = timetable.next(after, last_end=after)
    if fire is None:
        return Outlook(near=(), next_fire_at=None, state=JobState.COMPLETED)
    if fire.nominal > near:
        return Outlook(near=(), next_fire_at=fire.nominal, state=JobState.ACTIVE)
    return Outlook(near=(fire,), next_fire_at=None, state=JobState.ACTIVE)


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
    planned_late: bool = False,
) -> list[Occurrence]:
    """The runs these fires become, with the ids the planner would give them."""
    overlap = policy_of(
        definition.overlap, planned_late=planned_late, fixed_delay=definition.has_fixed_delay
    )
    deadline = start_deadline_of(definition.options)
    terms = terms_of(definition.options)
    return [
        Occurrence(
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
            terms=terms,
            overlap=overlap.number,
            start_by=None if deadline is None else fire.effective + deadline,
        )
        for fire in fires
    ]


def run_id(job: JobId, fire: Fire) -> RunId:
    """The id of an occurrence, as everybody computes it."""
    return occurrence(job, to_us(fire.nominal), to_ms(fire.effective))


def just_before(instant: datetime) -> datetime:
    """So that `fires(after)` begins with the instant itself."""
    return instant - timedelta(microseconds=1)
