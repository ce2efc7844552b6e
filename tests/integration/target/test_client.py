"""The HTTP client against real sockets."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID

import pytest

from betimes.target.address import AddressPolicy
from betimes.target.answer import Answer, NoAnswer, Tls, Trouble
from betimes.target.client import NOWHERE
from betimes.target.transfer import Proxy
from betimes.target.url import UrlPolicy
from target_kit import (
    CERTIFICATE,
    DEV,
    KEY,
    Received,
    a_client,
    a_request,
    a_target,
    answer,
    server_tls,
)

OTHER = UUID(int=2)
PUBLIC = UrlPolicy(plain_http=True)


async def test_an_answer_is_captured_with_its_evidence() -> None:
    """Status, headers, body, address, timings."""
    async with (
        a_target(status=201, body=b"made", headers={"X-A": "b"}) as target,
        a_client() as client,
    ):
        result = await client.send(a_request(target.url("/x?y=1"), body=b'{"n":1}'))
    assert isinstance(result, Answer)
    assert (result.status, result.body, result.truncated) == (201, b"made", False)
    assert result.header("x-a") == "b"
    assert (result.address, result.reused) == ("127.0.0.1", False)
    assert result.timings.connect is not None
    assert result.timings.first_byte is not None
    assert result.timings.total >= result.timings.first_byte
    (seen,) = target.received
    assert (seen.method, seen.path, seen.body) == ("POST", "/x?y=1", b'{"n":1}')
    assert seen.headers["content-type"] == "application/json"
    assert "accept-encoding" not in seen.headers
    assert "expect" not in seen.headers


async def test_connections_are_kept_per_tenant() -> None:
    """The second request of a tenant finds the connection of the first; another tenant does not."""
    async with a_target() as target, a_client() as client:
        first = await client.send(a_request(target.url()))
        second = await client.send(a_request(target.url("/2"), method="GET", body=None))
        other = await client.send(a_request(target.url(), tenant=OTHER))
    assert [one.reused for one in (first, second, other) if isinstance(one, Answer)] == [
        False,
        True,
        False,
    ]
    assert target.connections == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("body", [None, b"", b"hello"])
async def test_every_method_goes_out_as_it_is(method: str, body: bytes | None) -> None:
    """With and without a body; a second use of the same handle remembers nothing."""
    if method == "HEAD":
        body = None
    async with a_target(body=b"") as target, a_client() as client:
        for _ in range(2):
            result = await client.send(a_request(target.url(), method=method, body=body))
            assert isinstance(result, Answer), result
    assert [(one.method, one.body) for one in target.received] == [(method, body or b"")] * 2


async def test_redirects_are_answers() -> None:
    """Nobody is called but the one who was meant."""
    async with (
        a_target() as other,
        a_target(status=302, headers={"location": other.url()}) as target,
        a_client() as client,
    ):
        result = await client.send(a_request(target.url()))
    assert isinstance(result, Answer)
    assert result.status == 302
    assert other.received == []


async def test_an_endless_body_is_cut_off() -> None:
    """The status counts; the rest is not read."""

    async def flood(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        for __ in range(10_000):
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with a_target(behave=flood) as target, a_client() as client:
        result = await client.send(a_request(target.url()))
    assert isinstance(result, Answer)
    assert (result.status, result.truncated, len(result.body)) == (200, True, 16_384)


async def test_a_compressed_body_is_not_unpacked() -> None:
    """What was sent is what is counted: a bomb stays as small as it came."""
    bomb = b"\x1f\x8b" + bytes(1_000)
    async with (
        a_target(body=bomb, headers={"content-encoding": "gzip"}) as target,
        a_client() as client,
    ):
        result = await client.send(a_request(target.url()))
    assert isinstance(result, Answer)
    assert result.body == bomb


async def test_too_many_headers_end_the_answer() -> None:
    """However many they are."""

    async def babble(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"b" * 1000 + b"\r\n")
        for __ in range(200):
            writer.write(b"x-a: " + b"b" * 1000 + b"\r\n")
        writer.write(b"content-length: 0\r\n\r\n")

    async with a_target(behave=babble) as target, a_client() as client:
        result = await client.send(a_request(target.url()))
    assert isinstance(result, NoAnswer)
    assert (result.trouble, result.detail) == (Trouble.BROKEN, "more than 32768 bytes of headers")


async def test_interim_answers_are_not_the_answer() -> None:
    """103 first, then the real one with headers of its own."""

    async def hint(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + answer(202))

    async with a_target(behave=hint) as target, a_client() as client:
        result = await client.send(a_request(target.url()))
    assert isinstance(result, Answer)
    assert result.status == 202
    assert result.header("link") is None


async def silence(_: Received, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()
    writer.close()


async def drip(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)  # noqa: TID251 -- it is the drip that is tested


async def stall(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx")
    await writer.drain()
    await asyncio.Event().wait()


async def test_the_total_deadline_holds_whatever_trickles_in() -> None:
    """No answer at all, and one byte after the other."""
    for behave in (silence, drip):
        async with a_target(behave=behave) as target, a_client() as client:
            result = await client.send(a_request(target.url(), total=0.4))
            assert isinstance(result, NoAnswer)
            assert result.trouble is Trouble.TIMEOUT
            assert client.active == 0


async def test_an_answer_that_stops_coming_is_given_up() -> None:
    """Long before the total deadline."""
    async with a_target(behave=stall) as target, a_client() as client:
        result = await client.send(a_request(target.url(), total=50, idle=0.5))
    assert isinstance(result, NoAnswer)
    assert (result.trouble, result.detail) == (Trouble.TIMEOUT, "the answer stopped coming")


async def test_a_cancelled_request_leaves_nothing_behind() -> None:
    """Its connection is closed, and the client goes on."""
    async with a_target(behave=silence) as target, a_client() as client:
        waiting = asyncio.ensure_future(client.send(a_request(target.url())))  # noqa: TID251
        await target.arrived.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert client.active == 0
        target.behave = None
        assert isinstance(await client.send(a_request(target.url())), Answer)


async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.transport.abort()


async def nonsense(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    await writer.drain()
    writer.close()


async def test_broken_answers_are_told_from_absent_ones() -> None:
    """Cut off, not HTTP, nobody there, no such name."""
    for behave in (hang_up, nonsense):
        async with a_target(behave=behave) as target, a_client() as client:
            result = await client.send(a_request(target.url()))
            assert isinstance(result, NoAnswer)
            assert result.trouble is Trouble.BROKEN
    async with a_target() as closed:
        pass
    async with a_client() as client:
        result = await client.send(a_request(closed.url()))
        assert isinstance(result, NoAnswer)
        assert result.trouble is Trouble.CONNECT
        result = await client.send(a_request("http://nowhere.example/", policy=PUBLIC))
        assert isinstance(result, NoAnswer)
        assert result.trouble is Trouble.RESOLVE


async def test_certificates_are_checked() -> None:
    """Not trusted; trusted because the target says by whom; right name or none."""
    trusted = Tls(authorities=CERTIFICATE.read_text())
    async with a_target(tls=server_tls()) as target, a_client(one_address("127.0.0.1")) as client:
        stranger = await client.send(a_request(target.url()))
        friend = await client.send(a_request(target.url(), tls=trusted))
        named = await client.send(a_request(target.url(host="localhost"), tls=trusted))
        wrong = await client.send(a_request(target.url(host="other.localhost"), tls=trusted))
    assert isinstance(stranger, NoAnswer)
    assert stranger.trouble is Trouble.TLS
    assert isinstance(friend, Answer)
    assert friend.timings.tls is not None
    assert isinstance(named, Answer)
    assert isinstance(wrong, NoAnswer)
    assert wrong.trouble is Trouble.TLS


async def test_we_can_show_a_certificate() -> None:
    """A server that demands one gets it, and nobody else's connection is used for it."""
    pem = CERTIFICATE.read_text()
    ours = Tls(authorities=pem, certificate=pem, key=KEY.read_text())
    async with a_target(tls=server_tls(demand_certificate=True)) as target, a_client() as client:
        shown = await client.send(a_request(target.url(), tls=ours))
        hidden = await client.send(a_request(target.url(), tls=Tls(authorities=pem)))
    assert isinstance(shown, Answer)
    assert isinstance(hidden, NoAnswer)
    assert KEY.read_text() not in repr(ours)


