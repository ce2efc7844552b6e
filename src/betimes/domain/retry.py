"""Retry policies, and the decision what becomes of a run after an attempt."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from betimes.domain.errors import Invalid
from betimes.domain.outcome import (
    Abandoned,
    Cancelled,
    ErrorFacts,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from betimes.domain.states import RunState

ATTEMPTS_MAX = 1_000
DELAY_MAX = timedelta(days=30)


class Backoff(StrEnum):
    """How pauses grow."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"
    LIST = "list"


class Jitter(StrEnum):
    """How much of a pause is left to chance."""

    FULL = "full"
    EQUAL = "equal"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When to try again and when to stop.

    `retry_on` and `give_up_on` hold names of error types; `give_up_on` wins, and a `retry_on`
    that is not empty makes every other type final.
    """

    max_attempts: int = 5
    backoff: Backoff = Backoff.EXPONENTIAL
    initial: timedelta = timedelta(seconds=5)
    factor: float = 2.0
    max: timedelta = timedelta(hours=1)
    delays: tuple[timedelta, ...] = ()
    jitter: Jitter = Jitter.FULL
    max_elapsed: timedelta | None = None
    retry_on: frozenset[str] = field(default_factory=frozenset)
    give_up_on: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= ATTEMPTS_MAX:
            raise Invalid(
                f"expected max_attempts within 1-{ATTEMPTS_MAX}, got {self.max_attempts}",
                pointer="/retry/max_attempts",
            )
        if self.factor < 1:
            raise Invalid(
                f"expected a factor of 1 or more, got {self.factor}", pointer="/retry/factor"
            )
        if self.backoff is Backoff.LIST and not self.delays:
            raise Invalid("expected delays for backoff list, got none", pointer="/retry/delays")
        for name, pause in (("initial", self.initial), ("max", self.max)):
            if not timedelta(0) <= pause <= DELAY_MAX:
                raise Invalid(
                    f"expected {name} within 0 s and {DELAY_MAX.days} days, got {pause}",
                    pointer=f"/retry/{name}",
                )

    def pause(self, attempt: int, roll: float) -> timedelta:
        """How long to wait after attempt number `attempt` (from 1); `roll` in [0, 1) is the die."""
        base = min(self._base(attempt), self.max)
        match self.jitter:
            case Jitter.FULL:
                return base * roll
            case Jitter.EQUAL:
                return base / 2 + base / 2 * roll
            case Jitter.NONE:
                return base

    def _base(self, attempt: int) -> timedelta:
        match self.backoff:
            case Backoff.FIXED:
                return self.initial
            case Backoff.LINEAR:
                return self.initial * attempt
            case Backoff.LIST:
                return self.delays[min(attempt, len(self.delays)) - 1]
            case Backoff.EXPONENTIAL:
                return self._exponential(attempt)

    def _exponential(self, attempt: int) -> timedelta:
        # Grown step by step and stopped at the cap: factor ** 999 would overflow.
        base = self.initial
        for _ in range(attempt - 1):
            if base >= self.max or self.factor == 1 or not base:
                break
            base *= self.factor
        return base

    def wants(self, error: ErrorFacts) -> bool:
        """Whether an error of this type is worth another try."""
        if error.type in self.give_up_on:
            return False
        return not self.retry_on or error.type in self.retry_on


RUN_CANCELLED = "RUN_CANCELLED"
RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class Finish:
    """The run has reached a final state."""

    state: RunState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """The run goes back into the queue; `counts` tells whether an attempt was used up."""

    at: datetime
    counts: bool
    reason: str = ""


Decision = Finish | Retry


@dataclass(frozen=True, slots=True)
class Effort:
    """What a run has cost so far: this attempt's number (from 1) and when the first one began."""

    attempt: int
    first_started_at: datetime


def decide(
    outcome: Outcome, effort: Effort, policy: RetryPolicy, now: datetime, roll: float
) -> Decision:
    """What becomes of a run. `roll` in [0, 1) is the jitter die, thrown by the caller."""
    match outcome:
        case Succeeded():
            return Finish(RunState.SUCCEEDED)
        case Cancelled(reason=reason):
            return Finish(RunState.CANCELLED, reason or RUN_CANCELLED)
        case Snoozed(until=until, reason=reason):
            at = now + min(until, DELAY_MAX) if isinstance(until, timedelta) else until
            return Retry(max(at, now), counts=False, reason=reason)
        case Released(after=after):
            return Retry(now + min(after, DELAY_MAX), counts=False, reason="RELEASED")
        case Failed(error=error, retryable=retryable, after=after):
            if not retryable or not policy.wants(error):
                return Finish(RunState.DEAD, "PERMANENT_ERROR")
            return _again_or_dead(effort, policy, now, roll, after=after)
        case TimedOut() | Abandoned():
            return _again_or_dead(effort, policy, now, roll, after=None)
        case _:
            assert_never(outcome)


def _again_or_dead(
    effort: Effort, policy: RetryPolicy, now: datetime, roll: float, *, after: timedelta | None
) -> Decision:
    if effort.attempt >= policy.max_attempts:
        return Finish(RunState.DEAD, RETRIES_EXHAUSTED)
    # A wish from the other side can lengthen the pause up to the policy's cap, never shorten it.
    pause = policy.pause(effort.attempt, roll)
    if after is not None:
        pause = max(pause, min(after, max(policy.max, pause)))
    at = now + pause
    if policy.max_elapsed is not None and at - effort.first_started_at > policy.max_elapsed:
        return Finish(RunState.DEAD, RETRIES_EXHAUSTED)
    return Retry(at, counts=True, reason="RETRY_BACKOFF")
