"""Every status of the document, of every operation, really answered.

For each status there is a way to provoke it: a general one for what the layer in front of the
handlers does, a recipe of its own for the rest. What is documented and has no way here fails, so
the document cannot promise what never happens.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api_kit import DEFAULT, Answer, Client, Served, read_answer, served
from betimes.api.application import Application
from betimes.api.call import Call, Reply
from betimes.api.openapi import document
from betimes.api.route import Keyed, Load, Retirement, Route
from betimes.api.routes import ROUTES
from betimes.config.settings import DatabaseSettings
from betimes.ops.idempotency import shard_of_idempotency
from recipe_kit import FURTHER, recipe_of, writing
from store_kit import owner
from world_kit import World, fresh

STREAMS = {"events.stream"}
RACES = {"secrets.put"}
"""What two writers at the same moment are told."""
WITH_OTHERS = {"endpoints.test"}
"""What needs a dispatcher to succeed; told in the tests of endpoints."""
LONG_AGO = "run_01JD00000000000000000000ZZ"
DOCUMENT = document(ROUTES, version="0")
Way = Callable[[World, Route], Awaitable[Answer]]


def documented(route: Route) -> set[int]:
    told = DOCUMENT["paths"][route.path][route.method.lower()]["responses"]
    return {int(status) for status in told}


def expecting(status: int) -> list[Route]:
    return [route for route in ROUTES if status in documented(route)]


async def asked(world: World, route: Route, **more: Any) -> Answer:
    """The request that succeeds, with something about it changed."""
    wanted = await recipe_of(route).wanted(world, route)
    return await wanted.send(world.client, **more)


async def by_recipe(world: World, route: Route, status: int) -> Answer:
    wanted = await FURTHER[route.name, status].wanted(world, route)
    return await wanted.send(world.client)


async def world_of(api: Served) -> World:
    return World(api, await api.admin(), DEFAULT)


async def open_stream(world: World, route: Route) -> Answer:
    """The head of an answer that does not end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.served.port)
    head = f"{route.method} {route.path} HTTP/1.1\r\nhost: t\r\nauthorization: Bearer "
    writer.write(f"{head}{world.client.key}\r\n\r\n".encode())
    answer = read_answer(await reader.readuntil(b"\r\n\r\n"))
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.timeout(300)
async def test_every_success(served: Served) -> None:
    world = await world_of(served)
    for route in ROUTES:
        if route.name in STREAMS:
            assert (await open_stream(world, route)).status == 200
            continue
        if route.name in WITH_OTHERS:
            continue
        first = await asked(world, route)
        assert first.status in documented(route), (route.name, first.status, first.body)
        assert first.status < 300, (route.name, first.status, first.body)
        for status in sorted(documented(route) - {first.status}):
            if status < 300 and (route.name, status) != ("jobs.run", 200):
                answer = await by_recipe(world, route, status)
                assert answer.status == status, (route.name, answer.status, answer.body)
    failed = [event for event in served.recorder.events if event.name == "request.failed"]
    assert not failed, failed[:3]


async def test_a_run_by_hand_that_somebody_waits_for(served: Served) -> None:
    """200 for `Prefer: wait`, when it ends in time."""
    world = await world_of(served)
    for path, body in (
        (f"/v1/jobs/{await world.job(queue='here')}/run", {}),
        ("/v1/runs", {"handler": world.word, "queue": "here"}),
    ):
        worker = await world.worker(queues=["here"])
        waiting = asyncio.gather(world.client("POST", path, body, headers={"Prefer": "wait=20"}))
        told = await world.made("POST", f"/v1/workers/{worker}/lease", {"wait": 10})
        (leased,) = told["runs"]
        await world.made("POST", f"/v1/leases/{leased['lease_id']}/complete")
        (answer,) = await waiting
        assert (answer.status, answer.json["state"]) == (200, "succeeded"), path


async def test_not_modified(served: Served) -> None:
    world = await world_of(served)
    for route in expecting(304):
        wanted = await recipe_of(route).wanted(world, route)
        if route.name == "jobs.get":
            wanted.query = "view=definition"
        tag = (await wanted.send(world.client)).headers["etag"]
        known = await wanted.send(world.client, headers={"If-None-Match": tag})
        assert (known.status, known.body) == (304, b""), route.name


async def _unknown_parameter(world: World, route: Route) -> Answer:
    wanted = await recipe_of(route).wanted(world, route)
    wanted.query = f"{wanted.query}&nope=1".lstrip("&")
    return await wanted.send(world.client)


async def _no_key(world: World, route: Route) -> Answer:
    if route.is_public:
        return await by_recipe(world, route, 401)
    wanted = await recipe_of(route).wanted(world, route)
    wanted.key, wanted.headers = None, {}
    return await wanted.send(world.client)


