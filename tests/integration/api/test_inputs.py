"""What makes no sense is refused at every door, with what was expected and what was got."""

from typing import Any

import pytest

from api_kit import Client, Served
from betimes.store.pool import Lane

EVERY = {"schedule": "every 1h"}
JOB = {**EVERY, "handler": "h"}


async def refused(admin: Client, method: str, path: str, body: Any, **more: Any) -> dict[str, Any]:
    reply = await admin(method, path, body, **more)
    assert reply.status in (400, 409, 422), (path, reply.status, reply.body)
    told: dict[str, Any] = reply.json
    return told


async def test_a_job_without_work_is_refused_as_a_run_is(admin: Client) -> None:
    run = await refused(admin, "POST", "/v1/runs", {})
    for method, path, body, more in (
        ("POST", "/v1/jobs", EVERY, {}),
        ("POST", "/v1/jobs?validate_only=true", EVERY, {}),
        ("PUT", "/v1/jobs/idle", EVERY, {"headers": {"If-None-Match": "*"}}),
        ("POST", "/v1/jobs/batch", {"items": [EVERY]}, {}),
        ("POST", "/v1/jobs/apply", {"jobs": [{**EVERY, "name": "x"}]}, {}),
    ):
        told = await refused(admin, method, path, body, **more)
        assert (told["code"], told["detail"]) == (run["code"], run["detail"]), path
        assert told["errors"][0]["pointer"].endswith("/target"), path
    assert (await admin("GET", "/v1/jobs")).json["items"] == []
    short = {"cron": "0 9 * * *", "payloadRef": "s3://a/b", "idempotencyKey": "one"}
    assert (await admin("POST", "/v1/jobs", short)).json["handler"] == "default"


@pytest.mark.parametrize("member", ["timeout", "start_deadline"])
@pytest.mark.parametrize("nothing", ["0s", "PT0S", 0, 0.0001])
async def test_no_time_at_all_is_refused(admin: Client, member: str, nothing: object) -> None:
    for path, body in (("/v1/jobs", JOB), ("/v1/runs", {"handler": "h"})):
        told = await refused(admin, "POST", path, {**body, member: nothing})
        assert told["errors"][0]["pointer"] == f"/{member}"
        assert told["detail"].startswith("expected a duration of at least a millisecond, got")
        assert repr(nothing) in told["detail"]


async def test_one_rule_for_names_of_queues(admin: Client) -> None:
    for queue in ("a:b", "", "x" * 129, "a\nb"):
        for path, body in (
            ("/v1/jobs", {**JOB, "queue": queue}),
            ("/v1/runs", {"handler": "h", "queue": queue}),
            ("/v1/workers", {"name": "w", "queues": [queue]}),
            ("/v1/api-keys", {"name": "k", "kind": "wk", "queues": [queue]}),
        ):
            told = await refused(admin, "POST", path, body)
            assert told["code"] == "invalid_parameter", (queue, path)
    for queue in ("a%3Ab", "x" * 129, "a%0Ab"):
        told = await refused(admin, "PUT", f"/v1/queues/{queue}", {})
        assert told["code"] == "invalid_parameter", queue


async def test_a_reference_is_well_formed_and_leads_somewhere(
    served: Served, admin: Client
) -> None:
    other = await served.admin()
    blob = (await admin("POST", "/v1/blobs", raw=b"big")).json["id"]
    unknown = blob[:-4] + ("0000" if blob[-4:] != "0000" else "1111")
    doors: tuple[tuple[str, dict[str, Any]], ...] = (
        ("/v1/jobs", JOB),
        ("/v1/runs", {"handler": "h"}),
    )
    for path, body in doors:
        for text in ("blob_x", "nonsense", "blob_" + "!" * 26):
            told = await refused(admin, "POST", path, {**body, "payload_ref": text})
            assert (told["status"], told["errors"][0]["pointer"]) == (400, "/payload_ref")
            assert repr(text) in told["detail"]
            assert "expected a reference such as blob_" in told["detail"]
        told = await refused(admin, "POST", path, {**body, "payload_ref": unknown})
        assert (told["status"], told["code"]) == (422, "invalid_payload"), path
        many = {"items": [body, {**body, "payload_ref": unknown}]}
        told = await refused(admin, "POST", f"{path}/batch", many)
        assert told["errors"][0]["pointer"] == "/items/1/payload_ref", path
        made = await other("POST", path, {**body, "payload_ref": blob})
        assert made.status in (201, 202), made.body


