"""One attempt is one request, whatever becomes of the connection under it (V5)."""

import asyncio
import socket
import ssl
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from betimes.domain.outcome import Failed
from betimes.target.answer import Answer, NoAnswer, Patience, Tls, Trouble
from betimes.target.delivery import Delivery
from betimes.target.url import UrlPolicy
from betimes.testing.real_clock import RealClock
from target_kit import (
    CERTIFICATE,
    DEV,
    Attempt,
    FakeTarget,
    Received,
    a_client,
    a_request,
    a_target,
    answer,
    server_tls,
    some_gates,
)

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
SIZES = [None, 0, 10, 300_000]


def end(writer: asyncio.StreamWriter, how: str) -> None:
    """Close a connection: with a reset, or politely."""
    connection = writer.get_extra_info("socket")
    if how == "reset":
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
    else:
        writer.close()


def dying(how: str, *, part: bytes = b"", kept: int = 1) -> FakeTarget:
    """Answers the first requests of each connection, and ends it at the next one."""
    target = FakeTarget()
    seen: Counter[int] = Counter()

    async def behave(request: Received, writer: asyncio.StreamWriter) -> None:
        seen[request.connection] += 1
        if seen[request.connection] <= kept:
            writer.write(answer(200, b""))
            return
        writer.write(part)
        await writer.drain()
        end(writer, how)
        raise ConnectionResetError

    target.behave = behave
    return target


