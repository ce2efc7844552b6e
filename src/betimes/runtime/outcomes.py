"""From what a task returned or raised to an outcome."""

from dataclasses import replace
from datetime import timedelta

from betimes.domain.outcome import Cancelled, ErrorFacts, Failed, Outcome, Snoozed, Succeeded
from betimes.executing.returned import failure_of
from betimes.sdk import control
from betimes.sdk.options import seconds_of
from betimes.sdk.shapes import Unfit, encode

TYPE_MAX, MESSAGE_MAX, STACK_MAX, REASON_MAX = 200, 20_000, 100_000, 1_000
INVALID_PAYLOAD = "InvalidPayload"


def returned(value: object) -> Outcome:
    """The task returned; what JSON cannot hold would be no better the next time."""
    if value is None:
        return Succeeded()
    try:
        return Succeeded(encode(value))
    except (TypeError, ValueError, NotImplementedError) as error:
        return replace(_failed(error), retryable=False)


def raised(error: BaseException) -> Outcome:
    """The task raised."""
    match error:
        case control.Retry(after=after) if after is not None:
            return replace(_failed(error), after=timedelta(seconds=seconds_of(after)))
        case control.PermanentError():
            return replace(_failed(error), retryable=False)
        case control.Snooze(until=None, after=after) if after is not None:
            return Snoozed(timedelta(seconds=seconds_of(after)))
        case control.Snooze(until=until) if until is not None:
            return Snoozed(until)
        case control.Cancelled(reason=reason):
            return Cancelled(reason[:REASON_MAX])
        case _:
            return _failed(error)


def unfit(error: Unfit) -> Outcome:
    """The payload is none for this task; trying again would change nothing."""
    return Failed(ErrorFacts(INVALID_PAYLOAD, str(error)[:MESSAGE_MAX]), retryable=False)


def _failed(error: BaseException) -> Failed:
    facts = failure_of(error).error
    return Failed(
        ErrorFacts(facts.type[:TYPE_MAX], facts.message[:MESSAGE_MAX], facts.stack[-STACK_MAX:])
    )
