"""Requests over asyncio streams: HTTP/1.1, connections kept, nothing else.

Small on purpose: the base install has no HTTP library, and our own server is what it talks to.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from betimes.sdk.address import Address
from betimes.sdk.errors import Unreachable
from betimes.sdk.exchange import Request, Response

IDLE_MAX = 32
HEAD_BYTES_MAX = 64 * 1024
NO_BODY = frozenset({204, 304})
Fault = (OSError, EOFError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)


@dataclass(slots=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    loop: asyncio.AbstractEventLoop
    fresh: bool = True


class AsyncHttp:
    """Connections to one server, each used by one task at a time."""

    def __init__(self, address: Address, *, context: ssl.SSLContext | None = None) -> None:
        self._address = address
        self._context = context
        self._idle: list[_Connection] = []

    async def send(self, request: Request) -> Response:
        """Send a request and read its answer.

        Raises:
            Unreachable: nothing came back; `sent` says whether the server may have seen it.

        """
        try:
            async with asyncio.timeout(request.timeout):
                return await self._send(request)
        except TimeoutError as fault:
            raise Unreachable(self._address.text, fault, sent=True) from fault

    async def _send(self, request: Request) -> Response:
        connection = await self._take()
        try:
            answer = await self._exchange(connection, request)
        except Unreachable as lost:
            connection.writer.close()
            if connection.fresh or (lost.sent and not request.repeatable):
                raise
            connection = await self._open()
            answer = await self._exchange(connection, request)
        except BaseException:
            connection.writer.close()
            raise
        self._give_back(connection, answer)
        return answer

    @asynccontextmanager
    async def stream(
        self, request: Request
    ) -> AsyncIterator[tuple[Response, AsyncIterator[bytes]]]:
        """An answer that goes on: its head, and its lines as they come."""
        connection = await self._open()
        try:
            async with asyncio.timeout(request.timeout):
                await self._write(connection, request)
                head = await self._head(connection)
            yield head, _lines(connection.reader, head)
        finally:
            connection.writer.close()

    async def close(self) -> None:
        """Let go of every connection."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.writer.close()

    async def _take(self) -> _Connection:
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if connection.loop is loop and not (
                connection.reader.at_eof() or connection.writer.is_closing()
            ):
                connection.fresh = False
                return connection
        return await self._open()

    async def _open(self) -> _Connection:
        context = self._context
        if self._address.secure and context is None:
            context = ssl.create_default_context()
        try:
            reader, writer = await asyncio.open_connection(
                self._address.host, self._address.port, ssl=context, limit=HEAD_BYTES_MAX
            )
        except OSError as fault:
            raise Unreachable(self._address.text, fault, sent=False) from fault
        return _Connection(reader, writer, asyncio.get_running_loop())

    def _give_back(self, connection: _Connection, answer: Response) -> None:
        if answer.headers.get("connection") == "close" or len(self._idle) >= IDLE_MAX:
            connection.writer.close()
        else:
            self._idle.append(connection)

    async def _exchange(self, connection: _Connection, request: Request) -> Response:
        try:
            await self._write(connection, request)
            head = await self._head(connection)
        except Fault as fault:
            raise Unreachable(self._address.text, fault, sent=True) from fault
        try:
            body = await _body(connection.reader, head)
        except Fault as fault:
            raise Unreachable(self._address.text, fault, sent=True) from fault
        return Response(head.status, head.headers, body)

    async def _write(self, connection: _Connection, request: Request) -> None:
        body = request.body or b""
        headers = {"host": self._address.host, **request.headers}
        if body:
            headers["content-length"] = str(len(body))
        lines = [f"{request.method} {self._address.prefix}{request.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(lines).encode("latin-1", "replace")
        if connection.writer.is_closing():
            # Event loops disagree about writing to it: asyncio's warns, uvloop's is a RuntimeError.
            raise ConnectionResetError("the connection was closed")
        connection.writer.write(head + b"\r\n\r\n" + body)
        await connection.writer.drain()

    async def _head(self, connection: _Connection) -> Response:
        raw = await connection.reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").split("\r\n")
        _, status, *_ = first.split(" ")
        headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                headers[name.lower()] = value.strip()
        return Response(int(status), headers)


async def _body(reader: asyncio.StreamReader, head: Response) -> bytes:
    if head.status in NO_BODY:
        return b""
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        return b"".join([chunk async for chunk in _chunks(reader)])
    length = head.headers.get("content-length")
    return await reader.read(-1) if length is None else await reader.readexactly(int(length))


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass


async def _lines(reader: asyncio.StreamReader, head: Response) -> AsyncIterator[bytes]:
    if head.headers.get("transfer-encoding", "").lower() != "chunked":
        while line := await reader.readline():
            yield line
        return
    rest = b""
    async for chunk in _chunks(reader):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