async def test_a_reference_that_expired_does_not_hinder_other_edits(
    served: Served, admin: Client
) -> None:
    blob = (await admin("POST", "/v1/blobs", raw=b"big")).json["id"]
    job = (await admin("POST", "/v1/jobs", {**JOB, "payload_ref": blob})).json["id"]
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute("UPDATE betimes.blobs SET expires_at = '2020-01-01T00:00:00Z'")
    edited = await admin("PATCH", f"/v1/jobs/{job}", {"priority": 1})
    assert (edited.status, edited.json["payload_ref"]) == (200, blob), edited.body
    again = await refused(admin, "POST", "/v1/jobs", {**JOB, "payload_ref": blob})
    assert again["code"] == "invalid_payload"


async def test_what_if_needs_a_place_and_a_ceiling_of_none_starts_nothing(
    served: Served, admin: Client
) -> None:
    told = await refused(admin, "POST", "/v1/forecast/what-if", {"slots": 0})
    assert told["errors"][0]["pointer"] == "/slots"
    put = await admin("PUT", "/v1/queues/shut", {"max_concurrency": 0})
    assert put.status == 200, put.body
    client = served.client(await served.key(kind="wk"))
    worker = {"name": "w", "handlers": ["h"], "slots": 10, "queues": ["shut", "open"]}
    made = (await client("POST", "/v1/workers", worker)).json["worker_id"]
    for queue in ("shut", "open"):
        await admin("POST", "/v1/runs", {"handler": "h", "queue": queue})
    got = await client("POST", f"/v1/workers/{made}/lease", {"max": 10, "wait": 0})
    assert [run["queue"] for run in got.json["runs"]] == ["open"]


async def test_a_queue_that_drains_takes_no_job_that_would_fill_it(admin: Client) -> None:
    old = (await admin("POST", "/v1/jobs", {**JOB, "queue": "mail"})).json["id"]
    other = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    assert (await admin("POST", "/v1/queues/mail/drain")).status == 200
    into = {**JOB, "queue": "mail"}
    for method, path, body, more in (
        ("POST", "/v1/jobs", into, {}),
        ("POST", "/v1/jobs?validate_only=true", into, {}),
        ("PUT", "/v1/jobs/x", into, {"headers": {"If-None-Match": "*"}}),
        ("POST", "/v1/jobs/batch", {"items": [JOB, into]}, {}),
        ("POST", "/v1/jobs/apply", {"jobs": [{**into, "name": "x"}]}, {}),
        ("PATCH", f"/v1/jobs/{other}", {"queue": "mail"}, {}),
        ("POST", f"/v1/jobs/{old}/run", {}, {}),
    ):
        told = await refused(admin, method, path, body, **more)
        assert (told["status"], told["code"]) == (409, "queue_draining"), path
    alone = {"items": [JOB, into], "mode": "independent"}
    items = (await admin("POST", "/v1/jobs/batch", alone)).json["items"]
    assert [item["status"] for item in items] == [201, 409]
    runs = [{"handler": "h", "queue": "mail"}, {"handler": "h"}]
    each = await admin("POST", "/v1/runs/batch", {"items": runs, "mode": "independent"})
    assert each.status == 207, each.body
    first, second = each.json["items"]
    assert (first["status"], first["error"]["code"]) == (409, "queue_draining")
    assert second["status"] == 202
    assert (await admin("PATCH", f"/v1/jobs/{old}", {"priority": 1})).status == 200
    await admin("POST", "/v1/queues/mail/resume")
    assert (await admin("POST", "/v1/jobs", into)).status == 201


