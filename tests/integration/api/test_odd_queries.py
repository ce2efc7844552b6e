"""Queries that nobody writes on purpose: missing, empty and odd parameters are never our fault."""

import asyncio
from collections.abc import Iterator
from urllib.parse import quote

import msgspec
import pytest

from api_kit import DEFAULT, Answer, Client, Served, read_answer
from betimes.api.route import Route
from betimes.api.routes import ROUTES
from recipe_kit import Wanted, recipe_of
from world_kit import World

ODD = ("", " ", "0", "-1", "99999999999999999999", "nonsense", "a,b", "\u0000", "\U0001f600", "{}")
READS = [route for route in ROUTES if route.method == "GET"]
LASTING = "text/event-stream"


def queries(route: Route) -> Iterator[str]:
    """No query, each parameter alone with every odd value, all of them at once with each."""
    names = [one.encode_name for one in msgspec.structs.fields(route.query)]
    names += ["fields"] if route.selects else []
    yield ""
    yield "&"
    yield "="
    for value in ODD:
        text = quote(value)
        for name in names:
            yield f"{name}={text}"
        if names:
            yield "&".join(f"{name}={text}" for name in names)


async def head_of(client: Client, path: str, headers: dict[str, str]) -> Answer:
    """The head of an answer that may not end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    try:
        sent = {"host": "t", "authorization": f"Bearer {client.key}", **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        writer.write(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        return read_answer(await reader.readuntil(b"\r\n\r\n"))
    finally:
        writer.close()
        await writer.wait_closed()


async def answered(client: Client, route: Route, wanted: Wanted, query: str) -> Answer:
    path = f"{wanted.path}?{query}" if query else wanted.path
    if route.waits or route.answer_media == LASTING:
        return await head_of(client, path, wanted.headers)
    wanted = Wanted(wanted.method, path, headers=wanted.headers, key=wanted.key)
    return await wanted.send(client)


async def test_a_search_without_a_query_is_refused(served: Served) -> None:
    """Finding S7: the shortcut for no query at all went past the translation of errors."""
    admin = await served.admin()
    for path in ("/v1/search", "/v1/search?", "/v1/search?limit=5"):
        answer = await admin("GET", path)
        assert (answer.status, answer.code) == (400, "invalid_parameter"), (path, answer.body)
        assert "q" in answer.json["detail"]


@pytest.mark.timeout(600)
async def test_no_read_fails_for_what_it_is_asked(served: Served) -> None:
    """Every GET of the document, with every parameter missing, empty and odd."""
    world = World(served, await served.admin(), DEFAULT)
    for route in READS:
        wanted = await recipe_of(route).wanted(world, route)
        for query in queries(route):
            answer = await answered(world.client, route, wanted, query)
            assert answer.status < 500, (route.name, query, answer.status, answer.body)
    failed = [event for event in served.recorder.events if event.name == "request.failed"]
    assert not failed, failed[:3]
