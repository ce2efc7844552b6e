"""Every operation with an id in its path: foreign and missing answer alike, byte for byte."""

import re
from typing import Any

import pytest

from api_kit import Answer, Client, Served
from betimes.api.codes import CODES
from betimes.api.openapi import problems_of
from betimes.api.route import Route
from betimes.api.routes import ROUTES
from betimes.domain.ids import TenantId, from_text, to_text
from betimes.domain.scopes import EVERYTHING
from betimes.ops.deliveries import put_test
from betimes.ops.endpoints import get_endpoint
from betimes.store.joining import Episode, Pace, join, shard_of_tenant
from betimes.store.pool import Connection

MISSING = {
    "job": "job_01JD00000000000000000000ZZ",
    "run": "run_01JD00000000000000000000ZZ",
    "letter": "run_01JD00000000000000000000ZZ",
    "worker": "wrk_01JD00000000000000000000ZZ",
    "key": "AAAAAAAAAAAA",
    "act": "aud_0-999999",
    "blob": "blob_01JD00000000000000000000ZZ",
    "operation": "op_01JD00000000000000000000ZZ",
    "calendar": "nowhere",
    "secret": "nothing",
    "version": "1",
    "member": "mem_01JD00000000000000000000ZZ",
    "node": "nod_01JD00000000000000000000ZZ",
    "catchup": "ctu_01JD00000000000000000000ZZ",
    "endpoint": "ep_01JD00000000000000000000ZZ",
    "delivery": "dlv_01JD00000000000000000000ZZ",
    "rule": "nowhere",
    "silence": "sil_01JD00000000000000000000ZZ",
}
OUTSIDE = {"tenant", "code", "lease", "queue", "revision", "node", "handler"}
WITH_IDS = [
    route
    for route in ROUTES
    if route.parameters and not set(route.parameters) & OUTSIDE and not route.is_public
]
BODIES: dict[str, Any] = {
    "jobs.replace": {"schedule": "every 1h", "handler": "h"},
    "jobs.update": {"priority": 3},
    "jobs.backfill": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
    "jobs.rollback": {"revision": 1},
    "keys.update": {"name": "x"},
    "dead_letters.update": {"note": "x"},
    "workers.lease": {"wait": 0},
    "runs.update": {"priority": 1},
    "calendars.put": {"dates": ["2026-12-25"]},
    "members.update": {"role": "viewer"},
    "secrets.put": {"value": "x"},
    "rate_limits.put": {"limit": 1, "per": "1s"},
    "endpoints.update": {"name": "x"},
    "alert_rules.put": {"condition": "job_failed_n", "threshold": 1},
    "endpoints.redeliver": {"since": "2026-01-01T00:00:00Z"},
}
TAKES_NAMES = {
    *("jobs.replace", "calendars.put", "alert_rules.put", "secrets.put", "rate_limits.put"),
}


