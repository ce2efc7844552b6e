"""What became of one attempt, as a value. Never an exception."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, unique
from typing import assert_never


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What is known about a failure."""

    type: str
    message: str
    stack: str = ""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned."""

    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised, or the target answered badly.

    `retryable` False gives up at once; `after` is a wish for the pause, such as Retry-After;
    `http` is what is kept of an exchange with a target, as JSON.
    """

    error: ErrorFacts
    retryable: bool = True
    after: timedelta | None = None
    http: str | None = None
    timed_out: bool = False
    """Whether it failed because its time was up; only the history tells the difference."""
    result: bytes | None = None
    """What it came to all the same: kept like a result."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The attempt reached its time limit."""

    limit: timedelta


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asked to be called again later; no attempt is counted."""

    until: datetime | timedelta
    """A time, or how long after the end of this attempt; by whose clock, says whoever writes it."""
    reason: str = "SNOOZED"
    origin: str | None = None
    """Whose open breaker it waits for; it is called sooner when that closes."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for the end and the handler obeyed."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """Given back unfinished, for others to take after a while; no attempt is counted."""

    reason: str = ""
    after: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The lease ran out: the worker died, froze or lost the database."""

    deliveries: int


Outcome = Succeeded | Failed | TimedOut | Snoozed | Cancelled | Released | Abandoned


@unique
class OutcomeKind(IntEnum):
    """Kinds of outcomes in the history of attempts; the numbers are stored and never reused."""

    SUCCEEDED = 0
    FAILED = 1
    TIMED_OUT = 2
    SNOOZED = 3
    CANCELLED = 4
    RELEASED = 5
    ABANDONED = 6


_KINDS: dict[type[Outcome], OutcomeKind] = {
    Succeeded: OutcomeKind.SUCCEEDED,
    Failed: OutcomeKind.FAILED,
    TimedOut: OutcomeKind.TIMED_OUT,
    Snoozed: OutcomeKind.SNOOZED,
    Cancelled: OutcomeKind.CANCELLED,
    Released: OutcomeKind.RELEASED,
    Abandoned: OutcomeKind.ABANDONED,
}


def kind_of(outcome: Outcome) -> OutcomeKind:
    """The number under which an outcome is stored."""
    if isinstance(outcome, Failed) and outcome.timed_out:
        return OutcomeKind.TIMED_OUT
    return _KINDS[type(outcome)]


def result_of(outcome: Outcome) -> bytes | None:
    """What an attempt leaves behind as the result of its run."""
    return outcome.result if isinstance(outcome, Succeeded | Failed) else None


def facts_of(outcome: Outcome) -> ErrorFacts | None:
    """What to remember as the error of an attempt; None when there was none."""
    match outcome:
        case Failed(error=error):
            return error
        case TimedOut(limit=limit):
            return ErrorFacts("TimedOut", f"took longer than {limit.total_seconds():g} s")
        case Abandoned(deliveries=deliveries):
            return ErrorFacts("Abandoned", f"its worker was lost {deliveries} times")
        case Succeeded() | Snoozed() | Cancelled() | Released():
            return None
        case _:
            assert_never(outcome)
