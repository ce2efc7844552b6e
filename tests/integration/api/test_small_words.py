"""Parameters and members that say a little more: filters, horizons, progress, readiness."""

import re
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from api_kit import Client, Served
from betimes.ops import cluster
from betimes.wire.base import shown_instant
from store_kit import owner

WORKER = {"name": "w", "queues": ["default"], "slots": 10}


async def dead(admin: Client, message: str, **wishes: Any) -> str:
    """A run that has died of something."""
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    run = str((await admin("POST", "/v1/runs", {"handler": "h", **wishes})).json["id"])
    (one,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    error = {"type": "Boom", "message": message}
    body = {"error": error, "retry": "never"}
    await admin("POST", f"/v1/leases/{one['lease_id']}/fail", body)
    return run


async def test_dead_letters_are_found_by_text_tag_group_and_time(
    served: Served, admin: Client
) -> None:
    full = await dead(admin, "disk is full", tags={"env": "prod"})
    slow = await dead(admin, "too slow")
    letters = (await admin("GET", "/v1/dead-letters")).json["items"]
    group = {letter["id"]: letter["fingerprint"] for letter in letters}
    later = shown_instant(served.service.now() + timedelta(hours=1))
    for query, found in (
        ('q="disk"', [full]),
        ("q=SLOW", [slow]),
        ("q=tag.env:prod", [full]),
        ("tag=env:prod", [full]),
        (f"group={group[slow]}", [slow]),
        (f"q=group:{group[slow]}", [slow]),
        ("q=since:1h", [full, slow]),
        ("q=until:1h", []),
        (f"finished_after={later}", []),
        (f"finished_before={later}&handler=h", [full, slow]),
    ):
        told = await admin("GET", f"/v1/dead-letters?{query}")
        assert told.status == 200, told.body
        assert [letter["id"] for letter in told.json["items"]] == found, query
    both = await admin("GET", f"/v1/dead-letters?group={group[slow]}&fingerprint={group[slow]}")
    assert (both.status, both.code) == (400, "invalid_parameter")
    counted = (await admin("GET", "/v1/dead-letters?count=estimate")).json
    assert counted["estimated_total"] == 2
    first = (await admin("GET", "/v1/dead-letters?count=estimate&limit=1")).json
    assert first["estimated_total"] >= 1
    assert first["next_cursor"] is not None


async def test_the_audit_is_read_up_to_a_time(admin: Client) -> None:
    await admin("POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h", "name": "a"})
    between = (await admin("GET", "/v1/audit")).json["items"][0]["at"]
    await admin("POST", "/v1/jobs/a/pause")
    last = (await admin("GET", "/v1/audit")).json["items"][0]["at"]
    early = (await admin("GET", f"/v1/audit?until={last}")).json["items"]
    assert [act["action"] for act in early] == ["jobs.create"], "up to it, without it"
    assert (await admin("GET", f"/v1/audit?until={between}")).json["items"] == []
    every = (await admin("GET", f"/v1/audit?since={between}")).json["items"]
    assert [act["action"] for act in every] == ["jobs.pause", "jobs.create"]


async def test_a_preview_ends_with_its_horizon(admin: Client) -> None:
    body = {"schedule": "0 * * * *", "from": "2026-01-01T00:30:00Z", "count": 100}
    seen = await admin("POST", "/v1/schedules/preview", {**body, "horizon": "PT5H"})
    assert len(seen.json["occurrences"]) == 5
    until = {**body, "until": "2026-01-01T05:30:00Z"}
    assert (await admin("POST", "/v1/schedules/preview", until)).json == seen.json
    both = await admin("POST", "/v1/schedules/preview", {**until, "horizon": "PT5H"})
    assert (both.status, both.code) == (400, "invalid_parameter")
    far = await admin("POST", "/v1/schedules/preview", {**body, "horizon": "PT9999999H"})
    assert (far.status, far.code) == (400, "invalid_parameter")


