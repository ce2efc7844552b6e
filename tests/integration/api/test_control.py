"""Queues that drain and are purged, the brake of the cell, nodes that go, tenants that end."""

from uuid import UUID

from api_kit import Client, Served
from betimes.domain.ids import TenantId, to_text
from betimes.store.pool import Lane
from ops_kit import fetch

HOURLY = {"schedule": "every 1h", "handler": "h"}


async def lease(admin: Client, queue: str = "default") -> list[str]:
    body = {"name": "w", "queues": [queue]}
    worker = (await admin("POST", "/v1/workers", body)).json["worker_id"]
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0, "max": 10})
    return [run["run_id"] for run in leased.json["runs"]]


async def tables_with(served: Served, tenant: TenantId) -> set[str]:
    """Every table in which something of a tenant is left."""
    database = served.desk.database
    tables = await fetch(
        database,
        "SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'betimes'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND NOT c.relispartition AND a.attname = 'tenant_id'",
    )
    found = set()
    for table in tables:
        statement = f"SELECT FROM betimes.{table['name']} WHERE tenant_id = $1 LIMIT 1"
        if await fetch(database, statement, tenant):
            found.add(table["name"])
    return found


async def test_a_queue_that_drains_accepts_nothing_new(served: Served, admin: Client) -> None:
    run = {"handler": "h", "queue": "mail"}
    first = (await admin("POST", "/v1/runs", run)).json["id"]
    drained = await admin("POST", "/v1/queues/mail/drain")
    assert (drained.status, drained.json["draining"]) == (200, True), drained.body
    refused = await admin("POST", "/v1/runs", run)
    assert (refused.status, refused.code) == (409, "queue_draining")
    assert (await admin("POST", "/v1/runs/batch", {"items": [run]})).code == "queue_draining"
    assert (await admin("POST", "/v1/runs", {"handler": "h"})).status == 202, "others do"
    assert await lease(admin, "mail") == [first], "what is there goes on"
    assert (await admin("GET", "/v1/queues/mail/stats")).json["draining"] is True
    assert (await admin("POST", "/v1/queues/mail/resume")).json["draining"] is False
    assert (await admin("POST", "/v1/runs", run)).status == 202
    reader = served.client(await served.key(kind="rk"))
    assert (await reader("POST", "/v1/queues/mail/drain")).code == "scope_missing"


async def test_what_waits_in_a_queue_is_purged(served: Served, admin: Client) -> None:
    soon = (await admin("POST", "/v1/runs", {"handler": "h", "queue": "mail"})).json["id"]
    later = {"handler": "h", "queue": "mail", "delay": "PT2H"}
    planned = (await admin("POST", "/v1/runs", later)).json["id"]
    kept = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    dry = await admin("POST", "/v1/queues/mail/purge", {"dry_run": True})
    assert dry.json == {"matched": 2, "dry_run": True}
    wrong = await admin("POST", "/v1/queues/mail/purge", {"confirm_count": 1})
    assert (wrong.status, wrong.code) == (422, "confirm_count_mismatch")
    only = {"states": ["scheduled"], "confirm_count": 1}
    await admin("POST", "/v1/queues/mail/purge", only)
    await served.operate()
    states = [(await admin("GET", f"/v1/runs/{run}")).json["state"] for run in (soon, planned)]
    assert states == ["queued", "cancelled"]
    begun = await admin("POST", "/v1/queues/mail/purge", {"confirm_count": 1})
    assert begun.status == 202, begun.body
    await served.operate()
    gone = (await admin("GET", f"/v1/runs/{soon}")).json
    assert (gone["state"], gone["state_reason"]["code"]) == ("cancelled", "QUEUE_PURGED")
    assert (await admin("GET", f"/v1/runs/{kept}")).json["state"] == "queued"


