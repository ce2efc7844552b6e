"""A question that many ask at the same moment is asked once.

What is believed for a while runs out for everybody at the same time: without this, each request
that is under way then would read the same row, and those that follow would wait for all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from betimes.domain.errors import SchedulerError

K = TypeVar("K")
V = TypeVar("V")


class Asking(Generic[K, V]):
    """Questions under way, by what they are about."""

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Future[tuple[V] | SchedulerError | None]] = {}

    async def ask(self, about: K, find: Callable[[], Awaitable[V]]) -> V:
        """What `find` finds, or what somebody finds who asked a moment ago; its error, too."""
        while (waiting := self._under_way.get(about)) is not None:
            match await asyncio.shield(waiting):
                case SchedulerError() as error:
                    raise error.copy()
                case (found,):
                    return found
                case None:  # the one who asked was called away
                    continue
        return await self._lead(about, find)

    def forget(self, about: K) -> None:
        """Let the next one ask anew: what is under way may miss what has changed."""
        self._under_way.pop(about, None)

    def forget_all(self) -> None:
        """The same for everything."""
        self._under_way.clear()

    async def _lead(self, about: K, find: Callable[[], Awaitable[V]]) -> V:
        waiting = asyncio.get_running_loop().create_future()
        self._under_way[about] = waiting
        told: tuple[V] | SchedulerError | None = None
        try:
            found = await find()
            told = (found,)
        except SchedulerError as error:
            told = error.copy()
            raise
        finally:
            if self._under_way.get(about) is waiting:
                del self._under_way[about]
            waiting.set_result(told)
        return found
