"""How long the event loop is held at a time, judged by calls and not by a clock.

Calls of functions on the loop's own thread are counted between two of its turns: the figure is the
same on a busy machine as on an idle one. What is done in other threads does not count.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

CALLS_MAX = 100_000
"""Some 20 to 50 ms of Python."""


@dataclass
class Held:
    """The most calls between two turns of the loop so far."""

    calls: int = 0
    most: int = 0
    watched: bool = True


@contextmanager
def watched_loop() -> Iterator[Held]:
    """Count until the block is left; of the loop that runs now."""
    held, loop = Held(), asyncio.get_running_loop()

    def count(_frame: object, event: str, _given: object) -> None:
        held.calls += event in {"call", "c_call"}

    def turn() -> None:
        held.most, held.calls = max(held.most, held.calls), 0
        if held.watched:
            loop.call_soon(turn)

    loop.call_soon(turn)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield held
    finally:
        sys.setprofile(before)
        held.watched = False
        held.most = max(held.most, held.calls)
