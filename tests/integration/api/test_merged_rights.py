"""Rights beyond an operation's own scope, judged on what comes of a request.

The table names every operation that changes something stored. An operation that asks for a further
right has cases here; one that asks for none says why. A new one is in neither, which fails.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from api_kit import Client, Served
from betimes.api.routes import ROUTES
from betimes.domain.scopes import Scope

ORIGIN = "https://api.example.com"
NO_MORE = "nothing in its result needs another right"
NOTHING_MORE = {
    "alert_rules.put": NO_MORE,
    "calendars.put": NO_MORE,
    "dead_letters.update": NO_MORE,
    "keys.update": "judged by `check_reach`, see test_key_reach",
    "members.update": "judged by `check_reach`, see test_key_reach and test_reach",
    "queues.put": NO_MORE,
    "rate_limits.put": NO_MORE,
    "runs.update": NO_MORE,
    "secrets.put": NO_MORE,
    "secrets.bind": NO_MORE,
    "tenants.update": "administrators only",
    "tenants.set_quotas": "administrators only",
}

Make = Callable[[Client], Awaitable[str]]


@dataclass(frozen=True)
class Case:
    """Somebody without a scope changes what somebody with it has made."""

    operation: str
    lacks: str
    make: Make
    method: str
    tail: str
    body: Any
    fine: list[Any] = field(default_factory=list)
    """Bodies that ask for nothing, and stay allowed."""


async def full_endpoint(admin: Client) -> str:
    asked = {"type": "webhook", "url": f"{ORIGIN}/hook", "event_types": ["*"], "payload": "full"}
    made = await admin("POST", "/v1/endpoints", asked)
    assert made.status == 201, made.body
    return f"/v1/endpoints/{made.json['id']}"


async def job(admin: Client, **more: Any) -> str:
    target = {"type": "http", "url": f"{ORIGIN}/hook", **more.pop("target", {})}
    made = await admin("POST", "/v1/jobs", {"schedule": "every 1h", "target": target, **more})
    assert made.status == 201, made.body
    return f"/v1/jobs/{made.json['id']}"


async def job_with_payload(admin: Client) -> str:
    return await job(admin, payload={"card": 1})


async def job_with_body(admin: Client) -> str:
    return await job(admin, target={"body": {"card": 1}})


async def job_with_headers(admin: Client) -> str:
    return await job(admin, target={"headers": {"x-key": "plain"}})


async def job_with_secret(admin: Client) -> str:
    await admin("PUT", "/v1/secrets/s", {"value": "hush-hush", "origins": ["*"]})
    return await job(admin, target={"auth": {"type": "bearer", "secret": "s"}})


async def flow_with_secret(admin: Client) -> str:
    await admin("PUT", "/v1/secrets/s", {"value": "hush-hush", "origins": ["*"]})
    node = {"target": with_secret(f"{ORIGIN}/hook")}
    assert (await admin("PUT", "/v1/workflows/flow", {"nodes": {"a": node}})).status == 201
    return "/v1/workflows/flow"


async def handled_job(admin: Client) -> str:
    flow = {"nodes": {"a": {"target": sent_on(EVIL), "payload": {"$input": ""}}}}
    assert (await admin("PUT", "/v1/workflows/mine", flow)).status == 201
    asked = {"schedule": "every 1h", "handler": "h", "payload": {"card": 1}}
    return f"/v1/jobs/{(await admin('POST', '/v1/jobs', asked)).json['id']}"


async def flow_with_input(admin: Client) -> str:
    """Jobs start it with payloads that not everybody may read."""
    flow = {"nodes": {"a": FED, "b": {"target": sent_on(EVIL)}}}
    assert (await admin("PUT", "/v1/workflows/flow", flow)).status == 201
    return "/v1/workflows/flow"


def sent_on(url: str) -> dict[str, Any]:
    return {"type": "http", "url": url}


def with_secret(url: str) -> dict[str, Any]:
    return {"type": "http", "url": url, "auth": {"type": "bearer", "secret": "s"}}


EVIL = "https://evil.example.com/"
EVERYTHING = frozenset(one.value for one in Scope)
READS, USES = "payloads:read", "secrets:use"
MOVED = {"target": {"url": EVIL}}
FED = {"target": {"type": "http", "url": f"{ORIGIN}/hook"}, "payload": {"$input": ""}}
STARTS = {"handler": None, "target": {"type": "workflow", "workflow": "mine"}}
CASES = [
    *(
        Case("endpoints.update", READS, full_endpoint, "PATCH", "", body, [{"disabled": True}])
        for body in (
            {"url": EVIL},
            {"event_types": ["run.*"]},
            {"filter": {"queues": ["mail"]}},
            {"payload": "full"},
            {"disabled": True, "url": EVIL},
            {"disabled": False},
        )
    ),
    Case("endpoints.rotate_secret", READS, full_endpoint, "POST", "/rotate-secret", {}),
    Case("endpoints.enable", READS, full_endpoint, "POST", "/enable", {}),
    Case("jobs.update", READS, job_with_payload, "PATCH", "", MOVED, [{"schedule": "every 2h"}]),
    Case(
        "jobs.update",
        READS,
        job_with_body,
        "PATCH",
        "",
        MOVED,
        [{"target": {"url": EVIL, "body": {"mine": 1}}}],
    ),
    Case(
        "jobs.update",
        READS,
        job_with_headers,
        "PATCH",
        "",
        MOVED,
        [{"target": {"timeout": "PT5S"}}],
    ),
    Case(
        "jobs.update",
        READS,
        handled_job,
        "PATCH",
        "",
        STARTS,
        [{"handler": "other"}, {**STARTS, "payload": {"mine": 1}}],
    ),
    *(
        Case(
            "workflows.put",
            READS,
            flow_with_input,
            "PUT",
            "",
            {"nodes": {"a": FED, "b": node}},
            [{"nodes": {"a": FED, "b": {"target": sent_on(f"{EVIL}more"), "payload": {"my": 1}}}}],
        )
        for node in (
            {"target": sent_on(EVIL), "payload": {"deep": [{"$input": "/card"}]}},
            {"target": sent_on(EVIL), "payload": {"$output": "a"}},
            {
                "target": sent_on(EVIL),
                "payload": {"$item": ""},
                "map": {"over": {"$input": "/cards"}},
            },
        )
    ),
    Case("jobs.update", USES, job_with_secret, "PATCH", "", MOVED, [{"priority": 7}]),
    Case(
        "jobs.replace",
        USES,
        job_with_secret,
        "PUT",
        "",
        {"schedule": "every 1h", "target": with_secret(EVIL)},
    ),
    Case(
        "workflows.put",
        USES,
        flow_with_secret,
        "PUT",
        "",
        {"nodes": {"a": {"target": with_secret(EVIL)}}},
        [{"nodes": {"a": {"target": with_secret(f"{ORIGIN}/hook")}, "b": {"handler": "h"}}}],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: f"{one.operation} {one.body}")
async def test_what_comes_of_a_change_decides(served: Served, admin: Client, case: Case) -> None:
    place = await case.make(admin)
    if case.method == "PUT" and place.startswith("/v1/jobs/"):
        place = "/v1/jobs/fresh?force=true"
    narrow = served.client(await served.key(kind="ak", scopes=sorted(EVERYTHING - {case.lacks})))
    refused = await narrow(case.method, f"{place}{case.tail}", case.body)
    assert (refused.status, refused.code) == (403, "scope_missing"), refused.body
    assert f"needs the scope {case.lacks}" in refused.json["detail"]
    for body in case.fine:
        allowed = await narrow(case.method, f"{place}{case.tail}", body)
        assert allowed.status in (200, 201), (body, allowed.body)
    done = await admin(case.method, f"{place}{case.tail}", case.body)
    assert done.status in (200, 201), done.body


def test_every_operation_that_changes_something_is_judged_or_says_why() -> None:
    changing = {route.name for route in ROUTES if route.method in ("PATCH", "PUT")}
    judged = {case.operation for case in CASES}
    assert changing - judged == set(NOTHING_MORE) - judged
    assert not judged & set(NOTHING_MORE)
