"""Catching up over HTTP: seen, approved, dropped."""

from datetime import timedelta

from api_kit import DEFAULT, Client, Served
from betimes.config.settings import CoordinatorSettings, DatabaseSettings
from betimes.coordinator.service import Coordinator
from betimes.domain.ids import NodeId, ShardId, compose
from betimes.ops.catchups import carry_out
from betimes.store import nodes
from betimes.store.nodes import NodeCard
from betimes.telemetry import Telemetry
from ops_kit import fetch

JOB = {
    "schedule": {
        "type": "interval",
        "every": "PT1M",
        "anchor": "1970-01-01T00:00:00Z",
        "catchup": {"policy": "all", "window": "PT12H", "max": 100},
    },
    "handler": "h",
    "queue": "mail",
}


async def missed(served: Served, admin: Client) -> str:
    """A job that missed an hour, with a tenant that may catch up ten runs without asking."""
    job: str = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    database = served.desk.database
    now = served.service.now()
    await fetch(
        database,
        "UPDATE betimes.jobs SET next_fire_at = date_trunc('minute', $1::timestamptz)",
        now - timedelta(hours=1),
    )
    await fetch(
        database,
        "UPDATE betimes.tenants SET quotas = '{\"catchup_runs\": 10}' WHERE id = $1",
        DEFAULT,
    )
    node = NodeId(compose(1, 0, 1))
    card = NodeCard(id=node, name="n", version="0", tzdata="test", roles=("coordinator",))
    await nodes.beat(database, card, skew_ms=None, draining=False, now=None)
    coordinator = Coordinator(
        node=node,
        database=database,
        clock=served.service.clock,
        telemetry=Telemetry(clock=served.service.clock),
        settings=CoordinatorSettings(),
        database_settings=DatabaseSettings(),
        tzdata="test",
    )
    await coordinator.elector.tick()
    await coordinator.planner.tick()
    return job


async def test_a_catchup_is_seen_and_approved(served: Served, admin: Client) -> None:
    job = await missed(served, admin)
    (seen,) = (await admin("GET", "/v1/catchups")).json["items"]
    assert seen["state"] == "waiting"
    assert seen["runs"] - seen["held"] == 10
    one = (await admin("GET", f"/v1/catchups/{seen['id']}")).json
    assert one["by_queue"] == [{"queue": "mail", "runs": seen["held"]}]
    assert [(by["job_id"], by["runs"]) for by in one["by_job"]] == [(job, seen["held"])]
    assert one["drained_at"] > one["last_fire_at"]

    path = f"/v1/catchups/{seen['id']}/approve"
    approved = await admin("POST", path, {"reason": "fine"})
    assert (approved.status, approved.json["state"]) == (200, "approved")
    assert (approved.json["reason"], "decided_by" in approved.json) == ("fine", True)
    assert (await admin("POST", path)).status == 200
    refused = await admin("POST", f"/v1/catchups/{seen['id']}/drop")
    assert (refused.status, refused.code) == (409, "invalid_state")
    for shard in range(served.desk.shards):
        await carry_out(served.desk, ShardId(shard))
    one = (await admin("GET", f"/v1/catchups/{seen['id']}")).json
    assert (one["held"], one["released"]) == (0, seen["held"])
    acts = (await admin("GET", "/v1/audit?action=catchups.approve")).json["items"]
    assert {act["resource"] for act in acts} == {seen["id"]}


async def test_a_catchup_is_dropped(served: Served, admin: Client) -> None:
    job = await missed(served, admin)
    (seen,) = (await admin("GET", "/v1/catchups")).json["items"]
    dropped = await admin("POST", f"/v1/catchups/{seen['id']}/drop", {"reason": "too old"})
    assert (dropped.status, dropped.json["state"]) == (200, "dropped")
    for shard in range(served.desk.shards):
        await carry_out(served.desk, ShardId(shard))
    one = (await admin("GET", f"/v1/catchups/{seen['id']}")).json
    assert (one["held"], one["dropped"]) == (0, seen["held"])
    why = (await admin("GET", f"/v1/jobs/{job}/explain")).json
    assert {row["code"] for row in why["history"]} == {"CATCHUP_DROPPED"}
