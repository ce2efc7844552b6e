"""Webhooks: what is sent, read by other people's libraries, and what comes of the answers."""

import asyncio
import json
import os
from dataclasses import replace
from datetime import timedelta

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from betimes.domain.ids import random_ids, to_ms, to_text
from betimes.domain.notice import DELAYS, DeliveryState
from betimes.domain.webhook import shown_secret
from betimes.ops.contents import sealing_keys
from betimes.ops.deliveries import get_delivery, redeliver
from betimes.ops.desk import Desk
from betimes.ops.endpoints import enable_endpoint, get_endpoint, rotate_secret, secret_of
from betimes.ops.sayings import seal_error
from betimes.store.database import Database
from betimes.store.pool import Connection
from betimes.target.redact import Redaction
from betimes.target.url import UrlPolicy
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from notify_kit import KEY, a_dispatcher, an_endpoint, an_event, deliveries, mailbox
from ops_kit import TENANT, fetch
from target_kit import DEV, Received, a_target, answer


async def test_the_official_library_reads_what_is_sent(desk: Desk) -> None:
    async with a_target() as target, a_dispatcher(desk, clock=RealClock()) as bench:
        endpoint = await an_endpoint(desk, target.url("/hook"))
        event = await an_event(desk, "run.dead", {"run_id": "run_x", "attempt": 5})
        await bench.turn()
        (got,) = target.received
        read = from_http_event(HTTPMessage(headers=got.headers, body=got.body))
        assert read.get_id() == got.headers["webhook-id"] == to_text("evt", event)
        assert read.get_specversion() == "1.0"
        assert read.get_type() == "run.dead"
        assert read.get_subject() == "run_test"
        assert read.get_source() == f"urn:betimes:tenant:{to_text('ten', TENANT)}"
        assert read.get_extension("severity") == "error"
        at = read.get_time()
        assert at is not None
        assert at.utcoffset() == timedelta(0)
        data = read.get_data()
        assert isinstance(data, dict)
        assert data["attempt"] == 5
        (delivery,) = await deliveries(desk, endpoint)
        assert delivery.state is DeliveryState.DELIVERED
        assert delivery.status == 200
        assert delivery.response["snippet"] == "ok"


async def test_other_peoples_library_verifies_the_signature(desk: Desk) -> None:
    async with a_target() as target, a_dispatcher(desk, clock=RealClock()) as bench:
        endpoint = await an_endpoint(desk, target.url())
        await an_event(desk)
        await bench.turn()
        (got,) = target.received
        verifier = Webhook(shown_secret(secret_of(KEY, endpoint.id, 1)))
        assert verifier.verify(got.body, got.headers)["type"] == "run.dead"
        stranger = Webhook(shown_secret(secret_of(KEY, endpoint.id, 2)))
        with pytest.raises(WebhookVerificationError):
            stranger.verify(got.body, got.headers)
        with pytest.raises(WebhookVerificationError):
            verifier.verify(got.body + b" ", got.headers)


async def test_while_a_secret_replaces_another_both_verify(desk: Desk, clock: ManualClock) -> None:
    async with a_target() as target, a_dispatcher(desk, clock=RealClock()) as bench:
        endpoint = await an_endpoint(desk, target.url())
        old = Webhook(shown_secret(secret_of(KEY, endpoint.id, 1)))
        new = Webhook(shown_secret(secret_of(KEY, endpoint.id, 2)))
        await rotate_secret(desk, endpoint, overlap=timedelta(hours=1))
        await an_event(desk)
        await bench.turn()
        (got,) = target.received
        old.verify(got.body, got.headers)
        new.verify(got.body, got.headers)
        clock.advance(timedelta(hours=2))
        await an_event(desk)
        await bench.turn()
        got = target.received[-1]
        new.verify(got.body, got.headers)
        with pytest.raises(WebhookVerificationError):
            old.verify(got.body, got.headers)


async def test_a_failure_is_tried_again_by_the_table_under_the_same_id(
    desk: Desk, clock: ManualClock
) -> None:
    async with a_target(status=500) as target, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url())
        await an_event(desk)
        await bench.turn()
        for attempt in range(2, 5):
            (delivery,) = await deliveries(desk, endpoint)
            assert delivery.due_at == clock.now() + DELAYS[attempt - 1]
            clock.advance(DELAYS[attempt - 1] - timedelta(milliseconds=1))
            assert await bench.turn() == 0
            clock.advance(timedelta(milliseconds=1))
            await bench.turn()
            assert len(target.received) == attempt
        target.status = 204
        clock.advance(timedelta(days=1))
        await bench.turn()
        (delivery,) = await deliveries(desk, endpoint)
        assert delivery.state is DeliveryState.DELIVERED
        assert delivery.attempt == 5
        assert len({one.headers["webhook-id"] for one in target.received}) == 1
        assert len({one.body for one in target.received}) == 1
        view = (await get_endpoint(desk, TENANT, endpoint.id))[1]
        assert view is not None
        assert (view.failures, view.failing_since) == (0, None)


