"""Requests over http.client: a few connections that are kept, each used by one thread at a time."""

import http.client
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import dup, getpid

from betimes.sdk.address import Address
from betimes.sdk.errors import Unreachable
from betimes.sdk.exchange import Request, Response

IDLE_MAX = 8


class SyncHttp:
    """Connections to one server."""

    def __init__(self, address: Address, *, context: ssl.SSLContext | None = None) -> None:
        self._address = address
        self._context = context
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._process = getpid()
        self._streams: set[http.client.HTTPResponse] = set()
        self.closings = 0
        """How often everything was let go of; streams end with it."""

    def send(self, request: Request) -> Response:
        """Send a request and read its answer.

        Raises:
            Unreachable: nothing came back; `sent` says whether the server may have seen it.

        """
        connection, fresh = self._take(request.timeout)
        try:
            answer = self._exchange(connection, request)
        except Unreachable as lost:
            connection.close()
            if fresh or (lost.sent and not request.repeatable):
                raise
            # A connection that we kept was closed: that says little about the server, which may
            # have seen the request nevertheless.
            connection, _ = self._open(request.timeout)
            answer = self._exchange(connection, request)
        except BaseException:
            connection.close()
            raise
        self._give_back(connection, answer)
        return answer

    @contextmanager
    def stream(self, request: Request) -> Iterator[tuple[Response, Iterator[bytes]]]:
        """An answer that goes on: its head, and its lines as they come."""
        connection, _ = self._open(request.timeout)
        try:
            head = self._begin(connection, request)
            response = Response(head.status, _headers(head))
            with self._lock:
                self._streams.add(head)
            try:
                yield response, iter(head.readline, b"")
            finally:
                with self._lock:
                    self._streams.discard(head)
        finally:
            connection.close()

    def close(self) -> None:
        """Let go of every connection; whoever reads a stream meanwhile finds it ended."""
        with self._lock:
            idle, self._idle = self._idle, []
            self.closings += 1
            for head in self._streams:
                _hang_up(head)
        for connection in idle:
            connection.close()

    def _take(self, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._process != getpid():
                # After a fork the sockets are the parent's, too.
                self._idle, self._process = [], getpid()
            idle, self._idle = self._idle, []
            connection = None
            while idle and connection is None:
                connection = idle.pop()
                if _is_over(connection):
                    connection.close()
                    connection = None
            self._idle = idle
        if connection is None:
            return self._open(timeout)
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection, False

    def _open(self, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        host, port = self._address.host, self._address.port
        if self._address.secure:
            context = self._context or ssl.create_default_context()
            secure = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
            return secure, True
        return http.client.HTTPConnection(host, port, timeout=timeout), True

    def _give_back(self, connection: http.client.HTTPConnection, answer: Response) -> None:
        if answer.headers.get("connection") == "close" or connection.sock is None:
            connection.close()
            return
        with self._lock:
            if len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def _exchange(self, connection: http.client.HTTPConnection, request: Request) -> Response:
        head = self._begin(connection, request)
        try:
            return Response(head.status, _headers(head), head.read())
        except (OSError, http.client.HTTPException) as fault:
            raise Unreachable(self._address.text, fault, sent=True) from fault

    def _begin(
        self, connection: http.client.HTTPConnection, request: Request
    ) -> http.client.HTTPResponse:
        try:
            if connection.sock is None:
                connection.connect()
        except OSError as fault:
            raise Unreachable(self._address.text, fault, sent=False) from fault
        try:
            connection.request(
                request.method,
                self._address.prefix + request.path,
                body=request.body,
                headers=dict(request.headers),
            )
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as fault:
            with suppress(OSError):
                connection.close()
            raise Unreachable(self._address.text, fault, sent=True) from fault


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has hung up, as far as is known here: there is nothing else to read."""
    if connection.sock is None:
        return True
    readable, _, _ = select.select([connection.sock], [], [], 0)
    return bool(readable)


def _headers(head: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in head.getheaders()}


def _hang_up(head: http.client.HTTPResponse) -> None:
    """End a connection that another thread reads from: closing it would pull it from under it."""
    with suppress(OSError, ValueError), socket.socket(fileno=dup(head.fileno())) as twin:
        twin.shutdown(socket.SHUT_RDWR)
