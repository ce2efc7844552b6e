"""The HTTP server around the application: uvicorn, with deadlines it does not have itself.

A client that sends its request byte by byte, sends heads without end, does not read its answers or
opens connections without end costs a socket and a timer here and never reaches the application.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from betimes.api.application import Application
from betimes.api.problem import MEDIA_TYPE, Trouble, body_of
from betimes.api.route import reason_of

HEADERS_MAX = 100
HEADER_BYTES_MAX = 32 * 1024
HEAD_BYTES_MAX = 2 * HEADER_BYTES_MAX
"""So much of a head that has not ended is read; the parser keeps a field until it has all of it."""
KEEP_ALIVE_SECONDS = 75
OLD_HTTP = "1.0"
HOST = re.compile(rb"([A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?")
BACKLOG = 1024


class Door(HttpToolsProtocol):
    """One connection: bounded in time, in the size of its headers, and in number per address."""

    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    """Until when the client has to take what was written for it."""
    _header_bytes = 0
    _head_bytes: int | None = None
    """What came of a head that has not ended; None between heads."""
    _running: Any = None
    """The exchange that is answered; behind it others may wait their turn."""
    _address = ""

    @property
    def _server(self) -> "Server":
        found: Server = self.config.server_of_ours  # type: ignore[attr-defined]
        return found

    def connection_made(self, transport: Any) -> None:
        """Count the address; begin to wait for a head."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        counts = self._server.addresses
        counts[self._address] += 1
        self._wait(self._server.header_seconds)
        if counts[self._address] > self._server.connections_max:
            self._refuse("rate_limited", "too many connections from this address")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it, and tell whoever still answers it."""
        self._stop_waiting()
        self.resume_writing()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        counts = self._server.addresses
        counts[self._address] -= 1
        if counts[self._address] <= 0:
            del counts[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, but never a head without end; what is no request at all has its time, too."""
        seen = self._head_bytes
        super().data_received(data)
        if self.transport.is_closing():
            return
        if seen is not None and self._head_bytes is not None:
            self._head_bytes = seen + len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse("headers_too_large", f"the head is over {HEAD_BYTES_MAX} bytes long")
        elif self._is_idle and self._timer is None:
            self._wait(self._server.header_seconds)

    @property
    def _is_idle(self) -> bool:
        """Whether nothing is being answered, read or waited for by uvicorn."""
        cycle: Any = self.cycle  # None until the first head has ended
        answered = cycle is None or cycle.response_complete
        return answered and self.timeout_keep_alive_task is None

    def pause_writing(self) -> None:
        """The client does not take what it asked for: it has as long as for a body of its own."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(self._server.body_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_message_begin(self) -> None:
        """A head begins."""
        self._header_bytes = self._head_bytes = 0
        self._wait(self._server.header_seconds)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the head."""
        self._header_bytes += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A body may follow, within its time."""
        self._head_bytes = None
        self._wait(self._server.body_seconds)
        if len(self.headers) > HEADERS_MAX or self._header_bytes > HEADER_BYTES_MAX:
            self._refuse(
                "headers_too_large",
                f"expected at most {HEADERS_MAX} header fields of {HEADER_BYTES_MAX} bytes",
            )
            return
        if not self._names_host():
            self._refuse("malformed_request", "expected one Host header with a name or an address")
            return
        super().on_headers_complete()

    def _names_host(self) -> bool:
        """Whether it is said once for whom the request is, as RFC 9112 demands of HTTP/1.1."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if not hosts:
            return bool(self.parser.get_http_version() == OLD_HTTP)
        return len(hosts) == 1 and HOST.fullmatch(hosts[0].strip()) is not None

    def on_body(self, body: bytes) -> None:
        """A part of the body; what comes after a refusal is not read."""
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here; its answer has a deadline of its own."""
        self._stop_waiting()
        if self.cycle is not None:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP gets a problem, too."""
        self._refuse("malformed_request", msg)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._refuse("request_timeout", "the request took too long to arrive")

    def _refuse(self, code: str, detail: str) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        trouble = Trouble(code, detail)
        body = body_of(trouble, "")
        head = (
            f"HTTP/1.1 {trouble.status} {reason_of(trouble.status)}\r\n"
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(head.encode() + body)
        self.transport.close()


class Server(uvicorn.Server):
    """Serves until told to stop; signals are somebody else's business."""

    def __init__(self, application: Application) -> None:
        settings = application.service.settings
        config = uvicorn.Config(
            application,
            loop="none",
            http=Door,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=5,
            backlog=BACKLOG,
        )
        config.server_of_ours = self  # type: ignore[attr-defined]
        super().__init__(config)
        self.addresses: Counter[str] = Counter()
        self.connections_max = settings.connections_max
        self.header_seconds = settings.header_timeout.total_seconds()
        self.body_seconds = settings.body_timeout.total_seconds()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield
