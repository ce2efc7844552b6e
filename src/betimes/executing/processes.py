"""Handlers in processes of their own: for computing, and for code that may die.

One child executes one run at a time, so when a child dies it is known of what: that attempt has
failed, and nobody else's. Children are spawned, never forked (a fork would copy our threads' locks
and our connections), and a child that exceeds its time is killed, which is the only sure way.

Nothing here blocks the event loop. A pipe takes some 200 KiB before its reader has to read, and a
child that is being started reads nothing yet; so what is written or read waits in threads of the
child's own, one for each direction: the two may be under way at once.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from os import dup
from socket import SHUT_RDWR, socket
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
        # One thread each: messages neither overtake nor interleave.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="betimes-handler-write")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="betimes-handler-read")

    async def call(self, order: Order, hear: Say = nobody) -> object:
        """Send an order and wait for its answer, or for the child's death; `hear` what it says."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writer, self._pipe.send, order)
            while True:
                await _readable(self._pipe)
                told = await loop.run_in_executor(self._reader, self._pipe.recv)
                if isinstance(told, Told):
                    return told.answer
                if isinstance(told, Said):
                    hear(told.message)
        except (EOFError, OSError):
            await asyncio.shield(asyncio.to_thread(self.end))
            return Failed(
                ErrorFacts("ProcessDied", f"the process ended with {self._process.exitcode}")
            )

    def say(self, message: Any) -> None:
        """Tell the handler something, soon; a child that is gone hears nothing."""
        with suppress(RuntimeError):  # it has ended
            self._writer.submit(self._send, message)

    def _send(self, message: Any) -> None:
        with suppress(OSError):
            self._pipe.send(message)

    @property
    def alive(self) -> bool:
        """Whether it can take another order."""
        return not self._pipe.closed

    def kill(self) -> None:
        """Let it die, without waiting."""
        self._process.kill()

    def end(self) -> None:
        """Kill it, whatever it does; blocks for a moment, so it is called in a thread."""
        self.kill()
        self._process.join(JOIN_SECONDS)
        if self._pipe.closed:
            return
        # Whatever still waits at the pipe returns, although somebody may hold its other end.
        with suppress(OSError), socket(fileno=dup(self._pipe.fileno())) as pipe:
            pipe.shutdown(SHUT_RDWR)
        # Before the descriptor is free for something else.
        self._writer.shutdown()
        self._reader.shutdown()
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
        for child in self._idle:
            child.kill()  # all at once, and then wait for each
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
