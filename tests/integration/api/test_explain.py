"""Why did this not run?"""

from typing import Any

from api_kit import Client

JOB = {"schedule": {"type": "cron", "expr": "0 9 * * *"}, "handler": "h", "name": "n"}


async def test_a_job_and_a_run_explain_themselves(admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    told = (await admin("GET", "/v1/jobs/n/explain")).json
    assert (told["verdict"], told["reasons"][0]["code"]) == ("waiting", "NO_WORKER_FOR_QUEUE")
    assert told["next_fire_at"].endswith("T09:00:00.000000Z")
    assert told["summary"].endswith(f"The next fire is at {told['next_fire_at']}.")
    assert "workers" in told["checked"]
    assert "rate" not in told["checked"]
    at = "2199-06-01T09:00:00Z"
    then = (await admin("GET", f"/v1/jobs/n/explain?at={at}")).json
    assert (then["verdict"], then["reasons"][0]["code"]) == ("waiting", "NO_WORKER_FOR_QUEUE")
    await admin("POST", "/v1/workers", {"name": "w", "queues": ["default"], "handlers": ["h"]})
    assert (await admin("GET", f"/v1/jobs/n/explain?at={at}")).json["verdict"] == "will_run"
    await admin("POST", "/v1/queues/default/pause", {"until": "2199-01-01T00:00:00Z"})
    assert (await admin("GET", f"/v1/jobs/n/explain?at={at}")).json["verdict"] == "will_run"
    early = (await admin("GET", "/v1/jobs/n/explain?at=2198-06-01T09:00:00Z")).json
    assert (early["verdict"], early["reasons"][0]["code"]) == ("waiting", "QUEUE_PAUSED")
    await admin("POST", "/v1/queues/default/resume")
    off = (await admin("GET", "/v1/jobs/n/explain?at=2199-06-01T09:01:00Z")).json
    assert (off["verdict"], off["reasons"][0]["code"]) == ("will_not_run", "NOT_DUE")
    before = (await admin("GET", "/v1/jobs/n/explain?at=2001-06-01T09:00:00Z")).json
    assert before["reasons"][0]["code"] == "CREATED_AFTER_FIRE"
    await admin("POST", "/v1/jobs/n/pause", {"reason": "release"})
    paused = (await admin("GET", f"/v1/jobs/n/explain?at={at}")).json
    assert (paused["verdict"], paused["eligible"]) == ("will_not_run", False)
    assert paused["reasons"][0]["evidence"]["reason"] == "release"
    run = (await admin("POST", "/v1/runs", {"handler": "h", "queue": "q"})).json["id"]
    await admin("POST", "/v1/queues/q/pause")
    told = (await admin("GET", f"/v1/runs/{run}/explain")).json
    codes = [reason["code"] for reason in told["reasons"]]
    assert (told["verdict"], codes) == ("waiting", ["QUEUE_PAUSED", "NO_WORKER_FOR_QUEUE"])
    await admin("POST", f"/v1/runs/{run}/cancel")
    ended = (await admin("GET", f"/v1/runs/{run}/explain")).json
    assert (ended["verdict"], ended["reasons"][0]["code"]) == ("will_not_run", "RUN_CANCELLED")


async def test_the_words_of_whoever_cancels_stand_beside_the_code(admin: Client) -> None:
    """Never in its place, and they are gone with the next one."""

    async def ended(words: dict[str, str]) -> tuple[str, dict[str, Any]]:
        run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
        await admin("POST", f"/v1/runs/{run}/cancel", words)
        return run, (await admin("GET", f"/v1/runs/{run}")).json["state_reason"]

    run, told = await ended({"reason": "enough"})
    assert told == {"code": "RUN_CANCELLED", "detail": "enough"}
    why = (await admin("GET", f"/v1/runs/{run}/explain")).json
    (reason,) = why["reasons"]
    assert (reason["code"], reason["evidence"]["reason"]) == ("RUN_CANCELLED", "enough")
    assert why["summary"] == "It will not run. Somebody cancelled it: enough."
    again = (await admin("POST", f"/v1/runs/{run}/replay")).json["id"]
    await admin("POST", f"/v1/runs/{again}/cancel")
    assert (await admin("GET", f"/v1/runs/{again}")).json["state_reason"]["detail"] is None
    await admin("POST", f"/v1/runs/{run}/retry")
    assert (await admin("GET", f"/v1/runs/{run}")).json["state_reason"]["detail"] is None
    _, told = await ended({})
    assert told == {"code": "RUN_CANCELLED", "detail": None}


async def test_metrics_are_for_those_who_may(admin: Client) -> None:
    await admin("GET", "/v1/whoami")
    told = await admin("GET", "/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    assert b'betimes_requests_total{operation="meta.whoami",status="2xx"} 1' in told.body
