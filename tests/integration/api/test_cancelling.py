"""Runs that are cancelled while a worker holds them: asked, given a grace, or taken away."""

from typing import Any

from api_kit import Client, Served
from betimes.domain.ids import NodeId, ShardId, from_text, shard_of
from betimes.store.deadlines import Deadlines, Ended
from betimes.store.pool import Lane
from betimes.store.shards import Claim
from ops_kit import fetch

WORKER = {"name": "w", "queues": ["default"], "slots": 10}
OWNER = NodeId(from_text("nod", "nod_01JD8Q0W0G8S0B3T1N5Y6Z7A8B"))


async def running(admin: Client, count: int = 1, **wishes: Any) -> tuple[str, list[dict[str, Any]]]:
    """A worker, and what it holds."""
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    items = {"items": [{"handler": "h", **wishes}] * count}
    assert (await admin("POST", "/v1/runs/batch", items)).status == 202
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0, "max": count})
    assert len(leased.json["runs"]) == count
    return worker, leased.json["runs"]


async def look(served: Served, run: str) -> Ended:
    """What the keeper of deadlines does in one pass over the shard of a run."""
    shard = shard_of(from_text("run", run))
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        epoch = await connection.fetchval(
            "UPDATE betimes.shards SET owner = $2, epoch = epoch + 1, expired_through = NULL,"
            " lease_until = now() + interval '1 minute' WHERE shard = $1 RETURNING epoch",
            shard,
            OWNER,
        )
    keeper = Deadlines(served.desk.database, OWNER)
    assert ShardId(shard) in await keeper.shards_to_look_at([ShardId(shard)], now=None)
    return await keeper.expire(Claim(ShardId(shard), epoch), most=10, now=None)


async def test_by_force_a_run_ends_at_once_and_its_worker_has_lost_it(
    served: Served, admin: Client
) -> None:
    worker, (one,) = await running(admin)
    run, lease = one["run_id"], one["lease_id"]
    gone = await admin("POST", f"/v1/runs/{run}/cancel", {"force": True, "reason": "NOW"})
    assert (gone.status, gone.json["state"]) == (200, "cancelled"), gone.body
    assert gone.json["state_reason"]["code"] == "RUN_CANCELLED"
    assert gone.json["state_reason"]["detail"] == "NOW"
    late = await admin("POST", f"/v1/leases/{lease}/complete", {"result": 1})
    assert (late.status, late.code) == (409, "lease_lost")
    beat = await admin(
        "POST", f"/v1/workers/{worker}/heartbeat", {"running": [{"lease_id": lease}]}
    )
    assert (beat.json["lost"], beat.json["extended"]) == ([lease], [])
    shown = (await admin("GET", f"/v1/runs/{run}?include=attempts")).json
    assert "result" not in shown
    assert [(tried["number"], tried["outcome"]) for tried in shown["attempts"]] == [
        (1, "cancelled")
    ]
    told = await fetch(
        served.desk.database, "SELECT type FROM betimes.outbox WHERE type LIKE 'run.c%'"
    )
    assert [row["type"] for row in told] == ["run.cancelled"]
    assert not await fetch(served.desk.database, "SELECT id FROM betimes.parcels")
    again = await admin("POST", f"/v1/runs/{run}/cancel", {"force": True})
    assert (again.status, again.json["state"]) == (200, "cancelled")


async def test_the_others_of_a_parcel_go_on(served: Served, admin: Client) -> None:
    _, (first, second) = await running(admin, 2)
    await admin("POST", f"/v1/runs/{first['run_id']}/cancel", {"force": True})
    done = await admin("POST", f"/v1/leases/{second['lease_id']}/complete")
    assert (done.status, done.json["next_state"]) == (200, "succeeded")
    assert not await fetch(served.desk.database, "SELECT id FROM betimes.parcels")


