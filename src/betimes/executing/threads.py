"""Handlers in threads.

Our own threads and not the library's pool, for two reasons. A thread cannot be stopped: one that
ignores its time limit must neither hold up the end of the process nor be counted as a free place.
And waking a thread, or the event loop, costs more than a short call does, so both are woken once
for many calls:

    submit    calls go into one line; one thread is woken for it
    work      a thread that takes a call and sees more of them wakes the next thread, and so on:
              calls that block run side by side, calls that do not are done by whoever is awake
    collect   ends go into one line; the event loop is woken for the first of them
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Any, NamedTuple, Protocol, TypeVar

from betimes.domain.errors import LeaseOver

LEASE_OVER = "the lease ended before the handler began"


class Attended(Protocol):
    """What is known about a call in a thread."""

    lingers: bool
    """Whether nobody waits for it any more. Its place is then the thread's to free, once, when it
    ends: whoever gave it up stays out of that, however long it has something left to do."""

    def is_held(self) -> bool:
        """Whether its lease can still be ours."""
        ...


C = TypeVar("C", bound=Attended)


class Call(NamedTuple):
    """A function to be called in a thread, and who is told of its end on the event loop."""

    function: Callable[[Any], object]
    context: Attended
    variables: Variables
    ended: Callable[["Call", object, BaseException | None], None]
    companion: Any = None
    """Whatever goes with the call, for whoever is told."""


class Threads:
    """At most so many threads, made when needed, waiting for work between calls."""

    def __init__(self, most: int, *, freed: Callable[[int], None]) -> None:
        self._most = most
        self._freed = freed
        self._calls: deque[Call] = deque()
        self._ends: deque[tuple[Call, object, BaseException | None]] = deque()
        self._wakes: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """One True is enough to have the line worked on; a False ends a thread."""
        self._counting = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._told = False
        """Whether the event loop knows already that there are ends to collect."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, function: Callable[[C], object], context: C) -> object:
        """Call the function in a thread. Cancelled, it goes on there and its place stays taken."""
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.submit(Call(function, context, copy_context(), _settle, done))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if not done.done():
                context.lingers = True
            raise

    def submit(self, call: Call) -> None:
        """Have a call made; its end is told on this event loop.

        Whoever no longer waits for it sets `lingers`: its place is then free when it ends.
        """
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._calls.append(call)
        self._wake_one()

    def close(self) -> None:
        """Let idle threads end; busy ones end with the process."""
        for _ in range(self._threads):
            self._wakes.put(False)

    def _wake_one(self) -> None:
        """Have one more thread look at the line, unless one is on its way already.

        Only a hint has to be right in the end: whoever takes a call and leaves some in the line
        comes here too, so that a thread which was about to fall asleep is not relied upon.
        """
        if self._wakes.empty():
            self._wakes.put(True)
        if self._idle:
            return
        with self._counting:
            if self._threads >= self._most:
                return
            self._threads += 1
            self._idle += 1
        threading.Thread(target=self._work, name="betimes-handler", daemon=True).start()

    def _work(self) -> None:
        while self._wakes.get():
            with self._counting:
                self._idle -= 1
            self._work_off()
            with self._counting:
                self._idle += 1

    def _work_off(self) -> None:
        """Make calls until none is left in the line."""
        while True:
            try:
                call = self._calls.popleft()
            except IndexError:
                return
            if self._calls:
                self._wake_one()
            value: object = None
            fault: BaseException | None = None
            try:
                value = call.variables.run(_begun, call)
            except BaseException as error:  # noqa: BLE001 -- carried over to whoever waits
                fault = error
            self._tell(call, value, fault)

    def _tell(self, call: Call, value: object, fault: BaseException | None) -> None:
        """The end comes before the look at `_told`, and is collected after it was taken back."""
        self._ends.append((call, value, fault))
        if not self._told and self._loop is not None and not self._loop.is_closed():
            self._told = True
            self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._told = False
        while self._ends:
            call, value, fault = self._ends.popleft()
            if call.context.lingers:
                self._freed(1)
            if isinstance(fault, StopIteration):
                fault = RuntimeError("the handler raised StopIteration")
            call.ended(call, value, fault)


def _begun(call: Call) -> object:
    """Call it; it may have waited for a thread for longer than its lease, or than anybody."""
    if call.context.lingers or not call.context.is_held():
        raise LeaseOver(LEASE_OVER)
    return call.function(call.context)


def _settle(call: Call, value: object, fault: BaseException | None) -> None:
    done: asyncio.Future[object] = call.companion
    if done.done():
        return
    if fault is None:
        done.set_result(value)
    else:
        done.set_exception(fault)
        done.exception()  # taken note of: nobody may be waiting for it any more
