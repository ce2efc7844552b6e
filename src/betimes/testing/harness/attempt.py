"""One attempt: the handler is called as a worker calls it, and comes to an outcome."""

import traceback
from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.outcome import (
    Cancelled,
    ErrorFacts,
    Failed,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from betimes.sdk import control
from betimes.sdk.context import Context, Facts, current
from betimes.sdk.middleware import AttemptEnd, Middleware
from betimes.sdk.shapes import Unfit, encode
from betimes.testing.harness.asking import span
from betimes.testing.harness.run import HarnessRun, Line

Awaiting = Generator[Any, Any, Any]
"""Yields what is to be awaited, and is sent what came of it."""


class Heard:
    """The voice of an attempt: everything a handler says is kept with its run."""

    def __init__(self, run: HarnessRun) -> None:
        self._run = run

    def progress(self, percent: float, message: str | None) -> None:
        """How far it has come."""
        self._run.progress = (percent, message)

    def checkpoint(self, data: bytes) -> None:
        """Where the next attempt may begin."""
        from msgspec.json import decode  # noqa: PLC0415 -- few handlers need it

        self._run.checkpoint = decode(data)

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """One line."""
        self._run.log.append(Line(level, message, dict(fields)))

    def wants_end(self) -> bool:
        """Whether somebody has cancelled it."""
        return self._run.cancel_wanted


def context_of(run: HarnessRun, now: datetime) -> Context:
    """What the handler is told."""
    facts = Facts(
        run_id=run.id,
        handler=run.name,
        attempt=run.attempt,
        max_attempts=run.terms.retry.max_attempts,
        fence=run.fence,
        queue=run.terms.queue,
        priority=run.terms.priority,
        due_at=run.due_at,
        scheduled_for=run.fire_at,
        started_at=now,
        timeout=run.terms.timeout,
        checkpoint=run.checkpoint,
        tags=run.terms.tags,
    )
    return Context(facts, Heard(run))


def attempt(run: HarnessRun, now: datetime, planned: BaseException | None) -> Awaiting:
    """Call the handler, or fail as the test has planned; returns the outcome."""
    context = context_of(run, now)
    token = current.set(context)
    try:
        value = yield from _around(run, context, planned)
        return Succeeded(None if value is None else encode(value))
    except Unfit as error:
        return Failed(ErrorFacts("InvalidPayload", str(error)), retryable=False)
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- somebody else's code
        return outcome_of(error, now)
    finally:
        current.reset(token)


def _around(run: HarnessRun, context: Context, planned: BaseException | None) -> Awaiting:
    """Middleware in order on the way in, in reverse on the way out."""
    arguments = run.arguments
    begun: list[Middleware] = []
    value: Any = None
    failure: BaseException | None = None
    try:
        for hook in run.task.app.middleware:
            hook.before_attempt(context)
            begun.append(hook)
        if planned is not None:
            raise planned  # noqa: TRY301 -- in the place of the handler's own error
        value = run.task.arguments.call(context, arguments)
        if run.task.is_async:
            value = yield value
    except BaseException as error:
        failure = error
        raise
    finally:
        for hook in reversed(begun):
            hook.after_attempt(context, AttemptEnd(result=value, error=failure))
    return value


def outcome_of(error: BaseException, now: datetime) -> Outcome:
    """What a handler raised, as the service hears of it."""
    match error:
        case control.PermanentError():
            return Failed(_facts(error), retryable=False)
        case control.Retry(after=after):
            return Failed(_facts(error), after=None if after is None else span(after))
        case control.Snooze(until=None, after=after):
            return Snoozed(now + span(after or 0))
        case control.Snooze(until=until) if until is not None:
            return Snoozed(until)
        case control.Cancelled(reason=reason):
            return Cancelled(reason)
        case _:
            return Failed(_facts(error))


def limited(
    outcome: Outcome, spent: timedelta, limit: timedelta | None
) -> tuple[Outcome, timedelta]:
    """The outcome and how long it took to come about, within the time limit."""
    if limit is not None and spent > limit:
        return TimedOut(limit), limit
    return outcome, spent


def _facts(error: BaseException) -> ErrorFacts:
    stack = "".join(traceback.format_exception(error))
    return ErrorFacts(type(error).__qualname__, str(error), stack)
