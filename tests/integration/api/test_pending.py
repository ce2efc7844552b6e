"""Edits that also concern what waits already."""

from typing import Any

import pytest

from api_kit import Client, Served
from ops_kit import fetch

JOB = {"schedule": {"type": "manual"}, "handler": "old", "payload": {"n": 1}, "name": "j"}
WORKER = {"name": "w", "queues": ["default"], "slots": 10}


async def lease(admin: Client, most: int = 10) -> list[dict[str, Any]]:
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0, "max": most})
    found: list[dict[str, Any]] = leased.json["runs"]
    return found


@pytest.mark.parametrize(
    ("query", "handler", "payload"),
    [("", "old", {"n": 1}), ("?apply_to=future", "old", {"n": 1}), ("?apply_to=pending", "new", 2)],
)
async def test_what_waits_is_done_as_it_was_or_as_it_is_now(
    admin: Client, query: str, handler: str, payload: object
) -> None:
    await admin("POST", "/v1/jobs", JOB)
    run = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    edited = await admin("PATCH", f"/v1/jobs/j{query}", {"handler": "new", "payload": 2})
    assert edited.status == 200, edited.body
    (one,) = await lease(admin)
    assert (one["run_id"], one["handler"], one["payload"]) == (run, handler, payload)


async def test_what_a_worker_has_stays_as_it_was(served: Served, admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    held = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    assert [one["run_id"] for one in await lease(admin, 1)] == [held]
    waits = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    await admin("PATCH", "/v1/jobs/j?apply_to=pending", {"payload": 2})
    shown = {run: (await admin("GET", f"/v1/runs/{run}")).json for run in (held, waits)}
    assert (shown[held]["revision"], shown[waits]["revision"]) == (1, 2)


async def test_a_payload_of_its_own_stays(admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    await admin("POST", "/v1/jobs/j/run", {"payload_override": {"mine": True}})
    await admin("PATCH", "/v1/jobs/j?apply_to=pending", {"payload": 2, "handler": "new"})
    (one,) = await lease(admin)
    assert (one["handler"], one["payload"]) == ("new", {"mine": True})


async def test_a_retry_that_waits_takes_the_new_way(admin: Client) -> None:
    await admin("POST", "/v1/jobs", {**JOB, "retry": {"backoff": "fixed", "initial": 0}})
    await admin("POST", "/v1/jobs/j/run")
    (one,) = await lease(admin)
    failed = await admin("POST", f"/v1/leases/{one['lease_id']}/fail")
    assert failed.json["next_state"] == "retry_wait"
    await admin("PATCH", "/v1/jobs/j?apply_to=pending", {"retry": {"max_attempts": 2}})
    (two,) = await lease(admin)
    assert (two["attempt"], two["max_attempts"]) == (2, 2)


async def test_a_trial_changes_nothing(served: Served, admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    await admin("POST", "/v1/jobs/j/run")
    query = "apply_to=pending&validate_only=true"
    tried = await admin("PATCH", f"/v1/jobs/j?{query}", {"payload": 2})
    assert (tried.status, tried.json["validated"]) == (200, True)
    assert [row["revision"] for row in await fetch(served.desk.database, REVISIONS)] == [1]
    wrong = await admin("PATCH", "/v1/jobs/j?apply_to=past", {"payload": 2})
    assert (wrong.status, wrong.code) == (400, "invalid_parameter")


REVISIONS = "SELECT revision FROM betimes.runs"
