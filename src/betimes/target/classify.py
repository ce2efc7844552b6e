"""What an answer of a target means for the run: a table, and nothing else."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import Enum

RETRY_AFTER_MAX = timedelta(days=1)
RETRIED = frozenset({408, 425, 429})
ACCEPTED, GONE = 202, 410
SERVER_ERRORS = range(500, 600)
SUCCESSES = range(200, 300)
PUSHED_BACK = frozenset({429})
"""Answers by which a target that is well says that it is asked for too much."""


class Verdict(Enum):
    """What becomes of an attempt."""

    SUCCESS = "success"
    RETRY = "retry"
    PERMANENT = "permanent"
    GONE = "gone"
    """Permanent, and the job is paused: nobody is there any more."""
    WAIT = "wait"
    """Accepted; the target says later how it ended."""


@dataclass(frozen=True, slots=True)
class StatusRange:
    """Status codes from `first` to `last`, both included."""

    first: int
    last: int

    def __contains__(self, status: int) -> bool:
        return self.first <= status <= self.last


def classify(
    status: int, *, is_async: bool = False, success_codes: Sequence[StatusRange] = ()
) -> Verdict:
    """What a status means; with `success_codes` only those mean success."""
    if is_async and status == ACCEPTED:
        return Verdict.WAIT
    if success_codes:
        if any(status in one for one in success_codes):
            return Verdict.SUCCESS
    elif status in SUCCESSES:
        return Verdict.SUCCESS
    if status == GONE:
        return Verdict.GONE
    if status in RETRIED or status in SERVER_ERRORS:
        return Verdict.RETRY
    return Verdict.PERMANENT


SECONDS = re.compile(r"[0-9]{1,10}")


def retry_after(value: str | None, now: datetime) -> timedelta | None:
    """The pause a target asks for, in seconds or as a date; None when it asks for none."""
    if not value:
        return None
    text = value.strip()
    if SECONDS.fullmatch(text):
        pause = timedelta(seconds=int(text))
    else:
        try:
            at = parsedate_to_datetime(text)
        except (TypeError, ValueError, OverflowError):
            return None
        pause = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return min(max(pause, timedelta(0)), RETRY_AFTER_MAX)
