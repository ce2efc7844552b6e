"""Connections that the server has reset meanwhile, under both event loops."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
import uvloop

from betimes.sdk.address import read_address
from betimes.sdk.async_http import AsyncHttp
from betimes.sdk.exchange import Request

NO_LINGER = struct.pack("ii", 1, 0)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Answers each request from threads of its own; resets its connections when asked to."""

    def __init__(self) -> None:
        self.requests = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            while connection.recv(65_536):
                self.requests += 1
                connection.sendall(ANSWER)

    def reset_all(self) -> None:
        for connection in self._open:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)  # wakes its thread
            connection.close()
        self._open.clear()

    def close(self) -> None:
        self.reset_all()
        self._listening.close()


async def asks_again_after_a_reset(server: Server, *, taken: bool) -> None:
    http = AsyncHttp(read_address(f"http://127.0.0.1:{server.port}"))
    request = Request(method="GET", path="/", headers={}, body=None, timeout=5.0, repeatable=True)
    assert (await http.send(request)).status == 200
    kept = http._idle[0]
    server.reset_all()
    while not kept.writer.is_closing():  # noqa: ASYNC110 -- until the reset has arrived
        await asyncio.sleep(0)  # noqa: TID251
    for _ in range(10):
        await asyncio.sleep(0)  # noqa: TID251 -- until the loop has closed the socket, too
    if taken:

        async def take() -> object:
            kept.fresh = False
            return kept

        http._take = take  # type: ignore[method-assign,assignment]
    assert (await http.send(request)).status == 200
    assert server.requests == 2
    await http.close()


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_was_reset_is_replaced(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    taken: bool,
) -> None:
    server = Server()
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(asks_again_after_a_reset(server, taken=taken))
    finally:
        server.close()
