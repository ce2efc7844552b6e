"""The worker protocol over HTTP."""

from typing import Any

from api_kit import DEFAULT, Client, Served
from betimes.api.leasing import read_token, write_own_token


async def worker_of(served: Served, **more: Any) -> tuple[Client, str]:
    client = served.client(await served.key(kind="wk", **more))
    made = await client("POST", "/v1/workers", {"name": "w", "handlers": ["noop"], "slots": 10})
    assert made.status == 201, made.body
    return client, made.json["worker_id"]


async def leased(client: Client, worker: str, count: int = 1) -> list[dict[str, Any]]:
    got = await client("POST", f"/v1/workers/{worker}/lease", {"max": count, "wait": 0})
    assert got.status == 200, got.body
    found: list[dict[str, Any]] = got.json["runs"]
    return found


async def test_a_run_is_leased_and_completed_once(served: Served, admin: Client) -> None:
    client, worker = await worker_of(served)
    assert await leased(client, worker) == []
    run = (await admin("POST", "/v1/runs", {"handler": "noop", "payload": {"n": 1}})).json["id"]
    (one,) = await leased(client, worker)
    assert (one["run_id"], one["payload"], one["attempt"]) == (run, {"n": 1}, 1)
    assert (await admin("GET", f"/v1/runs/{run}")).json["state"] == "running"
    lease = one["lease_id"]
    done = await client("POST", f"/v1/leases/{lease}/complete", {"result": [1]})
    assert (done.status, done.json["next_state"]) == (200, "succeeded")
    again = await client("POST", f"/v1/leases/{lease}/complete", {"result": [1]})
    assert again.status == 200
    shown = (await admin("GET", f"/v1/runs/{run}?view=full&include=attempts")).json
    assert (shown["state"], shown["result"]) == ("succeeded", [1])
    listed = (await admin("GET", f"/v1/runs/{run}/attempts")).json["items"]
    assert [one["outcome"] for one in listed] == ["succeeded"]
    assert shown["attempts"] == listed, "the same, wherever they are read"
    result = await admin("GET", f"/v1/runs/{run}/result")
    assert result.json == [1]
    assert (await admin("GET", f"/v1/runs/{run}/timeline")).json["items"][-1][
        "state"
    ] == "succeeded"


async def test_a_worker_is_told_what_the_service_takes(served: Served, admin: Client) -> None:
    client = served.client(await served.key(kind="wk"))
    made = (await client("POST", "/v1/workers", {"name": "w"})).json
    config = made["config"]
    lease = f"/v1/workers/{made['worker_id']}/lease"
    assert config["wait_max"] == "PT30S"
    assert (config["reports_max"], config["extend_max"]) == (500, "PT1H")
    most = config["leases_max"]
    assert (await client("POST", lease, {"max": most, "wait": 0})).status == 200
    assert (await client("POST", lease, {"max": most + 1, "wait": 0})).status == 400
    await admin("POST", "/v1/runs", {"handler": "noop"})
    (one,) = await leased(client, made["worker_id"])
    path = f"/v1/leases/{one['lease_id']}"
    lines = [{"message": "x"}] * config["log_lines_max"]
    assert (await client("POST", f"{path}/logs", {"lines": lines})).status == 202
    assert (await client("POST", f"{path}/logs", {"lines": [*lines, lines[0]]})).status == 400
    for verb, member, most in (
        ("checkpoint", "data", config["checkpoint_bytes_max"]),
        ("complete", "result", config["result_bytes_max"]),
    ):
        text = "x" * (most - len('""'))
        assert (await client("POST", f"{path}/{verb}", {member: text + "x"})).status == 413
        assert (await client("POST", f"{path}/{verb}", {member: text})).status < 300


