"""The load ahead over the wire."""

from api_kit import Client, Served

JOB = {"schedule": {"type": "cron", "expr": "0 0 * * *"}, "handler": "h", "queue": "reports"}
SPAN = "from=2199-01-01T00:00:00Z&to=2199-01-02T00:00:00Z"


async def test_a_forecast_by_queue(admin: Client) -> None:
    for _ in range(12):
        await admin("POST", "/v1/jobs", JOB)
    told = (await admin("GET", f"/v1/forecast?{SPAN}&step=PT1H&group_by=queue")).json
    assert (told["exact"], told["fires"], told["group_by"]) == (True, 12.0, "queue")
    (bucket,) = told["buckets"]
    assert (bucket["at"], bucket["group"]) == ("2199-01-01T00:00:00.000000Z", "reports")
    assert bucket["capacity_slots"] == 0
    assert told["hot_spots"][0]["top_jobs"][0]["job_id"].startswith("job_")
    minutes = (await admin("GET", f"/v1/forecast?{SPAN}")).json
    assert minutes["advice"][0]["suggestion"] == "add jitter PT10M"
    assert minutes["advice"][0]["fires_after"] == 1.2


async def test_what_if_over_the_wire(admin: Client) -> None:
    job = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    body = {
        "from": "2199-01-01T00:00:00Z",
        "to": "2199-01-02T00:00:00Z",
        "step": "PT1H",
        "add": [{"schedule": "every 15 minutes", "count": 3}],
        "remove": [job],
    }
    told = (await admin("POST", "/v1/forecast/what-if", body)).json
    assert told["diff"] == {"fires": 287.0, "peak_before": 1.0, "peak_after": 12.0}
    bad = await admin("POST", "/v1/forecast/what-if", {"add": [{"schedule": "every blue moon"}]})
    assert (bad.status, bad.json["errors"][0]["pointer"][:6]) == (422, "/add/0")
    missing = await admin("POST", "/v1/forecast/what-if", {"remove": ["job_" + "0" * 26]})
    assert missing.status == 404


async def test_grouping_by_tenant_is_for_operators(admin: Client, served: Served) -> None:
    told = await admin("GET", f"/v1/forecast?{SPAN}&step=PT1H&group_by=tenant")
    assert told.status == 200
    reader = served.client(await served.key(kind="rk"))
    refused = await reader("GET", f"/v1/forecast?{SPAN}&step=PT1H&group_by=tenant")
    assert (refused.status, refused.code) == (403, "scope_missing")
    assert (await reader("GET", f"/v1/forecast?{SPAN}&step=PT1H")).status == 200
