"""One attempt: the handler is called as a worker calls it, and comes to an outcome."""

from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from betimes.domain.outcome import Outcome, Snoozed, Succeeded, TimedOut
from betimes.executing.returned import capped
from betimes.runtime.calling import invoke, invoke_async
from betimes.sdk.context import Context, Facts, current
from betimes.sdk.task import AnyTask
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
        self._run.checkpoint = msgspec.json.decode(data)

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """One line."""
        self._run.log.append(Line(level, message, dict(fields)))

    def wants_end(self) -> bool:
        """Whether somebody has cancelled it."""
        return self._run.cancel_wanted


class RunFacts:
    """What the handler is told, worked out of its run when it asks: most ask for little."""

    __slots__ = ("_run", "attempt", "checkpoint", "fence", "started_at")
    job_id = None
    idempotency_key = traceparent = ""

    def __init__(self, run: HarnessRun, now: datetime) -> None:
        self._run = run
        self.attempt = run.attempt
        self.fence = run.fence
        self.checkpoint = run.checkpoint
        self.started_at = now

    @property
    def run_id(self) -> str:
        """Its run."""
        return self._run.id

    @property
    def handler(self) -> str:
        """Its task."""
        return self._run.task.name

    @property
    def max_attempts(self) -> int:
        """How often it may be tried."""
        return self._run.terms.retry.max_attempts

    @property
    def queue(self) -> str:
        """Where it waited."""
        return self._run.terms.queue

    @property
    def priority(self) -> int:
        """How urgent it is."""
        return self._run.terms.priority

    @property
    def due_at(self) -> datetime:
        """When it was due."""
        return self._run.due_at

    @property
    def scheduled_for(self) -> datetime | None:
        """The fire it stands for."""
        return self._run.fire_at

    @property
    def timeout(self) -> timedelta | None:
        """How long it may take."""
        return self._run.terms.timeout

    @property
    def tags(self) -> Mapping[str, str]:
        """What it was tagged with."""
        return self._run.terms.tags


def context_of(run: HarnessRun, now: datetime) -> Context:
    """What the handler is given."""
    return Context(cast("Facts", RunFacts(run, now)), Heard(run))


class Planned:
    """A task that fails as the test has planned, in the place of its function."""

    def __init__(self, task: AnyTask, error: BaseException) -> None:
        self.app = task.app
        self.arguments = self
        self.decode = task.arguments.decode
        self._error = error

    def call(self, _context: Context, _arguments: Mapping[str, Any]) -> Any:
        """What would have called the function."""
        raise self._error


def attempt(run: HarnessRun, now: datetime, planned: BaseException | None) -> Outcome:
    """Call a plain handler as workers do."""
    context = context_of(run, now)
    token = current.set(context)
    try:
        return _settled(invoke(_task(run, planned), context, run.payload), now)
    finally:
        current.reset(token)


def attempt_async(run: HarnessRun, now: datetime, planned: BaseException | None) -> Awaiting:
    """The same for a coroutine function: what it awaits is awaited by whoever drives this."""
    context = context_of(run, now)
    token = current.set(context)
    try:
        outcome = yield invoke_async(_task(run, planned), context, run.payload)
    finally:
        current.reset(token)
    return _settled(outcome, now)


def _task(run: HarnessRun, planned: BaseException | None) -> AnyTask:
    return run.task if planned is None else cast("AnyTask", Planned(run.task, planned))


def _settled(outcome: Outcome | None, now: datetime) -> Outcome:
    """What an attempt came to, by the clock of the harness."""
    match outcome:
        case None:
            return Succeeded()
        case Succeeded(result=result):
            return Succeeded(capped(result))
        case Snoozed(until=timedelta() as pause):
            return Snoozed(now + pause)
        case _:
            return outcome


def limited(
    outcome: Outcome, spent: timedelta, limit: timedelta | None
) -> tuple[Outcome, timedelta]:
    """The outcome and how long it took to come about, within the time limit."""
    if limit is not None and spent > limit:
        return TimedOut(limit), limit
    return outcome, spent