async def test_a_heartbeat_tells_of_progress_and_of_the_worker(admin: Client) -> None:
    worker = (await admin("POST", "/v1/workers", {**WORKER, "pid": 7})).json["worker_id"]
    run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    (one,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    said = {"lease_id": one["lease_id"], "progress": {"percent": 40, "message": "half"}}
    beat = {"running": [said], "rss": 1000, "cpu": 0.5}
    assert (await admin("POST", f"/v1/workers/{worker}/heartbeat", beat)).status == 200
    shown = (await admin("GET", f"/v1/runs/{run}")).json
    assert shown["progress"] == {"percent": 40, "message": "half"}
    details = (await admin("GET", f"/v1/workers/{worker}")).json["details"]
    assert (details["rss"], details["cpu"], details["pid"]) == (1000, 0.5, 7)
    await admin("POST", f"/v1/workers/{worker}/heartbeat", {})
    details = (await admin("GET", f"/v1/workers/{worker}")).json["details"]
    assert details["rss"] == 1000, "what is not said stays"


async def test_a_result_is_told_by_reference(admin: Client) -> None:
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    blob = (await admin("POST", "/v1/blobs", raw=b'{"large": true}')).json["id"]
    run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    (one,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    lease = f"/v1/leases/{one['lease_id']}/complete"
    both = await admin("POST", lease, {"result": 1, "result_ref": blob})
    assert (both.status, both.code) == (400, "invalid_parameter")
    assert (await admin("POST", lease, {"result_ref": blob})).status == 200
    assert (await admin("GET", f"/v1/runs/{run}")).json["result_ref"] == blob
    assert (await admin("GET", f"/v1/runs/{run}/result")).json == {"large": True}


async def test_who_is_ready_has_its_migrations_and_the_right_time(dsn: str, admin: Client) -> None:
    ready = await admin("GET", "/readyz")
    checks = {"database": "ok", "migrations": "ok", "clock": "ok", "shards": "ok"}
    checks["publishing"] = "ok"
    assert (ready.status, ready.json) == (200, {"status": "ready", "checks": checks})
    async with owner(dsn) as connection:
        last = "SELECT max(number) FROM betimes.migrations"
        await connection.execute(f"DELETE FROM betimes.migrations WHERE number = ({last})")
    lacking = await admin("GET", "/readyz")
    assert lacking.status == 503
    assert "lacks 1 migration" in lacking.json["checks"]["migrations"]


async def test_whoever_is_ready_says_when_nobody_publishes(dsn: str, admin: Client) -> None:
    """Without coordinators requests are served and nothing fires: a balancer is told 200."""
    async with owner(dsn) as connection:
        await connection.execute(
            "UPDATE betimes.shards SET epoch = 1, owner = gen_random_uuid(),"
            " published_through = now() + interval '2 seconds',"
            " lease_until = now() + interval '8 seconds'"
        )
        assert (await admin("GET", "/readyz")).json["checks"]["publishing"] == "ok"
        await connection.execute(
            "UPDATE betimes.shards SET published_through = now() - interval '75 seconds', "
            "lease_until = now() - interval '65 seconds' WHERE shard < 3"
        )
    late = await admin("GET", "/readyz")
    assert (late.status, late.json["status"]) == (200, "degraded")
    said = late.json["checks"]["publishing"]
    assert re.fullmatch(r"7\d s late, 3 of \d+ shards have no coordinator", said)


async def test_a_node_with_a_wrong_clock_that_works_is_degraded_and_ready(
    dsn: str, admin: Client
) -> None:
    with patch.object(cluster, "APART_MAX", timedelta(days=-1)):
        off = await admin("GET", "/readyz")
        assert (off.status, off.json["status"]) == (200, "degraded")
        assert "apart from the database" in off.json["checks"]["clock"]
        async with owner(dsn) as connection:
            last = "SELECT max(number) FROM betimes.migrations"
            await connection.execute(f"DELETE FROM betimes.migrations WHERE number = ({last})")
        lacking = await admin("GET", "/readyz")
    assert (lacking.status, lacking.json["status"]) == (503, "not ready")


async def test_a_queue_tells_what_comes_and_goes(served: Served, admin: Client) -> None:
    empty = (await admin("GET", "/v1/queues/default/stats")).json
    assert (empty["arrival_rate"], empty["drain_seconds"], empty["slots"]) == (0.0, 0.0, 0)
    assert empty["lag_ms"] == {"p50": None, "p95": None, "p99": None}
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    await admin("POST", "/v1/runs/batch", {"items": [{"handler": "h"}] * 6})
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0, "max": 3})
    for one in leased.json["runs"]:
        await admin("POST", f"/v1/leases/{one['lease_id']}/complete")
    told = (await admin("GET", "/v1/queues/default/stats")).json
    assert (told["arrival_rate"], told["service_rate"]) == (0.02, 0.01)
    assert (told["waiting"], told["drain_seconds"]) == (3, None), "more came than went"
    assert (told["slots"], told["lag_ms"]["p99"] is not None) == (10, True)
    other = served.client(await served.key(await served.tenant("other")))
    assert (await other("GET", "/v1/queues/default/stats")).json == empty


async def test_a_search_finds_names_tags_and_errors(served: Served, admin: Client) -> None:
    plain = {"schedule": "every 1h", "handler": "h"}
    made = {}
    for name, tags in (("daily-report", {"team": "sales"}), ("report", {}), ("other", {})):
        job = await admin("POST", "/v1/jobs", {**plain, "name": name, "tags": tags})
        made[name] = job.json["id"]
    full = await dead(admin, "Disk is full", tags={"env": "prod"})
    for query, found in (
        ("report", [made["report"], made["daily-report"]]),
        ("team:sales", [made["daily-report"]]),
        ("disk", [full]),
        ("env:prod", [full]),
        ("nothing", []),
    ):
        told = (await admin("GET", f"/v1/search?q={query}")).json["items"]
        assert [one["id"] for one in told] == found, query
    assert len((await admin("GET", "/v1/search?q=report&limit=1")).json["items"]) == 1
    jobs_only = served.client(await served.key(kind="sk", scopes=["jobs:read"]))
    assert (await jobs_only("GET", "/v1/search?q=disk")).json["items"] == []
