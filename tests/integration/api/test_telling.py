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
    assert (body["run_id"], body["state"], body["reason"]) == (run, "cancelled", "RUN_CANCELLED")


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


async def run_events(admin: Client, told: str) -> None:
    answer = await admin("PATCH", "/v1/tenants/default", {"settings": {"run_events": told}})
    assert answer.status == 200, answer.body


FAILING = {"handler": "h", "retry": {"max_attempts": 2, "backoff": "fixed", "initial": 0}}


async def fail_once(admin: Client, retry: str = "auto") -> str:
    """A run whose attempt fails."""
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    run = str((await admin("POST", "/v1/runs", FAILING)).json["id"])
    (one,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    await admin("POST", f"/v1/leases/{one['lease_id']}/fail", {"retry": retry})
    return run


async def test_a_failure_is_told_to_those_who_asked(served: Served, admin: Client) -> None:
    await fail_once(admin, "never")
    assert await told(served, "run.failed") == []
    assert len(await told(served, "run.dead")) == 1
    await run_events(admin, "all")
    run = await fail_once(admin)
    (body,) = await told(served, "run.failed")
    assert set(body) == MEMBERS | {"error"}
    assert (body["run_id"], body["state"], body["attempt"]) == (run, "retry_wait", 1)
    assert body["next_retry_at"] is not None
    assert [one["run_id"] for one in await told(served, "run.retrying")] == [run]


async def test_a_failure_is_told_where_an_endpoint_takes_it(served: Served, admin: Client) -> None:
    endpoint = {"type": "webhook", "url": "https://example.com/", "event_types": ["run.failed"]}
    made = await admin("POST", "/v1/endpoints", endpoint)
    assert made.status == 201, made.body
    run = await fail_once(admin)
    assert [body["run_id"] for body in await told(served, "run.failed")] == [run]
    assert await told(served, "run.succeeded") == []


async def test_an_edit_that_leaves_no_fires_completes_a_job(served: Served, admin: Client) -> None:
    hourly = {"schedule": "every 1h", "handler": "h", "name": "j"}
    job = (await admin("POST", "/v1/jobs", hourly)).json["id"]
    soon = {"schedule": "in 1s"}
    edited = await admin("PATCH", "/v1/jobs/j", soon)
    assert edited.json["status"]["state"] == "active", "its last run is not over"
    (body,) = await told(served, "job.completed")
    assert body == {"job_id": job, "name": "j", "state": "completed"}


async def test_quotas_are_told_once_when_they_are_nearly_and_wholly_used(
    served: Served, admin: Client
) -> None:
    tenant = await served.tenant("small")
    assert (await admin("PUT", "/v1/tenants/small/quotas", {"quotas": {"jobs": 5}})).status == 200
    small = served.client(await served.key(tenant))
    job = {"schedule": "every 1h", "handler": "h"}
    for number in range(5):
        made = await small("POST", "/v1/jobs", job)
        assert made.status == 201, made.body
        assert len(await told(served, "quota.warning")) == (number >= 3), number
    for _ in range(3):
        refused = await small("POST", "/v1/jobs", job)
        assert (refused.status, refused.code) == (429, "quota_exceeded")
    assert await told(served, "quota.warning") == [{"quota": "jobs", "limit": 5, "used": 4}]
    assert await told(served, "quota.exceeded") == [{"quota": "jobs", "limit": 5, "used": 5}]
    served.service.meter._told.clear()  # another node, which has told nothing yet
    assert (await small("POST", "/v1/jobs", job)).status == 429
    assert len(await told(served, "quota.exceeded")) == 1
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "UPDATE betimes.quota_news SET told_at = told_at - interval '61 minutes'"
        )
    served.service.meter._told.clear()
    assert (await small("POST", "/v1/jobs", job)).status == 429
    assert len(await told(served, "quota.exceeded")) == 2


async def test_a_job_whose_last_fire_is_seconds_away_is_told_as_active(
    served: Served, admin: Client
) -> None:
    await admin("POST", "/v1/jobs", {"name": "j", "schedule": "in 2s", "handler": "h"})
    (body,) = await told(served, "job.created")
    assert body["state"] == "active"
