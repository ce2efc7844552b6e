"""Handlers in processes of their own: for computing, and for code that may die.

One child executes one run at a time, so when a child dies it is known of what: that attempt has
failed, and nobody else's. Children are spawned, never forked (a fork would copy our threads' locks
and our connections), and a child that exceeds its time is killed, which is the only sure way.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from betimes.domain.errors import LeaseOver
from betimes.domain.outcome import ErrorFacts, Failed
from betimes.executing.child import Order, Said, Told, serve
from betimes.executing.threads import LEASE_OVER

JOIN_SECONDS = 1.0
Say = Callable[[Any], None]


def nobody(_: Any) -> None:
    """Hear nothing."""


class Child:
    """A spawned process and our end of the pipe to it."""

    def __init__(self) -> None:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process: SpawnProcess = spawn.Process(
            target=serve, args=(theirs,), name="betimes-handler", daemon=True
        )
        self._process.start()
        theirs.close()

    async def call(self, order: Order, hear: Say = nobody) -> object:
        """Send an order and wait for its answer, or for the child's death; `hear` what it says."""
        try:
            self._pipe.send(order)
            while True:
                await _readable(self._pipe)
                told = self._pipe.recv()
                if isinstance(told, Told):
                    return told.answer
                if isinstance(told, Said):
                    hear(told.message)
        except (EOFError, OSError):
            self.end()
            return Failed(
                ErrorFacts("ProcessDied", f"the process ended with {self._process.exitcode}")
            )

    def say(self, message: Any) -> None:
        """Tell the handler something; a child that is gone hears nothing."""
        with suppress(OSError):
            self._pipe.send(message)

    @property
    def alive(self) -> bool:
        """Whether it can take another order."""
        return not self._pipe.closed

    def end(self) -> None:
        """Kill it, whatever it does."""
        self._process.kill()
        self._process.join(JOIN_SECONDS)
        with suppress(OSError):
            self._pipe.close()


class Processes:
    """At most so many children, made when needed, kept for the next run."""

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)
        self._idle: list[Child] = []

    async def run(
        self,
        order: Order,
        *,
        is_held: Callable[[], bool],
        hear: Say = nobody,
        begun: Callable[[Say], None] = nobody,
    ) -> object:
        """Call something in a child; cancelled, the child is killed.

        `begun` is given a way to talk to the child, which is good until this returns. Whoever has
        waited for a child for longer than its lease begins nothing.
        """
        async with self._free:
            child = self._idle.pop() if self._idle else await asyncio.to_thread(Child)
            if not is_held():
                self._idle.append(child)
                raise LeaseOver(LEASE_OVER)
            begun(child.say)
            try:
                answer = await child.call(order, hear)
            except BaseException:
                await asyncio.shield(asyncio.to_thread(child.end))
                raise
            if child.alive:
                self._idle.append(child)
            return answer

    def close(self) -> None:
        """End every idle child; a busy one ends with its run."""
        while self._idle:
            self._idle.pop().end()


async def _readable(pipe: "Connection[Any, Any]") -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(pipe.fileno(), tell)
    try:
        await ready
    finally:
        loop.remove_reader(pipe.fileno())