def one_address(*addresses: str) -> Callable[[str], Awaitable[list[str]]]:
    async def lookup(_: str) -> list[str]:
        return list(addresses)

    return lookup


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"]]
)
async def test_a_name_with_one_bad_address_is_refused(addresses: list[str]) -> None:
    """Whatever the others are; and nothing inside our network is told."""
    async with a_target() as target, a_client(one_address(*addresses)) as client:
        policy = UrlPolicy(plain_http=True, ports=DEV.ports)
        url = f"http://rebound.example:{9000}/"
        result = await client.send(a_request(url, policy=policy))
    assert isinstance(result, NoAnswer)
    assert result.trouble is Trouble.RESOLVE
    assert "127.0.0.1" not in result.detail
    assert target.connections == 0


async def test_a_name_inside_our_network_looks_like_one_that_nobody_knows() -> None:
    """To who asks; whoever runs the service is told where it led, and what that is."""

    async def lookup(host: str) -> list[str]:
        inside = {"db.corp.example": ["10.0.0.5"], "meta.corp.example": ["169.254.169.254"]}
        if host not in inside:
            raise OSError(-2, "Name or service not known")
        return inside[host]

    told: list[tuple[str, str]] = []
    policy = UrlPolicy(plain_http=True)
    seen = set()
    async with a_client(
        lookup, on_denied=lambda _, address, reason: told.append((address, reason))
    ) as client:
        for _ in range(2):  # the second time it is remembered
            for host in ("db.corp.example", "meta.corp.example", "none.corp.example"):
                result = await client.send(a_request(f"http://{host}/", policy=policy))
                assert isinstance(result, NoAnswer)
                timed = result.timings.dns is not None
                seen.add((result.trouble, result.detail, result.address, timed))
    assert seen == {(Trouble.RESOLVE, NOWHERE, "", True)}
    assert told[:2] == [("10.0.0.5", "private"), ("169.254.169.254", "a metadata service")]


