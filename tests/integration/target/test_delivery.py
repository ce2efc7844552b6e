"""Deliveries: from a stored target to an outcome."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from standardwebhooks.webhooks import Webhook

from betimes.domain.outcome import Cancelled, Failed, OutcomeKind, Succeeded, kind_of
from betimes.domain.webhook import shown_secret
from betimes.target.address import AddressPolicy
from betimes.target.answer import Patience
from betimes.target.delivery import Delivery
from betimes.target.url import UrlPolicy
from betimes.testing.real_clock import RealClock
from betimes.webhooks import verify
from target_kit import (
    DEV,
    Attempt,
    FakeTarget,
    Received,
    a_client,
    a_target,
    answer,
    some_gates,
)

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECRETS = (bytes(range(32)), bytes(range(1, 33)))


@asynccontextmanager
async def a_delivery(policy: UrlPolicy = DEV, **given: Any) -> AsyncIterator[Delivery]:
    async def policies(_: UUID) -> UrlPolicy:
        return policy

    async with a_client() as client:
        yield Delivery(
            client=client,
            clock=RealClock(),
            policies=policies,
            patience=Patience(),
            gates=some_gates(),
            **given,
        )


async def outcome(target: FakeTarget, policy: UrlPolicy = DEV, **more: Any) -> Any:
    """What becomes of one attempt."""
    async with a_delivery(policy) as delivery:
        return await delivery.deliver(Attempt({"url": target.url(), **more}))


async def test_every_request_is_identified_and_signed() -> None:
    """By the headers of the interface; verified by the reference library and by our own."""
    async with a_target() as target, a_delivery(secrets=lambda _: SECRETS) as delivery:
        done = await delivery.deliver(Attempt({"url": target.url("/hook")}))
    assert isinstance(done, Succeeded)
    (seen,) = target.received
    assert seen.body == b'{"n":1}'
    assert seen.headers["idempotency-key"] == '"run_01"'
    assert seen.headers["betimes-run-id"] == seen.headers["webhook-id"] == "run_01"
    assert seen.headers["betimes-attempt"] == "1"
    assert seen.headers["betimes-fence"] == "4"
    assert seen.headers["betimes-scheduled-for"] == "2026-03-01T12:00:00.000000Z"
    assert seen.headers["traceparent"] == "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    assert seen.headers["tracestate"] == "vendor=1"
    for secret in SECRETS:
        assert Webhook(shown_secret(secret)).verify(seen.body, seen.headers) == {"n": 1}
        assert verify(seen.headers, seen.body, shown_secret(secret)).fence == 4


async def test_without_a_secret_nothing_is_signed() -> None:
    """Rather than signed with something everybody knows."""
    async with a_target() as target, a_delivery(lease_token=lambda _: "lea_x") as delivery:
        await delivery.deliver(Attempt({"url": target.url()}))
    assert "webhook-signature" not in target.received[0].headers
    assert target.received[0].headers["betimes-lease"] == "lea_x"


async def test_a_success_keeps_the_answer() -> None:
    """As the result of the run."""
    async with a_target(body=b"done", status=201) as target:
        done = await outcome(target)
    assert isinstance(done, Succeeded)
    told = json.loads(done.result or b"")
    assert (told["status"], told["body"], told["address"]) == (201, "done", "127.0.0.1")


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (404, False), (302, False), (408, True), (425, True), (429, True), (503, True)],
)
async def test_a_failure_keeps_the_answer_too(status: int, *, retryable: bool) -> None:
    """With its class by status, and the pause the target asked for."""
    async with a_target(status=status, headers={"retry-after": "7"}) as target:
        done = await outcome(target)
    assert isinstance(done, Failed)
    assert (done.retryable, done.error.type) == (retryable, f"Http{status}")
    assert done.after == timedelta(seconds=7)
    assert json.loads(done.http or "")["status"] == status


async def test_no_answer_is_worth_a_retry() -> None:
    """Nobody there, or not in time."""
    async with a_target() as target:
        pass
    done = await outcome(target)
    assert isinstance(done, Failed)
    assert (done.retryable, done.error.type) == (True, "TargetUnreachable")


async def test_a_refused_target_is_final_and_nothing_is_sent() -> None:
    """The stored row may say what it likes: the rules are asked again."""
    async with a_target() as target:
        done = await outcome(target, UrlPolicy(plain_http=True))
    assert isinstance(done, Failed)
    assert (done.retryable, done.error.type) == (False, "TargetRefused")
    assert target.connections == 0


async def test_the_job_s_own_limit_is_the_shorter_one() -> None:
    """And the attempt still ends with evidence."""

    async def never(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with a_target(behave=never) as target, a_delivery() as delivery:
        limit = AT + timedelta(seconds=0.3)
        done = await delivery.deliver(Attempt({"url": target.url()}, deadline=limit))
    assert isinstance(done, Failed)
    assert done.error.type == "TargetTimeout"
    assert kind_of(done) is OutcomeKind.TIMED_OUT, "that is what the history of attempts says"
    assert json.loads(done.http or "")["timings_ms"]["total"] >= 250


async def test_gone_pauses_the_job() -> None:
    """And the run is over."""
    paused: list[tuple[str, str, str]] = []

    async def pause(*what: str) -> None:
        paused.append(what)  # type: ignore[arg-type]

    async with a_target(status=410) as target, a_delivery(pause=pause) as delivery:
        done = await delivery.deliver(Attempt({"url": target.url()}))
        await delivery.deliver(Attempt({"url": target.url()}, job_id=None))
    assert isinstance(done, Failed)
    assert not done.retryable
    assert paused == [(str(UUID(int=7)), "job_1", "the target answered 410 Gone")]


async def test_accepted_waits_for_the_target_to_report() -> None:
    """The report ends the run elsewhere; here only the waiting ends."""
    asks = {"betimes-async": "true"}
    async with a_target(status=202, headers=asks) as target, a_delivery() as delivery:
        attempt = Attempt({"url": target.url()})
        waiting = asyncio.ensure_future(delivery.deliver(attempt))  # noqa: TID251
        await target.arrived.wait()
        await asyncio.sleep(0.05)  # noqa: TID251 -- long enough to have returned
        assert not waiting.done()
        attempt.told.set()
        assert isinstance(await waiting, Cancelled)


async def test_a_target_that_never_reports_leaves_its_answer() -> None:
    """What it accepted with is the evidence of the attempt whose time is over."""
    asks = {"betimes-async": "true"}
    end = AT + timedelta(seconds=0.2)
    async with a_target(status=202, headers=asks, body=b"later") as target, a_delivery() as courier:
        attempt = Attempt({"url": target.url()}, started_at=AT, deadline=end)
        done = await courier.deliver(attempt)
    assert isinstance(done, Failed)
    assert kind_of(done) is OutcomeKind.TIMED_OUT
    assert done.retryable
    assert done.error.type == "TargetUnreported"
    told = json.loads(done.http or "")
    assert (told["status"], told["body"]) == (202, "later")


async def test_redirects_take_the_time_of_one_attempt_together() -> None:
    """Five hops of nearly the timeout each are not six times the timeout."""

    async def behave(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.6)  # noqa: TID251 -- the target takes its time
        writer.write(answer(302, headers={"location": f"{request.path}x"}))

    async with a_target(behave=behave) as target:
        done = await outcome(target, follow_redirects=5, timeout_ms=1000)
    assert isinstance(done, Failed)
    assert done.error.type == "TargetTimeout"
    assert len(target.received) == 2


async def test_redirects_are_evident_and_signed_as_they_are_sent() -> None:
    """Who is asked for the result gets a signature of what it gets, which is nothing."""
    async with a_target() as end, a_target() as start:
        start.status, start.headers = 303, {"location": end.url("/end?x=1")}
        async with a_delivery(secrets=lambda _: SECRETS) as delivery:
            done = await delivery.deliver(Attempt({"url": start.url(), "follow_redirects": 1}))
    assert isinstance(done, Succeeded)
    told = json.loads(done.result or b"")
    assert (told["url"], told["redirected_to"]) == (start.url(), end.url("/end?x=1"))
    (got,) = end.received
    assert (got.method, got.body) == ("GET", b"")
    assert "content-type" not in got.headers
    verify(got.headers, got.body, secret=shown_secret(SECRETS[0]))


async def test_a_secret_in_a_url_is_refused() -> None:
    """It would be sent as it is written, and a value would be kept in logs along the way."""
    async with a_target() as target:
        done = await outcome(target, url=target.url("/?key={{secret:one}}"))
    assert isinstance(done, Failed)
    assert "`headers` or `auth`" in done.error.message
    assert target.received == []


async def test_redirects_are_followed_only_when_asked() -> None:
    """307 repeats the request, 303 asks for the result."""
    async with a_target() as end, a_target() as start:
        start.status, start.headers = 307, {"location": end.url("/end")}
        assert isinstance(await outcome(start), Failed)
        assert end.received == []
        headers = {"authorization": "Bearer x", "x-a": "b"}
        assert isinstance(await outcome(start, follow_redirects=1, headers=headers), Succeeded)
        start.status = 303
        assert isinstance(await outcome(start, follow_redirects=1), Succeeded)
    same, result = end.received
    assert (same.method, same.body, same.path) == ("POST", b'{"n":1}', "/end")
    assert same.headers["x-a"] == "b"
    assert "authorization" not in same.headers, "another origin is a stranger"
    assert (result.method, result.body) == ("GET", b"")


async def test_a_relative_redirect_keeps_the_credentials() -> None:
    """It is the same origin."""

    async def behave(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.path == "/":
            writer.write(answer(308, headers={"location": "next?x=1"}))
        else:
            writer.write(answer())

    async with a_target(behave=behave) as target:
        done = await outcome(target, follow_redirects=3, headers={"authorization": "Bearer x"})
    assert isinstance(done, Succeeded)
    assert [one.path for one in target.received] == ["/", "/next?x=1"]
    assert target.received[1].headers["authorization"] == "Bearer x"


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "http://[::1]:1/",
        "file:///etc/passwd",
        "http://2130706433/",
        "//169.254.169.254/x",
    ],
)
async def test_a_redirect_is_checked_like_the_first(location: str) -> None:
    """Where we may not go, we do not go."""
    policy = UrlPolicy(addresses=AddressPolicy(loopback=True), plain_http=True)
    if "::1" in location:
        location = "http://[::ffff:127.0.0.1]:1/"
    async with a_target(status=302, headers={"location": location}) as target:
        done = await outcome(target, policy, follow_redirects=5)
    assert isinstance(done, Failed)
    assert (done.retryable, done.error.type) == (False, "TargetRedirected")


async def test_redirects_in_a_circle_end() -> None:
    """After as many as were asked for."""
    async with a_target(status=302, headers={"location": "/"}) as target:
        done = await outcome(target, follow_redirects=3)
    assert isinstance(done, Failed)
    assert len(target.received) == 4
    assert done.error.message.endswith("answered 302, expected an end after 3 redirects")


async def test_a_definition_is_read_once_and_again_under_new_rules() -> None:
    """A change of the rules bites at once."""
    policies = [DEV, DEV, UrlPolicy(plain_http=True)]

    async def changing(_: UUID) -> UrlPolicy:
        return policies.pop(0)

    async with a_target() as target, a_delivery() as delivery:
        delivery._policies = changing
        attempt = Attempt({"url": target.url()})
        done = [await delivery.deliver(attempt) for _ in range(3)]
    assert [type(one) for one in done] == [Succeeded, Succeeded, Failed]
