"""The client of an app inside a Harness: the same calls, answered by the world in memory."""

from collections.abc import Callable
from typing import Any

import msgspec

from betimes.sdk.application import App
from betimes.sdk.calling import AsyncCaller, Caller
from betimes.sdk.errors import InvalidState, NotFound
from betimes.sdk.exchange import Given
from betimes.sdk.operation import Operation
from betimes.sdk.resources import AsyncResources, Resources
from betimes.testing.harness.run import HarnessRun
from betimes.wire.base import shown_instant, shown_maybe
from betimes.wire.problem import Problem
from betimes.wire.runs import Failure, Run, RunMade, RunsMade, StateReason

Perform = Callable[[Operation, Given], Any]


class HarnessClient(Resources):
    """Blocking calls."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        super().__init__(Caller(self))

    def perform(self, operation: Operation, given: Given) -> Any:
        """What an operation answers."""
        return self._perform(operation, given)

    def close(self) -> None:
        """Nothing is held."""


class AsyncHarnessClient(AsyncResources):
    """Awaited calls."""

    def __init__(self, perform: Callable[[Operation, Given], Any]) -> None:
        self._perform = perform
        super().__init__(AsyncCaller(self))

    async def perform(self, operation: Operation, given: Given) -> Any:
        """What an operation answers."""
        return await self._perform(operation, given)

    async def close(self) -> None:
        """Nothing is held."""


class AtOnce:
    """`app.tx` inside a Harness: enqueued at once, since nobody tells us of the commit."""

    def __init__(self, app: App) -> None:
        self._app = app

    def enqueue(self, task: Any, *args: Any, **kwargs: Any) -> Any:
        """As `task.enqueue`."""
        return self._app.enqueue(task.prepare(*args, **kwargs))

    async def aenqueue(self, task: Any, *args: Any, **kwargs: Any) -> Any:
        """As `task.aenqueue`."""
        return await self._app.aenqueue(task.prepare(*args, **kwargs))


def shown_made(run: HarnessRun, *, deduplicated: bool) -> RunMade:
    """A run that was made, or the one that stands for it."""
    return RunMade(id=run.id, state=run.state.value, deduplicated=deduplicated)


def shown_many(made: list[RunMade]) -> RunsMade:
    """Many of them."""
    return RunsMade(items=made)


def shown_run(run: HarnessRun) -> Run:
    """A run as the service shows it, with payload and result."""
    error = run.error
    shown = Run(
        id=run.id,
        state=run.state.value,
        trigger=run.trigger.name.lower(),
        queue=run.terms.queue,
        priority=run.terms.priority,
        attempt=run.attempt,
        due_at=shown_instant(run.due_at),
        handler=run.name,
        scheduled_for=shown_maybe(run.fire_at),
        created_at=shown_instant(run.created_at),
        started_at=shown_maybe(run.started_at),
        finished_at=shown_maybe(run.finished_at),
        state_reason=StateReason(code=run.reason) if run.reason else None,
        error=None if error is None else Failure(type=error.type, message=error.message),
        tags=dict(run.terms.tags),
        dedupe_key=None if run.terms.dedupe is None else run.terms.dedupe.key,
        workflow_run_id=None if run.place is None else run.place.id,
        node=None if run.place is None else run.place.name,
    )
    shown.payload = None if run.payload is None else msgspec.json.decode(run.payload)
    shown.result = run.result
    return shown


def missing(what: str) -> NotFound:
    """There is none."""
    return NotFound(problem(404, "not_found", what))


def over(run: HarnessRun) -> InvalidState:
    """It has ended already."""
    return InvalidState(problem(409, "invalid_state", f"{run.id} is {run.state}"))


def problem(status: int, code: str, detail: str) -> Problem:
    """What the service would say of a refusal."""
    return Problem(
        type="about:blank",
        title=code,
        status=status,
        code=code,
        detail=detail,
        instance="",
        request_id="",
        retryable=False,
    )
