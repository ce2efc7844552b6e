"""What all operations have in common."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest

from api_kit import Answer, Client, Served
from betimes.api.routes import ROUTES
from betimes.api.version import API_VERSION
from betimes.domain.ids import from_text
from betimes.domain.trace import traceparent_of

JOB = {"schedule": "every 1h", "handler": "h"}
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def made(admin: Client, count: int, **more: Any) -> list[str]:
    return [
        (await admin("POST", "/v1/jobs", {**JOB, "name": f"n{number:03}", **more})).json["id"]
        for number in range(count)
    ]


async def a_lease(admin: Client) -> dict[str, Any]:
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    answer = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
    (leased,) = answer.json["runs"]
    return dict(leased)


async def test_the_version_is_named_and_another_one_refused(admin: Client) -> None:
    assert (await admin("GET", "/v1/jobs")).headers["api-version"] == API_VERSION
    assert (await admin("GET", "/v1/nothing")).headers["api-version"] == API_VERSION
    same = await admin("GET", "/v1/jobs", headers={"API-Version": API_VERSION})
    assert same.status == 200
    other = await admin("GET", "/v1/jobs", headers={"API-Version": "2020-01-01"})
    assert (other.status, other.code) == (400, "invalid_parameter")
    assert API_VERSION in other.json["detail"]


async def test_a_run_has_a_trace_of_its_own_with_a_link_to_its_creator(admin: Client) -> None:
    sent = {"traceparent": PARENT, "tracestate": "vendor=a, other=b"}
    run = (await admin("POST", "/v1/runs", {"handler": "h"}, headers=sent)).json["id"]
    trace = (await admin("GET", f"/v1/runs/{run}")).json["trace"]
    identity = from_text("run", run)
    state = "vendor=a,other=b"
    assert trace == {"trace_id": identity.hex, "link": PARENT, "state": state}
    leased = await a_lease(admin)
    assert leased["traceparent"] == traceparent_of(identity, 1)
    assert leased["tracestate"] == state
    for broken in (
        "x",
        PARENT[:-1],
        PARENT.replace("4bf9", "ZZZZ"),
        "00-" + "0" * 32 + PARENT[35:],
    ):
        answer = await admin("POST", "/v1/runs", {"handler": "h"}, headers={"traceparent": broken})
        found = await admin("GET", f"/v1/runs/{answer.json['id']}")
        assert found.json["trace"]["link"] is None, broken


async def test_fields_are_selected_on_every_reading(admin: Client) -> None:
    (job,) = await made(admin, 1)
    for path in ("/v1/calendars", "/v1/runs", "/v1/jobs", "/v1/whoami", f"/v1/jobs/{job}"):
        unknown = await admin("GET", f"{path}?fields=nonsense")
        assert (unknown.status, unknown.code) == (400, "invalid_parameter"), path
    one = await admin("GET", f"/v1/jobs/{job}?fields=id,name")
    assert one.json == {"id": job, "name": "n000"}
    page = await admin("GET", "/v1/jobs?fields=name")
    assert page.json["items"] == [{"name": "n000"}]
    assert (await admin("GET", "/v1/queues?fields=name")).status == 200
    assert set((await admin("GET", "/v1/whoami?fields=tenant")).json) == {"tenant"}
    for path in (f"/v1/jobs/{job}?fields=nme", "/v1/whoami?fields=nme", "/v1/jobs?fields="):
        wrong = await admin("GET", path)
        assert (wrong.status, wrong.code) == (400, "invalid_parameter"), path


async def test_views_are_guarded_by_scope(served: Served, admin: Client) -> None:
    (job,) = await made(admin, 1, payload={"secret": 1})
    run = (await admin("POST", "/v1/runs", {"handler": "h", "payload": 7})).json["id"]
    reader = served.client(await served.key(kind="sk", scopes=["jobs:read", "runs:read"]))
    for path in (f"/v1/jobs/{job}?view=full", "/v1/jobs?view=full", f"/v1/runs/{run}?view=full"):
        refused = await reader("GET", path)
        assert (refused.status, refused.code) == (403, "scope_missing"), path
        assert (await admin("GET", path)).status == 200, path
    assert "payload" not in (await reader("GET", f"/v1/jobs/{job}")).json
    assert "payload" not in (await reader("GET", f"/v1/runs/{run}")).json


async def test_what_does_not_change_is_answered_304_and_costs_no_quota(
    admin: Client,
) -> None:
    (job,) = await made(admin, 1)
    run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    await admin("POST", f"/v1/runs/{run}/cancel")
    act = (await admin("GET", "/v1/audit?limit=1")).json["items"][0]["id"]
    for path in (
        f"/v1/jobs/{job}?view=definition",
        f"/v1/runs/{run}",
        f"/v1/audit/{act}",
        "/v1/openapi.json",
    ):
        first = await admin("GET", path)
        known = {"If-None-Match": first.headers["etag"]}
        before = left(await admin("GET", "/v1/jobs?limit=1"))
        again = await admin("GET", path, headers=known)
        assert (again.status, again.body) == (304, b""), path
        assert again.headers["etag"] == first.headers["etag"]
        assert left(await admin("GET", "/v1/jobs?limit=1")) >= before - 1, path
        other = await admin("GET", path, headers={"If-None-Match": '"other"'})
        assert (other.status, other.body) == (200, first.body)
    volatile = await admin("GET", f"/v1/jobs/{job}", headers={"If-None-Match": '"1"'})
    assert volatile.status == 200, "the state of a job moves without its revision"


def left(answer: Answer) -> int:
    return int(answer.headers["ratelimit"].partition(";r=")[2].partition(";")[0])


async def walk(admin: Client, path: str, *, member: str = "name") -> tuple[list[str], list[str]]:
    """All names forth by Link, and back again by prev_cursor."""
    forth: list[str] = []
    answer = await admin("GET", path)
    assert answer.json["prev_cursor"] is None
    while True:
        forth += [item[member] for item in answer.json["items"]]
        if answer.json["next_cursor"] is None:
            break
        link = answer.headers["link"].partition(">")[0].lstrip("<")
        answer = await admin("GET", link)
        assert answer.status == 200, answer.body
    back = [item[member] for item in answer.json["items"]]
    base = urlsplit(path)
    while (cursor := answer.json["prev_cursor"]) is not None:
        answer = await admin("GET", f"{base.path}?{base.query}&cursor={cursor}")
        assert answer.status == 200, answer.body
        back = [item[member] for item in answer.json["items"]] + back
    return forth, back


@pytest.mark.parametrize("sort", ["created_at", "-created_at"])
async def test_jobs_can_be_paged_in_both_directions(admin: Client, sort: str) -> None:
    await made(admin, 7)
    names = [f"n{number:03}" for number in range(7)]
    expected = names if sort == "created_at" else names[::-1]
    forth, back = await walk(admin, f"/v1/jobs?limit=3&sort={sort}&queue=default")
    assert forth == expected
    assert back == expected


async def test_runs_can_be_paged_in_both_directions(admin: Client) -> None:
    ids = []
    for number in range(7):
        at = f"2199-01-0{number + 1}T00:00:00Z"
        ids.append((await admin("POST", "/v1/runs", {"handler": "h", "at": at})).json["id"])
    path = "/v1/runs?limit=2&due_after=2199-01-01T00:00:00Z&state=scheduled"
    forth, back = await walk(admin, path, member="id")
    assert forth == ids[::-1]
    assert back == ids[::-1]


async def test_a_cursor_is_stable_while_rows_come_and_go(admin: Client) -> None:
    """Whoever stays is seen exactly once, whatever is inserted and deleted meanwhile."""
    jobs = await made(admin, 30)
    seen: list[str] = []
    first = "/v1/jobs?limit=4&fields=id"
    path: str | None = first
    number = 0
    page = await admin("GET", first)
    while path is not None:
        page = await admin("GET", path)
        seen += [item["id"] for item in page.json["items"]]
        await admin("DELETE", f"/v1/jobs/{jobs[number * 2]}")
        await admin("POST", "/v1/jobs", {**JOB, "name": f"late{number}"})
        cursor = page.json["next_cursor"]
        path = None if cursor is None else f"/v1/jobs?limit=4&fields=id&cursor={cursor}"
        number = min(number + 1, 14)
    assert len(seen) == len(set(seen))
    assert {job for place, job in enumerate(jobs) if place % 2 or place > 28} <= set(seen)
    other = await admin("GET", f"/v1/jobs?limit=4&cursor={page.json['prev_cursor']}&queue=x")
    assert (other.status, other.code) == (400, "cursor_invalid")
    runs = await admin("GET", f"/v1/runs?cursor={page.json['prev_cursor']}")
    assert (runs.status, runs.code) == (400, "cursor_invalid")


async def test_a_total_is_estimated_when_asked_for(admin: Client) -> None:
    await made(admin, 5)
    assert "estimated_total" not in (await admin("GET", "/v1/jobs")).json
    assert (await admin("GET", "/v1/jobs?count=estimate")).json["estimated_total"] == 5
    part = (await admin("GET", "/v1/jobs?count=estimate&limit=2")).json
    assert part["estimated_total"] >= 2
    assert (await admin("GET", "/v1/runs?count=estimate")).json["estimated_total"] == 0
    wrong = await admin("GET", "/v1/jobs?count=exact")
    assert (wrong.status, wrong.code) == (400, "invalid_parameter")


async def test_one_search_line_for_jobs_and_runs(admin: Client) -> None:
    await made(admin, 3, queue="mail", tags={"env": "prod"})
    await admin("POST", "/v1/jobs", {**JOB, "name": "Invoice Run", "queue": "bills"})

    async def names(line: str) -> list[str]:
        answer = await admin("GET", f"/v1/jobs?q={line}")
        assert answer.status == 200, answer.body
        return [item["name"] for item in answer.json["items"]]

    assert await names("queue:mail%20tag.env:prod") == ["n000", "n001", "n002"]
    assert await names("queue:mail,bills%20invoice") == ["Invoice Run"]
    assert await names("%22invoice%20run%22") == ["Invoice Run"]
    assert await names("state:paused") == []
    assert await names("name:n00%20type:interval") == ["n000", "n001", "n002"]
    run = (await admin("POST", "/v1/runs", {"handler": "h", "retry": {"max_attempts": 1}})).json[
        "id"
    ]
    leased = await a_lease(admin)
    await admin(
        "POST", f"/v1/leases/{leased['lease_id']}/fail", {"error": {"message": "Gateway TIMEOUT"}}
    )
    for line in ("state:failed%20since:1h%20%22timeout%22", "state:dead", "handler:h%20gateway"):
        found = await admin("GET", f"/v1/runs?q={line}")
        assert [item["id"] for item in found.json["items"]] == [run], line
    assert (await admin("GET", "/v1/runs?q=elsewhere")).json["items"] == []
    for line in ("nme:x", "state:flying", "since:soon", "%22open", "job:a%20job:b", "a:b:%22"):
        wrong = await admin("GET", f"/v1/runs?q={line}")
        assert (wrong.status, wrong.code) == (400, "invalid_parameter"), line
        assert "parameter q" in wrong.json["detail"] or "/q" in str(wrong.json["errors"]), line


async def test_every_create_replace_and_patch_can_be_tried(admin: Client) -> None:
    """All checks run, the answer says `validated`, and nothing is written."""
    trying = {route.name for route in ROUTES if route.tries}
    assert {"runs.create", "runs.create_many", "tenants.create", "queues.put"} <= trying
    for method, path, body in (
        ("POST", "/v1/runs", {"handler": "h"}),
        ("POST", "/v1/runs/batch", {"items": [{"handler": "h"}]}),
        ("POST", "/v1/jobs", JOB),
        ("POST", "/v1/jobs/batch", {"items": [JOB]}),
        ("POST", "/v1/tenants", {"slug": "t", "name": "T"}),
        ("POST", "/v1/api-keys", {"name": "k"}),
        ("PUT", "/v1/queues/mail", {}),
        ("PUT", "/v1/jobs/new", JOB),
    ):
        query = "validate_only=true" + ("&force=true" if path == "/v1/jobs/new" else "")
        tried = await admin(method, f"{path}?{query}", body)
        assert tried.status < 300, (path, tried.body)
        assert tried.json["validated"] is True, path
        assert not tried.json.get("secret"), "it will never open anything"
        assert len((await admin("GET", "/v1/audit?limit=100")).json["items"]) == 0, path
    assert (await admin("GET", "/v1/runs")).json["items"] == []
    assert (await admin("GET", "/v1/jobs")).json["items"] == []
    refused = await admin("POST", "/v1/runs?validate_only=true", {"handler": "h", "queue": "a:b"})
    assert refused.status in (400, 422)
    wrong = await admin("POST", "/v1/runs?validate_only=perhaps", {"handler": "h"})
    assert (wrong.status, wrong.code) == (400, "invalid_parameter")


async def test_a_batch_is_atomic_or_each_for_itself(admin: Client) -> None:
    items = [{"handler": "h"}, {"handler": "h", "delay": "x"}, {"handler": "h"}]
    refused = await admin("POST", "/v1/runs/batch", {"items": items})
    assert refused.status == 400
    assert [error["pointer"] for error in refused.json["errors"]] == ["/items/1/delay"]
    assert (await admin("GET", "/v1/runs")).json["items"] == []
    each = await admin("POST", "/v1/runs/batch", {"items": items, "mode": "independent"})
    assert each.status == 207
    assert [item["status"] for item in each.json["items"]] == [202, 400, 202]
    assert each.json["items"][1]["error"]["code"] == "invalid_parameter"
    assert len((await admin("GET", "/v1/runs")).json["items"]) == 2
    none = await admin("POST", "/v1/runs/batch", {"items": items[1:2], "mode": "independent"})
    assert (none.status, none.json["items"][0]["status"]) == (207, 400)


async def test_whoever_prefers_to_wait_gets_the_finished_run(admin: Client) -> None:
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]

    async def work() -> None:
        leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 10})
        (run,) = leased.json["runs"]
        await admin("POST", f"/v1/leases/{run['lease_id']}/complete", {"result": 42})

    (job,) = await made(admin, 1, schedule="manual")
    for path, body in (("/v1/runs", {"handler": "h"}), (f"/v1/jobs/{job}/run", {})):
        done, _ = await asyncio.gather(
            admin("POST", path, body, headers={"Prefer": "respond-async, wait=20"}), work()
        )
        assert (done.status, done.json["state"]) == (200, "succeeded"), path
        assert done.headers["preference-applied"] == "wait"
    promised = await admin("POST", "/v1/runs", {"handler": "h"}, headers={"Prefer": "wait=0"})
    assert (promised.status, promised.json["state"]) == (202, "queued")


async def test_a_long_poll_returns_early_when_the_node_drains(
    served: Served, admin: Client
) -> None:
    run = (await admin("POST", "/v1/runs", {"handler": "h", "delay": "1h"})).json["id"]
    waiting = admin("GET", f"/v1/runs/{run}/wait?timeout=30")

    async def drain() -> None:
        while not served.service.admission.waiting:
            await served.service.clock.sleep(0.01)
        served.service.draining.begun = True

    answer, _ = await asyncio.gather(waiting, drain())
    assert (answer.status, answer.json["state"]) == (200, "scheduled")


async def test_rates_are_told_per_tenant_and_policy(served: Served, admin: Client) -> None:
    other = served.client(await served.key(await served.tenant("other")))
    policies = {}
    for method, path, body in (
        ("GET", "/v1/jobs", None),
        ("POST", "/v1/jobs", JOB),
        ("POST", "/v1/runs/batch", {"items": [{"handler": "h"}]}),
    ):
        answer = await admin(method, path, body)
        policy = answer.headers["ratelimit-policy"].partition(";")[0]
        assert answer.headers["ratelimit"].startswith(f"{policy};r=")
        policies[policy] = left(answer)
    assert set(policies) == {'"default"', '"create"', '"bulk"'}
    assert (
        left(await other("POST", "/v1/runs/batch", {"items": [{"handler": "h"}]}))
        == (policies['"bulk"'])
    )


async def test_the_sources_own_names_work_as_written(admin: Client) -> None:
    """`POST /v1/jobs {runAt, cron, payloadRef, idempotencyKey} -> {jobId}`, cancel -> {status}."""
    for body in (
        {"cron": "0 9 * * *", "payloadRef": "s3://a/b", "idempotencyKey": "one"},
        {"runAt": "2199-01-01T00:00:00Z", "payloadRef": "s3://a/b", "idempotencyKey": "two"},
    ):
        created = await admin("POST", "/v1/jobs", body, idem=None)
        assert created.status == 201
        job = created.json["jobId"]
        again = await admin("POST", "/v1/jobs", body, idem=None)
        assert (again.json["jobId"], again.headers["idempotent-replayed"]) == (job, "true")
        cancelled = await admin("POST", f"/v1/jobs/{job}/cancel")
        assert (cancelled.status, cancelled.json["status"]["state"]) == (200, "cancelled")


async def test_the_version_names_the_commit(admin: Client) -> None:
    assert (await admin("GET", "/v1/version")).json["commit"] == "0123abc"
