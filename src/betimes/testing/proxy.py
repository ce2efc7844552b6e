"""A proxy that breaks connections in named ways, in front of PostgreSQL, of the API, of targets.

What it does to bytes is a frozen `Faults`; `change` replaces it while connections are open, for the
whole proxy or for one link, and wakes whoever waits for it. Dice are seeded: a failure comes back.
"""

import asyncio
import random
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

Place: TypeAlias = "tuple[str, int] | Path"
"""Host and port, or the path of a unix socket."""

CHUNK_BYTES = 65_536
NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Faults:
    """What happens to a connection; nothing by default."""

    latency: tuple[float, float] | None = None
    """Mean and jitter in seconds, before each piece that passes."""
    rate: float | None = None
    """Bytes per second."""
    slice: bool = False
    """One byte per write."""
    half_open: bool = False
    """Nothing passes and nothing is closed: a peer that vanished without a word."""
    cut_after: int | bytes | None = None
    """Cut once so many bytes have passed, or once these bytes have."""
    swallow_reply: bytes | None = None
    """When the client has said this: let it through, drop the answer, cut. The unknown commit."""
    duplicate: bool = False
    """Whatever the client says is said twice."""
    refuse: bool = False
    """New connections are reset at once."""
    hold_new_connections: bool = False
    """New connections are accepted and left waiting."""


class Switch:
    """The faults of now, and a way to wait until they are others."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._changed = asyncio.Event()

    def change(self, **changes: Any) -> None:
        """Replace some of the faults; takes effect at the next byte."""
        self.faults = replace(self.faults, **changes)
        self.wake()

    def heal(self) -> None:
        """Back to an honest proxy."""
        self.faults = Faults()
        self.wake()

    def wake(self) -> None:
        """Let everybody look again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()


class Link(Switch):
    """One connection through the proxy; starts with the faults of the proxy at that moment."""

    def __init__(self, faults: Faults, client: asyncio.StreamWriter, dice: random.Random) -> None:
        super().__init__(faults)
        self._writers = [client]
        self._dice = dice
        self._passed = 0
        self._tails = {True: b"", False: b""}
        self._swallowing = False

    def reset(self) -> None:
        """Cut both sides at once, without a goodbye."""
        for writer in self._writers:
            raw = writer.get_extra_info("socket")
            if raw is not None and raw.family != socket.AF_UNIX:
                with suppress(OSError):  # closed already
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            writer.transport.abort()

    async def ended(self) -> None:
        """Wait until the sockets are closed."""
        for writer in self._writers:
            with suppress(OSError):
                await writer.wait_closed()

    async def relay(self, upstream: Place, reader: asyncio.StreamReader) -> None:
        """Carry bytes both ways until one side ends."""
        client = self._writers[0]
        while self.faults.hold_new_connections:
            await self.changed()
        back, server = await _connect(upstream)
        self._writers.append(server)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(reader, server, from_client=True), name="to server")
            group.create_task(self._pump(back, client, from_client=False), name="to client")

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, from_client: bool
    ) -> None:
        try:
            while piece := await reader.read(CHUNK_BYTES):
                if not await self._pass(piece, writer, from_client=from_client):
                    self.reset()
                    return
            await self._until_open()
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            self.reset()

    async def _pass(self, piece: bytes, writer: asyncio.StreamWriter, *, from_client: bool) -> bool:
        """Let a piece through as the faults of now want it; False means: cut."""
        await self._until_open()
        if self._swallowing and not from_client:
            return False
        faults = self.faults
        kept, cut = self._measure(piece, faults, from_client=from_client)
        await self._delay(len(kept), faults)
        await self._until_open()
        self._swallowing |= from_client and self._said(faults.swallow_reply, kept, from_client=True)
        self._tails[from_client] = (self._tails[from_client] + kept)[-64:]
        for part in [kept] * (2 if faults.duplicate and from_client else 1):
            await self._write(part, writer, sliced=faults.slice)
        return not cut

    async def _until_open(self) -> None:
        while self.faults.half_open:
            await self.changed()

    async def _delay(self, size: int, faults: Faults) -> None:
        seconds = size / faults.rate if faults.rate else 0.0
        if faults.latency:
            mean, jitter = faults.latency
            seconds += max(0.0, self._dice.uniform(mean - jitter, mean + jitter))
        if seconds:
            await asyncio.sleep(seconds)

    def _measure(self, piece: bytes, faults: Faults, *, from_client: bool) -> tuple[bytes, bool]:
        """How much of the piece passes, and whether the connection is cut after it."""
        kept, cut = piece, False
        if isinstance(faults.cut_after, int) and self._passed + len(piece) >= faults.cut_after:
            kept, cut = piece[: max(0, faults.cut_after - self._passed)], True
        elif isinstance(faults.cut_after, bytes):
            cut = self._said(faults.cut_after, piece, from_client=from_client)
        self._passed += len(kept)
        return kept, cut

    def _said(self, pattern: bytes | None, piece: bytes, *, from_client: bool) -> bool:
        return pattern is not None and pattern in self._tails[from_client] + piece

    async def _write(self, part: bytes, writer: asyncio.StreamWriter, *, sliced: bool) -> None:
        size = 1 if sliced else max(1, len(part))
        for start in range(0, len(part), size):
            writer.write(part[start : start + size])
            await writer.drain()


class FaultProxy(Switch):
    """Listens on loopback or on a unix socket and relays to `upstream`."""

    def __init__(self, upstream: Place, *, listen: Place = ("127.0.0.1", 0), seed: int = 0) -> None:
        super().__init__(Faults())
        self._upstream = upstream
        self._listen = listen
        self._dice = random.Random(seed)  # noqa: S311 -- to repeat a failure, not to hide a secret
        self._links: dict[Link, asyncio.Task[Any] | None] = {}
        self._server: asyncio.Server | None = None
        self.accepted = 0

    @property
    def links(self) -> list[Link]:
        """The open connections, oldest first."""
        return list(self._links)

    @property
    def place(self) -> Place:
        """Where it listens."""
        if isinstance(self._listen, Path):
            return self._listen
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert isinstance(self.place, tuple)
        return self.place[1]

    async def __aenter__(self) -> Self:
        if isinstance(self._listen, Path):
            self._server = await asyncio.start_unix_server(self._serve, self._listen)
        else:
            host, port = self._listen
            self._server = await asyncio.start_server(self._serve, host, port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [task for task in self._links.values() if task]
        self.reset_all()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    def change(self, **changes: Any) -> None:
        """Replace some of the faults, of the open connections as well."""
        super().change(**changes)
        for link in self._links:
            link.change(**changes)

    def heal(self) -> None:
        """Back to an honest proxy, for the open connections as well."""
        super().heal()
        for link in self._links:
            link.heal()

    def reset_all(self) -> None:
        """Cut every open connection."""
        for link in self._links:
            link.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        link = Link(self.faults, writer, self._dice)
        self._links[link] = asyncio.current_task()
        try:
            if not self.faults.refuse:
                await link.relay(self._upstream, reader)
        except (OSError, asyncio.CancelledError):
            pass  # the upstream is away, or we are at our end; the reset tells the client
        finally:
            link.reset()
            await link.ended()
            del self._links[link]


async def _connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(place, Path):
        return await asyncio.open_unix_connection(place)
    return await asyncio.open_connection(*place)
