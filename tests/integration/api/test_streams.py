"""Streams: bounded for each tenant and node, read once for all of a tenant, resumable."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api_kit import DEFAULT, Client, Served, read_answer, served
from betimes.api import application as application_module
from betimes.api import streams as module
from betimes.api.application import Application
from betimes.api.routes import ROUTES
from betimes.api.streams import POLL_SECONDS
from betimes.config.settings import DatabaseSettings
from betimes.ops import run_ends, trail
from betimes.store.pool import Lane
from store_kit import soon

STREAM = "/v1/events/stream"
JOB = {"schedule": "every 1h", "handler": "h"}


class Stream:
    """One open stream, read line by line."""

    def __init__(self, reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> None:
        self.reader = reader
        self.status = status
        self.headers = headers
        self.ids: list[str] = []

    async def next(self) -> str:
        """The type of the next event."""
        while True:
            line = (await soon(self.reader.readline())).decode().strip()
            if line.startswith("id: "):
                self.ids.append(line.removeprefix("id: "))
            if line.startswith("event: "):
                return line.removeprefix("event: ")


@contextlib.asynccontextmanager
async def stream(client: Client, *, path: str = STREAM, last: str = "") -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    try:
        resume = f"last-event-id: {last}\r\n" if last else ""
        lines = f"host: t\r\nauthorization: Bearer {client.key}\r\n{resume}"
        lines += "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())
        writer.write(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        answer = read_answer(await soon(reader.readuntil(b"\r\n\r\n")))
        if answer.status == 200:
            await soon(reader.readuntil(b"retry: 3000\n\n"))
        yield Stream(reader, answer.status, answer.headers)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_streams_of_one_tenant_leave_the_others_alone(dsn: str) -> None:
    """Finding S3: several keys, one bound; what is open costs others no connection."""
    few = DatabaseSettings(api_connections=2)
    async with served(dsn, streams_max=25, store=few) as api, contextlib.AsyncExitStack() as stack:
        keys = [await api.key() for _ in range(4)]
        other = await api.tenant("other")
        neighbour = api.client(await api.key(other))
        opened = [
            await stack.enter_async_context(stream(api.client(keys[place % 4])))
            for place in range(40)
        ]
        statuses = [one.status for one in opened]
        assert (statuses.count(200), statuses.count(429)) == (25, 15)
        refused = next(one for one in opened if one.status == 429)
        assert refused.headers["retry-after"] == "5"
        for _ in range(30):
            assert (await neighbour("GET", "/v1/jobs")).status == 200
        assert api.desk.database.waited(Lane.STREAM) < 5
        async with stream(neighbour) as own:
            assert own.status == 200
            assert (await neighbour("POST", "/v1/jobs", JOB)).status == 201
            assert await own.next() == "job.created"


async def test_a_node_has_room_for_so_many_streams(dsn: str) -> None:
    """Whoever has them; the refusal says what can be done."""
    async with served(dsn, streams_max=2, node_streams_max=3) as api:
        other = await api.tenant("other")
        ours, theirs = await api.admin(), api.client(await api.key(other))
        async with stream(ours), stream(ours), stream(theirs), stream(theirs) as last:
            assert last.status == 429
            refused = await ours("GET", STREAM)
            assert (refused.status, refused.code) == (429, "rate_limited")
            assert "close one" in refused.json["detail"]
            told = {one["name"]: one for one in (await ours("GET", "/v1/quotas")).json["items"]}
            assert told["streams"]["used"] == told["streams"]["limit"] == 2


async def test_one_reader_for_all_streams_of_a_tenant(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read does not grow with the number of those who follow."""
    reads = 0
    list_events = trail.list_events

    async def counted(*given: Any, **more: Any) -> Any:
        nonlocal reads
        reads += 1
        return await list_events(*given, **more)

    monkeypatch.setattr(trail, "list_events", counted)
    async with served(dsn, streams_max=40) as api, contextlib.AsyncExitStack() as stack:
        admin = await api.admin()
        opened = [await stack.enter_async_context(stream(admin)) for _ in range(40)]
        reads, began = 0, api.service.clock.monotonic()
        for _ in range(3):
            assert (await admin("POST", "/v1/jobs", JOB)).status == 201
            assert {await one.next() for one in opened} == {"job.created"}
        polls = (api.service.clock.monotonic() - began) / POLL_SECONDS + 2
        assert reads <= polls
        assert len({tuple(one.ids) for one in opened}) == 1


async def test_a_stream_resumes_and_chooses(served: Served, admin: Client) -> None:
    """After an id it was told, with nothing twice and nothing lost; only what it asks for."""
    async with stream(admin) as every, stream(admin, path=f"{STREAM}?types=job.paused") as some:
        for number in range(3):
            await admin("POST", "/v1/jobs", {**JOB, "name": f"n{number}"})
            assert await every.next() == "job.created"
        await admin("POST", "/v1/jobs/n0/pause")
        assert [await every.next(), await some.next()] == ["job.paused"] * 2
        async with stream(admin, last=every.ids[0]) as again:
            assert [await again.next() for _ in range(3)] == [*["job.created"] * 2, "job.paused"]
            assert again.ids == every.ids[1:]
            await admin("POST", "/v1/jobs/n1/pause")
            assert [await again.next(), await every.next(), await some.next()] == ["job.paused"] * 3
            assert again.ids == every.ids[1:]


