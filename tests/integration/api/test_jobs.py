"""Jobs over HTTP."""

from api_kit import Client, Served

HOURLY = {"schedule": "every 1h", "handler": "noop", "name": "hourly"}


async def test_health_needs_no_key_and_everything_else_does(served: Served) -> None:
    nobody = served.client(None)
    assert (await nobody("GET", "/healthz")).json == {"status": "ok"}
    for path in (
        "/readyz",
        "/v1/openapi.json",
        "/v1/reference",
        "/v1/errors/lease_lost",
        "/v1/time",
    ):
        assert (await nobody("GET", path)).status == 200, path
    answer = await nobody("GET", "/v1/jobs")
    assert (answer.status, answer.code) == (401, "missing_credentials")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_job_is_created_read_and_listed(admin: Client) -> None:
    made = await admin("POST", "/v1/jobs", {**HOURLY, "payload": {"a": 1}, "tags": {"env": "x"}})
    assert made.status == 201, made.body
    job = made.json
    assert made.headers["location"] == f"/v1/jobs/{job['id']}"
    assert made.headers["etag"] == '"1"'
    assert len(job["next_fires"]) == 3
    by_name = await admin("GET", "/v1/jobs/hourly")
    assert by_name.json["id"] == job["id"]
    assert "payload" not in by_name.json
    full = await admin("GET", f"/v1/jobs/{job['id']}?view=full")
    assert full.json["payload"] == {"a": 1}
    page = await admin("GET", "/v1/jobs?tag=env:x&state=active,paused")
    assert [item["id"] for item in page.json["items"]] == [job["id"]]
    assert page.json["next_cursor"] is None
    assert (await admin("GET", "/v1/jobs?tag=env:y")).json["items"] == []


async def test_the_sketch_of_the_sources_works_as_written(admin: Client) -> None:
    body = {"cron": "0 9 * * *", "payloadRef": "s3://x/y", "idempotencyKey": "k1"}
    made = await admin("POST", "/v1/jobs", body, idem=None)
    assert made.status == 201, made.body
    job = made.json["jobId"]
    again = await admin("POST", "/v1/jobs", body, idem=None)
    assert again.json["jobId"] == job
    assert again.headers["idempotent-replayed"] == "true"
    assert again.body == made.body
    at = await admin("POST", "/v1/jobs", {"runAt": "2199-01-01T00:00:00Z"})
    assert at.json["schedule"]["type"] == "once"
    cancelled = await admin("POST", f"/v1/jobs/{job}/cancel")
    assert cancelled.status == 200
    assert cancelled.json["status"]["state"] == "cancelled"


async def test_pause_resume_run_and_delete(admin: Client) -> None:
    job = (await admin("POST", "/v1/jobs", HOURLY)).json["id"]
    paused = await admin("POST", f"/v1/jobs/{job}/pause", {"reason": "release"})
    assert paused.json["status"]["pause"]["reason"] == "release"
    assert paused.headers["etag"] == '"1"'
    assert (await admin("POST", f"/v1/jobs/{job}/resume")).json["status"]["state"] == "active"
    ran = await admin("POST", f"/v1/jobs/{job}/run", {"payload_override": [1, 2]})
    assert ran.status == 202, ran.body
    run = await admin("GET", f"/v1/runs/{ran.json['id']}?view=full")
    assert run.json["trigger"] == "manual"
    assert run.json["payload"] == [1, 2]
    runs = await admin("GET", f"/v1/runs?job={job}")
    assert ran.json["id"] in [item["id"] for item in runs.json["items"]]
    assert (await admin("DELETE", f"/v1/jobs/{job}")).status == 204
    assert (await admin("GET", f"/v1/jobs/{job}")).code == "not_found"


async def test_edits_need_the_revision_they_were_made_from(admin: Client) -> None:
    put = await admin("PUT", "/v1/jobs/hourly", HOURLY)
    assert (put.status, put.code) == (428, "precondition_required")
    put = await admin("PUT", "/v1/jobs/hourly", HOURLY, headers={"If-None-Match": "*"})
    assert put.status == 201
    again = await admin("PUT", "/v1/jobs/hourly", HOURLY, headers={"If-None-Match": "*"})
    assert (again.status, again.headers["etag"]) == (412, '"1"')
    patched = await admin("PATCH", "/v1/jobs/hourly", {"priority": 7, "tags": {"a": "b"}})
    assert patched.status == 200, patched.body
    assert patched.headers["etag"] == '"2"'
    stale = await admin("PATCH", "/v1/jobs/hourly", {"priority": 1}, headers={"If-Match": '"1"'})
    assert (stale.status, stale.headers["etag"]) == (412, '"2"')
    fresh = await admin("PATCH", "/v1/jobs/hourly", {"tags": None}, headers={"If-Match": '"2"'})
    assert "tags" not in fresh.json
    assert fresh.json["priority"] == 7
    unknown = await admin("PATCH", "/v1/jobs/hourly", {"status": {"state": "paused"}})
    assert (unknown.status, unknown.code) == (400, "unknown_field")
    unchanged = await admin(
        "GET", "/v1/jobs/hourly?view=definition", headers={"If-None-Match": '"3"'}
    )
    assert (unchanged.status, unchanged.body) == (304, b"")


