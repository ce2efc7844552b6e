"""What became of one attempt, as a value. Never an exception."""

from dataclasses import dataclass
from datetime import datetime, timedelta


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

    `retryable` False gives up at once; `after` is a wish for the pause, such as Retry-After.
    """

    error: ErrorFacts
    retryable: bool = True
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The attempt reached its time limit."""

    limit: timedelta


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asked to be called again later; no attempt is counted."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for the end and the handler obeyed."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """Given back unfinished by a draining worker; no attempt is counted."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The lease ran out: the worker died, froze or lost the database."""

    deliveries: int


Outcome = Succeeded | Failed | TimedOut | Snoozed | Cancelled | Released | Abandoned
