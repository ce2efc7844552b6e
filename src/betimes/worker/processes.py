"""Handlers in processes of their own: for computing, and for code that may die.

One child executes one run at a time, so when a child dies it is known of what: that attempt has
failed, and nobody else's. Children are spawned, never forked (a fork would copy our threads' locks
and our connections), and a child that exceeds its time is killed, which is the only sure way.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from betimes.domain.outcome import ErrorFacts, Failed
from betimes.worker.child import Order, serve
from betimes.worker.context import Context
from betimes.worker.handlers import Call, Handler

JOIN_SECONDS = 1.0


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

    async def call(self, order: Order) -> object:
        """Send an order and wait for its answer, or for the child's death."""
        try:
            self._pipe.send(order)
            await _readable(self._pipe)
            return self._pipe.recv()
        except (EOFError, OSError):
            self.end()
            return Failed(
                ErrorFacts("ProcessDied", f"the process ended with {self._process.exitcode}")
            )

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

    def __call__(self, handler: Handler) -> Call:
        """How a handler is called in a process."""

        def call(context: Context) -> Coroutine[Any, Any, object]:
            return self.run(handler, context)

        return call

    async def run(self, handler: Handler, context: Context) -> object:
        """Call the function in a child; cancelled, the child is killed."""
        function = handler.function
        order = Order(function.__module__, function.__qualname__, context.portable())
        async with self._free:
            child = self._idle.pop() if self._idle else await asyncio.to_thread(Child)
            try:
                answer = await child.call(order)
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
