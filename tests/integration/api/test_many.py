"""Batches, revisions, queues, search, export and import over HTTP."""

from api_kit import Client, Served

JOB = {"schedule": "every 1h", "handler": "h"}


async def test_batches_are_atomic_or_independent(admin: Client) -> None:
    good = [{**JOB, "name": f"n{n}"} for n in range(5)]
    made = await admin("POST", "/v1/jobs/batch", {"items": good})
    assert made.status == 201, made.body
    bad = [{**JOB, "name": "x"}, {"schedule": "61 * * * *"}]
    refused = await admin("POST", "/v1/jobs/batch", {"items": bad})
    assert refused.status == 422
    assert refused.json["errors"][0]["pointer"].startswith("/items/1/schedule")
    assert (await admin("GET", "/v1/jobs/x")).status == 404
    mixed = await admin("POST", "/v1/jobs/batch", {"items": bad, "mode": "independent"})
    assert (mixed.status, [item["status"] for item in mixed.json["items"]]) == (207, [201, 422])
    tried = await admin("POST", "/v1/jobs/batch?validate_only=true", {"items": [JOB]})
    assert tried.json["validated"] is True
    assert len((await admin("GET", "/v1/jobs")).json["items"]) == 6


async def test_a_name_that_is_taken_is_pointed_at(served: Served, admin: Client) -> None:
    """Also where dedupe keys send the items of a batch to several shards."""
    await admin("POST", "/v1/jobs", {**JOB, "name": "taken"})
    fresh = [{**JOB, "dedupe": {"key": f"k{n}"}, "name": f"n{n}"} for n in range(3)]
    items = [*fresh, {**JOB, "name": "free"}, {**JOB, "name": "taken"}, JOB]
    refused = await admin("POST", "/v1/jobs/batch", {"items": items})
    assert (refused.status, refused.code) == (409, "already_exists")
    assert refused.json["errors"][0]["pointer"] == "/items/4/name"
    mixed = await admin("POST", "/v1/jobs/batch", {"items": items, "mode": "independent"})
    assert [one["status"] for one in mixed.json["items"]] == [201, 201, 201, 201, 409, 201]
    assert mixed.json["items"][4]["error"]["errors"][0]["pointer"] == "/items/4/name"
    told = (await admin("GET", "/v1/export")).json
    again = await admin("POST", "/v1/import/betimes?dry_run=true", told)
    assert (again.status, len(again.json["skipped"])) == (200, 2), again.body


async def test_items_that_stand_for_themselves_are_read_for_themselves(admin: Client) -> None:
    for path, item, status in (
        ("/v1/jobs/batch", JOB, 201),
        ("/v1/runs/batch", {"handler": "h"}, 202),
    ):
        items = [item, {**item, "queue": "a:b"}, "no", {**item, "zzz": 1}, {**item, "priority": 3}]
        body = {"items": items, "mode": "independent"}
        mixed = await admin("POST", path, body, idem=path)
        assert mixed.status == 207, mixed.body
        told = mixed.json["items"]
        assert [one["status"] for one in told] == [status, 400, 400, 400, status]
        pointers = [one["error"]["errors"][0]["pointer"] for one in told[1:4]]
        assert pointers == ["/items/1/queue", "/items/2", "/items/3/zzz"]
        again = await admin("POST", path, body, idem=path)
        assert (again.body, again.headers["idempotent-replayed"]) == (mixed.body, "true")
        other = {**body, "items": [items[0], {**item, "queue": "c:d"}, *items[2:]]}
        assert (await admin("POST", path, other, idem=path)).code == "idempotency_key_reused"
        together = await admin("POST", path, {"items": items})
        assert (together.status, together.json["errors"][0]["pointer"]) == (400, "/items/1/queue")
        nothing = await admin("POST", path, {"items": ["no"], "mode": "independent"})
        assert nothing.status == 400


async def test_a_batch_has_a_thousand_items_at_most(admin: Client) -> None:
    for path, item in (("/v1/jobs/batch", JOB), ("/v1/runs/batch", {"handler": "h"})):
        refused = await admin("POST", path, {"items": [item] * 1001})
        assert (refused.status, refused.code) == (413, "batch_too_large")
        assert refused.json["errors"][0]["pointer"] == "/items"


