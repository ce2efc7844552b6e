"""The event loop of a process."""

import asyncio
import importlib
from collections.abc import Coroutine
from typing import Any


def run_to_end(work: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine on the fastest loop there is."""
    try:
        factory = importlib.import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)
