"""Clients that leave, do not read, or never come to the point: each lets go of what it held."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

from api_kit import Client, Served, served

QUICK = timedelta(milliseconds=200)
STREAM = "/v1/events/stream"


def head(path: str, key: str, method: str = "GET", length: int = 0) -> bytes:
    lines = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
    body = f"content-type: application/json\r\ncontent-length: {length}\r\n" if length else ""
    return f"{lines}{body}\r\n".encode()


@contextlib.asynccontextmanager
async def connected(
    api: Served,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 -- what it waits for is told by no event
            await asyncio.sleep(0.01)  # noqa: TID251 -- sockets have to close first


async def test_a_stream_ends_with_its_client(dsn: str) -> None:
    async with served(dsn, streams_max=1) as api:
        key, streams = await api.key(), api.service.admission._streams
        for behind in (b"", head("/v1/whoami", key)):
            async with connected(api) as (reader, writer):
                writer.write(head(STREAM, key) + behind)
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                assert list(streams.values()) == [1]
            await until(lambda: not streams)


async def test_nobody_is_given_work_after_leaving(served: Served, admin: Client) -> None:
    key = await served.key(kind="wk")
    body = {"name": "w", "queues": ["mail"], "handlers": ["send"], "slots": 1}
    worker = (await served.client(key)("POST", "/v1/workers", body)).json["worker_id"]
    asked = b'{"wait": 20}'
    async with connected(served) as (_, writer):
        writer.write(head(f"/v1/workers/{worker}/lease", key, "POST", len(asked)) + asked)
        await until(lambda: bool(served.service.waiters._events))
    await until(lambda: not served.service.waiters._events)
    made = (await admin("POST", "/v1/runs", {"handler": "send", "queue": "mail"})).json["id"]
    again = await served.client(key)("POST", f"/v1/workers/{worker}/lease", {"wait": 5})
    assert [one["run_id"] for one in again.json["runs"]] == [made]


async def test_a_head_without_end_is_not_read_for_long(served: Served) -> None:
    async with connected(served) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ")
        for _ in range(64):
            writer.write(b"x" * 16_384)
            with contextlib.suppress(OSError):
                await writer.drain()
        with contextlib.suppress(OSError):
            assert (await reader.readline()).startswith(b"HTTP/1.1 431")
        await until(lambda: not served_addresses(served))


def served_addresses(api: Served) -> int:
    return api.server.addresses.total()


async def test_lines_that_say_nothing_hold_no_connection(dsn: str) -> None:
    async with served(dsn, header_timeout=QUICK) as api, connected(api) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await reader.readuntil(b'{"status":"ok"}')
        writer.write(b"\r\n")
        answer = await asyncio.wait_for(reader.read(-1), 20)
        assert answer.startswith(b"HTTP/1.1 408")


async def test_who_does_not_read_is_let_go(dsn: str) -> None:
    async with served(dsn, body_timeout=QUICK) as api:
        key = await api.key()
        async with connected(api) as (_, writer):
            for _ in range(200):  # answers of half a megabyte, and nobody takes them
                writer.write(head("/v1/openapi.json", key))
            await until(lambda: not served_addresses(api))
