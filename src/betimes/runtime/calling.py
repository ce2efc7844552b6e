"""Calling handlers: arguments from the payload, middleware around, an outcome in every case."""

from types import TracebackType
from typing import Any, Self

from betimes.domain.outcome import Outcome
from betimes.runtime import outcomes
from betimes.sdk.context import Context, current
from betimes.sdk.middleware import AttemptEnd, Middleware
from betimes.sdk.shapes import Unfit
from betimes.sdk.task import AnyTask

Errors = (Exception, SystemExit)
"""What ends an attempt and not the worker."""


class Around:
    """Middleware around a call, in order on the way in and in reverse on the way out."""

    def __init__(self, task: AnyTask, context: Context) -> None:
        self._hooks = list(task.app.middleware)
        self._begun: list[Middleware] = []
        self._context = context
        self.result: Any = None

    def __enter__(self) -> Self:
        current.set(self._context)
        try:
            for hook in self._hooks:
                hook.before_attempt(self._context)
                self._begun.append(hook)
        except BaseException as error:
            self._leave(error)
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        end = AttemptEnd(result=self.result, error=error)
        for hook in reversed(self._begun):
            hook.after_attempt(self._context, end)


def invoke(task: AnyTask, context: Context, payload: bytes | None) -> Outcome | None:
    """Call a plain function, where it is to run; None stands for a success without a result."""
    try:
        arguments = task.arguments.decode(payload)
    except Unfit as error:
        return outcomes.unfit(error)
    try:
        if not task.app.middleware:
            current.set(context)
            value = task.arguments.call(context, arguments)
        else:
            with Around(task, context) as around:
                value = around.result = task.arguments.call(context, arguments)
    except Errors as error:
        return outcomes.raised(error)
    return None if value is None else outcomes.returned(value)


async def invoke_async(task: AnyTask, context: Context, payload: bytes | None) -> Outcome | None:
    """Call a coroutine function on the loop; cancelled from outside, it raises."""
    try:
        arguments = task.arguments.decode(payload)
    except Unfit as error:
        return outcomes.unfit(error)
    try:
        if not task.app.middleware:
            current.set(context)
            value = await task.arguments.call(context, arguments)
        else:
            with Around(task, context) as around:
                value = around.result = await task.arguments.call(context, arguments)
    except Errors as error:
        return outcomes.raised(error)
    return None if value is None else outcomes.returned(value)