@asynccontextmanager
async def served(target: FakeTarget, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    server = await asyncio.start_server(target.serve, "127.0.0.1", 0, ssl=tls)
    target.port = server.sockets[0].getsockname()[1]
    target.scheme = "https" if tls else "http"
    try:
        yield
    finally:
        server.close()
        for task in target.tasks:
            task.cancel()
        await asyncio.gather(*target.tasks, return_exceptions=True)


@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 X\r\ncontent-le"])
@pytest.mark.parametrize("how", ["reset", "close"])
async def test_a_connection_that_dies_under_a_request_is_no_second_one(
    how: str, part: bytes
) -> None:
    """Every method and size of body; before the first byte of an answer, and after a part of it."""
    for method in METHODS:
        for size in SIZES if method != "HEAD" else [None]:
            body = None if size is None else b"x" * size
            target = dying(how, part=part)
            async with served(target), a_client() as client:
                first = await client.send(a_request(target.url("/1"), method=method, body=body))
                second = await client.send(a_request(target.url("/2"), method=method, body=body))
            assert isinstance(first, Answer), first
            assert isinstance(second, NoAnswer), second
            assert second.trouble is Trouble.BROKEN, second
            paths = Counter(one.path for one in target.received)
            assert paths == {"/1": 1, "/2": 1}, (method, size)


async def test_other_idle_connections_are_not_tried_either() -> None:
    """A target that went away leaves many dead connections behind; each would be one more try."""
    target = dying("reset")
    gate = asyncio.Event()
    behave = target.behave
    assert behave is not None
    waiting = 0

    async def together(request: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 4:
            gate.set()
        await gate.wait()
        await behave(request, writer)

    target.behave = together
    async with served(target), a_client() as client:
        sent = [client.send(a_request(target.url("/first"))) for _ in range(4)]
        for one in await asyncio.gather(*sent):
            assert isinstance(one, Answer)
        assert target.connections == 4
        result = await client.send(a_request(target.url("/next")))
        assert isinstance(result, NoAnswer)
        assert "connection" in result.detail
        # The handle is as good as new, and what dies is not tried twice.
        last = await client.send(a_request(target.url("/last")))
        assert isinstance(last, NoAnswer)
    assert Counter(one.path for one in target.received) == {"/first": 4, "/next": 1, "/last": 1}


async def test_the_next_request_finds_a_fresh_connection() -> None:
    target = dying("reset", kept=1)
    async with served(target), a_client() as client:
        results = [await client.send(a_request(target.url(f"/{n}"))) for n in range(4)]
    assert [type(one) for one in results] == [Answer, NoAnswer, Answer, NoAnswer]
    assert target.connections == 2


async def test_tls_is_no_different() -> None:
    target = dying("reset")
    tls = Tls(authorities=CERTIFICATE.read_text())
    async with served(target, server_tls()), a_client(_localhost) as client:
        for path in ("/1", "/2"):
            url = target.url(path, host="localhost")
            await client.send(a_request(url, tls=tls))
    assert Counter(one.path for one in target.received) == {"/1": 1, "/2": 1}


async def _localhost(_: str) -> list[str]:
    return ["127.0.0.1"]


async def test_a_refusal_to_expect_is_no_second_request() -> None:
    """Of itself, libcurl repeats without the header what is answered with 417."""
    async with a_target(status=417) as target, a_client() as client:
        request = a_request(target.url(), body=b"x" * 3_000_000)
        asking = replace(request, headers=["expect: 100-continue"])
        await client.send(asking)
    assert len(target.received) <= 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


HEADERS, RST_STREAM, SETTINGS, GOAWAY = 1, 3, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
NO_ERROR, REFUSED_STREAM, HTTP_1_1_REQUIRED = 0, 7, 13
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@dataclass
class Http2:
    """A target that speaks just enough HTTP/2 to refuse."""

    how: str
    good: int = 1
    """Requests of a connection that are answered."""
    requests: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        seen = 0
        try:
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            writer.write(frame(SETTINGS, 0, 0))
            while True:
                head = await reader.readexactly(9)
                length = int.from_bytes(head[:3], "big")
                kind, flags, stream = struct.unpack(">BBI", head[3:])
                await reader.readexactly(length)
                if kind == SETTINGS and not flags & ACK:
                    writer.write(frame(SETTINGS, ACK, 0))
                if kind == HEADERS:
                    self.requests += 1
                    seen += 1
                    if seen <= self.good:
                        # The whole head is `:status: 200` of the static table.
                        writer.write(frame(HEADERS, END_STREAM | END_HEADERS, stream, b"\x88"))
                    else:
                        self.refuse(writer, stream)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass

    def refuse(self, writer: asyncio.StreamWriter, stream: int) -> None:
        if self.how == "goaway":
            writer.write(frame(GOAWAY, 0, 0, struct.pack(">II", max(0, stream - 2), NO_ERROR)))
            writer.close()
        elif self.how == "reset":
            writer.transport.abort()
        else:
            code = {"refused": REFUSED_STREAM, "http1": HTTP_1_1_REQUIRED}[self.how]
            writer.write(frame(RST_STREAM, 0, stream, struct.pack(">I", code)))


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("how", ["goaway", "refused", "reset", "http1"])
async def test_a_stream_that_is_refused_is_not_sent_again(how: str, good: int) -> None:
    """HTTP/2 has ways of its own to make a client repeat itself."""
    context = server_tls()
    context.set_alpn_protocols(["h2"])
    target = Http2(how, good)
    server = await asyncio.start_server(target.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    tls = Tls(authorities=CERTIFICATE.read_text())
    try:
        async with a_client(_localhost) as client:
            results = [
                await client.send(a_request(f"https://localhost:{port}/{n}", tls=tls, total=5.0))
                for n in range(good + 1)
            ]
            assert isinstance(results[-1], NoAnswer), results
            assert results[-1].trouble is Trouble.BROKEN
    finally:
        server.close()
        for writer in target.writers:
            writer.transport.abort()
    assert target.requests == good + 1


async def test_a_delivery_whose_connection_dies_is_an_attempt_with_evidence() -> None:
    """Retryable, told as what it is, and counted by (run, attempt, fence)."""
    target = dying("reset")

    async def policies(_: object) -> UrlPolicy:
        return DEV

    async with served(target), a_client() as client:
        delivery = Delivery(
            client=client,
            clock=RealClock(),
            policies=policies,
            patience=Patience(),
            gates=some_gates(),
        )
        for number in (1, 2, 3):
            attempt = Attempt({"url": target.url()}, attempt=number, fence=number)
            outcome = await delivery.deliver(attempt)
            if number == 2:
                assert isinstance(outcome, Failed)
                assert outcome.retryable
                assert outcome.error.type == "TargetBroken"
                assert outcome.http is not None
    seen = Counter(
        (
            one.headers["betimes-run-id"],
            one.headers["betimes-attempt"],
            one.headers["betimes-fence"],
        )
        for one in target.received
    )
    assert sorted(seen.values()) == [1, 1, 1]


async def test_what_does_no_harm_twice_is_asked_once_more() -> None:
    """Tokens and blobs are no attempts: a kept connection that is lost costs them nothing."""
    target = dying("reset")
    async with served(target), a_client() as client:
        for path in ("/1", "/2"):
            answered = await client.send_repeatable(a_request(target.url(path)))
            assert isinstance(answered, Answer)
    assert Counter(one.path for one in target.received) == {"/1": 1, "/2": 2}