async def test_what_is_taken_away_makes_room_for_the_next(served: Served, admin: Client) -> None:
    alone: dict[str, Any] = {"concurrency": {"key": "k", "limit": 1}}
    worker, (one,) = await running(admin, **alone)
    waiting = (await admin("POST", "/v1/runs", {"handler": "h", **alone})).json["id"]
    empty = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
    assert empty.json["runs"] == []
    await admin("POST", f"/v1/runs/{one['run_id']}/cancel", {"force": True})
    (next_one,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    assert next_one["run_id"] == waiting


async def test_after_its_grace_a_run_is_taken_away(served: Served, admin: Client) -> None:
    worker, (one,) = await running(admin)
    run, lease = one["run_id"], one["lease_id"]
    asked = await admin("POST", f"/v1/runs/{run}/cancel", {"grace": "PT0.001S", "reason": "SLOW"})
    assert (asked.status, asked.json["state"]) == (202, "running"), asked.body
    beat = await admin(
        "POST", f"/v1/workers/{worker}/heartbeat", {"running": [{"lease_id": lease}]}
    )
    assert beat.json["commands"] == [{"type": "cancel", "lease_id": lease}], "it is told first"
    ended = await look(served, run)
    assert (len(ended.expired), len(ended.cancelled)) == (0, 1)
    shown = (await admin("GET", f"/v1/runs/{run}")).json
    assert (shown["state"], shown["state_reason"]["code"]) == ("cancelled", "RUN_CANCELLED")
    assert (await admin("POST", f"/v1/leases/{lease}/complete")).code == "lease_lost"


async def test_without_a_grace_a_worker_has_all_the_time(served: Served, admin: Client) -> None:
    """Also where the run had to start by an instant that passes meanwhile."""
    _, (one,) = await running(admin, start_deadline="PT0.5S")
    run = one["run_id"]
    assert (await admin("POST", f"/v1/runs/{run}/cancel")).status == 202
    (row,) = await fetch(served.desk.database, "SELECT start_by FROM betimes.runs")
    assert row["start_by"] is None
    done = await admin("POST", f"/v1/leases/{one['lease_id']}/cancel")
    assert done.json["next_state"] == "cancelled"


async def test_a_second_grace_can_only_be_shorter(served: Served, admin: Client) -> None:
    _, (one,) = await running(admin)
    cancel = f"/v1/runs/{one['run_id']}/cancel"
    due = []
    for grace in ("PT30S", "PT10S", "PT1H"):
        await admin("POST", cancel, {"grace": grace})
        (row,) = await fetch(served.desk.database, "SELECT start_by, cancel_at FROM betimes.runs")
        due.append((row["start_by"] - row["cancel_at"]).total_seconds())
    assert due[0] == 30
    assert due[1] == due[2] < 30


async def test_force_and_grace_are_not_both_asked_for(admin: Client) -> None:
    _, (one,) = await running(admin)
    both = await admin("POST", f"/v1/runs/{one['run_id']}/cancel", {"grace": 1, "force": True})
    assert (both.status, both.code) == (400, "invalid_parameter")


async def test_a_fixed_delay_counts_from_a_forced_end(served: Served, admin: Client) -> None:
    job = {
        "schedule": {"type": "interval", "every": "PT1S", "mode": "fixed_delay"},
        "handler": "h",
    }
    made = (await admin("POST", "/v1/jobs", job)).json["id"]
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 5})
    (one,) = leased.json["runs"]
    assert (await admin("GET", f"/v1/jobs/{made}")).json["status"]["next_fire_at"] is None
    await admin("POST", f"/v1/runs/{one['run_id']}/cancel", {"force": True})
    assert (await admin("GET", f"/v1/jobs/{made}")).json["status"]["next_fire_at"] is not None


FIXED_DELAY = {
    "schedule": {"type": "interval", "every": "PT1S", "mode": "fixed_delay"},
    "handler": "h",
}
LOST = (
    "UPDATE betimes.parcels SET worker_id = NULL, lease_until = NULL, slot = false, deliveries = 1,"
    " visible_at = now() - interval '1 second'"
)


async def fixed_delay(admin: Client, **more: Any) -> tuple[str, str, str]:
    """A job, its first run, and the worker that leased and lost it."""
    job = (await admin("POST", "/v1/jobs", {**FIXED_DELAY, **more})).json["id"]
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 5})
    (one,) = leased.json["runs"]
    return job, one["run_id"], worker


async def next_fire(admin: Client, job: str) -> str | None:
    at: str | None = (await admin("GET", f"/v1/jobs/{job}")).json["status"]["next_fire_at"]
    return at


