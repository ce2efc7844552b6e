"""Long thinking beside the event loop, which goes on serving everybody else meanwhile."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES = 32 << 10
"""What is smaller than this is read sooner than a thread is asked."""
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="betimes-aside")
"""Few: they share one interpreter with the event loop, and each takes a part of its time."""


async def aside(work: Callable[P, T], *given: P.args, **more: P.kwargs) -> T:
    """What some thinking comes to; it is bounded by the size of what it is given."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREADS, lambda: work(*given, **more))


async def aside_if_large(size: int, work: Callable[P, T], *given: P.args, **more: P.kwargs) -> T:
    """The same, unless it is over before a thread has begun."""
    if size < LARGE_BYTES:
        return work(*given, **more)
    return await aside(work, *given, **more)