async def test_who_confirms_nothing_is_told_so(admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    refused = await admin("POST", "/v1/jobs/bulk", {"action": "pause", "filter": {}})
    assert refused.json["detail"] == "this would touch 1 jobs, none are confirmed in confirm_count"


async def test_an_old_definition_comes_back(admin: Client) -> None:
    await admin("POST", "/v1/jobs", {**JOB, "name": "n", "priority": 3})
    await admin("PATCH", "/v1/jobs/n", {"priority": 8})
    found = (await admin("GET", "/v1/jobs/n/revisions")).json["items"]
    assert [(one["revision"], one["definition"]["priority"]) for one in found] == [(2, 8), (1, 3)]
    back = await admin("POST", "/v1/jobs/n/rollback", {"revision": 1})
    assert (back.json["revision"], back.json["priority"]) == (3, 3)
    assert (await admin("POST", "/v1/jobs/n/rollback", {"revision": 9})).status == 404


async def test_every_revision_says_who_made_it_and_what_it_changed(
    served: Served, admin: Client
) -> None:
    await admin("POST", "/v1/jobs", {**JOB, "name": "n", "payload": {"to": "a", "n": 1}})
    key = await served.key()
    editor = served.client(key)
    change = {"priority": 8, "tags": {"a/b": "1"}, "payload": {"to": "b", "n": None}}
    assert (await editor("PATCH", "/v1/jobs/n", change)).status == 200
    assert (await editor("PATCH", "/v1/jobs/n", {"tags": None, "payload": None})).status == 200
    third, second, first = (await admin("GET", "/v1/jobs/n/revisions")).json["items"]
    job = (await admin("GET", "/v1/jobs/n")).json
    author = (await editor("GET", "/v1/whoami")).json["key"]["id"]
    assert [one["author"] for one in (third, second)] == [author, author]
    assert (first["author"], first["made_at"]) == (job["created_by"], job["created_at"])
    assert first["author"] not in (author, None)
    assert (first["diff"], first["replaced_by"]) == ([], author)
    assert second["made_at"] == first["replaced_at"]
    hidden = {"path": "/payload", "hidden": True}
    assert second["diff"] == [
        {"op": "add", "path": "/options/tags", "new": {"a/b": "1"}, "hidden": False},
        {"op": "replace", **hidden},
        {"op": "replace", "path": "/priority", "old": 5, "new": 8, "hidden": False},
    ]
    assert [one["op"] for one in third["diff"]] == ["remove", "remove"]
    assert third["diff"][1] == {"op": "remove", **hidden}

    full = (await admin("GET", "/v1/jobs/n/revisions/2?view=full")).json
    assert full["definition"]["payload"] == {"to": "b"}
    assert full["diff"][1:3] == [
        {"op": "remove", "path": "/payload/n", "old": 1, "hidden": False},
        {"op": "replace", "path": "/payload/to", "old": "a", "new": "b", "hidden": False},
    ]
    reader = served.client(await served.key(scopes=["jobs:read"]))
    assert (await reader("GET", "/v1/jobs/n/revisions/2?view=full")).code == "scope_missing"
    basic = (await reader("GET", "/v1/jobs/n/revisions/2")).json
    assert (basic["diff"], "payload" in basic["definition"]) == (second["diff"], False)


async def test_a_paused_queue_gives_nothing(served: Served, admin: Client) -> None:
    client = served.client(await served.key(kind="wk"))
    body = {"name": "w", "queues": ["mail"]}
    worker = (await client("POST", "/v1/workers", body)).json["worker_id"]
    await admin("POST", "/v1/runs", {"handler": "h", "queue": "mail"})
    paused = await admin("POST", "/v1/queues/mail/pause", {"reason": "outage"})
    assert paused.json["paused"] is True, paused.body
    lease = f"/v1/workers/{worker}/lease"
    assert (await client("POST", lease, {"wait": 0})).json["runs"] == []
    stats = (await admin("GET", "/v1/queues/mail/stats")).json
    assert (stats["waiting"], stats["paused"]) == (1, True)
    assert (await admin("DELETE", "/v1/queues/mail")).code == "queue_not_empty"
    assert (await admin("POST", "/v1/queues/mail/resume")).json["paused"] is False
    assert len((await client("POST", lease, {"wait": 5})).json["runs"]) == 1
    names = [queue["name"] for queue in (await admin("GET", "/v1/queues")).json["items"]]
    assert names == ["mail"]


async def test_an_action_over_a_filter_is_confirmed_by_its_number(
    served: Served, admin: Client
) -> None:
    for number in range(4):
        await admin(
            "POST", "/v1/jobs", {**JOB, "name": f"n{number}", "tags": {"t": str(number % 2)}}
        )
    chosen = {"action": "pause", "filter": {"tags": {"t": "1"}}}
    dry = await admin("POST", "/v1/jobs/bulk", {**chosen, "dry_run": True})
    assert dry.json == {"matched": 2, "dry_run": True}
    wrong = await admin("POST", "/v1/jobs/bulk", {**chosen, "confirm_count": 3})
    assert (wrong.status, wrong.code) == (422, "confirm_count_mismatch")
    done = await admin("POST", "/v1/jobs/bulk", {**chosen, "confirm_count": 2})
    assert (done.status, done.json["progress"]) == (202, {"done": 0, "total": 2})
    await served.operate()
    told = (await admin("GET", done.headers["location"])).json
    assert (told["state"], told["result"]) == ("succeeded", {"changed": 2, "refused": 0})
    states = [job["status"]["state"] for job in (await admin("GET", "/v1/jobs")).json["items"]]
    assert states == ["active", "paused", "active", "paused"]


async def test_members_of_many_jobs_are_set_and_what_refuses_is_told(
    served: Served, admin: Client
) -> None:
    """Every job is an edit of its own: its revision rises, and what was not named stays."""
    body = {**JOB, "payload": [1], "tags": {"a": "b"}, "timeout": "PT5M"}
    jobs = [(await admin("POST", "/v1/jobs", body)).json["id"] for _ in range(3)]
    await admin("POST", f"/v1/jobs/{jobs[1]}/cancel")
    change = {"priority": 2, "queue": "slow", "timeout": None, "description": "later"}
    asked = {"action": "set", "filter": {}, "set": change, "confirm_count": 3}
    begun = await admin("POST", "/v1/jobs/bulk", asked)
    assert begun.status == 202, begun.body
    await served.operate()
    told = (await admin("GET", begun.headers["location"])).json["result"]
    assert (told["changed"], told["refused"]) == (2, 1)
    assert [(one["id"], one["code"]) for one in told["errors"]] == [(jobs[1], "invalid_state")]
    for job in (jobs[0], jobs[2]):
        shown = (await admin("GET", f"/v1/jobs/{job}?view=full")).json
        assert (shown["priority"], shown["queue"], shown["revision"]) == (2, "slow", 2)
        assert (shown["description"], shown["tags"], shown["payload"]) == ("later", {"a": "b"}, [1])
        assert "timeout" not in shown
    for wrong in (
        {**asked, "set": {"schedule": "every 1h"}},
        {**asked, "set": {}},
        {**asked, "set": {"priority": 10}},
        {"action": "set", "filter": {}},
        {**asked, "action": "pause"},
    ):
        refused = await admin("POST", "/v1/jobs/bulk", wrong)
        assert refused.status == 400, refused.body


async def test_a_blob_is_kept_for_its_tenant(served: Served, admin: Client) -> None:
    made = await admin("POST", "/v1/blobs", raw=b"\x00\xff", headers={"content-type": "image/x"})
    assert (made.status, made.json["size"]) == (201, 2), made.body
    assert (await admin("POST", "/v1/blobs", raw=b"")).code == "invalid_parameter"
    got = await admin("GET", made.headers["location"])
    assert (got.body, got.headers["content-type"]) == (b"\x00\xff", "image/x")
    other = served.client(await served.key(await served.tenant("other")))
    assert (await other("GET", made.headers["location"])).status == 404


async def test_jobs_are_found_exported_and_imported(served: Served, admin: Client) -> None:
    job = (await admin("POST", "/v1/jobs", {**JOB, "name": "report", "payload": [1]})).json["id"]
    assert (await admin("GET", f"/v1/search?q={job}")).json["items"][0]["name"] == "report"
    assert (await admin("GET", "/v1/search?q=rep")).json["items"][0]["id"] == job
    told = (await admin("GET", "/v1/export")).json
    assert told["jobs"][0]["payload"] == [1]
    tenant = await served.tenant("copy")
    other = served.client(await served.key(tenant))
    tried = await other("POST", "/v1/import/betimes?dry_run=true", told)
    assert (tried.status, len(tried.json["created"])) == (200, 1)
    made = await other("POST", "/v1/import/betimes", told)
    assert (made.status, len(made.json["created"])) == (201, 1), made.body
    again = await other("POST", "/v1/import/betimes", told)
    assert "exists already" in again.json["skipped"][0]["reason"]
    copied = (await other("GET", "/v1/jobs/report?view=full")).json
    assert (copied["payload"], copied["schedule"]) == ([1], told["jobs"][0]["schedule"])


async def test_one_that_is_refused_leaves_a_hundred_others_alone(admin: Client) -> None:
    await admin("POST", "/v1/jobs", {**JOB, "name": "taken"})
    items = [{**JOB, "name": f"each-{place}"} for place in range(100)]
    items[17]["name"] = "taken"
    items[63] = {**items[63], "schedule": "no such thing"}
    told = await admin("POST", "/v1/jobs/batch", {"mode": "independent", "items": items})
    assert told.status == 207, told.body
    statuses = [item["status"] for item in told.json["items"]]
    assert (statuses[17], statuses[63]) == (409, 422)
    assert [status for place, status in enumerate(statuses) if place not in (17, 63)] == [201] * 98
    for name in ("each-16", "each-18", "each-62", "each-64", "each-99"):
        assert (await admin("GET", f"/v1/jobs/{name}")).status == 200
