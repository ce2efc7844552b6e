"""Secrets on the wire: what a target sees, what is kept, and what happens without them.

Long because every way to name a secret is tried with the same few helpers.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import pytest
from standardwebhooks.webhooks import Webhook

from betimes.domain.errors import Locked, SchedulerError, Unavailable
from betimes.domain.origins import ANY, OpenSecret
from betimes.domain.outcome import Failed, Succeeded
from betimes.domain.webhook import shown_secret
from betimes.target.answer import Patience
from betimes.target.auth import NoSecret, read_auth
from betimes.target.delivery import Delivery
from betimes.target.oauth import Tokens
from betimes.target.presented import Presenter, Remembered
from betimes.target.resolve import Lookup
from betimes.target.url import UrlPolicy
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from target_kit import (
    CERTIFICATE,
    DEV,
    KEY,
    Attempt,
    FakeTarget,
    Received,
    a_client,
    a_target,
    answer,
    no_names,
    server_tls,
    some_gates,
)

CANARY = "canary-5b8e2f91"
"""Stands for anything that must not be found where it does not belong."""


@dataclass
class Store:
    """Secrets as a database would have them."""

    values: dict[str, list[bytes]] = field(default_factory=dict)
    origins: Sequence[str] = (ANY,)
    fault: SchedulerError | None = None
    asked: int = 0

    async def read(self, _: UUID, names: Sequence[str]) -> Mapping[str, OpenSecret]:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        known = [name for name in names if name in self.values]
        return {name: OpenSecret(self.values[name], self.origins) for name in known}


def of(**values: str) -> Store:
    return Store({name: [value.encode()] for name, value in values.items()})


@asynccontextmanager
async def a_delivery(
    store: Store, policy: UrlPolicy = DEV, *, lookup: Lookup = no_names
) -> AsyncIterator[Delivery]:
    async def policies(_: UUID) -> UrlPolicy:
        return policy

    clock = RealClock()
    async with a_client(lookup) as client:
        yield Delivery(
            client=client,
            clock=clock,
            policies=policies,
            patience=Patience(),
            gates=some_gates(),
            presenter=Presenter(
                open_secrets=Remembered(read=store.read, clock=clock).open,
                tokens=Tokens(send=client.send, clock=clock, patience=Patience(total=5.0)),
            ),
        )


async def outcome(store: Store, target: Mapping[str, Any]) -> Any:
    async with a_delivery(store) as delivery:
        return await delivery.deliver(Attempt(target))


async def echo(received: Received, writer: asyncio.StreamWriter) -> None:
    """Send back everything that came, as a careless target does."""
    body = json.dumps(received.headers).encode()
    sent = received.headers.get("authorization", "")
    writer.write(answer(200, body, {"x-echo": sent}))


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"type": "bearer"}, "authorization", f"Bearer {CANARY}"),
        (
            {"type": "basic", "username": "me"},
            "authorization",
            "Basic " + b64encode(f"me:{CANARY}".encode()).decode(),
        ),
        ({"type": "header", "header": "X-Key"}, "x-key", CANARY),
    ],
)
async def test_the_target_sees_what_the_evidence_does_not(
    auth: dict[str, Any], header: str, value: str
) -> None:
    """Even if the target sends it back."""
    async with a_target(behave=echo) as target:
        done = await outcome(of(s=CANARY), {"url": target.url(), "auth": {**auth, "secret": "s"}})
    assert target.received[0].headers[header] == value
    assert isinstance(done, Succeeded)
    kept = done.result or b""
    assert json.loads(kept)["status"] == 200
    for form in (CANARY, value, b64encode(f"me:{CANARY}".encode()).decode()):
        assert form.encode() not in kept


async def test_a_header_may_hold_references() -> None:
    async with a_target(behave=echo) as target:
        sent = {"url": target.url(), "headers": {"x-a": "Token {{secret:s}}", "x-b": "plain"}}
        done = await outcome(of(s=CANARY), sent)
    assert target.received[0].headers["x-a"] == f"Token {CANARY}"
    assert target.received[0].headers["x-b"] == "plain"
    assert CANARY.encode() not in (done.result or b"")


@pytest.mark.parametrize(
    ("store", "kind", "retryable"),
    [
        (Store(), "SecretMissing", True),
        (of(s="two\r\nx-evil: 1"), "SecretUnusable", False),
        (Store(fault=Unavailable("away")), "SecretUnavailable", True),
        (Store(fault=Locked("another key")), "SecretUnavailable", True),
    ],
)
async def test_without_its_secret_nothing_is_sent(
    store: Store, kind: str, *, retryable: bool
) -> None:
    """Never a blank header, never a request that the target could take for somebody else's."""
    async with a_target() as target:
        sent = {"url": target.url(), "auth": {"type": "bearer", "secret": "s"}}
        done = await outcome(store, sent)
    assert isinstance(done, Failed)
    assert (done.error.type, done.retryable) == (kind, retryable)
    assert target.received == []