async def things_of(served: Served) -> dict[str, str]:
    """One of everything, owned by another tenant."""
    tenant = await served.tenant("other")
    other = served.client(await served.key(tenant))
    job = (await other("POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h"})).json["id"]
    run = (await other("POST", "/v1/runs", {"handler": "h", "retry": {"max_attempts": 1}})).json
    worker = (await other("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    (leased,) = (await other("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    await other("POST", f"/v1/leases/{leased['lease_id']}/fail", {"retry": "never"})
    key = (await other("POST", "/v1/api-keys", {"name": "k"})).json["id"]
    blob = (await other("POST", "/v1/blobs", raw=b"x")).json["id"]
    act = (await other("GET", "/v1/audit")).json["items"][0]["id"]
    bulk = {"action": "replay", "ids": [run["id"]]}
    operation = (await other("POST", "/v1/runs/bulk", bulk)).json["id"]
    theirs = {"dates": ["2026-12-25"]}
    assert (await other("PUT", "/v1/calendars/theirs?force=true", theirs)).status == 201
    assert (await other("PUT", "/v1/secrets/their-own", {"value": "x"})).status == 201
    person = {"email": "ada@example.org", "name": "Ada"}
    member = (await other("POST", "/v1/members", person)).json["id"]
    hook = {"type": "webhook", "url": "https://example.com/", "event_types": ["*"]}
    endpoint = (await other("POST", "/v1/endpoints", hook)).json["id"]
    rule = {"condition": "job_failed_n", "threshold": 1}
    assert (await other("PUT", "/v1/alert-rules/theirs?force=true", rule)).status == 201
    quiet = {"rule": "theirs", "until": "2100-01-01T00:00:00Z", "reason": "x"}
    return {
        "rule": "theirs",
        "silence": (await other("POST", "/v1/silences", quiet)).json["id"],
        "endpoint": endpoint,
        "delivery": await delivery_of(served, tenant, endpoint),
        "member": member,
        "calendar": "theirs",
        "secret": "their-own",
        "version": "1",
        "job": job,
        "run": run["id"],
        "letter": run["id"],
        "worker": worker,
        "key": key,
        "act": act,
        "blob": blob,
        "operation": operation,
        "catchup": await catchup_of(served, tenant),
    }


async def delivery_of(served: Served, tenant: TenantId, endpoint: str) -> str:
    """A test that waits for a dispatcher."""
    found, _ = await get_endpoint(served.desk, tenant, from_text("ep", endpoint))
    return to_text("dlv", await put_test(served.desk, found, request="theirs"))


async def catchup_of(served: Served, tenant: TenantId) -> str:
    """An episode, as a planner would have begun it."""
    now = served.service.now()
    pace = Pace(per_second=1.0, unapproved=0)

    async def work(connection: Connection) -> Episode:
        shard = shard_of_tenant(served.desk.shards, tenant)
        return await join(connection, shard, tenant, [now], pace=pace, at=now)

    return to_text("ctu", (await served.desk.transact(work, tenant=None)).id)


def without_ids(answer: Answer, text: str) -> bytes:
    """The body without what names the request or the thing asked for."""
    body = answer.body.replace(text.encode(), b"<id>")
    return re.sub(rb"req_[0-9A-Z]{26}", b"<request>", body)


async def ask(client: Client, route: Route, values: dict[str, str]) -> Answer:
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", values[name])
    body = BODIES.get(route.name)
    headers = {"If-Match": '"1"'} if route.name == "jobs.replace" else {}
    return await client(route.method, path, body, headers=headers)


async def test_a_foreign_id_answers_like_a_missing_one(served: Served, admin: Client) -> None:
    foreign = await things_of(served)
    assert len(WITH_IDS) > 20
    for route in WITH_IDS:
        if route.name in TAKES_NAMES:
            continue  # takes names, which every tenant has for itself
        theirs = await ask(admin, route, foreign)
        nobodys = await ask(admin, route, MISSING)
        name = route.parameters[0]
        told = without_ids(theirs, foreign[name]), without_ids(nobodys, MISSING[name])
        assert theirs.status == nobodys.status == 404, (route.name, theirs.body, nobodys.body)
        assert told[0] == told[1], route.name


async def test_every_operation_asks_for_its_scope(served: Served) -> None:
    nobody = served.client(None)
    for route in ROUTES:
        if route.is_public:
            continue
        values = {name: MISSING.get(name, "x") for name in route.parameters}
        answer = await ask(nobody, route, values)
        assert (answer.status, answer.code) == (401, "missing_credentials"), route.name
        if not route.scope:
            continue
        others = sorted(EVERYTHING - {route.scope})
        lacking = served.client(await served.key(kind="ak", scopes=others))
        refused = await ask(lacking, route, values)
        assert (refused.status, refused.code) == (403, "scope_missing"), route.name


async def test_no_answer_of_one_tenant_contains_a_word_of_another(served: Served) -> None:
    """Two tenants full of canaries; everything that can be read is read."""
    clients: dict[str, Client] = {}
    for word in ("canaryalpha", "canarybravo"):
        tenant = await served.tenant(word)
        client = clients[word] = served.client(await served.key(tenant))
        body = {
            "schedule": "every 1h",
            "handler": word,
            "name": word,
            "payload": word,
            "tags": {word: word},
            "queue": word,
        }
        assert (await client("POST", "/v1/jobs", body)).status == 201
        run = {"handler": word, "payload": word, "queue": word}
        assert (await client("POST", "/v1/runs", run)).status == 202
        assert (await client("POST", "/v1/workers", {"name": word, "queues": [word]})).status == 201
        assert (await client("POST", "/v1/api-keys", {"name": word})).status == 201
    skipped = {"events.stream", "tenants.list"}
    readable = [
        route
        for route in ROUTES
        if route.method == "GET" and not route.parameters and route.name not in skipped
    ]
    for word, other in (("canaryalpha", "canarybravo"), ("canarybravo", "canaryalpha")):
        for route in readable:
            answer = await clients[word](route.method, route.path)
            assert other.encode() not in answer.body, route.name
        stolen = await clients[word]("GET", f"/v1/jobs/{other}")
        assert stolen.status == 404
        theirs = await names_of(clients[other])
        for route in ROUTES:
            if set(route.parameters) <= set(theirs) and route.parameters:
                answer = await ask(clients[word], route, theirs)
                assert other.encode() not in answer.body, route.name
                assert other not in str(answer.headers), route.name
    told = " ".join(str(event) for event in served.recorder.events)
    assert "canary" not in told
    readings = served.service.telemetry.snapshot()
    assert readings
    assert not [one for one in readings if "canary" in str(one.labels)]


async def names_of(client: Client) -> dict[str, str]:
    """The ids of what a tenant has, none of which contains its word."""
    listed = {
        "job": ("/v1/jobs", "id"),
        "run": ("/v1/runs", "id"),
        "worker": ("/v1/workers", "id"),
        "key": ("/v1/api-keys", "id"),
        "act": ("/v1/audit", "id"),
    }
    found: dict[str, str] = {}
    for name, (path, member) in listed.items():
        item = (await client("GET", path)).json["items"][0]
        found[name] = item.get(member) or item["worker_id"]
    return found


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_code_of_a_route_has_its_page(route: Route) -> None:
    assert set(problems_of(route)) <= set(CODES)
    assert route.says.endswith(".")
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", route.name)
