"""From what a handler returned or raised to an outcome."""

import traceback

import msgspec

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

RESULT_BYTES_MAX = 65_536
LARGE_BYTES_MAX = 32 << 20
"""Larger than this a result is not kept at all, wherever there is room."""
FRAMES_MAX = 20

_OUTCOMES = (Succeeded, Failed, TimedOut, Snoozed, Cancelled, Released, Abandoned)


def outcome_of(value: object) -> Outcome:
    """What a handler returned, as an outcome."""
    if isinstance(value, Failed | Snoozed | Cancelled | TimedOut):
        return value
    if isinstance(value, Succeeded):
        return Succeeded(capped(value.result))
    if isinstance(value, Released | Abandoned):
        return Failed(_facts(TypeError(f"a handler cannot return {type(value).__name__}")))
    try:
        return Succeeded(result_of(value))
    except (TypeError, ValueError, UnicodeError) as error:
        return Failed(_facts(error), retryable=False)


def result_of(value: object) -> bytes | None:
    """A returned value in the bytes that are kept of it."""
    if value is None or isinstance(value, bytes):
        return capped(value)
    return capped(msgspec.json.encode(value))


def capped(result: bytes | None) -> bytes | None:
    """A result that is too large is replaced by a note: half a document would help nobody."""
    if result is None or len(result) <= RESULT_BYTES_MAX:
        return result
    return b'{"dropped":"the result was too large","bytes":%d}' % len(result)


def large_result(value: object) -> bytes | None:
    """A result that does not fit into its row, in full; None for any other, and for no result."""
    if isinstance(value, Succeeded):
        value = value.result
    if value is None or isinstance(value, _OUTCOMES):
        return None
    if not isinstance(value, bytes):
        try:
            value = msgspec.json.encode(value)
        except (TypeError, ValueError, UnicodeError):
            return None  # `outcome_of` says what is wrong with it
    return value if RESULT_BYTES_MAX < len(value) <= LARGE_BYTES_MAX else None


def failure_of(error: BaseException) -> Failed:
    """What a handler raised, as an outcome."""
    return Failed(_facts(error))


def _facts(error: BaseException) -> ErrorFacts:
    stack = "".join(traceback.format_exception(error, limit=-FRAMES_MAX))
    return ErrorFacts(type(error).__qualname__, _message(error), stack)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 -- somebody else's __str__ may do anything
        return "(its message could not be read)"
