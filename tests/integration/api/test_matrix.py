"""Every operation with an id in its path: foreign and missing answer alike, byte for byte."""

import asyncio
import re

import pytest

from api_kit import Answer, Client, Served
from betimes.api.codes import CODES
from betimes.api.openapi import problems_of
from betimes.api.route import Route
from betimes.api.routes import ROUTES
from betimes.domain.scopes import EVERYTHING
from recipe_kit import recipe_of
from world_kit import PLACES, World

MISSING = {
    "job": "job_01JD00000000000000000000ZZ",
    "run": "run_01ZZ00000000000000000000ZZ",
    "letter": "run_01ZZ00000000000000000000ZZ",
    "worker": "wrk_01JD00000000000000000000ZZ",
    "key": "AAAAAAAAAAAA",
    "act": "aud_0-999999",
    "blob": "blob_01JD00000000000000000000ZZ",
    "operation": "op_01JD00000000000000000000ZZ",
    "calendar": "nowhere",
    "secret": "nothing",
    "version": "1",
    "member": "mem_01JD00000000000000000000ZZ",
    "catchup": "ctu_01JD00000000000000000000ZZ",
    "lease": "lea_nowhere",
    "endpoint": "ep_01JD00000000000000000000ZZ",
    "delivery": "dlv_01JD00000000000000000000ZZ",
    "rule": "nowhere",
    "silence": "sil_01JD00000000000000000000ZZ",
    "workflow": "nowhere",
    "workflow_run": "wfr_01JD00000000000000000000ZZ",
}
OF_EVERYBODY = {"tenant", "code", "queue", "node", "handler"}
"""Names that mean something for every tenant, or things that belong to none."""
TAKES_NAMES = {
    *("jobs.replace", "calendars.put", "secrets.put", "rate_limits.put", "alert_rules.put"),
    "workflows.put",
}
WITH_IDS = [
    route
    for route in ROUTES
    if route.parameters
    and not set(route.parameters) & OF_EVERYBODY
    and not route.is_public
    and route.name not in TAKES_NAMES
]


def without_ids(answer: Answer, text: str) -> bytes:
    """The body without what names the request or the thing asked for."""
    body = answer.body.replace(text.encode(), b"<id>")
    return re.sub(rb"req_[0-9A-Z]{26}", b"<request>", body)


@pytest.mark.timeout(300)
async def test_a_foreign_id_answers_like_a_missing_one(served: Served, admin: Client) -> None:
    """Every operation with an id in its path; whoever adds one is asked here, too."""
    tenant = await served.tenant("other")
    other = World(served, served.client(await served.key(tenant)), tenant)
    assert len(WITH_IDS) > 60
    for route in WITH_IDS:
        recipe, (first, *rest) = recipe_of(route), route.parameters
        theirs = str(await (recipe.places.get(first) or PLACES[first])(other))
        path = route.path
        for name in rest:
            path = path.replace(f"{{{name}}}", "1")
        told = []
        for text in (theirs, MISSING[first]):
            wanted = await recipe.wanted(other, route)
            wanted.path = path.replace(f"{{{first}}}", text)
            answer = await wanted.send(admin)
            assert answer.status == 404, (route.name, answer.body)
            told.append(without_ids(answer, text))
        assert told[0] == told[1], route.name


async def test_every_operation_asks_for_its_scope(served: Served) -> None:
    nobody = served.client(None)
    for route in ROUTES:
        if route.is_public:
            continue
        path = route.path
        for name in route.parameters:
            path = path.replace(f"{{{name}}}", MISSING.get(name, "x"))
        answer = await nobody(route.method, path)
        assert (answer.status, answer.code) == (401, "missing_credentials"), route.name
        if not route.scope:
            continue
        others = sorted(EVERYTHING - {route.scope})
        lacking = served.client(await served.key(kind="ak", scopes=others))
        refused = await lacking(route.method, path)
        assert (refused.status, refused.code) == (403, "scope_missing"), route.name


ALPHA, BRAVO = "canaryalpha", "canarybravo"
OVER_ALL = ("tenants.", "cluster.", "meta.")
"""What administrators of the service see of all tenants, or nobody's in particular."""
SPOKEN = {"events.stream", "endpoints.test"}


@pytest.mark.timeout(300)
async def test_no_answer_of_one_tenant_contains_a_word_of_another(served: Served) -> None:
    """Two tenants whose every text is a canary; every operation, on own things and on foreign."""
    worlds = {}
    for word in (ALPHA, BRAVO):
        tenant = await served.tenant(word)
        client = served.client(await served.key(tenant))
        worlds[word] = World(served, client, tenant, word)
    routes = [
        route
        for route in ROUTES
        if not route.is_public and not route.name.startswith(OVER_ALL) and route.name not in SPOKEN
    ]
    for mine, theirs in ((ALPHA, BRAVO), (BRAVO, ALPHA)):
        world, other = worlds[mine], worlds[theirs]
        for route in routes:
            wanted = await recipe_of(route).wanted(world, route)
            own = await wanted.send(world.client)
            assert own.status < 300, (route.name, own.body)
            assert theirs not in said(own), route.name
            foreign = await recipe_of(route).wanted(other, route)
            if theirs not in foreign.path:  # what somebody asks for is said back to them
                wanted.path = foreign.path
                assert theirs not in said(await wanted.send(world.client)), route.name
    for mine, theirs in ((ALPHA, BRAVO), (BRAVO, ALPHA)):
        for route in routes:
            if route.method == "GET" and not route.parameters:
                wanted = await recipe_of(route).wanted(worlds[mine], route)
                assert theirs not in said(await wanted.send(worlds[mine].client)), route.name
        stream = await first_events(served, worlds[mine].client)
        assert b"job.created" in stream
        assert theirs.encode() not in stream
    assert "canary" not in " ".join(str(event) for event in served.recorder.events)
    readings = served.service.telemetry.snapshot()
    assert readings
    assert not [one for one in readings if "canary" in str(one.labels)]
    assert "canary" not in said(await (await served.admin())("GET", "/metrics"))


def said(answer: Answer) -> str:
    return f"{answer.headers} {answer.body.decode('utf-8', 'replace')}"


async def first_events(served: Served, client: Client) -> bytes:
    """What a stream says that begins at the beginning."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    last = f"last-event-id: evt_{'0' * 26}"
    head = f"GET /v1/events/stream HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {client.key}"
    writer.write(f"{head}\r\n{last}\r\n\r\n".encode())
    told = await reader.readuntil(b"event: job.created")
    told += await reader.readuntil(b"\n\n")
    writer.close()
    await writer.wait_closed()
    return told


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_code_of_a_route_has_its_page(route: Route) -> None:
    assert set(problems_of(route)) <= set(CODES)
    assert route.says.endswith(".")
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", route.name)
