"""From outcomes to what is written: pure."""

from datetime import datetime
from typing import Any, assert_never

from betimes.domain.failure import fingerprint, to_json
from betimes.domain.ids import ParcelId
from betimes.domain.outcome import (
    Abandoned,
    Failed,
    Outcome,
    Snoozed,
    facts_of,
    kind_of,
    result_of,
)
from betimes.domain.parcel import out_of_sight
from betimes.domain.retry import Effort, Finish, Retry, decide
from betimes.domain.states import RunState
from betimes.store.ending import Again, Attempted, DeadLetter, Ending, follow_of
from betimes.store.parcels import LeasedParcel, WantedRun
from betimes.worker.plans import Plan

NO_WORKER_FOR_HANDLER = "NO_WORKER_FOR_HANDLER"
RUN_CANCELLED = "RUN_CANCELLED"
RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"


def settle(
    outcome: Outcome,
    *,
    run: WantedRun,
    parcel: LeasedParcel,
    plan: Plan,
    started_at: datetime,
    now: datetime,
    roll: float,
    parcel_id: ParcelId,
) -> Ending:
    """What to write after an attempt. `parcel_id` names the parcel of a retry, if there is one."""
    attempt = run.attempt + 1
    effort = Effort(attempt, run.first_started_at or started_at)
    decision = decide(outcome, effort, plan.spec.retry, now, roll)
    error = facts_of(outcome)
    again: Again | None = None
    match decision:
        case Retry(at=at, counts=counts, reason=reason):
            origin = outcome.origin if isinstance(outcome, Snoozed) else None
            state, again = RunState.RETRY_WAIT, Again(parcel_id, at, plan.needs, origin)
            attempt = attempt if counts else run.attempt
        case Finish(state=state, reason=reason):
            pass
        case _:
            assert_never(decision)
    return Ending(
        **_whose(run, parcel, plan),
        state=state,
        attempt=attempt,
        started_at=started_at,
        ended_at=now,
        result=result_of(outcome),
        error=None if error is None else to_json(error),
        reason=reason or None,
        attempted=None
        if error is None
        else Attempted(
            kind_of(outcome),
            again.visible_at if again else None,
            outcome.http if isinstance(outcome, Failed) else None,
        ),
        dead=DeadLetter(fingerprint(error), reason) if state is RunState.DEAD else None,
        again=again,
        follow=None if again else follow_of(run, plan.spec.fixed_delay, now),
        is_wanted=plan.spec.tells_success,
    )


def unstarted(
    run: WantedRun, parcel: LeasedParcel, plan: Plan, *, state: RunState, reason: str, now: datetime
) -> Ending:
    """What to write for a run that is over before it began."""
    return Ending(
        **_whose(run, parcel, plan),
        state=state,
        attempt=run.attempt,
        started_at=None,
        ended_at=now,
        reason=reason,
        follow=follow_of(run, plan.spec.fixed_delay, now),
    )


def unhandled(
    run: WantedRun, parcel: LeasedParcel, plan: Plan, *, now: datetime, parcel_id: ParcelId
) -> Ending:
    """What to write for a run that this worker cannot do: another one may, so nothing is counted.

    It waits for a worker with the handler. What has none at all, because its job is gone, is out of
    sight for a while that grows with each time it was handed out.
    """
    at = now if plan.needs else now + out_of_sight(parcel.fence)
    return Ending(
        **_whose(run, parcel, plan),
        state=RunState.QUEUED,
        attempt=run.attempt,
        started_at=None,
        ended_at=now,
        reason=NO_WORKER_FOR_HANDLER,
        again=Again(parcel_id, at, plan.needs),
    )


def exhausted(run: WantedRun, parcel: LeasedParcel, plan: Plan, *, now: datetime) -> Ending:
    """What to write for a run whose workers were lost until no attempt was left; not executed."""
    error = facts_of(Abandoned(parcel.deliveries - 1))
    return Ending(
        **_whose(run, parcel, plan),
        state=RunState.DEAD,
        attempt=run.attempt,
        started_at=None,
        ended_at=now,
        error=None if error is None else to_json(error),
        reason=RETRIES_EXHAUSTED,
        dead=DeadLetter(fingerprint(error), RETRIES_EXHAUSTED),
        follow=follow_of(run, plan.spec.fixed_delay, now),
    )


def _whose(run: WantedRun, parcel: LeasedParcel, plan: Plan) -> dict[str, Any]:
    return {
        "run": run.id,
        "parcel": parcel.id,
        "fence": parcel.fence,
        "tenant": parcel.tenant,
        "queue": parcel.queue,
        "priority": parcel.priority,
        "job": run.job,
        "handler": plan.handler,
    }