async def test_trying_out_writes_nothing(admin: Client) -> None:
    tried = await admin("POST", "/v1/jobs?validate_only=true", HOURLY)
    assert (tried.status, tried.json["validated"]) == (201, True)
    assert (await admin("GET", "/v1/jobs")).json["items"] == []
    refused = await admin("POST", "/v1/jobs?validate_only=true", {"schedule": "61 * * * *"})
    assert refused.status == 422
    assert refused.json["errors"][0]["pointer"].startswith("/schedule")


async def test_pages_follow_one_another(admin: Client) -> None:
    for number in range(5):
        await admin("POST", "/v1/jobs", {**HOURLY, "name": f"n{number}"})
    seen, path = [], "/v1/jobs?limit=2"
    while path:
        page = (await admin("GET", path)).json
        seen += [item["name"] for item in page["items"]]
        path = page["next_cursor"] and f"/v1/jobs?limit=2&cursor={page['next_cursor']}"
    assert seen == ["n0", "n1", "n2", "n3", "n4"]
    newest = (await admin("GET", "/v1/jobs?sort=-created_at&fields=name")).json["items"]
    assert newest[0] == {"name": "n4"}
    first = (await admin("GET", "/v1/jobs?limit=2")).json["next_cursor"]
    stolen = await admin("GET", f"/v1/jobs?limit=2&queue=other&cursor={first}")
    assert (stolen.status, stolen.code) == (400, "cursor_invalid")


async def test_a_definition_put_again_is_no_new_revision(admin: Client) -> None:
    place, force = "/v1/jobs/hourly?force=true", {"schedule": "every 1h", "handler": "h"}
    made = await admin("PUT", place, force)
    again = await admin("PUT", place, force)
    assert (again.status, again.headers["etag"]) == (200, '"1"')
    assert again.json["next_fires"] == made.json["next_fires"]
    assert (await admin("PATCH", "/v1/jobs/hourly", {"handler": "h"})).headers["etag"] == '"1"'
    changed = await admin("PUT", place, {**force, "priority": 9})
    assert changed.headers["etag"] == '"2"'
    assert len((await admin("GET", "/v1/jobs/hourly/revisions")).json["items"]) == 2


async def test_a_conflict_is_answered_again_whatever_has_become_of_things(admin: Client) -> None:
    named = {"schedule": "every 1h", "handler": "h", "name": "taken"}
    assert (await admin("POST", "/v1/jobs", named)).status == 201
    first = await admin("POST", "/v1/jobs", named, idem="late")
    assert (first.status, first.code) == (409, "already_exists")
    assert "idempotent-replayed" not in first.headers
    assert (await admin("DELETE", "/v1/jobs/taken")).status == 204
    again = await admin("POST", "/v1/jobs", named, idem="late")
    assert (again.status, again.body) == (409, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["content-type"] == "application/problem+json"
    other = await admin("POST", "/v1/jobs", {**named, "priority": 1}, idem="late")
    assert (other.status, other.code) == (422, "idempotency_key_reused")
    assert (await admin("POST", "/v1/jobs", named, idem="new")).status == 201


async def test_only_outcomes_are_kept_with_their_keys(admin: Client) -> None:
    """Neither what was said wrongly, nor what is not possible just now."""
    run = {"handler": "h", "queue": "mail"}
    made = await admin("POST", "/v1/runs", run, idem="made")
    await admin("POST", "/v1/queues/mail/drain")
    again = await admin("POST", "/v1/runs", run, idem="made")
    assert (again.status, again.body) == (202, made.body), "it was made before the queue drained"
    assert again.headers["idempotent-replayed"] == "true"
    assert (await admin("POST", "/v1/runs", run, idem="later")).code == "queue_draining"
    await admin("POST", "/v1/queues/mail/resume")
    assert (await admin("POST", "/v1/runs", run, idem="later")).status == 202
    wrong = {"schedule": "every 1h", "handler": "h", "priority": 99}
    assert (await admin("POST", "/v1/jobs", wrong, idem="wrong")).status == 400
    assert (await admin("POST", "/v1/jobs", {**wrong, "priority": 1}, idem="wrong")).status == 201
    trial = "/v1/jobs?validate_only=true"
    named = {**wrong, "priority": 1, "name": "n"}
    assert (await admin("POST", "/v1/jobs", named)).status == 201
    assert (await admin("POST", trial, named, idem="tried")).code == "already_exists"
    await admin("DELETE", "/v1/jobs/n")
    assert (await admin("POST", trial, named, idem="tried")).status < 300


async def test_a_request_about_something_gone_is_answered_as_before(admin: Client) -> None:
    job = {"schedule": "every 1h", "handler": "h", "name": "n"}
    await admin("POST", "/v1/jobs", job)
    ran = await admin("POST", "/v1/jobs/n/run", {}, idem="ran")
    await admin("DELETE", "/v1/jobs/n")
    again = await admin("POST", "/v1/jobs/n/run", {}, idem="ran")
    assert (again.status, again.body) == (ran.status, ran.body)
    assert (await admin("POST", "/v1/jobs/n/run", {}, idem="never")).status == 404
