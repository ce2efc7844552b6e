"""From the outcome of an attempt to what is written: one becomes the other here only. Pure.

Workers of ours, users' tasks on the database and over HTTP, and targets that report by themselves
all come here. That somebody wants the end of a run is judged where its end is written, under the
lock of its parcel (`Ending.given_up`), because only there it is known for certain.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from betimes.domain.failure import fingerprint, to_json
from betimes.domain.ids import Fence, ParcelId, TenantId
from betimes.domain.leased import Assignment, WantedRun
from betimes.domain.outcome import (
    Abandoned,
    Failed,
    Outcome,
    Released,
    Snoozed,
    facts_of,
    kind_of,
    result_of,
)
from betimes.domain.parcel import out_of_sight
from betimes.domain.spec import RunSpec
from betimes.domain.states import RunState
from betimes.domain.verdict import (
    EXHAUSTED,
    Refusal,
    has_no_attempt_left,
    refusal,
    verdict_of,
)
from betimes.store.ending import Again, Attempted, DeadLetter, Ending, follow_of

NO_WORKER_FOR_HANDLER = "NO_WORKER_FOR_HANDLER"


class Lease(NamedTuple):
    """A parcel as somebody who reports knows it."""

    id: ParcelId
    fence: Fence
    tenant: TenantId
    queue: str
    priority: int


def resolve(
    outcome: Outcome,
    given: Assignment,
    *,
    attempt: int,
    started_at: datetime,
    now: datetime,
    roll: float,
    parcel_id: ParcelId,
) -> Ending:
    """What to write after an attempt. `parcel_id` names the parcel of a retry, if there is one."""
    run, spec = given.run, given.spec
    verdict = verdict_of(
        outcome,
        attempt=attempt,
        used=run.attempt,
        first_started_at=run.first_started_at or started_at,
        retry=spec.retry,
        now=now,
        roll=roll,
    )
    error = facts_of(outcome)
    again: Again | None = None
    if verdict.again_at is not None:
        origin = outcome.origin if isinstance(outcome, Snoozed) else None
        again = Again(parcel_id, verdict.again_at, given.needs, origin)
    return Ending(
        **_whose(given),
        state=verdict.state,
        attempt=verdict.attempt,
        started_at=None if isinstance(outcome, Released) else started_at,
        ended_at=now,
        result=result_of(outcome),
        error=None if error is None else to_json(error),
        reason=verdict.reason or None,
        attempted=None
        if error is None
        else Attempted(
            kind_of(outcome),
            again.visible_at if again else None,
            outcome.http if isinstance(outcome, Failed) else None,
        ),
        dead=DeadLetter(fingerprint(error), verdict.reason)
        if verdict.state is RunState.DEAD
        else None,
        again=again,
        follow=follow_of(run, spec.fixed_delay, now),
        is_wanted=spec.tells_success,
    )


def refusal_of(
    run: WantedRun, deadline: timedelta | None, now: datetime, *, deliveries: int = 1
) -> Refusal | None:
    """Why a run that was leased is not executed; `deliveries` counts this one."""
    if deadline is None and run.cancel_at is None:
        return None  # nearly always: nothing to judge
    return refusal(
        asked_to_end=run.cancel_at is not None,
        due_at=run.due_at,
        deadline=deadline,
        times_leased=run.attempt + deliveries,
        trigger=run.trigger,
        now=now,
    )


def unstarted(given: Assignment, why: Refusal, *, now: datetime) -> Ending:
    """What to write for a run that is over before it began."""
    return Ending(
        **_whose(given),
        state=why.state,
        attempt=given.run.attempt,
        started_at=None,
        ended_at=now,
        reason=why.reason,
        follow=follow_of(given.run, given.spec.fixed_delay, now),
    )


def unhandled(given: Assignment, *, now: datetime, parcel_id: ParcelId) -> Ending:
    """What to write for a run that this worker cannot do: another one may, so nothing is counted.

    It waits for a worker with the handler. What has none at all, because its job is gone, is out of
    sight for a while that grows with each time it was handed out.
    """
    at = now if given.needs else now + out_of_sight(given.home.fence)
    return Ending(
        **_whose(given),
        state=RunState.QUEUED,
        attempt=given.run.attempt,
        started_at=None,
        ended_at=now,
        reason=NO_WORKER_FOR_HANDLER,
        again=Again(parcel_id, at, given.needs),
        follow=follow_of(given.run, given.spec.fixed_delay, now),
    )


def used_up(run: WantedRun, spec: RunSpec, *, deliveries: int) -> int | None:
    """How many attempts a run has used, if none is left: its workers were lost in the last ones."""
    used = run.attempt + deliveries - 1
    return used if deliveries > 1 and has_no_attempt_left(used, spec.retry) else None


def exhausted(given: Assignment, *, used: int, deliveries: int, now: datetime) -> Ending:
    """What to write for a run whose workers were lost until no attempt was left; not executed."""
    error = facts_of(Abandoned(deliveries - 1))
    return Ending(
        **_whose(given),
        state=EXHAUSTED.state,
        attempt=used,
        started_at=None,
        ended_at=now,
        error=None if error is None else to_json(error),
        reason=EXHAUSTED.reason,
        dead=DeadLetter(fingerprint(error), EXHAUSTED.reason),
        follow=follow_of(given.run, given.spec.fixed_delay, now),
    )


def _whose(given: Assignment) -> dict[str, Any]:
    home = given.home
    return {
        "run": given.run.id,
        "parcel": home.id,
        "fence": home.fence,
        "tenant": home.tenant,
        "queue": home.queue,
        "priority": home.priority,
        "job": given.run.job,
        "handler": given.handler,
    }