async def test_a_failure_is_retried_then_dead_then_redriven(served: Served, admin: Client) -> None:
    client, worker = await worker_of(served)
    retry = {"max_attempts": 2, "backoff": "fixed", "initial": 0, "jitter": "none"}
    run = (await admin("POST", "/v1/runs", {"handler": "noop", "retry": retry})).json["id"]
    (one,) = await leased(client, worker)
    error = {"type": "Boom", "message": "no", "stack": ""}
    failed = await client("POST", f"/v1/leases/{one['lease_id']}/fail", {"error": error})
    assert failed.json["next_state"] == "retry_wait", failed.body
    (two,) = await leased(client, worker)
    assert two["attempt"] == 2
    assert two["fence"] > one["fence"]
    dead = await client("POST", f"/v1/leases/{two['lease_id']}/fail", {"error": error})
    assert dead.json["next_state"] == "dead"
    stale = await client("POST", f"/v1/leases/{one['lease_id']}/complete")
    assert (stale.status, stale.code) == (409, "lease_lost")
    letters = (await admin("GET", "/v1/dead-letters")).json["items"]
    assert [(letter["id"], letter["error"]["type"]) for letter in letters] == [(run, "Boom")]
    assert (await admin("GET", "/v1/dead-letters/groups")).json["items"][0]["count"] == 1
    assert len((await admin("GET", f"/v1/dead-letters/{run}")).json["history"]) == 2
    wrong = await admin(
        "POST", "/v1/dead-letters/bulk", {"action": "redrive", "filter": {}, "confirm_count": 7}
    )
    assert (wrong.status, wrong.code) == (422, "confirm_count_mismatch")
    redriven = await admin("POST", f"/v1/dead-letters/{run}/redrive")
    assert redriven.status == 202, redriven.body
    (three,) = await leased(client, worker)
    assert three["run_id"] == run


async def test_numbers_are_told_with_the_end_and_shown_with_the_run(
    served: Served, admin: Client
) -> None:
    client, worker = await worker_of(served)
    for _ in range(2):
        await admin("POST", "/v1/runs", {"handler": "noop"})
    one, two = await leased(client, worker, 2)
    runs = [one["run_id"], two["run_id"]]
    report = f"/v1/leases/{one['lease_id']}/complete"
    for wrong in ({"rows read": 1}, {"rows": "many"}, {f"m{n}": n for n in range(33)}):
        assert (await client("POST", report, {"metrics": wrong})).status == 400
    said = {"rows": 17, "seconds.db": 0.25}
    await client("POST", f"/v1/leases/{one['lease_id']}/progress", {"percent": 40})
    assert (await client("POST", report, {"metrics": said})).status == 200
    shown = (await admin("GET", f"/v1/runs/{runs[0]}")).json
    assert (shown["metrics"], shown["progress"]["percent"]) == (said, 40)
    assert (await client("POST", report, {"metrics": {"rows": 1}})).status == 200, "said before"
    assert (await admin("GET", f"/v1/runs/{runs[0]}")).json["metrics"] == said
    item = {"lease_id": two["lease_id"], "action": "complete", "metrics": {"rows": -2.5}}
    done = await client("POST", "/v1/leases/batch", {"items": [item]})
    assert done.json["items"][0]["status"] == 200, done.body
    assert (await admin("GET", f"/v1/runs/{runs[1]}")).json["metrics"] == {"rows": -2.5}


async def test_a_failure_may_leave_a_result(served: Served, admin: Client) -> None:
    client, worker = await worker_of(served)
    retry = {"max_attempts": 2, "backoff": "fixed", "initial": 0, "jitter": "none"}
    run = (await admin("POST", "/v1/runs", {"handler": "noop", "retry": retry})).json["id"]
    (one,) = await leased(client, worker)
    await client("POST", f"/v1/leases/{one['lease_id']}/fail", {"result": {"done": 3}})
    assert (await admin("GET", f"/v1/runs/{run}/result")).json == {"done": 3}
    (two,) = await leased(client, worker)
    item = {"lease_id": two["lease_id"], "action": "fail", "result": {"done": 5}}
    await client("POST", "/v1/leases/batch", {"items": [item]})
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert (shown["state"], shown["result"]) == ("dead", {"done": 5})
    large = {"result": "x" * 300_000}
    refused = await client("POST", f"/v1/leases/{two['lease_id']}/fail", large)
    assert refused.code == "payload_too_large"