async def test_who_reads_too_slowly_is_let_go_and_can_resume(
    served: Served, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept for all is bounded; a stream that fell behind ends, and goes on after its id."""
    monkeypatch.setattr(module, "KEPT_EVENTS", 5)
    streams = served.service.streams
    hub = streams.enter(DEFAULT, None)
    place = hub.end
    async with stream(admin) as live:
        for number in range(8):
            await admin("POST", "/v1/jobs", {**JOB, "name": f"n{number}"})
            assert await live.next() == "job.created"
        assert hub.since(place, most=100) is None
        assert len(hub.since(hub.end - 5, most=100) or ()) == 5
    streams.leave(hub, None)


async def test_those_who_wait_for_runs_share_one_look(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many wait for the ends of a tenant's runs, they are asked for together."""
    looks = 0
    ended = run_ends.read_ended_runs

    async def counted(*given: Any, **more: Any) -> Any:
        nonlocal looks
        looks += 1
        return await ended(*given, **more)

    monkeypatch.setattr(run_ends, "read_ended_runs", counted)
    async with served(dsn) as api:
        admin, worker = await api.admin(), api.client(await api.key(kind="wk"))
        body = {"name": "w", "queues": ["q"], "handlers": ["h"], "slots": 30}
        name = (await worker("POST", "/v1/workers", body)).json["worker_id"]
        runs = [
            (await admin("POST", "/v1/runs", {"handler": "h", "queue": "q"})).json["id"]
            for _ in range(30)
        ]
        began = api.service.clock.monotonic()
        async with asyncio.TaskGroup() as group:
            waits = [
                group.create_task(admin("GET", f"/v1/runs/{run}/wait?timeout=20")) for run in runs
            ]
            left = len(runs)
            while left:
                told = (await worker("POST", f"/v1/workers/{name}/lease", {"wait": 5})).json["runs"]
                left -= len(told)
                for one in told:
                    await worker("POST", f"/v1/leases/{one['lease_id']}/complete", {})
        assert {wait.result().json["state"] for wait in waits} == {"succeeded"}
        assert looks <= (api.service.clock.monotonic() - began) / run_ends.POLL_SECONDS + 2


async def test_a_stream_that_never_began_is_let_go_of(served: Served, admin: Client) -> None:
    """The client has gone before the head of its answer could be sent."""
    application = Application(service=served.service, routes=ROUTES)
    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": STREAM.encode(),
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {admin.key}".encode())],
    }

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def gone(_: Any) -> None:
        raise ConnectionResetError

    with contextlib.suppress(ConnectionResetError):
        await application(scope, receive, gone)
    assert served.service.admission.usage(DEFAULT, {})["streams"].used == 0


async def rest_of(one: Stream) -> bytes:
    """What a stream still tells until it ends."""
    told = b""
    while line := await soon(one.reader.readline()):
        told += line
        if line == b"0\r\n":
            break
    return told


@pytest.mark.parametrize("way", ["revoked", "expired", "suspended"])
async def test_a_stream_ends_with_the_right_to_open_it(
    served: Served, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was shut out hears nothing more, neither of events nor of a log."""
    monkeypatch.setattr(application_module, "CHECKED_SECONDS", 0.0)
    admin, tenant = await served.admin(), await served.tenant("other")
    inside = Client(served.port, admin.key, {"betimes-tenant": "other"})
    key = await served.key(tenant, kind="sk")
    run = (await inside("POST", "/v1/runs", {"handler": "h"})).json["id"]
    async with (
        stream(served.client(key)) as events,
        stream(served.client(key), path=f"/v1/runs/{run}/logs/stream") as log,
        stream(inside) as own,
    ):
        place = f"/v1/api-keys/{key.split('_')[2]}"
        if way == "revoked":
            assert (await inside("DELETE", place)).status == 204
        elif way == "expired":
            past = {"expires_at": "2020-01-01T00:00:00Z"}
            assert (await inside("PATCH", place, past)).status == 200
        else:
            asked = {"mode": "stop_all", "reason": "unpaid"}
            assert (await admin("POST", "/v1/tenants/other/suspend", asked)).status == 200
        served.service.credentials.forget_all()
        assert (await inside("POST", f"/v1/runs/{run}/cancel", {})).status == 200
        assert await own.next() == "run.cancelled", "who may still look goes on"
        assert b"event:" not in await rest_of(events)
        assert b"event:" not in await rest_of(log)


async def test_so_many_requests_of_a_tenant_wait_at_a_time(dsn: str) -> None:
    """For the end of a run; its neighbours, and workers that ask for work, are not refused."""
    async with served(dsn, tenant_waiting_max=2) as api:
        admin = await api.admin()
        neighbour = api.client(await api.key(await api.tenant("other")))
        run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
        theirs = (await neighbour("POST", "/v1/runs", {"handler": "h"})).json["id"]
        async with asyncio.TaskGroup() as group:
            path = f"/v1/runs/{run}/wait?timeout=3"
            waits = [group.create_task(admin("GET", path)) for _ in range(5)]
            own = group.create_task(neighbour("GET", f"/v1/runs/{theirs}/wait?timeout=1"))
            body = {"name": "w", "queues": ["q"], "handlers": ["h"], "slots": 1}
            name = (await admin("POST", "/v1/workers", body)).json["worker_id"]
            assert (await admin("POST", f"/v1/workers/{name}/lease", {"wait": 0})).status == 200
        statuses = [wait.result().status for wait in waits]
        assert (statuses.count(200), statuses.count(429)) == (2, 3)
        assert own.result().status == 200
        assert not api.service.admission._waits
