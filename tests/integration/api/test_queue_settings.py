"""What a queue is told: without letters, paused with its settings, draining for a reason."""

from typing import Any

from api_kit import DEFAULT, Client, Served
from integration.ops.test_explain import execute
from ops_kit import fetch

RUN = {"handler": "noop", "queue": "mail"}
FAR = "2199-01-01T00:00:00Z"


async def put(admin: Client, **settings: Any) -> dict[str, Any]:
    stored = await admin("PUT", "/v1/queues/mail", settings)
    assert stored.status == 200, stored.body
    told: dict[str, Any] = stored.json
    return told


async def dies(admin: Client, worker: str) -> str:
    """A run that is out of attempts."""
    run: str = (await admin("POST", "/v1/runs", RUN)).json["id"]
    got = await admin("POST", f"/v1/workers/{worker}/lease", {"max": 1, "wait": 0})
    (one,) = got.json["runs"]
    end = await admin("POST", f"/v1/leases/{one['lease_id']}/fail", {"retry": "never"})
    assert end.json["next_state"] == "dead"
    return run


async def letters(admin: Client) -> list[str]:
    return [one["id"] for one in (await admin("GET", "/v1/dead-letters")).json["items"]]


async def test_a_queue_without_letters_lets_runs_end_as_dead(served: Served, admin: Client) -> None:
    """They are found by their state, told, and can be retried; nothing is laid aside."""
    made = await admin("POST", "/v1/workers", {"name": "w", "queues": ["mail"]})
    worker = made.json["worker_id"]
    told = await put(admin, dead_letter=False)
    assert told["settings"]["dead_letter"] is False
    gone = await dies(admin, worker)
    assert await letters(admin) == []
    shown = (await admin("GET", f"/v1/runs/{gone}")).json
    assert (shown["state"], shown["state_reason"]["code"]) == ("dead", "PERMANENT_ERROR")
    listed = (await admin("GET", "/v1/runs?state=dead")).json["items"]
    assert [one["id"] for one in listed] == [gone]
    events = await fetch(
        served.desk.database, "SELECT type FROM betimes.outbox WHERE subject = $1", gone
    )
    assert "run.dead" in [row["type"] for row in events]
    assert (await admin("POST", f"/v1/dead-letters/{gone}/redrive")).status == 404
    await execute(
        served.desk.database, "UPDATE betimes.shards SET published_through = now() + interval '1 h'"
    )
    assert (await admin("POST", f"/v1/runs/{gone}/retry")).status == 202
    await admin("POST", f"/v1/runs/{gone}/cancel")
    told = await put(admin)
    assert told["settings"]["dead_letter"] is True
    kept = await dies(admin, worker)
    assert await letters(admin) == [kept]


async def test_a_queue_is_paused_and_resumed_with_its_settings(
    served: Served, admin: Client
) -> None:
    """What is not said stays; what is so already is not said anew."""
    told = await put(admin, paused=True, weight=2)
    assert (told["paused"], told["settings"]["paused"]) == (True, True)
    made = await admin("POST", "/v1/workers", {"name": "w", "queues": ["mail"]})
    lease = f"/v1/workers/{made.json['worker_id']}/lease"
    await admin("POST", "/v1/runs", RUN)
    assert (await admin("POST", lease, {"wait": 0})).json["runs"] == []
    assert (await put(admin, weight=3))["paused"] is True
    told = await put(admin, paused=False)
    assert (told["paused"], told["settings"]["paused"]) == (False, False)
    assert len((await admin("POST", lease, {"wait": 0})).json["runs"]) == 1
    await admin("POST", "/v1/queues/mail/pause", {"reason": "release", "until": FAR})
    settings = (await admin("GET", "/v1/queues/mail")).json["settings"]
    told = await put(admin, **settings)
    assert (told["paused"], told["reason"]) == (True, "release"), "put back as they were read"
    assert told["paused_until"].startswith("2199-")
    rows = await fetch(
        served.desk.database,
        "SELECT type FROM betimes.outbox WHERE type LIKE 'queue.%' ORDER BY created_at",
    )
    assert [row["type"] for row in rows] == ["queue.paused", "queue.resumed", "queue.paused"]


async def test_a_queue_drains_for_a_reason_and_for_a_while(served: Served, admin: Client) -> None:
    drained = await admin("POST", "/v1/queues/mail/drain", {"reason": "it moves", "until": FAR})
    assert drained.json["draining_reason"] == "it moves", drained.body
    assert drained.json["draining_until"].startswith("2199-")
    refused = await admin("POST", "/v1/runs", RUN)
    assert (refused.status, refused.code) == (409, "queue_draining")
    assert refused.json["detail"].endswith("accepts nothing new: it moves")
    await execute(
        served.desk.database, "UPDATE betimes.queues SET drain_until = now() - interval '1 s'"
    )
    shown = (await admin("GET", "/v1/queues/mail")).json
    assert (shown["draining"], shown["draining_reason"]) == (False, None)
    assert (await admin("GET", "/v1/queues/mail/stats")).json["draining"] is False
    served.service.gates.forget(DEFAULT)
    assert (await admin("POST", "/v1/runs", RUN)).status == 202