async def _not_from_here(world: World, route: Route) -> Answer:
    if route.is_public:
        return await by_recipe(world, route, 403)
    wanted = await recipe_of(route).wanted(world, route)
    wanted.key, wanted.headers = "", {}
    bound = await world.served.key(networks=["10.0.0.0/8"])
    return await wanted.send(replace(world.client, key=bound))


async def _nobodys_tenant(world: World, route: Route) -> Answer:
    if route.is_public:
        return await by_recipe(world, route, 404)
    return await asked(world, route, headers={"Betimes-Tenant": "nobody"})


async def _stale(world: World, route: Route) -> Answer:
    wanted = await recipe_of(route).wanted(world, route)
    wanted.query = wanted.query.replace("force=true", "")
    return await wanted.send(world.client, headers={"If-Match": '"99"'})


async def _unconditional(world: World, route: Route) -> Answer:
    wanted = await recipe_of(route).wanted(world, route)
    wanted.query = ""
    return await wanted.send(world.client)


async def _huge(world: World, route: Route) -> Answer:
    wanted = await recipe_of(route).wanted(world, route)
    return await wanted.send(world.client, headers={"content-length": str(1 << 30)})


async def _not_taken(world: World, route: Route) -> Answer:
    return await asked(world, route, headers={"accept": "application/xml, application/json;q=0"})


async def _packed(world: World, route: Route) -> Answer:
    return await asked(world, route, headers={"content-encoding": "br"})


async def _beyond(world: World, route: Route) -> Answer:
    return await asked(world, route, headers={"range": "bytes=999999-"})


async def _aged(world: World, route: Route) -> Answer:
    """A run of a time of which nothing is kept."""
    path = route.path.replace("{run}", LONG_AGO).replace("{number}", "1")
    return await world.client(route.method, path)


async def _other_request(world: World, route: Route) -> Answer:
    """A key that was used for something else."""
    if (route.name, 422) in FURTHER:
        return await by_recipe(world, route, 422)
    key = fresh("key")
    await world.made("POST", "/v1/runs", {"handler": "first"}, idem=key)
    wanted = await writing(route).wanted(world, route)
    return await wanted.send(world.client, idem=key)


WAYS: Mapping[int, Way] = {
    400: _unknown_parameter,
    401: _no_key,
    403: _not_from_here,
    404: _nobodys_tenant,
    406: _not_taken,
    410: _aged,
    412: _stale,
    413: _huge,
    415: _packed,
    416: _beyond,
    422: _other_request,
    428: _unconditional,
}
TOLD_ELSEWHERE = {("endpoints.test", 410)}
ELSEWHERE = {408, 409, 429, 500, 503, 504}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("status", WAYS)
async def test_every_refusal(served: Served, status: int) -> None:
    world = await world_of(served)
    for route in expecting(status):
        if (route.name, status) in TOLD_ELSEWHERE:
            continue
        answer = await WAYS[status](world, route)
        assert answer.status == status, (route.name, answer.status, answer.body)
        assert answer.headers["content-type"] == "application/problem+json"


def test_there_is_a_way_to_every_status() -> None:
    known = {*WAYS, *ELSEWHERE, 200, 201, 202, 204, 206, 207, 304}
    assert {status for route in ROUTES for status in documented(route)} <= known


@pytest.mark.timeout(300)
async def test_conflicts(dsn: str) -> None:
    """A key in use for those that take one; a state of things for the others."""
    store = DatabaseSettings(lock_timeout=timedelta(milliseconds=100))
    async with served(dsn, store=store) as api, owner(dsn) as connection:
        world = await world_of(api)
        key = "in-use"
        for route in expecting(409):
            if route.name in RACES:
                continue
            if route.keyed is Keyed.NO:
                answer = await by_recipe(world, route, 409)
                assert answer.status == 409, (route.name, answer.status, answer.body)
                continue
            wanted = await writing(route).wanted(world, route)
            async with connection.transaction():
                await connection.execute(
                    "INSERT INTO betimes.idempotency (shard, tenant_id, key, day, fingerprint,"
                    " created_at, expires_at) VALUES ($1, $2, $3, (now() AT TIME ZONE 'UTC')::date,"
                    " '', now(), now() + interval '1 day')",
                    shard_of_idempotency(api.desk, DEFAULT, key),
                    DEFAULT,
                    key,
                )
                answer = await wanted.send(world.client, idem=key)
                assert answer.status == 409, (route.name, answer.status, answer.body)
                assert answer.code == "idempotency_in_progress", route.name
                assert answer.headers["retry-after"] == "1"
                await connection.execute("DELETE FROM betimes.idempotency WHERE key = $1", key)