async def test_as_many_next_fires_as_were_asked_for(admin: Client) -> None:
    """What a calendar takes away is counted, and listed only for those who want it."""
    days = [f"2199-01-{day:02}" for day in range(2, 20)]
    await admin("PUT", "/v1/calendars/off", {"dates": days}, headers={"If-None-Match": "*"})
    schedule = {"type": "cron", "expr": "0 9 * * *", "calendars": {"exclude": ["off"]}}
    made = await admin("POST", "/v1/jobs", {"schedule": schedule, "handler": "h", "name": "cal"})
    assert made.status == 201, made.body
    path = "/v1/jobs/cal/next?count=2&from=2199-01-01T00:00:00Z"
    shown = (await admin("GET", path)).json
    assert [one["utc"][:10] for one in shown["occurrences"]] == ["2199-01-01", "2199-01-20"]
    assert shown["excluded"] == 18
    both = (await admin("GET", f"{path}&excluded=true")).json["occurrences"]
    assert [one["flags"] for one in both] == [
        [],
        ["calendar_excluded"],
        ["calendar_excluded"],
        [],
    ]
    asked = {"schedule": schedule, "count": 2, "from": "2199-01-01T00:00:00Z"}
    looked = (await admin("POST", "/v1/schedules/preview", asked)).json
    assert (len(looked["occurrences"]), looked["excluded"]) == (4, 18)


async def test_names_stand_where_ids_do(admin: Client) -> None:
    await admin("POST", "/v1/jobs", {**JOB, "schedule": "every 1m", "name": "mid"})
    soon = await admin("GET", "/v1/upcoming?job=mid&within=PT1H")
    assert (soon.status, bool(soon.json["items"])) == (200, True), soon.body
    assert (await admin("GET", "/v1/runs?job=mid")).status == 200
    gone = await admin("POST", "/v1/forecast/what-if", {"remove": ["mid"]})
    assert (gone.status, gone.json["diff"]["peak_after"]) == (200, 0), gone.body
    change = [{"job": "default~mid", "schedule": "every 2m"}]
    slower = await admin("POST", "/v1/forecast/what-if", {"change": change})
    assert slower.json["diff"]["fires"] < 0
    for body in ({"remove": ["nobody"]}, {"change": [{"job": "nobody", "schedule": "every 2m"}]}):
        assert (await admin("POST", "/v1/forecast/what-if", body)).status == 404


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1/upcoming?within=P30D", "at most 7 days, got PT720H"),
        ("/v1/forecast?step=PT0.5S", "at least a second, got PT0.5S"),
        (
            "/v1/forecast?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z",
            "after 2030-01-02T00:00:00.000000Z, got 2030-01-01T00:00:00.000000Z",
        ),
        (
            "/v1/forecast?from=2030-01-01T00:00:00Z&to=2030-03-01T00:00:00Z",
            "at most 31 days, got PT1416H",
        ),
    ],
)
async def test_durations_are_told_as_they_are_written(admin: Client, path: str, told: str) -> None:
    reply = await admin("GET", path)
    assert reply.status == 400, reply.body
    assert told in reply.json["detail"]


async def test_a_name_is_what_it_looks_like_and_can_be_reached(admin: Client) -> None:
    job = {"schedule": "every 1h", "handler": "h"}
    composed, apart = "\u00e9tude", "e\u0301tude"
    assert (await admin("POST", "/v1/jobs", {**job, "name": composed})).status == 201
    for name in (apart, "batch", "bulk", "apply"):
        refused = await admin("POST", "/v1/jobs", {**job, "name": name})
        assert (refused.status, refused.json["errors"][0]["pointer"]) == (400, "/name"), name
    assert (await admin("POST", "/v1/jobs", {**job, "group": "batch", "name": "x"})).status == 201
