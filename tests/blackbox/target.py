"""An HTTP target that writes down each request before it answers: `python -m blackbox.target`.

It listens on two ports. The first is healthy. The second does what its mode file says: `ok`,
`error` (500), `reset` (reads the request, then resets the connection), `hang` (answers after 20 s).
`/flaky` fails the first attempt of each run on either port. Answers say under which fence the
request came, so that the stored result tells whose report was accepted.
"""

import asyncio
import json
import socket
import struct
import sys
from pathlib import Path

from blackbox.evidence import Ledger

HANG_SECONDS = 20.0
NO_LINGER = struct.pack("ii", 1, 0)


class Target:
    """Both ports of the target."""

    def __init__(self, ledger: Ledger, mode: Path) -> None:
        self._ledger = ledger
        self._mode = mode

    async def healthy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._serve(reader, writer, faulty=False)

    async def faulty(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._serve(reader, writer, faulty=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, faulty: bool
    ) -> None:
        try:
            while await self._one(reader, writer, faulty=faulty):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        finally:
            writer.close()

    async def _one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, faulty: bool
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        await reader.readexactly(int(headers.get("content-length", "0")))
        mode = self._mode.read_text().strip() if faulty else "ok"
        attempt = int(headers["betimes-attempt"])
        fails = mode == "error" or (path.startswith("/flaky") and attempt == 1)
        fact = {
            "by": "target",
            "run": headers["betimes-run-id"],
            "path": path,
            "attempt": attempt,
            "fence": int(headers["betimes-fence"]),
            "scheduled": headers.get("betimes-scheduled-for"),
            "mode": mode if mode != "ok" else "error" if fails else "ok",
        }
        await asyncio.to_thread(self._ledger.write, fact)
        if mode == "reset":
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            writer.transport.abort()
            return False
        if mode == "hang":
            await asyncio.sleep(HANG_SECONDS)
        body = json.dumps({"fence": fact["fence"], "attempt": attempt}).encode()
        status = b"500 Internal Server Error" if fails else b"200 OK"
        writer.write(
            b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\ncontent-length: "
            + str(len(body)).encode() + b"\r\n\r\n" + body
        )  # fmt: skip
        await writer.drain()
        return True


async def main() -> None:
    """Listen on both ports, say which they are, and serve until killed."""
    ledger, mode = Path(sys.argv[1]), Path(sys.argv[2])
    target = Target(Ledger(ledger), mode)
    healthy = await asyncio.start_server(target.healthy, "127.0.0.1", 0)
    faulty = await asyncio.start_server(target.faulty, "127.0.0.1", 0)
    ports = [server.sockets[0].getsockname()[1] for server in (healthy, faulty)]
    print(*ports, flush=True)  # noqa: T201 -- the parent reads it
    async with healthy, faulty:
        await asyncio.gather(healthy.serve_forever(), faulty.serve_forever())


if __name__ == "__main__":
    asyncio.run(main())