async def test_what_is_under_way_tells_since_when(served: Served, admin: Client) -> None:
    """Also in its second attempt: not when the first one began."""
    client, worker = await worker_of(served)
    retry = {"max_attempts": 2, "backoff": "fixed", "initial": 0, "jitter": "none"}
    run = (await admin("POST", "/v1/runs", {"handler": "noop", "retry": retry})).json["id"]
    assert "started_at" not in (await admin("GET", f"/v1/runs/{run}")).json
    starts = []
    for _ in range(2):
        (one,) = await leased(client, worker)
        shown = (await admin("GET", f"/v1/runs/{run}")).json
        (listed,) = (await admin("GET", "/v1/runs")).json["items"]
        told = (await admin("GET", f"/v1/runs/{run}/explain")).json["reasons"]
        assert [(reason["code"], reason["since"]) for reason in told] == [
            ("LEASED", shown["started_at"])
        ]
        assert listed["started_at"] == shown["started_at"] >= shown["created_at"]
        assert shown["lag_ms"] >= 0
        starts.append(shown["started_at"])
        await client("POST", f"/v1/leases/{one['lease_id']}/fail")
    assert starts[0] < starts[1]


async def test_many_letters_are_redriven_one_by_one(served: Served, admin: Client) -> None:
    """What was closed meanwhile is told, the rest lives again."""
    client, worker = await worker_of(served)
    runs = [(await admin("POST", "/v1/runs", {"handler": "noop"})).json["id"] for _ in range(3)]
    for one in await leased(client, worker, 3):
        await client("POST", f"/v1/leases/{one['lease_id']}/fail", {"retry": "never"})
    every = {"action": "redrive", "filter": {}}
    dry = await admin("POST", "/v1/dead-letters/bulk", {**every, "dry_run": True})
    assert dry.json == {"matched": 3, "dry_run": True}
    begun = await admin("POST", "/v1/dead-letters/bulk", {**every, "confirm_count": 3})
    assert (begun.status, begun.json["progress"]) == (202, {"done": 0, "total": 3}), begun.body
    await admin("POST", f"/v1/dead-letters/{runs[1]}/discard")
    await served.operate()
    told = (await admin("GET", begun.headers["location"])).json
    assert (told["state"], told["result"]["changed"]) == ("succeeded", 2)
    assert [(one["id"], one["code"]) for one in told["result"]["errors"]] == [
        (runs[1], "invalid_state")
    ]
    assert {one["run_id"] for one in await leased(client, worker, 3)} == {runs[0], runs[2]}


async def test_a_filter_of_letters_says_all_that_a_list_of_them_can(
    served: Served, admin: Client
) -> None:
    client, worker = await worker_of(served)
    for team in ("a", "b", "b"):
        body = {"handler": "noop", "tags": {"team": team}}
        assert (await admin("POST", "/v1/runs", body)).status == 202
    for place, one in enumerate(await leased(client, worker, 3)):
        error = {"type": "Timeout", "message": f"mail {place} is slow", "stack": ""}
        lease = f"/v1/leases/{one['lease_id']}/fail"
        await client("POST", lease, {"error": error, "retry": "never"})

    async def matched(**chosen: Any) -> Any:
        body = {"action": "discard", "filter": chosen, "dry_run": True}
        told = await admin("POST", "/v1/dead-letters/bulk", body)
        return told.json.get("matched", told.json.get("detail"))

    assert await matched(tag=["team:b"]) == 2
    assert await matched(error="MAIL 1 is") == 1
    assert await matched(finished_after="2020-01-01T00:00:00Z") == 3
    assert await matched(finished_before="2020-01-01T00:00:00Z") == 0
    assert await matched(q="handler:noop error:Timeout since:2h tag.team:b queue:default") == 2
    assert await matched(q="since:2h slow") == 3
    assert await matched(q="handler:other") == 0
    assert "there is no filter 'colour'" in await matched(q="colour:red")
    assert "expected one text in the error" in await matched(q="error:a b")
    listed = await admin("GET", "/v1/dead-letters?error=mail%202")
    assert len(listed.json["items"]) == 1


