"""A function that can be called later, elsewhere, and again if it fails."""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from betimes.sdk.arguments import Arguments
from betimes.sdk.context import Context
from betimes.sdk.handle import RunHandle
from betimes.sdk.options import (
    CALL_MEMBERS,
    CALL_OPTIONS,
    CallOptions,
    TaskOptions,
    check_names,
    run_members,
)
from betimes.sdk.prepared import Prepared

if TYPE_CHECKING:
    from betimes.sdk.application import App
    from betimes.sdk.schedules import Fire

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
Q = ParamSpec("Q")
S = TypeVar("S")


class Task(Generic[P, R, F]):
    """A handler by name: `enqueue` it, call it, or let its schedule do that.

    `P` are the arguments it is enqueued with (the context is not one of them), `R` what its runs
    result in, `F` the function itself.
    """

    __name__: str

    def __init__(self, app: "App", function: F, name: str, options: TaskOptions) -> None:
        self.app = app
        self.name = name
        self.options = options
        self.function = function
        self.arguments = Arguments(function, name)
        self.is_async = inspect.iscoroutinefunction(function)
        if options.get("pool") == "process" and self.is_async:
            raise TypeError(f"expected a plain function for a process, {name!r} is async")
        update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<task {self.name!r}>"

    @property
    def call(self) -> F:
        """The plain function: no machinery, no network."""
        return self.function

    @property
    def __call__(self) -> F:
        """A task is called like its function."""
        return self.function

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R]:
        """Ask for a run with these arguments; it is durable when this returns."""
        return self.app.enqueue(self.prepare(*args, **kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R]:
        """The same, awaited."""
        return await self.app.aenqueue(self.prepare(*args, **kwargs))

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> Prepared[R]:
        """The call, checked and encoded and not sent: for `app.enqueue_many`."""
        return self._prepare({}, args, kwargs)

    def configure(self, **options: Unpack[CallOptions]) -> "Configured[P, R]":
        """The same task with other options: `task.configure(delay="3 days").enqueue(7)`."""
        check_names(options, CALL_OPTIONS, "an option of a call")
        return Configured(self, options)

    def next(self, count: int = 5) -> "list[Fire]":
        """The next fires of its schedule."""
        from betimes.sdk.schedules import next_fires  # noqa: PLC0415 -- the room of time is large

        return next_fires(self, count)

    def _prepare(
        self, options: CallOptions, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Prepared[R]:
        members = run_members({**self.options, **options}, CALL_MEMBERS)
        return Prepared(
            task=self,
            payload=self.arguments.encode(args, kwargs),
            members=members,
            idempotency_key=options.get("idempotency_key"),
        )


AnyTask = Task[Any, Any, Any]


class Configured(Generic[P, R]):
    """A task with the options of one call."""

    def __init__(self, task: Task[P, R, Any], options: CallOptions) -> None:
        self.task = task
        self.options = options

    def configure(self, **options: Unpack[CallOptions]) -> "Configured[P, R]":
        """More options; the later word counts."""
        check_names(options, CALL_OPTIONS, "an option of a call")
        return Configured(self.task, {**self.options, **options})

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R]:
        """Ask for a run with these arguments."""
        return self.task.app.enqueue(self.prepare(*args, **kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R]:
        """The same, awaited."""
        return await self.task.app.aenqueue(self.prepare(*args, **kwargs))

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> Prepared[R]:
        """The call, checked and encoded and not sent."""
        return self.task._prepare(self.options, args, kwargs)  # noqa: SLF001 -- one pair


class Decorator(Protocol):
    """What `@app.task(...)` gives: makes tasks of functions."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # the first that fits is meant
        self, function: Callable[Concatenate[Context, Q], Coroutine[Any, Any, S]], /
    ) -> Task[Q, S, Callable[Concatenate[Context, Q], Coroutine[Any, Any, S]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, Q], S], /
    ) -> Task[Q, S, Callable[Concatenate[Context, Q], S]]: ...
    @overload
    def __call__(
        self, function: Callable[Q, Coroutine[Any, Any, S]], /
    ) -> Task[Q, S, Callable[Q, Coroutine[Any, Any, S]]]: ...
    @overload
    def __call__(self, function: Callable[Q, S], /) -> Task[Q, S, Callable[Q, S]]: ...
