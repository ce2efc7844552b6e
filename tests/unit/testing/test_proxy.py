"""The fault proxy does to bytes exactly what it was told, and nothing when told nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from betimes.testing.proxy import FaultProxy, Place

T = TypeVar("T")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """A server that answers every line with itself in capitals, and remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while line := await reader.readline():
                self.heard.append(line)
                writer.write(line.upper())
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def proxied(
    *, at: Place = ("127.0.0.1", 0), unix: Path | None = None
) -> AsyncIterator[tuple[FaultProxy, Echo]]:
    echo = Echo()
    server = await (
        asyncio.start_unix_server(echo.serve, unix)
        if unix
        else asyncio.start_server(echo.serve, "127.0.0.1", 0)
    )
    upstream: Place = unix or server.sockets[0].getsockname()[:2]
    async with FaultProxy(upstream, listen=at, seed=7) as proxy:
        yield proxy, echo
    for writer in echo.writers:
        await end(writer)
    server.close()
    await server.wait_closed()


@asynccontextmanager
async def client_of(proxy: FaultProxy) -> AsyncIterator[Streams]:
    place = proxy.place
    reader, writer = await (
        asyncio.open_unix_connection(place)
        if isinstance(place, Path)
        else asyncio.open_connection(*place)
    )
    try:
        yield reader, writer
    finally:
        await end(writer)


async def end(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


async def soon(what: Awaitable[T]) -> T:
    """The answer, or a failure instead of a hang."""
    async with asyncio.timeout(5):
        return await what


async def ask(streams: Streams, line: bytes) -> bytes:
    streams[1].write(line)
    return await soon(streams[0].readline())


async def silent(streams: Streams, line: bytes) -> bool:
    """Whether the peer stays silent without closing."""
    streams[1].write(line)
    try:
        async with asyncio.timeout(0.1):
            await streams[0].readline()
    except TimeoutError:
        return True
    return False


async def test_told_nothing_it_changes_nothing() -> None:
    async with proxied() as (proxy, echo), client_of(proxy) as client:
        assert await ask(client, b"one\n") == b"ONE\n"
        client[1].write_eof()
        assert await soon(client[0].read()) == b""
        assert echo.heard == [b"one\n"]


async def test_unix_sockets_on_both_sides(tmp_path: Path) -> None:
    async with (
        proxied(at=tmp_path / "front", unix=tmp_path / "back") as (proxy, _),
        client_of(proxy) as client,
    ):
        assert await ask(client, b"one\n") == b"ONE\n"
        proxy.links[0].reset()
        assert await soon(client[0].read()) == b""


async def test_latency_and_rate_delay_but_lose_nothing() -> None:
    async with proxied() as (proxy, _), client_of(proxy) as client:
        await ask(client, b"warm\n")
        proxy.change(latency=(0.03, 0.01))
        began = time.monotonic()  # noqa: TID251
        assert await ask(client, b"one\n") == b"ONE\n"
        assert time.monotonic() - began >= 0.04  # noqa: TID251
        proxy.change(latency=None, rate=400.0)
        assert await ask(client, b"0123456789\n") == b"0123456789\n"
        assert time.monotonic() - began >= 0.09  # noqa: TID251


async def test_slices_arrive_whole() -> None:
    async with proxied() as (proxy, _), client_of(proxy) as client:
        proxy.change(slice=True)
        assert await ask(client, b"a longer line\n") == b"A LONGER LINE\n"


async def test_a_half_open_link_is_silent_and_open_until_healed() -> None:
    async with proxied() as (proxy, echo), client_of(proxy) as client, client_of(proxy) as other:
        await ask(client, b"one\n")
        await ask(other, b"one\n")
        proxy.links[0].change(half_open=True)
        assert await silent(client, b"two\n")
        assert b"two\n" not in echo.heard
        assert await ask(other, b"three\n") == b"THREE\n"
        proxy.heal()
        assert await soon(client[0].readline()) == b"TWO\n"


async def test_a_reset_is_told_to_the_client() -> None:
    async with proxied() as (proxy, _), client_of(proxy) as client:
        await ask(client, b"one\n")
        proxy.reset_all()
        with pytest.raises(ConnectionResetError):
            await soon(client[0].readexactly(1))


async def test_cut_after_bytes_and_after_a_pattern() -> None:
    async with proxied() as (proxy, echo):
        proxy.change(cut_after=4)
        async with client_of(proxy) as client:
            client[1].write(b"one\ntwo\n")
            with pytest.raises(ConnectionResetError):
                await soon(client[0].readexactly(1))
        proxy.change(cut_after=b"END")
        async with client_of(proxy) as client:
            assert await ask(client, b"one\n") == b"ONE\n"
            client[1].write(b"the end\n")
            assert await soon(client[0].readline()) in {b"THE END\n", b""}
        assert b"two\n" not in echo.heard


async def test_a_swallowed_reply_means_done_but_not_told() -> None:
    async with proxied() as (proxy, echo), client_of(proxy) as client:
        proxy.change(swallow_reply=b"commit")
        assert await ask(client, b"begin\n") == b"BEGIN\n"
        client[1].write(b"com")
        client[1].write(b"mit\n")
        with pytest.raises(ConnectionResetError):
            await soon(client[0].readexactly(1))
        assert echo.heard == [b"begin\n", b"commit\n"]


async def test_a_duplicated_request_is_heard_twice() -> None:
    async with proxied() as (proxy, _), client_of(proxy) as client:
        proxy.change(duplicate=True)
        assert await ask(client, b"one\n") == b"ONE\n"
        assert await soon(client[0].readline()) == b"ONE\n"


async def test_new_connections_are_refused_or_held() -> None:
    async with proxied() as (proxy, echo), client_of(proxy) as before:
        await ask(before, b"one\n")
        proxy.change(refuse=True)
        async with client_of(proxy) as refused:
            with pytest.raises(ConnectionResetError):
                await soon(refused[0].readexactly(1))
        assert await ask(before, b"two\n") == b"TWO\n"
        proxy.change(refuse=False, hold_new_connections=True)
        async with client_of(proxy) as held:
            assert await silent(held, b"three\n")
            assert b"three\n" not in echo.heard
            proxy.heal()
            assert await soon(held[0].readline()) == b"THREE\n"


async def test_an_upstream_that_is_away_closes_the_client() -> None:
    async with proxied() as (proxy, _):
        proxy._upstream = ("127.0.0.1", 1)
        async with client_of(proxy) as client:
            with pytest.raises(ConnectionResetError):
                await soon(client[0].readexactly(1))
        assert proxy.links == []