async def test_a_delivery_that_cannot_open_secrets_says_so() -> None:
    async def policies(_: UUID) -> UrlPolicy:
        return DEV

    async with a_target() as target, a_client() as client:
        delivery = Delivery(
            client=client,
            clock=RealClock(),
            policies=policies,
            patience=Patience(),
            gates=some_gates(),
        )
        sent = {"url": target.url(), "auth": {"type": "bearer", "secret": "s"}}
        done = await delivery.deliver(Attempt(sent))
    assert isinstance(done, Failed)
    assert done.error.type == "SecretUnavailable"


async def test_a_redirect_elsewhere_carries_no_secrets() -> None:
    """Neither credentials nor headers with secrets, nor the lease."""
    async with a_target() as other, a_target() as target:

        async def away(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(307, b"", {"location": other.url("/elsewhere")}))

        target.behave = away
        sent = {
            "url": target.url(),
            "follow_redirects": 1,
            "auth": {"type": "header", "header": "x-key", "secret": "s"},
            "headers": {"x-other": "{{secret:s}}", "x-plain": "1"},
        }
        await outcome(of(s=CANARY), sent)
    assert target.received[0].headers["x-key"] == CANARY
    assert other.received[0].headers["x-plain"] == "1"
    assert CANARY not in str(other.received[0])


def elsewhere(port: int) -> Store:
    """A secret that is bound to another port of this machine."""
    return Store({"s": [CANARY.encode()]}, origins=["https://api.example.com", f"http://a:{port}"])


@pytest.mark.parametrize(
    "named",
    [
        {"headers": {"x-a": "{{secret:s}}"}},
        {"auth": {"type": "bearer", "secret": "s"}},
        {"auth": {"type": "basic", "username": "me", "secret": "s"}},
        {"auth": {"type": "header", "header": "x-key", "secret": "s"}},
        {"secret_ref": "s"},
        {"client_certificate": "s"},
        {"ca_certificates": "{{secret:s}}"},
    ],
)
async def test_a_secret_is_sent_to_the_origins_it_is_bound_to_only(named: dict[str, Any]) -> None:
    """Judged again for every attempt, whatever was allowed when the target was written."""
    async with a_target() as target:
        done = await outcome(elsewhere(1), {"url": target.url(), **named})
    assert isinstance(done, Failed)
    assert (done.error.type, done.retryable) == ("SecretNotBound", True)
    assert "https://api.example.com" in done.error.message
    assert target.received == []


async def test_a_bound_secret_goes_where_it_may() -> None:
    async with a_target() as target:
        origin = target.url().rpartition("/")[0]
        store = Store({"s": [CANARY.encode()]}, origins=[origin])
        done = await outcome(store, {"url": target.url(), "headers": {"x-a": "{{secret:s}}"}})
        assert isinstance(done, Succeeded), done
        assert target.received[0].headers["x-a"] == CANARY
        store.origins = []
        done = await outcome(store, {"url": target.url(), "headers": {"x-a": "{{secret:s}}"}})
    assert isinstance(done, Failed), "bound to nothing, it is sent nowhere"
    assert len(target.received) == 1


async def test_neither_a_client_secret_nor_its_token_leaves_its_origins() -> None:
    """A token is worth what the secret is: whoever gets it acts for us."""
    async with a_target() as tokens, a_target() as target:
        tokens.behave = TokenEndpoint().serve
        giver, taker = (one.url().rpartition("/")[0] for one in (tokens, target))
        for origins in ([giver], [taker], []):
            store = Store({"s": [CANARY.encode()]}, origins=origins)
            done = await outcome(store, oauth(tokens, target))
            assert isinstance(done, Failed)
            assert done.error.type == "SecretNotBound"
        assert (tokens.received, target.received) == ([], [])
        store = Store({"s": [CANARY.encode()]}, origins=[giver, taker])
        assert isinstance(await outcome(store, oauth(tokens, target)), Succeeded)


@pytest.mark.parametrize("status", [302, 307])
async def test_a_redirect_elsewhere_is_not_signed_with_a_secret(status: int) -> None:
    """What was signed for one origin proves nothing to another, and is not repeated there."""
    store = Store({"sign": [shown_secret(bytes(range(32))).encode()]})
    async with a_target() as other, a_target() as target:

        async def away(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(status, b"", {"location": other.url("/elsewhere")}))

        async def on(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(status, b"", {"location": "/further"}))

        target.behave, other.behave = away, on
        sent = {"url": target.url(), "follow_redirects": 2, "secret_ref": "sign"}
        await outcome(store, sent)
    assert "webhook-signature" in target.received[0].headers
    assert len(other.received) == 2
    for one in other.received:
        assert "webhook-signature" not in one.headers


