"""Work for those who are still there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Receive = Callable[[], Awaitable[Any]]
T = TypeVar("T")


async def while_there(receive: Receive, work: Awaitable[T]) -> T | None:
    """Work for somebody as long as they are there; None when they have gone.

    The server does not say when it sends into the void, so streams would go on for ever.
    """
    async with asyncio.TaskGroup() as group:
        working, leaving = group.create_task(_caught(work)), group.create_task(_gone(receive))
        working.add_done_callback(lambda _: leaving.cancel())
        leaving.add_done_callback(lambda _: working.cancel())
    if working.cancelled():
        return None
    answer, error = working.result()
    if error is not None:
        raise error
    return answer


async def _caught(work: Awaitable[T]) -> tuple[T | None, Exception | None]:
    """What came of it, so that a refusal is still itself outside of the group."""
    try:
        return await work, None
    except Exception as error:  # noqa: BLE001 -- raised again by whoever waits
        return None, error


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