async def test_who_asks_for_time_gets_it(desk: Desk, clock: ManualClock) -> None:
    wait = {"retry-after": "3600"}
    async with a_target(status=429, headers=wait) as target, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url())
        await an_event(desk)
        await an_event(desk)
        await bench.turn()
        sent = len(target.received)
        assert (await mailbox(desk.database, endpoint))["held_until"] == clock.now() + (
            timedelta(hours=1)
        )
        clock.advance(timedelta(minutes=59))
        await an_event(desk)
        await bench.turn()
        assert len(target.received) == sent
        target.status = 200
        clock.advance(timedelta(minutes=2))
        await bench.turn()
        states = [one.state for one in await deliveries(desk, endpoint)]
        assert states == [DeliveryState.DELIVERED] * 3


async def test_an_endpoint_that_is_down_is_asked_little_and_gets_everything_when_back(
    desk: Desk, clock: ManualClock
) -> None:
    async with a_target(status=503) as target, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url(), concurrency=1)
        for _ in range(50):
            await an_event(desk)
        for _ in range(60):
            await bench.turn()
            clock.advance(timedelta(minutes=1))
        # An hour of fifty waiting deliveries: three to notice, and a few probes.
        assert len(target.received) < 20
        target.status = 200
        clock.advance(timedelta(hours=1))
        await bench.turn()
        # What was tried waits for its own next attempt, the others went out at once.
        clock.advance(timedelta(hours=25))
        await bench.turn()
        states = [one.state for one in await deliveries(desk, endpoint)]
        assert states == [DeliveryState.DELIVERED] * 50
        good = {one.headers["webhook-id"] for one in target.received[-50:]}
        assert len(good) == 50


async def test_an_endpoint_that_stays_down_is_disabled_and_told_so(
    desk: Desk, clock: ManualClock, database: Database
) -> None:
    async with a_target(status=500) as target, a_target() as other, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url())
        await an_endpoint(desk, other.url(), types=["endpoint.disabled"])
        await an_event(desk)
        for _ in range(80):
            await bench.turn()
            clock.advance(timedelta(hours=1))
        found, _ = await get_endpoint(desk, TENANT, endpoint.id)
        assert found.disabled_at is not None
        assert "it has failed since" in (found.disabled_reason or "")
        told = [json.loads(one.body) for one in other.received]
        assert [one["data"]["endpoint_id"] for one in told] == [to_text("ep", endpoint.id)]
        rows = await fetch(database, "SELECT FROM betimes.outbox WHERE type = 'endpoint.disabled'")
        assert len(rows) == 1
        sent = len(target.received)
        await an_event(desk)
        clock.advance(timedelta(days=2))
        await bench.turn()
        assert len(target.received) == sent
        # Back again: what waited goes out, and what happens from now on.
        target.status = 200
        await enable_endpoint(desk, found)
        await an_event(desk)
        await bench.turn()
        clock.advance(timedelta(days=2))
        await bench.turn()
        states = [one.state for one in await deliveries(desk, endpoint)]
        assert DeliveryState.WAITING not in states
        assert states.count(DeliveryState.DELIVERED) >= 1


async def test_gone_is_gone_at_once(desk: Desk) -> None:
    async with a_target(status=410) as target, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url())
        await an_event(desk)
        await bench.turn()
        found, _ = await get_endpoint(desk, TENANT, endpoint.id)
        assert found.disabled_reason == "it answered 410 Gone"


async def test_a_slow_endpoint_is_slow_for_itself(desk: Desk) -> None:
    going_on = asyncio.Event()

    async def wait(_: Received, writer: asyncio.StreamWriter) -> None:
        await going_on.wait()
        writer.write(answer())

    async with a_target(behave=wait) as slow, a_target() as quick, a_dispatcher(desk) as bench:
        await an_endpoint(desk, slow.url(), concurrency=2)
        await an_endpoint(desk, quick.url())
        for _ in range(10):
            await an_event(desk)
        await bench.router.tick()
        await bench.courier.tick()
        await slow.arrived.wait()
        while len(quick.received) < 10:
            await bench.courier.tick()
            quick.arrived.clear()
            await quick.arrived.wait()
        # Never more at once than it may get, and nobody waited for it.
        assert len(slow.received) == 2
        going_on.set()
        await bench.courier.idle()
        await bench.deliver()
        assert len(slow.received) == 10


async def a_run_that_ended(desk: Desk, **columns: object) -> str:
    """A run as it is stored, with what it was given and what came of it."""
    (run,) = random_ids(to_ms(desk.clock.now()), 1, os.urandom(8))
    await fetch(
        desk.database,
        "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, state, queue, finished_at,"
        " payload, result, error) VALUES (1, $1, $2, $3, 5, 'default', $3, $4, $5, $6) RETURNING 1",
        run,
        TENANT,
        desk.clock.now(),
        columns.get("payload"),
        columns.get("result"),
        columns.get("error"),
    )
    return to_text("run", run)


