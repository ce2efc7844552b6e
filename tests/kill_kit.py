"""A proxy that kills a worker at a chosen point of its conversation with the service."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

LEASE = re.compile(rb'"lease_id":"(lea_[^"]+)"')
TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Point:
    """A request, and whether the worker dies before the service sees it or after it answered."""

    says: bytes
    before: bool
    reply: bytes = b""
    """Only an answer that contains this counts."""

    def __str__(self) -> str:
        name = self.says.decode().split()[0].rpartition("/")[2] or "register"
        return f"{'before' if self.before else 'after'} {name}"


@dataclass
class Killer:
    """Carries bytes between one worker and the service until the point is reached."""

    port: int
    point: Point
    process: "asyncio.subprocess.Process | None" = None
    leases: set[str] = field(default_factory=set)
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self.tasks.add(me)
        back, server = await asyncio.open_connection("127.0.0.1", self.port)
        asked = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._to_server(reader, server, asked))
                group.create_task(self._to_worker(back, writer, asked))
        except* (ConnectionError, OSError):
            pass
        finally:
            server.close()
            writer.close()

    async def _to_server(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, asked: asyncio.Event
    ) -> None:
        while piece := await reader.read(65_536):
            if self.point.says in piece:
                if self.point.before:
                    self.kill()
                    return
                asked.set()
            server.write(piece)
            await server.drain()
        server.close()

    async def _to_worker(
        self, back: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: asyncio.Event
    ) -> None:
        while piece := await back.read(65_536):
            self.leases |= {one.decode() for one in LEASE.findall(piece)}
            if asked.is_set() and self.point.reply in piece:
                self.kill()
                return
            writer.write(piece)
            await writer.drain()
        writer.close()

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)
        self.killed.set()


@asynccontextmanager
async def doomed(
    port: int, point: Point, *, key: str, place: str, queue: str
) -> AsyncIterator[Killer]:
    """A real worker process whose way to the service leads through a killer."""
    killer = Killer(port, point)
    server = await asyncio.start_server(killer.serve, "127.0.0.1", 0)
    through = server.sockets[0].getsockname()[1]
    killer.process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "betimes", "worker", "run", place, "-q", queue, "-c", "2"),
        *("--url", f"http://127.0.0.1:{through}", "--grace", "5s"),
        cwd=TESTS,
        env={**os.environ, "BETIMES_API_KEY": key},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield killer
    finally:
        killer.kill()
        await killer.process.communicate()
        server.close()
        for task in killer.tasks:
            task.cancel()
        await asyncio.gather(*killer.tasks, return_exceptions=True)
