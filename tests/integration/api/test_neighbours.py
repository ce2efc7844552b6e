"""Room among tenants: what one of them has under way never keeps another out."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from api_kit import TOKENS, Answer, Served, read_answer, served
from betimes.domain.ids import TenantId

JOB = {"schedule": "every 1h", "handler": "h"}
ROOM, EACH = 12, 4


@asynccontextmanager
async def slow(
    api: Served, path: str, key: str | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A request of which the last byte of the body is still missing."""
    body = json.dumps(JOB).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    authorization = "" if key is None else f"Authorization: Bearer {key}\r\n"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{authorization}"
        f"Idempotency-Key: slow-{next(TOKENS)}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body[:-1])
    await writer.drain()
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
    writer.write(json.dumps(JOB).encode()[-1:])
    await writer.drain()
    return read_answer(await asyncio.wait_for(reader.read(-1), 30))


def under_way(api: Served, tenant: TenantId) -> int:
    return api.service.admission.usage(tenant, {})["requests_under_way"].used


async def until(api: Served, reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not reached():
            await api.service.clock.sleep(0.01)


async def test_a_tenant_that_is_slow_leaves_room_for_its_neighbours(dsn: str) -> None:
    async with served(dsn, busy_max=ROOM, tenant_busy_max=EACH) as api, AsyncExitStack() as stack:
        hostile = await api.key(await api.tenant("hostile"))
        neighbour = api.client(await api.key(await api.tenant("neighbour")))
        own = api.client(hostile)
        job = (await own("POST", "/v1/jobs", JOB)).json["id"]
        held = [
            await stack.enter_async_context(slow(api, "/v1/jobs", hostile)) for _ in range(EACH)
        ]
        await until(api, lambda: api.service.admission.busy == EACH)
        for _ in range(ROOM):  # each turned away, and none counted on
            refused = await own("GET", "/v1/jobs")
            assert (refused.status, refused.code) == (429, "rate_limited")
            assert f"at most {EACH} requests of one tenant" in refused.json["detail"]
            assert (refused.headers["retry-after"], refused.json["retryable"]) == ("1", True)
        assert (await neighbour("GET", "/v1/usage")).status == 200, "not even statistics"
        assert (await neighbour("POST", "/v1/jobs", JOB)).status == 201
        for verb in ("pause", "resume", "cancel"):
            assert (await own("POST", f"/v1/jobs/{job}/{verb}")).status == 200
        assert [(await ended(*one)).status for one in held] == [201] * EACH
        assert (await own("GET", "/v1/jobs")).status == 200
        assert api.service.admission.busy == 0


async def test_slow_requests_that_are_never_refused_take_no_room_of_others(dsn: str) -> None:
    async with served(dsn, busy_max=ROOM, tenant_busy_max=EACH) as api, AsyncExitStack() as stack:
        tenant = await api.tenant("hostile")
        hostile = await api.key(tenant)
        neighbour = api.client(await api.key(await api.tenant("neighbour")))
        own = api.client(hostile)
        worker = (await own("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
        beat = f"/v1/workers/{worker}/heartbeat"
        held = [await stack.enter_async_context(slow(api, beat, hostile)) for _ in range(2 * ROOM)]
        await until(api, lambda: under_way(api, tenant) == 2 * ROOM)
        assert api.service.admission.busy == EACH, "and no more"
        assert (await neighbour("GET", "/v1/usage")).status == 200
        assert (await neighbour("PATCH", "/v1/jobs/none", {"priority": 1})).status == 404
        assert (await own("GET", "/v1/jobs")).status == 429
        assert (await own("POST", beat, {"running": []})).status == 200
        for one in held:
            assert (await ended(*one)).status == 400, "it was a job, and is read all the same"
        assert (await own("GET", "/v1/jobs")).status == 200
        assert api.service.admission.busy == 0


async def test_an_address_without_keys_leaves_room_as_well(dsn: str) -> None:
    async with served(dsn, busy_max=ROOM, tenant_busy_max=EACH) as api, AsyncExitStack() as stack:
        admin = await api.admin()
        for _ in range(EACH):
            await stack.enter_async_context(slow(api, "/v1/sessions", None))
        await until(api, lambda: api.service.admission.busy == EACH)
        refused = await api.client(None)("POST", "/v1/sessions", {"key": "none"})
        assert (refused.status, refused.code) == (503, "overloaded")
        assert "of one address under way" in refused.json["detail"]
        assert (await api.client(None)("GET", "/healthz")).status == 200
        assert (await admin("GET", "/v1/usage")).status == 200


async def test_who_has_too_much_under_way_is_held_back(dsn: str) -> None:
    pause = timedelta(seconds=1)
    async with (
        served(dsn, tenant_busy_max=1, shed_pause=pause) as api,
        AsyncExitStack() as stack,
    ):
        key = await api.key(await api.tenant("hostile"))
        await stack.enter_async_context(slow(api, "/v1/jobs", key))
        await until(api, lambda: api.service.admission.busy == 1)
        asked_at = api.service.clock.monotonic()
        assert (await api.client(key)("GET", "/v1/jobs")).status == 429
        assert api.service.clock.monotonic() - asked_at >= 1.0