async def test_a_fixed_delay_goes_on_after_a_cancelled_run_that_is_leased_anew(
    served: Served, admin: Client
) -> None:
    job, run, worker = await fixed_delay(admin)
    assert (await admin("POST", f"/v1/runs/{run}/cancel")).status == 202
    await fetch(served.desk.database, LOST)
    assert await next_fire(admin, job) is None
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
    assert leased.json["runs"] == []
    assert (await admin("GET", f"/v1/runs/{run}")).json["state"] == "cancelled"
    assert await next_fire(admin, job) is not None
    assert not await fetch(served.desk.database, "SELECT id FROM betimes.parcels")


async def test_a_fixed_delay_goes_on_after_a_run_that_expires_at_the_lease(
    served: Served, admin: Client
) -> None:
    job, run, worker = await fixed_delay(admin, start_deadline="PT1H")
    await fetch(served.desk.database, LOST.replace("deliveries = 1", "deliveries = 0"))
    await fetch(served.desk.database, "UPDATE betimes.runs SET due_at = due_at - interval '2h'")
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
    assert leased.json["runs"] == []
    assert (await admin("GET", f"/v1/runs/{run}")).json["state"] == "expired"
    assert await next_fire(admin, job) is not None


async def test_a_fixed_delay_goes_on_after_a_run_that_would_not_wait_for_its_key(
    served: Served, admin: Client
) -> None:
    key = {"key": "k", "limit": 1}
    _, (other,) = await running(admin, concurrency=key)
    job = {**FIXED_DELAY, "concurrency": {**key, "on_limit": "skip"}}
    made = (await admin("POST", "/v1/jobs", job)).json["id"]
    worker = (await admin("POST", "/v1/workers", WORKER)).json["worker_id"]
    await fetch(served.desk.database, "UPDATE betimes.parcels SET visible_at = now()")
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 2})
    assert leased.json["runs"] == []
    (skipped,) = (await admin("GET", f"/v1/runs?job={made}")).json["items"]
    assert (skipped["state"], other["run_id"] != skipped["id"]) == ("skipped", True)
    assert await next_fire(admin, made) is not None


async def test_others_of_the_parcel_are_handed_out_beside_what_ended(
    served: Served, admin: Client
) -> None:
    """The end is written in a transaction of its own: what is left of the parcel goes on."""
    job, run, worker = await fixed_delay(admin)
    assert (await admin("POST", f"/v1/runs/{run}/cancel")).status == 202
    await fetch(served.desk.database, LOST)
    other = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0, "max": 10})
    (one,) = leased.json["runs"]
    assert one["run_id"] == other
    assert await next_fire(admin, job) is not None
    done = await admin("POST", f"/v1/leases/{one['lease_id']}/complete")
    assert (done.status, done.json["next_state"]) == (200, "succeeded")
    assert not await fetch(served.desk.database, "SELECT id FROM betimes.parcels")


async def test_a_run_is_given_back_for_later(served: Served, admin: Client) -> None:
    worker, (one,) = await running(admin)
    back = await admin("POST", f"/v1/leases/{one['lease_id']}/release", {"after": "PT1H"})
    assert (back.status, back.json["next_state"]) == (200, "retry_wait"), back.body
    (row,) = await fetch(
        served.desk.database,
        "SELECT visible_at > now() + interval '59 minutes' AS later FROM betimes.parcels",
    )
    assert row["later"]
    assert (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"] == []
    shown = (await admin("GET", f"/v1/runs/{one['run_id']}")).json
    assert shown["attempt"] == 0, "no attempt is counted"


async def test_many_are_given_back_for_later(served: Served, admin: Client) -> None:
    _, held = await running(admin, 2)
    items = [
        {"lease_id": one["lease_id"], "action": "release", "after": after}
        for one, after in zip(held, ("PT0S", "PT1H"), strict=True)
    ]
    told = await admin("POST", "/v1/leases/batch", {"items": items})
    assert [one["next_state"] for one in told.json["items"]] == ["queued", "retry_wait"]
    rows = await fetch(
        served.desk.database,
        "SELECT visible_at <= now() AS now FROM betimes.parcels ORDER BY visible_at",
    )
    assert [row["now"] for row in rows] == [True, False]
