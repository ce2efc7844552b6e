"""Rates by key, and shares of queues, for workers that speak HTTP."""

from collections import Counter
from typing import Any

import pytest

from api_kit import Client, Served
from integration.api.test_workers import leased, worker_of


async def make(admin: Client, count: int, **more: Any) -> list[str]:
    items = [{"handler": "noop", **more} for _ in range(count)]
    made = await admin("POST", "/v1/runs/batch", {"items": items})
    assert made.status in {201, 202}, made.body
    return [one["id"] for one in made.json["items"]]


async def complete(client: Client, runs: list[dict[str, Any]]) -> None:
    for one in runs:
        done = await client("POST", f"/v1/leases/{one['lease_id']}/complete", {})
        assert done.status == 200, done.body


async def test_a_rate_is_said_read_listed_and_forgotten(served: Served, admin: Client) -> None:
    for key, limit in (("a/b", 3), ("stripe", 100)):
        path = f"/v1/rate-limits/{key.replace('/', '%2F')}"
        said = await admin("PUT", path, {"limit": limit, "per": "1m"})
        assert (said.status, said.json) == (200, {"key": key, "limit": limit, "per": "PT1M"})
        assert (await admin("GET", path)).json == said.json
    page = (await admin("GET", "/v1/rate-limits?limit=1")).json
    assert [one["key"] for one in page["items"]] == ["a/b"]
    rest = await admin("GET", f"/v1/rate-limits?limit=9&cursor={page['next_cursor']}")
    assert [one["key"] for one in rest.json["items"]] == ["stripe"]
    assert (await admin("DELETE", "/v1/rate-limits/stripe")).status == 204
    assert (await admin("DELETE", "/v1/rate-limits/stripe")).status == 404
    assert (await admin("GET", "/v1/rate-limits/stripe")).status == 404
    assert (await admin("PUT", "/v1/rate-limits/x", {"limit": 0})).status == 400
    assert (await admin("PUT", "/v1/rate-limits/x", {"limit": 1, "per": "P999D"})).status == 400
    other = await served.admin()
    await admin("POST", "/v1/tenants", {"slug": "other", "name": "O"})
    foreign = await other("GET", "/v1/rate-limits/a%2Fb", headers={"Betimes-Tenant": "other"})
    assert foreign.status == 404


async def test_http_workers_start_no_faster_than_the_rate_of_a_key(
    served: Served, admin: Client
) -> None:
    await admin("PUT", "/v1/rate-limits/stripe", {"limit": 2, "per": "PT60S"})
    client, worker = await worker_of(served)
    runs = await make(admin, 4, rate_limit_key="stripe")
    (first,) = await leased(client, worker, 4)
    assert await leased(client, worker, 4) == [], "one second's worth at once is one"
    waiting = next(run for run in runs if run != first["run_id"])
    told = (await admin("GET", f"/v1/runs/{waiting}/explain")).json
    (reason,) = told["reasons"]
    assert (told["verdict"], reason["code"]) == ("waiting", "RATE_LIMITED")
    assert reason["evidence"]["name"] == "stripe"
    assert reason["since"] is not None
    assert told["ahead"] in {0, 1, 2}
    assert told["expected_at"] >= reason["evidence"]["free_at"].replace("+00:00", "Z")
    free = await make(admin, 1)
    assert [one["run_id"] for one in await leased(client, worker)] == free
    # Given back, it has not begun: its token is there for the next one.
    released = await client("POST", f"/v1/leases/{first['lease_id']}/release")
    assert released.status == 200, released.body
    (second,) = await leased(client, worker, 4)
    assert second["run_id"] in runs
    assert await leased(client, worker, 4) == []


async def test_a_job_carries_its_rate_limit_key(admin: Client) -> None:
    body = {"schedule": "every 1h", "handler": "noop", "rate_limit_key": "stripe"}
    made = await admin("POST", "/v1/jobs", body)
    assert made.json["rate_limit_key"] == "stripe", made.body
    patched = await admin("PATCH", f"/v1/jobs/{made.json['id']}", {"rate_limit_key": None})
    assert "rate_limit_key" not in patched.json
    assert (await admin("POST", "/v1/jobs", body | {"rate_limit_key": ""})).status == 400


async def test_queues_share_an_http_worker_by_their_weights(served: Served, admin: Client) -> None:
    for queue, weight in (("light", 1), ("heavy", 3)):
        await admin("PUT", f"/v1/queues/{queue}", {"weight": weight})
    kinds = [{"queue": queue, "tags": {"queue": queue}} for queue in ("light", "heavy")]
    client = served.client(await served.key(kind="wk"))
    body = {"name": "w", "handlers": ["noop"], "queues": ["light", "heavy"], "slots": 9}
    worker = (await client("POST", "/v1/workers", body)).json["worker_id"]
    for kind in kinds:
        await make(admin, 100, **kind)
    had: Counter[str] = Counter()
    for _ in range(40):
        got = await leased(client, worker, 2)
        had.update(one["tags"]["queue"] for one in got)
        await complete(client, got)
    assert had.total() == 80
    assert had["heavy"] / had.total() == pytest.approx(0.75, rel=0.1)


async def test_fairness_keys_take_turns_over_http(served: Served, admin: Client) -> None:
    await admin("PUT", "/v1/queues/default", {"fairness": "key"})
    await make(admin, 60, fairness_key="crowd")
    (small,) = await make(admin, 1, fairness_key="small")
    client, worker = await worker_of(served)
    seen = [one["run_id"] for _ in range(3) for one in await leased(client, worker, 2)]
    assert small in seen


async def test_without_fairness_the_oldest_goes_first_whatever_its_key(
    served: Served, admin: Client
) -> None:
    """Under `none` all keys stand in one row; else those of one key are taken together."""
    await admin("PUT", "/v1/queues/default", {"fairness": "none"})
    items = [
        {"handler": "noop", "fairness_key": key, "priority": priority}
        for key, priority in (("a", 9), ("b", 8), ("a", 7), ("b", 6), ("a", 5), ("b", 4))
    ]
    made = (await admin("POST", "/v1/runs/batch", {"items": items})).json["items"]
    ids = [one["id"] for one in made]
    client, worker = await worker_of(served)
    seen = [{one["run_id"] for one in await leased(client, worker, 2)} for _ in range(3)]
    assert seen == [set(ids[:2]), set(ids[2:4]), set(ids[4:])]


async def test_a_queue_keeps_its_settings_of_rate_and_retention(admin: Client) -> None:
    body = {"per_key_rate": {"limit": 5, "per": "PT1S"}, "retention": "PT1H"}
    put = await admin("PUT", "/v1/queues/short", body)
    assert put.status == 200, put.body
    assert put.json["settings"]["retention"] == "PT1H"
    assert put.json["settings"]["per_key_rate"] == {"limit": 5, "per": "PT1S"}
    refused = await admin("PUT", "/v1/queues/short", {"retention": "PT1S"})
    assert (refused.status, refused.code) == (400, "invalid_parameter")
