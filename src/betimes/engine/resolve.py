"""From the outcome of an attempt to what is written: one becomes the other here only. Pure.

Workers of ours, users' tasks on the database and over HTTP, and targets that report by themselves
all come here. That somebody wants the end of a run is judged where its end is written, under the
lock of its parcel (`Ending.given_up`), because only there it is known for certain.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple, assert_never

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
from betimes.domain.retry import RUN_CANCELLED, Effort, Finish, Retry, decide
from betimes.domain.spec import RunSpec
from betimes.domain.states import RunState
from betimes.store.admit import CONCURRENCY_KEY_FULL
from betimes.store.deadlines import START_DEADLINE_PASSED
from betimes.store.ending import Again, Attempted, DeadLetter, Ending, follow_of

NO_WORKER_FOR_HANDLER = "NO_WORKER_FOR_HANDLER"
RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"


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
    effort = Effort(attempt, run.first_started_at or started_at)
    decision = decide(outcome, effort, spec.retry, now, roll)
    error = facts_of(outcome)
    again: Again | None = None
    is_released = isinstance(outcome, Released)
    match decision:
        case Retry(at=at, counts=counts, reason=reason):
            origin = outcome.origin if isinstance(outcome, Snoozed) else None
            again = Again(parcel_id, at, given.needs, origin)
            # What was given back has not begun: it waits as if nobody had ever had it, unless for
            # a later time.
            state = RunState.QUEUED if is_released and at <= now else RunState.RETRY_WAIT
            attempt = attempt if counts else run.attempt
        case Finish(state=state, reason=reason):
            pass
        case _:
            assert_never(decision)
    return Ending(
        **_whose(given),
        state=state,
        attempt=attempt,
        started_at=None if is_released else started_at,
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
        follow=follow_of(run, spec.fixed_delay, now),
        is_wanted=spec.tells_success,
    )


class Refusal(NamedTuple):
    """Why a run is over before it began."""

    state: RunState
    reason: str


CANCELLED = Refusal(RunState.CANCELLED, RUN_CANCELLED)
EXPIRED = Refusal(RunState.EXPIRED, START_DEADLINE_PASSED)
FULL = Refusal(RunState.SKIPPED, CONCURRENCY_KEY_FULL)


def refusal_of(
    run: WantedRun, deadline: timedelta | None, now: datetime, *, deliveries: int = 1
) -> Refusal | None:
    """Why a run that was leased is not executed: somebody wants its end, or it is too late."""
    if run.cancel_at is not None:
        return CANCELLED
    if deadline is not None and run.is_overdue(deadline, now, deliveries=deliveries):
        return EXPIRED
    return None


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
    return used if deliveries > 1 and used >= spec.retry.max_attempts else None


def exhausted(given: Assignment, *, used: int, deliveries: int, now: datetime) -> Ending:
    """What to write for a run whose workers were lost until no attempt was left; not executed."""
    error = facts_of(Abandoned(deliveries - 1))
    return Ending(
        **_whose(given),
        state=RunState.DEAD,
        attempt=used,
        started_at=None,
        ended_at=now,
        error=None if error is None else to_json(error),
        reason=RETRIES_EXHAUSTED,
        dead=DeadLetter(fingerprint(error), RETRIES_EXHAUSTED),
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