async def test_our_own_token_is_not_kept_as_evidence() -> None:
    """A target that sends back what it was sent would show it to every reader of runs."""
    token = "lea_AAbbCC-_" + "x" * 90

    async def everything(received: Received, writer: asyncio.StreamWriter) -> None:
        sent = received.headers["betimes-lease"]
        body = json.dumps({"headers": received.headers, "url": f"/?t={sent}"}).encode()
        writer.write(answer(500, body, {"x-echo": f"was {sent}"}))

    async def policies(_: UUID) -> UrlPolicy:
        return DEV

    async with a_target(behave=everything) as target, a_client() as client:
        delivery = Delivery(
            client=client,
            clock=RealClock(),
            policies=policies,
            patience=Patience(),
            gates=some_gates(),
            lease_token=lambda _: token,
        )
        done = await delivery.deliver(Attempt({"url": target.url()}))
    assert target.received[0].headers["betimes-lease"] == token
    assert isinstance(done, Failed)
    kept = json.loads(done.http or "")
    assert kept["headers"]["x-echo"] == "was [hidden]"
    assert json.loads(kept["body"])["headers"]["betimes-lease"] == "[hidden]"
    assert token not in (done.http or "")


async def test_a_signing_secret_of_its_own_signs_with_every_version() -> None:
    """A receiver may have the old one or the new one; checked by the reference library."""
    secrets = [shown_secret(bytes(range(32))), shown_secret(bytes(range(1, 33)))]
    store = Store({"sign": [one.encode() for one in secrets]})
    async with a_target() as target:
        done = await outcome(store, {"url": target.url(), "secret_ref": "sign"})
    assert isinstance(done, Succeeded)
    (seen,) = target.received
    for secret in secrets:
        assert Webhook(secret).verify(seen.body, seen.headers) == {"n": 1}


async def test_a_signing_secret_must_be_one() -> None:
    async with a_target() as target:
        done = await outcome(of(sign="short"), {"url": target.url(), "secret_ref": "sign"})
    assert isinstance(done, Failed)
    assert (done.error.type, done.retryable) == ("SecretUnusable", False)


async def test_certificates_come_from_secrets() -> None:
    """Ours to show, and whom to believe; without ours the target does not let us in."""
    store = of(cert=CERTIFICATE.read_text() + KEY.read_text(), ca=CERTIFICATE.read_text())
    async with a_target(tls=server_tls(demand_certificate=True)) as target:
        sent = {"url": target.url(host="localhost"), "ca_certificates": "{{secret:ca}}"}
        async with a_delivery(store, lookup=here) as delivery:
            refused = await delivery.deliver(Attempt(sent))
            done = await delivery.deliver(Attempt({**sent, "client_certificate": "cert"}))
    assert isinstance(refused, Failed)
    assert isinstance(done, Succeeded), done
    assert len(target.received) == 1


async def here(_: str) -> list[str]:
    return ["127.0.0.1"]


@dataclass
class TokenEndpoint:
    """Gives out numbered tokens."""

    status: int = 200
    expires_in: Any = 3600
    given: int = 0

    async def serve(self, _: Received, writer: asyncio.StreamWriter) -> None:
        self.given += 1
        told = {"access_token": f"{CANARY}-{self.given}", "expires_in": self.expires_in}
        writer.write(answer(self.status, json.dumps(told).encode()))


def oauth(tokens: FakeTarget, target: FakeTarget, **more: Any) -> dict[str, Any]:
    return {
        "url": target.url(),
        "auth": {
            "type": "oauth2",
            "token_url": tokens.url("/token"),
            "client_id": "me",
            "secret": "s",
            "scope": "jobs",
            **more,
        },
    }


async def test_a_token_is_fetched_once_and_kept() -> None:
    """However many need it at the same time."""
    endpoint = TokenEndpoint()
    async with (
        a_target(behave=endpoint.serve) as tokens,
        a_target(behave=echo) as target,
        a_delivery(of(s="hush hush")) as delivery,
    ):
        sent = oauth(tokens, target)
        done = await asyncio.gather(*(delivery.deliver(Attempt(sent)) for _ in range(20)))
        done.append(await delivery.deliver(Attempt(sent)))
    assert endpoint.given == 1
    (asked,) = tokens.received
    assert parse_qs(asked.body.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["jobs"],
    }
    assert asked.headers["authorization"] == "Basic " + b64encode(b"me:hush%20hush").decode()
    assert {one.headers["authorization"] for one in target.received} == {f"Bearer {CANARY}-1"}
    for one in done:
        assert isinstance(one, Succeeded)
        assert CANARY.encode() not in (one.result or b"")


