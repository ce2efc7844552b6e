"""Which handlers a worker has, and how each of them wants to be run."""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from betimes.domain.errors import Invalid
from betimes.domain.spec import target_need
from betimes.worker.context import Context

Function = Callable[[Context], Any]
Call = Callable[[Context], Coroutine[Any, Any, object]]


class Hooks(Protocol):
    """What is done on the event loop around a call that is made in a thread."""

    def prepare(self, context: Context) -> bool:
        """Before the call; False: something has to be waited for as well."""
        ...

    async def ready(self, context: Context) -> None:
        """Wait for that."""
        ...

    def conclude(self, context: Context) -> Awaitable[None] | None:
        """After the call, before its end is reported; what has to be waited for, if anything."""
        ...


class Kind(Enum):
    """Where a handler runs."""

    ASYNC = "async"
    """On the event loop: for waiting, not for computing."""
    THREAD = "thread"
    """In a thread: for libraries that block."""
    PROCESS = "process"
    """In a process of its own: for computing, and for code that may die."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A function by name."""

    name: str
    kind: Kind
    function: Function
    hooks: Hooks | None = None


class Handlers:
    """Names to handlers.

    A handler takes a `Context` and returns None, bytes, anything JSON can hold, or an outcome
    value such as `Failed` or `ctx.snooze(…)`. Raising is failing.
    """

    def __init__(self, *, targets: bool = True) -> None:
        self._by_name: dict[str, Handler] = {}
        self._targets = targets
        """Whether its names are kinds of targets as well, as those of the service are."""

    def add(
        self,
        name: str,
        function: Function,
        *,
        kind: Kind | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        """Register a function; a plain one runs in a thread unless it asks for a process."""
        is_async = inspect.iscoroutinefunction(function)
        chosen = kind or (Kind.ASYNC if is_async else Kind.THREAD)
        if is_async != (chosen is Kind.ASYNC):
            raise Invalid(f"expected handler {name!r} to suit {chosen.value}, got {function!r}")
        if name in self._by_name:
            raise Invalid(f"expected one handler of the name {name!r}, got a second")
        if chosen is Kind.PROCESS and "<" in function.__qualname__:
            raise Invalid(f"expected handler {name!r} to be importable, got {function!r}")
        self._by_name[name] = Handler(name, chosen, function, hooks)

    def also(self, name: str, function: Function, *, kind: Kind | None = None) -> "Handlers":
        """These handlers and one more, as a new table."""
        more = Handlers(targets=self._targets)
        more._by_name |= self._by_name
        more.add(name, function, kind=kind)
        return more

    def get(self, name: str) -> Handler | None:
        """The handler of that name."""
        return self._by_name.get(name)

    def needs(self) -> list[str]:
        """What these can do, as parcels name it: a handler, or a kind of target."""
        named = [name for name in self._by_name if not name.startswith(":")]
        return [*named, *map(target_need, self._by_name)] if self._targets else named

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._by_name.values())