async def test_the_brake_stops_every_lease(served: Served, admin: Client) -> None:
    run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    paused = await admin("POST", "/v1/cluster/pause", {"reason": "moving"})
    assert (paused.status, paused.json["paused_reason"]) == (200, "moving"), paused.body
    since = paused.json["paused_at"]
    assert await lease(admin) == []
    assert (await admin("POST", "/v1/cluster/pause")).json["paused_at"] == since, "once"
    assert (await admin("POST", "/v1/cluster/resume")).json["paused_at"] is None
    assert await lease(admin) == [run]
    tenant = served.client(await served.key(kind="sk"))
    assert (await tenant("POST", "/v1/cluster/pause")).code == "scope_missing"
    acts = (await admin("GET", "/v1/audit?resource=cluster")).json["items"]
    assert [act["action"] for act in acts] == ["cluster.resume", "cluster.pause", "cluster.pause"]


async def test_a_node_is_asked_to_go(served: Served, admin: Client) -> None:
    node = UUID("00000000-0000-8000-8000-00000000000a")
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.nodes (id, name, version, tzdata, roles, started_at, heartbeat_at)"
            " VALUES ($1, 'n', '1', '2026a', '{api}', now(), now())",
            node,
        )
    asked = await admin("POST", f"/v1/cluster/nodes/{to_text('nod', node)}/drain")
    assert (asked.status, asked.json["name"]) == (202, "n"), asked.body
    (row,) = await fetch(served.desk.database, "SELECT drain_at FROM betimes.nodes")
    assert row["drain_at"] is not None
    for text in ("nod_01JD00000000000000000000ZZ", "nonsense"):
        assert (await admin("POST", f"/v1/cluster/nodes/{text}/drain")).code == "not_found"


async def test_a_tenant_is_deleted_after_its_grace(served: Served, admin: Client) -> None:
    tenant = await served.tenant("doomed")
    there = served.client(await served.key(tenant))
    for number in range(3):
        await there("POST", "/v1/jobs", {**HOURLY, "name": f"n{number}"})
        await there("POST", "/v1/runs", {"handler": "h"})
    await there("PUT", "/v1/calendars/c?force=true", {"dates": ["2030-01-01"]})
    await there("POST", "/v1/blobs", raw=b"x")
    early = await admin("DELETE", "/v1/tenants/doomed")
    assert (early.status, early.code) == (409, "invalid_state")
    await admin("POST", "/v1/tenants/doomed/suspend", {"mode": "stop_all"})
    begun = await admin("DELETE", "/v1/tenants/doomed?grace=P7D")
    assert begun.status == 202, begun.body
    assert await served.operate() == 0, "its grace is not over"
    place = begun.headers["location"]
    assert (await admin("POST", f"{place}/cancel")).json["state"] == "cancelled"
    begun = await admin("DELETE", "/v1/tenants/doomed?grace=PT0S")
    await served.operate()
    done = (await admin("GET", begun.headers["location"])).json
    assert done["state"] == "succeeded", done
    assert (await admin("GET", "/v1/tenants/doomed")).status == 404
    assert await tables_with(served, tenant) == {"audit", "audit_heads"}, "acts stay written"


async def test_opening_a_tenant_again_calls_its_deletion_off(served: Served, admin: Client) -> None:
    await served.tenant("spared")
    await admin("POST", "/v1/tenants/spared/suspend", {"mode": "stop_all"})
    begun = await admin("DELETE", "/v1/tenants/spared?grace=PT0S")
    await admin("POST", "/v1/tenants/spared/resume")
    await served.operate()
    done = (await admin("GET", begun.headers["location"])).json
    assert (done["state"], done["error"]["code"]) == ("failed", "invalid_state")
    assert (await admin("GET", "/v1/tenants/spared")).status == 200
    own = await admin("DELETE", "/v1/tenants/default")
    assert (own.status, own.code) == (409, "dependency_in_use")
    long = await admin("DELETE", "/v1/tenants/spared?grace=P400D")
    assert long.status in (400, 409)


async def test_quotas_of_a_tenant_are_read_and_written(served: Served, admin: Client) -> None:
    await served.tenant("small")
    put = await admin("PUT", "/v1/tenants/small/quotas", {"quotas": {"jobs": 3}})
    assert put.status == 200, put.body
    read = await admin("GET", "/v1/tenants/small/quotas")
    assert read.headers["etag"] == '"2"'
    assert {one["name"]: one["limit"] for one in read.json["items"]}["jobs"] == 3
    assert (await admin("GET", "/v1/tenants/nobody/quotas")).status == 404
