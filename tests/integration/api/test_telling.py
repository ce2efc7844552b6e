"""Runs that end without a worker are told like those that end with one."""

from json import loads
from typing import Any

from api_kit import Client, Served
from betimes.store.pool import Lane

SOON = {"schedule": {"type": "interval", "every": "PT2S"}, "handler": "h"}
MEMBERS = {
    *("run_id", "job_id", "state", "queue", "handler", "attempt", "reason", "next_retry_at"),
}


async def told(served: Served, kind: str) -> list[dict[str, Any]]:
    """What was told of a kind, in order; the list over HTTP ends some seconds ago."""
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        rows = await connection.fetch(
            "SELECT body FROM betimes.outbox WHERE type = $1 ORDER BY id", kind
        )
    return [loads(row["body"]) for row in rows]


async def test_a_run_that_is_cancelled_is_told_once(served: Served, admin: Client) -> None:
    run = (await admin("POST", "/v1/runs", {"handler": "h", "delay": "PT1H"})).json["id"]
    assert (await admin("POST", f"/v1/runs/{run}/cancel", {"reason": "why"})).status == 200
    await admin("POST", f"/v1/runs/{run}/cancel")
    (body,) = await told(served, "run.cancelled")
    assert set(body) == MEMBERS
    assert (body["run_id"], body["state"], body["reason"]) == (run, "cancelled", "why")


async def test_what_a_pause_ends_is_told(served: Served, admin: Client) -> None:
    job = (await admin("POST", "/v1/jobs", SOON)).json["id"]
    assert (await admin("POST", f"/v1/jobs/{job}/pause")).status == 200
    bodies = await told(served, "run.skipped")
    assert bodies
    assert {(body["job_id"], body["reason"]) for body in bodies} == {(job, "JOB_PAUSED")}


async def test_a_fire_that_somebody_skips_is_told(served: Served, admin: Client) -> None:
    hourly = {"schedule": "every 1h", "handler": "h"}
    job = (await admin("POST", "/v1/jobs", hourly)).json["id"]
    assert (await admin("POST", f"/v1/jobs/{job}/skip-next", {"count": 2})).status == 200
    bodies = await told(served, "run.skipped")
    assert [body["reason"] for body in bodies] == ["SKIPPED_BY_USER"] * 2


async def test_a_worker_that_goes_is_told(served: Served, admin: Client) -> None:
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    assert (await admin("DELETE", f"/v1/workers/{worker}")).status == 204
    assert [body["worker_id"] for body in await told(served, "worker.offline")] == [worker]
