"""A fast HTTP target in a process of its own; its path says after how many milliseconds."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
LENGTH = b"content-length:"


class Answering(asyncio.Protocol):
    """`/5` answers after five milliseconds, `/5/close` ends the connection afterwards."""

    def __init__(self) -> None:
        self._data = b""
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: Any) -> None:
        """Somebody is there."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end]
            at = head.lower().find(LENGTH)
            size = int(head[at + len(LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._data) < end + 4 + size:
                return
            self._data = self._data[end + 4 + size :]
            _, path, _ = head.split(b" ", 2)
            wait, _, close = path[1:].partition(b"/")
            if int(wait):
                self._loop.call_later(int(wait) / 1000, self._answer, bool(close))
            else:
                self._answer(bool(close))

    def _answer(self, close: bool) -> None:
        if not self._transport.is_closing():
            self._transport.write(LAST if close else OK)
            if close:
                self._transport.close()


async def serve() -> None:
    """Serve on a free port, which is the first line on stdout."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def a_target() -> Iterator[int]:
    """A target while the block lasts; its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.kit.target"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve())
