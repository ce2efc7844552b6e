"""What workers that are turned by hand have in common."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from betimes.domain.errors import Unavailable
from conformance.roads import TTL
from ops_kit import CountingEntropy
from worker_kit import settle_down

LEASE = timedelta(seconds=TTL)
PATIENCE_SECONDS = 20.0
ROUNDS = 3
"""So often a worker must find nothing to be believed: suspects are looked for apart."""
NO_PATIENCE = timedelta(0)
PLACES = 10
entropy = CountingEntropy()


def half() -> float:
    """A die that always shows the middle."""
    return 0.5


class Tasks:
    """Tasks of workers that nobody waits for; an error of one is an error of the test."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def create_task(
        self, work: Coroutine[Any, Any, Any], *, name: str | None = None
    ) -> "asyncio.Task[Any]":
        """Begin; helpers with a rhythm of their own are not wanted, the test has their cranks."""
        if name is not None and name in HELPERS:
            work.close()
            work = nothing()
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        return task

    async def close(self) -> None:
        """End all, and raise what any of them raised."""
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end


HELPERS = {"worker.courier", "worker.watch", "worker.heartbeat", "worker.report"}


async def nothing() -> None:
    """What is done instead of a rhythm."""


async def until_quiet(is_busy: Callable[[], bool]) -> None:
    """Pass the turn until nobody does anything but wait for the clock."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        await settle_down()
        while is_busy():
            await settle_down()


async def no_wait(_: float) -> None:
    """Nobody waits before trying again."""


@contextmanager
def losing(owner: type, *verbs: str) -> Iterator[list[str]]:
    """The first answer of any of these verbs gets lost after the deed was done."""
    lost: list[str] = []

    def wrapped(verb: str, real: Any) -> Any:
        async def done(*given: Any, **more: Any) -> Any:
            answer = await real(*given, **more)
            if not lost:
                lost.append(verb)
                raise Unavailable("the answer got lost")
            return answer

        return done

    with ExitStack() as stack:
        for verb in verbs:
            stack.enter_context(patch.object(owner, verb, wrapped(verb, getattr(owner, verb))))
        yield lost