async def test_guesses_and_crowds(dsn: str) -> None:
    async with served(dsn, failures_per_minute=1) as api:
        wrong = Client(api.port, "btm_sk_nonsense")
        await wrong("GET", "/v1/whoami")
        for route in expecting(429):
            if route.is_public:
                continue
            path = route.path.replace("{", "").replace("}", "")
            answer = await wrong(route.method, path)
            assert (answer.status, answer.code) == (429, "rate_limited"), route.name
            assert int(answer.headers["retry-after"]) >= 1
        public = {route.name for route in expecting(429) if route.is_public}
        assert public == {"sessions.create", "auth.device", "auth.device_token"}
        for path, body in (
            ("/v1/sessions", {"tenant": "default", "email": "a@b.c", "password": "x"}),
            ("/v1/auth/device", {}),
            ("/v1/auth/device/token", {"device_code": "nonsense"}),
        ):
            anybody = Client(api.port)
            answers = [await anybody("POST", path, body) for _ in range(40)]
            assert answers[-1].status == 429, (path, answers[-1].body)


async def test_a_request_that_does_not_arrive(dsn: str) -> None:
    soon = timedelta(milliseconds=200)
    async with served(dsn, header_timeout=soon, body_timeout=soon) as api:

        async def begun(route: Route) -> Answer:
            reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
            writer.write(f"{route.method} {route.path} HTTP/1.1\r\nhost".encode())
            answer = read_answer(await asyncio.wait_for(reader.read(-1), 30))
            writer.close()
            return answer

        assert len(expecting(408)) == len(ROUTES)
        for answer in await asyncio.gather(*map(begun, expecting(408))):
            assert (answer.status, answer.code) == (408, "request_timeout")


@asynccontextmanager
async def broken(api: Served, handler: Any, **more: Any) -> AsyncIterator[Any]:
    """The layer in front of handlers that do something else; asks for a status."""
    routes = [replace(route, handler=handler, **more) for route in ROUTES]
    application = Application(service=api.service, routes=routes)

    async def ask(route: Route) -> int:
        told: list[Any] = []
        key = await api.key()

        bodies = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            if not bodies:  # the client stays, and says nothing more
                await asyncio.Event().wait()
            return bodies.pop()

        async def send(message: Any) -> None:
            told.append(message)

        headers = [(b"authorization", f"Bearer {key}".encode()), (b"idempotency-key", b"k")]
        headers.append((b"content-type", b"application/json"))
        where = {"raw_path": route.path.replace("{", "").replace("}", "").encode()}
        scope = {"type": "http", "method": route.method, "query_string": b"", "headers": headers}
        await application({**scope, **where, "client": ("127.0.0.1", 1)}, receive, send)
        return int(told[0]["status"])

    yield ask


async def test_our_own_mistakes_and_what_takes_too_long(served: Served) -> None:
    async def wrong(_: Call[Any, Any]) -> Reply:
        raise RuntimeError("a mistake")

    async def slow(_: Call[Any, Any]) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError

    plain = {"body": None, "query": ROUTES[0].query}
    async with broken(served, wrong, **plain) as ask:
        for route in expecting(500):
            assert await ask(route) == 500, route.name
    async with broken(served, slow, seconds=0.01, **plain) as ask:
        for route in expecting(504):
            assert await ask(route) == 504, route.name
    assert len(expecting(500)) == len(ROUTES)


async def test_a_node_that_stops(served: Served) -> None:
    nobody = served.client(None)
    served.service.draining.begun = True
    for route in expecting(503):
        path = route.path.replace("{", "").replace("}", "")
        answer = await nobody(route.method, path)
        assert answer.status == 503, (route.name, answer.body)
        free = route.load is Load.FREE
        assert free == (route.name == "meta.ready"), "nothing else touches the database for free"


async def test_an_operation_that_will_go_says_so(served: Served) -> None:
    """By header, with a page that tells what to use instead; and in the document."""
    gone = Retirement(
        deprecated_at=datetime(2026, 1, 1, tzinfo=UTC),
        sunset_at=datetime(2026, 7, 1, tzinfo=UTC),
        see="/v1/reference",
    )
    (route,) = [replace(one, retired=gone) for one in ROUTES if one.name == "meta.version"]
    told: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        told.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "GET", "query_string": b"", "headers": []}
    application = Application(service=served.service, routes=[route])
    where = {"raw_path": b"/v1/version", "client": None}
    await application({**scope, **where}, receive, send)
    headers = dict(told[0]["headers"])
    assert headers[b"deprecation"] == b"@1767225600"
    assert headers[b"sunset"] == b"Wed, 01 Jul 2026 00:00:00 GMT"
    assert headers[b"link"] == b'</v1/reference>; rel="deprecation"'
    operation = document([route], version="0")["paths"]["/v1/version"]["get"]
    assert operation["deprecated"] is True