async def test_the_socket_has_the_last_word() -> None:
    """Even if a name was thought to be good: the address itself is looked at again."""
    async with a_target() as target, a_client() as client:
        # The first guard is knocked out: it lets everything through.
        client._checked = lambda *_: ("127.0.0.1", None, None)  # type: ignore[method-assign]
        strict = replace(a_request(target.url()), addresses=AddressPolicy())
        result = await client.send(strict)
        assert isinstance(result, NoAnswer)
        assert (result.trouble, result.detail) == (
            Trouble.REFUSED,
            "the address may not be called",
        )
        assert target.connections == 0
        assert isinstance(await client.send(a_request(target.url())), Answer)


async def test_only_the_checked_address_is_called() -> None:
    """Whatever the host of the URL is."""
    async with a_target() as target, a_client() as client:
        client._checked = lambda *_: ("127.0.0.2", None, None)  # type: ignore[method-assign]
        result = await client.send(a_request(target.url()))
    assert isinstance(result, NoAnswer)
    assert target.connections == 0


async def test_through_a_proxy_only_the_proxy_is_called() -> None:
    """It gets the request whole; an address that is not its own is refused."""
    async with a_target() as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        async with a_client(proxy=Proxy(url, frozenset({"127.0.0.1"}))) as client:
            result = await client.send(a_request("http://example.com/x", policy=PUBLIC))
            assert isinstance(result, Answer)
        async with a_client(proxy=Proxy(url, frozenset({"10.0.0.5"}))) as client:
            result = await client.send(a_request("http://example.com/x", policy=PUBLIC))
            assert isinstance(result, NoAnswer)
            assert result.trouble is Trouble.REFUSED
    assert [one.path for one in proxy.received] == ["http://example.com/x"]


async def test_the_environment_chooses_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the operator's setting does."""
    async with a_target() as target:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        async with a_client() as client:
            assert isinstance(await client.send(a_request(target.url())), Answer)


async def test_many_at_once_and_a_slow_one_among_them() -> None:
    """Hundreds of requests finish while one waits."""

    async def behave(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.path == "/slow":
            await asyncio.Event().wait()
        writer.write(answer())

    async with a_target(behave=behave) as target, a_client() as client:
        slow = asyncio.ensure_future(client.send(a_request(target.url("/slow"), total=20)))  # noqa: TID251
        results = await asyncio.gather(*(client.send(a_request(target.url())) for _ in range(300)))
        assert all(isinstance(one, Answer) for one in results)
        assert not slow.done()
        slow.cancel()
    assert len(target.received) == 301


async def test_a_failing_address_is_tried_last_next_time() -> None:
    """Names with several addresses survive the loss of one."""
    async with a_target() as target, a_client(one_address("127.0.0.9", "127.0.0.1")) as client:
        url = target.url(host="localhost")
        first = await client.send(a_request(url))
        second = await client.send(a_request(url))
    assert isinstance(first, NoAnswer)
    assert first.trouble is Trouble.CONNECT
    assert isinstance(second, Answer)


def test_the_kit_speaks_tls() -> None:
    """A certificate that has expired would make half of these tests meaningless."""
    assert isinstance(server_tls(), ssl.SSLContext)
