"""What is tried again soon is listed where it is due again, among runs and fires."""

from typing import Any

import pytest

from api_kit import Client, Served

WORKER = {"name": "w", "queues": ["default", "mail"], "slots": 100}
RETRY = {"backoff": "fixed", "initial": 0, "max": "PT1H", "jitter": "none"}


async def failed(admin: Client, pauses: list[str], queue: str = "default") -> list[str]:
    """Runs that are tried again after these pauses."""
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    items = [{"handler": "h", "queue": queue, "retry": RETRY}] * len(pauses)
    await admin("POST", "/v1/runs/batch", {"items": items})
    want = {"wait": 0, "max": len(pauses), "queues": [queue]}
    leased = (await admin("POST", f"/v1/workers/{worker}/lease", want)).json["runs"]
    for one, pause in zip(leased, pauses, strict=True):
        body = {"retry": {"after": pause}}
        told = await admin("POST", f"/v1/leases/{one['lease_id']}/fail", body)
        assert told.json["next_state"] == "retry_wait", told.body
    return [one["run_id"] for one in leased]


async def soon(admin: Client, query: str = "") -> list[dict[str, Any]]:
    answer = await admin("GET", f"/v1/upcoming?within=PT1H&{query}")
    assert answer.status == 200, answer.body
    items: list[dict[str, Any]] = answer.json["items"]
    return items


async def test_retries_stand_where_they_are_due_again(admin: Client) -> None:
    one, other = await failed(admin, ["PT50M", "PT10M"])
    between = (await admin("POST", "/v1/runs", {"handler": "h", "delay": "PT30M"})).json["id"]
    hourly = {"schedule": {"type": "interval", "every": "PT20M"}, "handler": "h"}
    await admin("POST", "/v1/jobs", hourly)
    items = await soon(admin)
    assert [item["due_at"] for item in items] == sorted(item["due_at"] for item in items)
    assert [(item["kind"], item["run_id"]) for item in items if item["kind"] != "fire"] == [
        ("retry", other),
        ("run", between),
        ("retry", one),
    ]
    assert [item["kind"] for item in items].count("fire") >= 2
    assert [item["run_id"] for item in await soon(admin, "include=retries")] == [other, one]
    assert {item["kind"] for item in await soon(admin, "include=runs,fires")} == {"run", "fire"}


async def test_retries_are_found_by_queue(served: Served, admin: Client) -> None:
    (mail,) = await failed(admin, ["PT10M"], "mail")
    await failed(admin, ["PT10M"])
    assert [item["run_id"] for item in await soon(admin, "include=retries&queue=mail")] == [mail]
    other = served.client(await served.key(await served.tenant("other")))
    assert await soon(other, "include=retries") == []


@pytest.mark.parametrize("limit", [1, 3])
async def test_pages_of_retries_that_are_due_together_fit(admin: Client, limit: int) -> None:
    """Reports of one batch are tried again in the same microsecond."""
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    items = [{"handler": "h", "retry": {**RETRY, "initial": "PT10M"}}] * 7
    await admin("POST", "/v1/runs/batch", {"items": items})
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0, "max": 7})
    reports = [{"lease_id": one["lease_id"], "action": "fail"} for one in leased.json["runs"]]
    await admin("POST", "/v1/leases/batch", {"items": reports})
    whole = [item["run_id"] for item in await soon(admin, "limit=100")]
    assert sorted(whole) == sorted(one["run_id"] for one in leased.json["runs"])
    seen: list[str] = []
    query = f"/v1/upcoming?within=PT1H&limit={limit}"
    page = await admin("GET", query)
    while True:
        seen += [item["run_id"] for item in page.json["items"]]
        if page.json["next_cursor"] is None:
            break
        page = await admin("GET", f"{query}&cursor={page.json['next_cursor']}")
    assert seen == whole
