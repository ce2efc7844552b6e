"""Handlers in threads.

Our own threads and not the library's pool, for one reason: a thread cannot be stopped. One that
ignores its time limit must neither hold up the end of the process nor be counted as a free place.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Any, NamedTuple, Protocol, TypeVar

from betimes.domain.errors import LeaseOver

LEASE_OVER = "the lease ended before the handler began"


class Attended(Protocol):
    """What is known about a call in a thread."""

    lingers: bool
    """Whether the thread goes on with it although nobody waits; its place is still taken."""

    def is_held(self) -> bool:
        """Whether its lease can still be ours."""
        ...


C = TypeVar("C", bound=Attended)


class _Order(NamedTuple):
    function: Callable[[Any], object]
    context: Attended
    variables: Variables
    done: "asyncio.Future[object]"
    loop: asyncio.AbstractEventLoop


class Threads:
    """At most so many threads, made when needed, waiting for work between runs."""

    def __init__(self, most: int, *, freed: Callable[[int], None]) -> None:
        self._most = most
        self._freed = freed
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0

    async def run(self, function: Callable[[C], object], context: C) -> object:
        """Call the function in a thread. Cancelled, it goes on there and its place stays taken."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[object] = loop.create_future()
        self._busy += 1
        if self._threads < min(self._busy, self._most):
            self._threads += 1
            threading.Thread(target=self._work, name="betimes-handler", daemon=True).start()
        self._orders.put(_Order(function, context, copy_context(), done, loop))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if not done.done():
                context.lingers = True
            raise

    def close(self) -> None:
        """Let idle threads end; busy ones end with the process."""
        for _ in range(self._threads):
            self._orders.put(None)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            value: object = None
            fault: BaseException | None = None
            try:
                value = order.variables.run(self._begun, order)
            except BaseException as error:  # noqa: BLE001 -- carried over to whoever waits
                fault = error
            if not order.loop.is_closed():
                order.loop.call_soon_threadsafe(self._finished, order, value, fault)

    @staticmethod
    def _begun(order: _Order) -> object:
        """Call it; it may have waited for a thread for longer than its lease, or than anybody."""
        if order.context.lingers or not order.context.is_held():
            raise LeaseOver(LEASE_OVER)
        return order.function(order.context)

    def _finished(self, order: _Order, value: object, fault: BaseException | None) -> None:
        self._busy -= 1
        if order.context.lingers:
            order.context.lingers = False
            self._freed(1)
        if isinstance(fault, StopIteration):
            fault = RuntimeError("the handler raised StopIteration")
        if order.done.done():
            return
        if fault is None:
            order.done.set_result(value)
        else:
            order.done.set_exception(fault)
            order.done.exception()  # taken note of: nobody may be waiting for it any more