async def test_a_client_may_have_to_say_it_in_the_form() -> None:
    endpoint = TokenEndpoint()
    async with a_target(behave=endpoint.serve) as tokens, a_target() as target:
        sent = oauth(tokens, target, client_auth="body", audience="api")
        await outcome(of(s="hush"), sent)
    (asked,) = tokens.received
    assert "authorization" not in asked.headers
    form = parse_qs(asked.body.decode())
    assert (form["client_id"], form["client_secret"]) == (["me"], ["hush"])
    assert form["audience"] == ["api"]


async def test_a_refused_token_is_replaced_once() -> None:
    """A second refusal is the target's answer."""
    endpoint = TokenEndpoint()

    async def picky(received: Received, writer: asyncio.StreamWriter) -> None:
        good = received.headers["authorization"].endswith("-2")
        writer.write(answer(200 if good else 401))

    async with (
        a_target(behave=endpoint.serve) as tokens,
        a_target(behave=picky) as target,
        a_delivery(of(s="hush")) as delivery,
    ):
        done = await delivery.deliver(Attempt(oauth(tokens, target)))
        assert isinstance(done, Succeeded)
        assert (endpoint.given, len(target.received)) == (2, 2)
        target.behave, target.status = None, 401
        done = await delivery.deliver(Attempt(oauth(tokens, target)))
    assert isinstance(done, Failed)
    assert done.error.type == "Http401"
    assert (endpoint.given, len(target.received)) == (3, 4)


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (503, True), (429, True)])
async def test_an_endpoint_that_refuses_is_left_alone(status: int, *, retryable: bool) -> None:
    """Nothing is sent without a token, and not everybody asks for one again."""
    endpoint = TokenEndpoint(status=status)
    async with (
        a_target(behave=endpoint.serve) as tokens,
        a_target() as target,
        a_delivery(of(s="hush")) as delivery,
    ):
        sent = oauth(tokens, target)
        done = [await delivery.deliver(Attempt(sent)) for _ in range(5)]
    assert {one.error.type for one in done if isinstance(one, Failed)} == {"TokenRefused"}
    assert {one.retryable for one in done if isinstance(one, Failed)} == {retryable}
    assert endpoint.given == 1
    assert target.received == []


async def test_the_token_endpoint_is_guarded_like_a_target() -> None:
    """A stored row that names a private address is refused before anything is sent."""
    endpoint = TokenEndpoint()
    async with a_target(behave=endpoint.serve) as tokens, a_target() as target:
        sent = oauth(tokens, target)
        async with a_delivery(of(s="hush"), UrlPolicy(plain_http=True)) as delivery:
            done = await delivery.deliver(Attempt(sent))
    assert isinstance(done, Failed)
    assert done.error.type == "TargetRefused"
    assert tokens.received == target.received == []


async def test_a_token_is_replaced_before_it_expires() -> None:
    """A tenth of its life early, at most half a minute."""
    endpoint = TokenEndpoint(expires_in=100)
    clock = ManualClock()
    async with a_target(behave=endpoint.serve) as tokens, a_client() as client:
        kept = Tokens(send=client.send, clock=clock, patience=Patience())
        auth = read_auth(oauth(tokens, tokens)["auth"])
        assert auth is not None
        first = await kept.token(UUID(int=1), auth, "hush", DEV)
        assert await kept.token(UUID(int=1), auth, "hush", DEV) == first
        assert await kept.token(UUID(int=2), auth, "hush", DEV) != first, "not another tenant's"
        assert await kept.token(UUID(int=1), auth, "new", DEV) != first, "nor with another secret"
        clock.advance(89)
        assert await kept.token(UUID(int=1), auth, "hush", DEV) == first
        clock.advance(2)
        assert await kept.token(UUID(int=1), auth, "hush", DEV) == f"{CANARY}-4"


async def test_secrets_are_remembered_for_seconds_and_no_longer() -> None:
    """A deleted one is used for five seconds at most; for a minute while nobody can be asked."""
    clock, store = ManualClock(), of(s="one")
    remembered = Remembered(read=store.read, clock=clock)
    tenant = UUID(int=1)
    for _ in range(3):
        assert (await remembered.open(tenant, ["s"]))["s"].values == [b"one"]
    assert store.asked == 1
    clock.advance(5.1)
    store.values.clear()
    assert (await remembered.open(tenant, ["s"])).get("s") is None
    store.values["s"] = [b"two"]
    clock.advance(5.1)
    assert (await remembered.open(tenant, ["s"]))["s"].values == [b"two"]
    store.fault = Unavailable("away")
    clock.advance(59.0)
    assert (await remembered.open(tenant, ["s"]))["s"].values == [b"two"]
    clock.advance(2.0)
    with pytest.raises(NoSecret):
        await remembered.open(tenant, ["s"])