async def test_a_heartbeat_never_shortens_a_lease(served: Served, admin: Client) -> None:
    client, worker = await worker_of(served)
    await admin("POST", "/v1/runs", {"handler": "noop"})
    (run,) = await leased(client, worker)
    lease = run["lease_id"]

    async def beat(**more: Any) -> str:
        body = {"running": [{"lease_id": lease, **more}]}
        told = await client("POST", f"/v1/workers/{worker}/heartbeat", body)
        (extended,) = told.json["extended"]
        return str(extended["expires_at"])

    until = (await client("POST", f"/v1/leases/{lease}/extend", {"by": "PT30M"})).json["expires_at"]
    assert until > run["lease_expires_at"]
    assert [await beat(), await beat(by="PT1M")] == [until, until]
    shorter = await client("POST", f"/v1/leases/{lease}/extend", {"by": "PT1M"})
    assert shorter.json["expires_at"] == until
    assert await beat(by="PT50M") > until


async def test_heartbeats_renew_tell_of_cancels_and_losses(served: Served, admin: Client) -> None:
    client, worker = await worker_of(served)
    for _ in range(3):
        await admin("POST", "/v1/runs", {"handler": "noop"})
    runs = await leased(client, worker, 3)
    assert len(runs) == 3
    cancelled = await admin("POST", f"/v1/runs/{runs[0]['run_id']}/cancel")
    assert cancelled.status == 202, cancelled.body
    named = [{"lease_id": run["lease_id"]} for run in runs] + [{"lease_id": "lea_foreign"}]
    beat = (await client("POST", f"/v1/workers/{worker}/heartbeat", {"running": named})).json
    assert beat["commands"] == [{"type": "cancel", "lease_id": runs[0]["lease_id"]}]
    assert len(beat["extended"]) == 3
    assert beat["lost"] == ["lea_foreign"]
    lease = runs[1]["lease_id"]
    assert (await client("POST", f"/v1/leases/{lease}/progress", {"percent": 50})).status == 202
    saved = await client("POST", f"/v1/leases/{lease}/checkpoint", {"data": {"row": 9}})
    assert saved.status == 202
    lines = [{"message": "half"}, {"message": "way", "level": "warning"}]
    assert (await client("POST", f"/v1/leases/{lease}/logs", {"lines": lines})).status == 202
    log = (await admin("GET", f"/v1/runs/{runs[1]['run_id']}/logs")).json
    assert [line["message"] for line in log["items"]] == ["half", "way"]
    assert (await client("POST", f"/v1/leases/{lease}/release")).status == 200
    (again,) = await leased(client, worker)
    assert (again["run_id"], again["checkpoint"]) == (runs[1]["run_id"], {"row": 9})
    assert again["attempt"] == 1
    assert (await admin("POST", f"/v1/workers/{worker}/drain")).status == 202
    refused = await client("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
    assert (refused.status, refused.code) == (409, "worker_draining")


async def test_many_are_leased_and_reported_together(served: Served, admin: Client) -> None:
    client, worker = await worker_of(served)
    items = [{"handler": "noop", "payload": n} for n in range(250)]
    made = await admin("POST", "/v1/runs/batch", {"items": items})
    assert made.status == 202, made.body
    assert len(made.json["items"]) == 250
    seen = 0
    while runs := await leased(client, worker, 100):
        reports = [{"lease_id": run["lease_id"], "action": "complete"} for run in runs]
        done = await client("POST", "/v1/leases/batch", {"items": reports})
        assert done.status == 207
        assert {item["status"] for item in done.json["items"]} == {200}
        seen += len(runs)
    assert seen == 250
    page = (await admin("GET", "/v1/runs?state=succeeded&limit=1000")).json
    assert len(page["items"]) == 250


async def test_a_key_bound_to_queues_serves_only_them(served: Served) -> None:
    client = served.client(await served.key(kind="wk", queues=["mail"]))
    refused = await client("POST", "/v1/workers", {"name": "w", "queues": ["other"]})
    assert (refused.status, refused.code) == (403, "scope_missing")
    assert (await client("POST", "/v1/workers", {"name": "w", "queues": ["mail"]})).status == 201


async def test_a_tenant_has_no_more_in_flight_than_its_quota(served: Served, admin: Client) -> None:
    tenant = (await admin("GET", "/v1/whoami")).json["tenant"]["slug"]
    path = f"/v1/tenants/{tenant}/quotas"
    put = await admin("PUT", path, {"quotas": {"max_in_flight": 1}})
    assert put.status == 200, put.body
    client, worker = await worker_of(served)
    for _ in range(3):
        await admin("POST", "/v1/runs", {"handler": "noop"})
    (one,) = await leased(client, worker, 3)
    items = (await admin("GET", "/v1/quotas")).json["items"]
    (shown,) = [item for item in items if item["name"] == "max_in_flight"]
    assert (shown["limit"], shown["used"]) == (1, 1)
    assert await leased(client, worker, 3) == []
    done = await client("POST", f"/v1/leases/{one['lease_id']}/complete", {})
    assert done.status == 200
    assert len(await leased(client, worker, 3)) == 1


async def test_a_run_tells_its_attempt_and_when_it_is_tried_again(
    served: Served, admin: Client
) -> None:
    client, worker = await worker_of(served)
    retry = {"max_attempts": 3, "backoff": "fixed", "initial": "PT1H", "jitter": "none"}
    run = (await admin("POST", "/v1/runs", {"handler": "noop", "retry": retry})).json["id"]
    path = f"/v1/runs/{run}"
    assert (await admin("GET", path)).json["attempt"] == 0
    (one,) = await leased(client, worker)
    assert (await admin("GET", path)).json["attempt"] == one["attempt"] == 1
    (listed,) = (await admin("GET", "/v1/runs?state=running")).json["items"]
    assert listed["attempt"] == 1
    failed = await client("POST", f"/v1/leases/{one['lease_id']}/fail", {})
    shown = (await admin("GET", path)).json
    assert (shown["state"], shown["attempt"]) == ("retry_wait", 1)
    assert shown["next_retry_at"] == failed.json["next_retry_at"] is not None
    (listed,) = (await admin("GET", "/v1/runs?state=retry_wait")).json["items"]
    assert listed["next_retry_at"] == shown["next_retry_at"]


async def test_a_delayed_run_is_told_to_be_scheduled_at_once(admin: Client) -> None:
    later = {"handler": "noop", "delay": "PT1H"}
    made = (await admin("POST", "/v1/runs", later)).json
    many = (await admin("POST", "/v1/runs/batch", {"items": [later, {"handler": "noop"}]})).json
    body = {"Betimes-Delay": "PT5S"}
    plain = (await admin("POST", "/v1/enqueue/noop", headers=body)).json
    for one, state in zip(
        (made, *many["items"], plain),
        ("scheduled", "scheduled", "queued", "scheduled"),
        strict=True,
    ):
        assert one["state"] == state
        assert (await admin("GET", f"/v1/runs/{one['id']}")).json["state"] == state


async def test_a_target_needs_no_key_beside_its_token(served: Served, admin: Client) -> None:
    """It reports about its own attempt; nobody else's token, and no other token, does that."""
    await admin("POST", "/v1/runs", {"handler": "noop"})
    made = await admin("POST", "/v1/workers", {"name": "w", "handlers": ["noop"], "slots": 1})
    worker = made.json["worker_id"]
    got = await admin("POST", f"/v1/workers/{worker}/lease", {"max": 1, "wait": 0})
    short = got.json["runs"][0]["lease_id"]
    secret = served.service.lease_secret
    held = read_token(secret, DEFAULT, short)
    own = write_own_token(secret, DEFAULT, held, queue="default")
    nobody = served.client(None)
    stranger = write_own_token(bytes(32), DEFAULT, held, queue="default")
    other = await served.tenant("other")
    elsewhere = write_own_token(secret, other, held, queue="default")
    for token, status in ((short, 401), (stranger, 401), (elsewhere, 409), ("lea_x", 401)):
        answer = await nobody("POST", f"/v1/leases/{token}/complete", {"result": 1})
        assert answer.status == status, answer.body
    assert (await nobody("POST", f"/v1/leases/{own}/progress", {"percent": 5})).status == 202
    assert (await nobody("POST", f"/v1/leases/{own}/complete", {"result": 1})).status == 200
    again = await admin("POST", f"/v1/leases/{own}/complete", {"result": 1})
    assert again.status == 200, "with a key it is as good as any other"
    for path in ("/v1/runs", f"/v1/runs/{got.json['runs'][0]['run_id']}/logs"):
        assert (await nobody("GET", path)).status == 401
