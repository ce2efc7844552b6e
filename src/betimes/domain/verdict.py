"""What becomes of a run before and after an attempt: the rules that every road shares. Pure.

The engine (`engine.resolve`) writes what is said here into rows, for workers of the service, for
users' tasks on the database and over HTTP; the Harness does the same in memory. When to try again
is said by `domain.retry`.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from betimes.domain.outcome import Outcome, Released
from betimes.domain.retry import (
    RETRIES_EXHAUSTED,
    RUN_CANCELLED,
    Effort,
    Finish,
    RetryPolicy,
    decide,
)
from betimes.domain.states import RunState, Trigger

START_DEADLINE_PASSED = "START_DEADLINE_PASSED"
CONCURRENCY_KEY_FULL = "CONCURRENCY_KEY_FULL"
GOING_ON = frozenset({RunState.QUEUED, RunState.RETRY_WAIT, RunState.DEAD})
"""Ends of attempts that are no ends of their runs, or only because nobody may try again."""


class Refusal(NamedTuple):
    """Why a run is over before it began."""

    state: RunState
    reason: str


CANCELLED = Refusal(RunState.CANCELLED, RUN_CANCELLED)
EXPIRED = Refusal(RunState.EXPIRED, START_DEADLINE_PASSED)
FULL = Refusal(RunState.SKIPPED, CONCURRENCY_KEY_FULL)
EXHAUSTED = Refusal(RunState.DEAD, RETRIES_EXHAUSTED)


def refusal(
    *,
    asked_to_end: bool,
    due_at: datetime,
    deadline: timedelta | None,
    times_leased: int,
    trigger: int,
    now: datetime,
) -> Refusal | None:
    """Why a run that was leased is not executed: somebody wants its end, or it is too late.

    It can be too late for its first start only, counting the lease it is under; and who backfills
    wants it late.
    """
    if asked_to_end:
        return CANCELLED
    if deadline is None or times_leased != 1 or trigger == Trigger.BACKFILL:
        return None
    return EXPIRED if due_at + deadline < now else None


def has_no_attempt_left(used: int, retry: RetryPolicy) -> bool:
    """Whether a run whose worker was lost has used all its attempts, the lost ones included."""
    return used >= retry.max_attempts


class Verdict(NamedTuple):
    """What becomes of a run after an attempt."""

    state: RunState
    attempt: int
    """How many attempts it has used."""
    reason: str
    again_at: datetime | None = None
    """When it is tried again; None when it is over."""

    def given_up(self) -> "Verdict":
        """The same when somebody has asked for the end of the run.

        However the worker puts it: it failed, wants to go on later or gives it back. Nobody tries
        it again, and it is no dead letter. What ended by itself stays what it is.
        """
        if self.state not in GOING_ON:
            return self
        return Verdict(CANCELLED.state, self.attempt, CANCELLED.reason)


def verdict_of(
    outcome: Outcome,
    *,
    attempt: int,
    used: int,
    first_started_at: datetime,
    retry: RetryPolicy,
    now: datetime,
    roll: float,
) -> Verdict:
    """What becomes of a run after its attempt number `attempt`, of which `used` counted before."""
    decision = decide(outcome, Effort(attempt, first_started_at), retry, now, roll)
    if isinstance(decision, Finish):
        return Verdict(decision.state, attempt, decision.reason)
    # What was given back has not begun: it waits as if nobody had ever had it, unless for a later
    # time.
    at_once = isinstance(outcome, Released) and decision.at <= now
    state = RunState.QUEUED if at_once else RunState.RETRY_WAIT
    return Verdict(state, attempt if decision.counts else used, decision.reason, decision.at)
