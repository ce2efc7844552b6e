"""Waiting for several things at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*waits: Coroutine[Any, Any, Any]) -> int:
    """Wait until one of them is over, give up the others, tell which one it was.

    When several are over at the same time the earliest argument wins. An error of any of them is
    raised as the exception group of a TaskGroup.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait) for wait in waits]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        winner = next(place for place, task in enumerate(tasks) if task.done())
        for task in tasks:
            task.cancel()
    return winner
