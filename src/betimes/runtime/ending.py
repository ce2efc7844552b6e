"""Outcomes as a worker reports them to the service."""

from datetime import datetime, timedelta

import msgspec

from betimes.domain.outcome import Cancelled, Failed, Outcome, Snoozed, Succeeded
from betimes.executing.returned import capped
from betimes.runtime.outcomes import REASON_MAX
from betimes.wire.workers import ErrorTold, ReportOne, RetryAfter


def told(lease: str, outcome: Outcome | None) -> ReportOne:
    """What became of an attempt; None stands for a plain success."""
    match outcome:
        case None | Succeeded(result=None):
            return ReportOne(lease_id=lease, action="complete")
        case Succeeded(result=result):
            kept = msgspec.Raw(capped(result) or b"null")
            return ReportOne(lease_id=lease, action="complete", result=kept)
        case Failed():
            return _failed(lease, outcome)
        case Snoozed(until=timedelta() as pause):
            return ReportOne(lease_id=lease, action="snooze", for_=pause.total_seconds())
        case Snoozed(until=datetime() as until):
            return ReportOne(lease_id=lease, action="snooze", until=until.isoformat())
        case Cancelled(reason=reason):
            return cancelled(lease, reason)
        case _:
            raise TypeError(f"expected an outcome of a task, got {outcome!r}")


def timed_out(lease: str, seconds: float) -> ReportOne:
    """Its time was up."""
    told = ErrorTold(type="TimedOut", message=f"took longer than {seconds:g} s")
    return ReportOne(lease_id=lease, action="fail", error=told)


def cancelled(lease: str, reason: str = "") -> ReportOne:
    """It ended because somebody wanted it to."""
    return ReportOne(lease_id=lease, action="cancel", reason=reason[:REASON_MAX])


def released(lease: str, reason: str = "") -> ReportOne:
    """It is given back; nothing is counted."""
    return ReportOne(lease_id=lease, action="release", reason=reason[:REASON_MAX])


def _failed(lease: str, outcome: Failed) -> ReportOne:
    facts = outcome.error
    error = ErrorTold(type=facts.type, message=facts.message, stack=facts.stack)
    if outcome.after is not None:
        wish = RetryAfter(after=outcome.after.total_seconds())
        return ReportOne(lease_id=lease, action="fail", error=error, retry=wish)
    retry = "auto" if outcome.retryable else "never"
    return ReportOne(lease_id=lease, action="fail", error=error, retry=retry)  # type: ignore[arg-type]
