"""Statistics of jobs, usage of tenants, series and keys of queues, over HTTP."""

from datetime import UTC, datetime, timedelta

from api_kit import Answer, Client, Served
from betimes.store.pool import Lane


def pointers(answer: Answer) -> list[str]:
    return [error["pointer"] for error in answer.json["errors"]]


async def ran(served: Served, admin: Client) -> str:
    """A job with three runs: two went well after 1 and 3 seconds, one died."""
    job = (await admin("POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h"})).json["id"]
    for _ in range(3):
        assert (await admin("POST", f"/v1/jobs/{job}/run")).status == 202
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute("DELETE FROM betimes.parcels")
        rows = await connection.fetch(
            "SELECT shard, id FROM betimes.runs WHERE trigger = 1 ORDER BY id"
        )
        for row, (state, seconds) in zip(rows, [(4, 1), (4, 3), (5, 2)], strict=True):
            await connection.execute(
                "UPDATE betimes.runs SET state = $3, started_at = due_at + interval '0.5 s',"
                " finished_at = due_at + interval '0.5 s' + $4::interval, payload = 'abc'"
                " WHERE shard = $1 AND id = $2",
                row["shard"],
                row["id"],
                state,
                timedelta(seconds=seconds),
            )
    return str(job)


async def test_a_job_has_statistics(served: Served, admin: Client) -> None:
    job = await ran(served, admin)
    told = await admin("GET", f"/v1/jobs/{job}/stats?window=PT1H")
    assert told.status == 200, told.body
    assert told.json["counts"]["succeeded"] == 2
    assert told.json["counts"]["dead"] == 1
    assert round(told.json["success_rate"], 3) == 0.667
    assert told.json["run_seconds"] == 6.0
    assert told.json["lag_ms"]["p50"] == 500.0
    assert told.json["run_ms"]["p50"] == 2000.0
    far = await admin("GET", f"/v1/jobs/{job}/stats?window=P400D")
    assert (far.status, pointers(far)) == (400, ["/window"])
    fresh = (await admin("POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h"})).json["id"]
    empty = (await admin("GET", f"/v1/jobs/{fresh}/stats")).json
    assert (empty["success_rate"], empty["lag_ms"]["p50"]) == (None, None)


async def test_usage_is_told_by_day_queue_and_job(served: Served, admin: Client) -> None:
    job = await ran(served, admin)
    today = datetime.now(UTC)  # noqa: TID251 -- the runs are of today
    for by, label in (("day", today.date().isoformat()), ("queue", "default"), ("job", job)):
        told = await admin("GET", f"/v1/usage?group_by={by}")
        assert told.status == 200, told.body
        row = {item["group"]: item for item in told.json["items"]}[label]
        assert (row["runs"], row["dead"], row["run_seconds"]) == (3, 1, 6.0)
        assert row["bytes"] == "9"
    backwards = await admin("GET", "/v1/usage?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z")
    assert (backwards.status, pointers(backwards)) == (400, ["/to"])
    long = await admin("GET", "/v1/usage?from=2025-01-01T00:00:00Z&to=2026-01-01T00:00:00Z")
    assert pointers(long) == ["/from"]
    other = served.client(await served.key(await served.tenant("other")))
    assert (await other("GET", "/v1/usage")).json["items"] == []
    lease_only = served.client(await served.key(kind="wk"))
    assert (await lease_only("GET", "/v1/usage")).code == "scope_missing"


async def test_a_queue_has_a_series_for_charts(served: Served, admin: Client) -> None:
    await ran(served, admin)
    series = await admin("GET", "/v1/queues/default/series?metric=succeeded&step=PT1H")
    assert series.status == 200, series.body
    assert sum(point["value"] for point in series.json["points"]) == 2
    lag = (await admin("GET", "/v1/queues/default/series?metric=lag_p95_ms&step=PT1H")).json
    assert {point["value"] for point in lag["points"]} == {500.0}
    fine = await admin("GET", "/v1/queues/default/series?step=PT0.1S")
    assert (fine.status, pointers(fine)) == (400, ["/step"])
    assert (await admin("GET", "/v1/queues/empty/series")).json["points"] == []


async def test_the_keys_of_a_queue_are_counted(served: Served, admin: Client) -> None:
    for _ in range(2):
        await admin("POST", "/v1/runs", {"handler": "h", "queue": "q"})
    assert (await admin("GET", "/v1/queues/q/keys")).json == {"items": []}
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute("UPDATE betimes.parcels SET gate = 'customer-7'")
    told = (await admin("GET", "/v1/queues/q/keys?limit=5")).json
    assert told == {"items": [{"key": "customer-7", "running": 0, "waiting": 2}]}
