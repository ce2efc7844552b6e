"""The driver of PostgreSQL without an event loop: who asks waits until the answer is there.

Time does not pass while a statement is made, and nobody else moves. So the driver's coroutines are
driven by hand: they write into a blocking socket, and whenever they wait, the next bytes are read.
That is less than half of what a loop, a task and a selector cost for each statement.

Statements whose answers nobody asks for (BEGIN, the clock) are kept back and sent with the next
one, in one packet; what the server says to them is dropped before the driver sees it.
"""

import asyncio
import socket
import struct
import time
from asyncio import events, tasks
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
CHUNK = 1 << 18
HEAD = struct.Struct("!cI")
READY, ERROR = b"Z", b"E"


class Refused(Exception):
    """A statement that nobody asks about has failed."""


class Transport(asyncio.Transport):
    """A blocking socket to one backend."""

    def __init__(self, loop: "DrivingLoop", path: str) -> None:
        super().__init__()
        self._loop = loop
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._kept = b""
        self._unasked = 0
        """How many answers are still to come that nobody asked for."""
        self._half = b""
        self.protocol: Any = None

    def keep(self, statement: str) -> None:
        """Send this before whatever comes next."""
        text = statement.encode() + b"\0"
        self._kept += HEAD.pack(b"Q", len(text) + 4) + text
        self._unasked += 1

    def forget(self) -> bool:
        """Whether something was kept, and is not sent any more."""
        had, self._kept, self._unasked = bool(self._kept), b"", 0
        return had

    def write(self, data: Any) -> None:
        self._loop.active = self
        self._socket.sendall(self._kept + data if self._kept else data)
        self._kept = b""

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def pump(self) -> None:
        """Wait for bytes and hand them to the driver."""
        data = self._socket.recv(CHUNK)
        if not data:
            self._loop.call_soon(self.protocol.connection_lost, None)
            return
        if self._unasked:
            data = self._skip(self._half + data)
        if data:
            self.protocol.data_received(data)

    def _skip(self, data: bytes) -> bytes:
        """What is left of some bytes behind the answers that nobody asked for."""
        at = 0
        while self._unasked and len(data) - at >= HEAD.size:
            kind, length = HEAD.unpack_from(data, at)
            if len(data) - at <= length:
                break
            if kind == ERROR:
                raise Refused(data[at : at + length + 1])
            self._unasked -= kind == READY
            at += length + 1
        left = data[at:]
        if self._unasked:
            self._half = left
            return b""
        self._half = b""
        return left

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket if name == "socket" else default

    def is_closing(self) -> bool:
        return self._socket.fileno() < 0

    def pause_reading(self) -> None:
        """Nothing is read unless somebody waits."""

    def resume_reading(self) -> None:
        """As above."""

    def close(self) -> None:
        if not self.is_closing():
            self._socket.close()
            self._loop.call_soon(self.protocol.connection_lost, None)

    abort = close


class _Someone:
    """What stands for a task where the driver wants to know its own."""

    def cancelling(self) -> int:
        return 0


class DrivingLoop:
    """As much of an event loop as the driver asks for."""

    def __init__(self) -> None:
        self._as_loop: Any = self
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.active: Transport | None = None

    def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Bring a coroutine of the driver to its end, from within or without another loop."""
        running = events._get_running_loop()
        events._set_running_loop(self._as_loop)
        try:
            while True:
                try:
                    future = work.send(None)
                except StopIteration as end:
                    answer: T = end.value
                    return answer
                if future is not None:
                    future._asyncio_future_blocking = False
                    self._settle(future)
        finally:
            events._set_running_loop(running)

    def as_task(self, work: Coroutine[Any, Any, T]) -> T:
        """The same, for what looks for its task."""
        someone: Any = _Someone()
        tasks._enter_task(self._as_loop, someone)
        try:
            return self.drive(work)
        finally:
            tasks._leave_task(self._as_loop, someone)

    def _settle(self, future: "asyncio.Future[Any]") -> None:
        while True:
            while self._soon:
                soon, self._soon = self._soon, []
                for callback, arguments in soon:
                    callback(*arguments)
            if future.done():
                return
            assert self.active is not None
            self.active.pump()

    def create_future(self) -> "asyncio.Future[Any]":
        """What the driver waits for."""
        return asyncio.Future(loop=self._as_loop)

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """Before anybody goes on waiting."""
        self._soon.append((callback, args))

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """Never: the server keeps its own bounds."""
        return asyncio.TimerHandle(delay, callback, args, self._as_loop, context)

    call_at = call_later

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It was in no list."""

    def time(self) -> float:
        return time.monotonic()

    def get_debug(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise AssertionError(context)

    async def create_unix_connection(self, factory: Any, path: Any, **_: Any) -> Any:
        transport = Transport(self, path)
        transport.protocol = factory()
        transport.protocol.connection_made(transport)
        return transport, transport.protocol