async def test_whoever_wants_all_of_it_is_told_payload_result_and_error(desk: Desk) -> None:
    """Without what the tenant hides, and without what is too large for a message."""
    policy = replace(DEV, redaction=Redaction().and_also((), ("/card",)))
    run = await a_run_that_ended(
        desk,
        payload=b'{"order":7,"card":"4111"}',
        result=b"x" * 20_000,
        error='{"type": "Http500", "message": "no"}',
    )
    async with a_target() as thin, a_target() as full, a_dispatcher(desk, policy=policy) as bench:
        await an_endpoint(desk, thin.url())
        await an_endpoint(desk, full.url(), payload="full")
        await an_event(desk, body={"run_id": run})
        await an_event(desk, "job.paused", {"job_id": "job_x"})
        await bench.turn()
    about = {json.loads(got.body)["type"]: json.loads(got.body)["data"] for got in full.received}
    assert about["run.dead"]["payload"]["order"] == 7
    assert "4111" not in json.dumps(about)
    assert about["run.dead"]["error"] == {"type": "Http500", "message": "no"}
    assert about["run.dead"]["left_out"] == ["result"]
    assert about["job.paused"].keys().isdisjoint({"payload", "result", "left_out"})
    assert all("payload" not in json.loads(got.body)["data"] for got in thin.received)


async def test_what_is_sealed_is_opened_for_who_wants_all_of_it(desk: Desk) -> None:
    """And left out by a dispatcher without keys: nobody is sent something unreadable."""

    async def work(connection: Connection) -> bytes | None:
        keys = await sealing_keys(desk, connection, TENANT)
        return keys.seal(b'{"order":7}')

    sealed = await desk.transact(work, tenant=None)
    run = await a_run_that_ended(desk, payload=sealed)
    for keyed, told in ((desk, {"order": 7}), (replace(desk, vault=None), None)):
        async with a_target() as target, a_dispatcher(keyed) as bench:
            await an_endpoint(desk, target.url(), payload="full")
            await an_event(desk, body={"run_id": run})
            await bench.turn()
            last = json.loads(target.received[-1].body)["data"]
        assert last.get("payload") == told


async def test_a_sealed_error_is_told_and_its_answer_sealed(desk: Desk) -> None:
    """Whoever has no keys tells what kind of error it was, and nothing unreadable."""

    async def work(connection: Connection) -> str:
        keys = await sealing_keys(desk, connection, TENANT)
        whole = json.dumps({"type": "Bad", "message": "canary", "stack": "at"})
        return seal_error(keys, whole) or ""

    error = json.loads(await desk.transact(work, tenant=None))
    whole = {"type": "Bad", "message": "canary"}
    sealing = replace(desk, seals=True)

    async def echo(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(200, b"heard canary"))

    for keyed, told in ((sealing, whole), (replace(desk, vault=None), {"type": "Bad"})):
        async with a_target(behave=echo) as target, a_dispatcher(keyed) as bench:
            endpoint = await an_endpoint(desk, target.url())
            await an_event(desk, "run.failed", {"run_id": "run_x", "error": error})
            await bench.turn()
            (got,) = target.received
        assert json.loads(got.body)["data"]["error"] == told
        (delivery,) = await deliveries(desk, endpoint)
        opened = await get_delivery(desk, TENANT, delivery.id)
        assert opened.response["snippet"] == "heard canary"
        rows = await fetch(
            desk.database,
            "SELECT response FROM betimes.deliveries WHERE endpoint_id = $1",
            endpoint.id,
        )
        assert ("canary" in str([dict(row) for row in rows])) is (keyed is not sealing)


async def test_an_endpoint_is_asked_no_faster_than_its_rate(desk: Desk, clock: ManualClock) -> None:
    """Three a minute: three at once by its concurrency would be too many, and nobody loses."""
    async with a_target() as target, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url(), rate={"limit": 3, "per_ms": 60_000})
        for _ in range(5):
            await an_event(desk)
        await bench.turn()
        for arrived in range(1, 6):
            assert len(target.received) == arrived
            clock.advance(timedelta(seconds=19))
            await bench.deliver()
            assert len(target.received) == arrived, "too soon"
            clock.advance(timedelta(seconds=1))
            await bench.deliver()
        assert {one.state for one in await deliveries(desk, endpoint)} == {DeliveryState.DELIVERED}
        assert (await mailbox(desk.database, endpoint))["failures"] == 0


async def test_the_guard_holds_for_endpoints_as_for_targets(desk: Desk) -> None:
    strict = UrlPolicy(plain_http=True)
    async with a_target() as target, a_dispatcher(desk, policy=strict) as bench:
        endpoint = await an_endpoint(desk, target.url())
        await an_event(desk)
        await bench.turn()
        (delivery,) = await deliveries(desk, endpoint)
        assert delivery.state is DeliveryState.WAITING
        assert "expected" in (delivery.error or "")
        assert target.connections == 0


async def test_a_delivery_that_is_over_can_be_sent_again(desk: Desk) -> None:
    async with a_target() as target, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url())
        await an_event(desk)
        await bench.turn()
        (delivery,) = await deliveries(desk, endpoint)
        await redeliver(desk, TENANT, delivery.id)
        await bench.turn()
        first, second = target.received
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
