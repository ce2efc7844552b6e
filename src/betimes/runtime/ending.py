"""From what a handler returned or raised to what is reported."""

from typing import Literal

import msgspec

from betimes.domain.errors import NotFound, Unavailable
from betimes.executing.returned import capped, failure_of
from betimes.sdk.control import Cancelled, Control, PermanentError, Retry, Snooze
from betimes.sdk.options import seconds_of
from betimes.sdk.shapes import Unfit, encode
from betimes.wire.workers import ErrorTold, ReportOne, RetryAfter

TYPE_MAX, MESSAGE_MAX, STACK_MAX, REASON_MAX = 200, 20_000, 100_000, 1_000
INVALID_PAYLOAD = "InvalidPayload"
PAYLOAD_MISSING = "PayloadMissing"


def returned(lease: str, value: object) -> ReportOne:
    """The handler returned."""
    if value is None:
        return ReportOne(lease_id=lease, action="complete")
    try:
        result = capped(encode(value))
    except (TypeError, ValueError, NotImplementedError) as error:
        return _failed(lease, error, retry="never")
    return ReportOne(lease_id=lease, action="complete", result=msgspec.Raw(result or b"null"))


def raised(lease: str, error: BaseException) -> ReportOne:
    """The handler raised."""
    if not isinstance(error, Control):
        return _failed(lease, error)
    match error:
        case Retry(after=after) if after is not None:
            return _failed(lease, error, retry=RetryAfter(after=seconds_of(after)))
        case PermanentError():
            return _failed(lease, error, retry="never")
        case Snooze(until=None, after=after) if after is not None:
            return ReportOne(lease_id=lease, action="snooze", for_=seconds_of(after))
        case Snooze(until=until) if until is not None:
            return ReportOne(lease_id=lease, action="snooze", until=until.isoformat())
        case Cancelled(reason=reason):
            return cancelled(lease, reason)
        case _:
            return _failed(lease, error)


def unfit(lease: str, error: Unfit) -> ReportOne:
    """The payload is none for this handler; trying again would change nothing."""
    told = ErrorTold(type=INVALID_PAYLOAD, message=str(error)[:MESSAGE_MAX])
    return ReportOne(lease_id=lease, action="fail", error=told, retry="never")


def unfetched(lease: str, error: NotFound | Unavailable) -> ReportOne:
    """Its payload could not be had: for good when nobody has it, else it may be there later."""
    told = ErrorTold(type=PAYLOAD_MISSING, message=str(error)[:MESSAGE_MAX])
    retry: Literal["never", "auto"] = "never" if isinstance(error, NotFound) else "auto"
    return ReportOne(lease_id=lease, action="fail", error=told, retry=retry)


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


def _failed(
    lease: str, error: BaseException, *, retry: RetryAfter | str | None = None
) -> ReportOne:
    facts = failure_of(error).error
    told = ErrorTold(
        type=facts.type[:TYPE_MAX],
        message=facts.message[:MESSAGE_MAX],
        stack=facts.stack[-STACK_MAX:],
    )
    if isinstance(retry, RetryAfter):
        return ReportOne(lease_id=lease, action="fail", error=told, retry=retry)
    never = retry == "never"
    return ReportOne(lease_id=lease, action="fail", error=told, retry="never" if never else "auto")
