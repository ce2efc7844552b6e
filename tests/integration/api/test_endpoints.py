"""Endpoints over the API: made, shown, changed, tried, and nothing given away."""

import asyncio
import json
from typing import Any

from api_kit import DEFAULT, PEPPER, Client, Served
from betimes.domain.event import CATALOGUE
from betimes.domain.ids import from_text, to_text
from betimes.domain.webhook import read_secret
from betimes.ops.endpoints import get_endpoint, open_credential, secret_of
from betimes.ops.rotation import reseal_some, rotate_key
from betimes.ops.secrets import vault_of
from betimes.store.pool import Connection, Lane
from notify_kit import a_dispatcher, an_event
from target_kit import a_target

HOOK = {"type": "webhook", "url": "https://example.com/hook", "event_types": ["run.*"]}
CHAT = "https://hooks.example.com/services/T00/B00/canary-of-the-chat"


async def made(client: Client, **more: Any) -> dict[str, Any]:
    answer = await client("POST", "/v1/endpoints", {**HOOK, **more})
    assert answer.status == 201, answer.body
    told: dict[str, Any] = answer.json
    return told


async def test_a_webhook_shows_its_secret_once(admin: Client) -> None:
    told = await made(admin, filter={"queues": ["mail"], "severity": "warning"})
    secret = read_secret(told["secret"])
    assert secret == secret_of(PEPPER, from_text("ep", told["id"]), 1)
    again = await admin("GET", f"/v1/endpoints/{told['id']}")
    assert again.json["secret"] is None
    assert again.json["filter"] == {"queues": ["mail"], "severity": "warning"}
    assert again.json["status"]["state"] == "active"
    assert again.headers["etag"] == '"1"'
    (listed,) = (await admin("GET", "/v1/endpoints")).json["items"]
    assert listed == again.json


async def test_the_address_of_a_chat_is_written_and_never_read(
    served: Served, admin: Client
) -> None:
    told = await made(admin, type="chat", url=CHAT, style="discord")
    shown = await admin("GET", f"/v1/endpoints/{told['id']}")
    assert shown.json["url"] == "https://hooks.example.com/…"
    assert shown.json["style"] == "discord"
    patched = await admin("PATCH", f"/v1/endpoints/{told['id']}", {"url": CHAT})
    audit = await admin("GET", "/v1/audit")
    for answer in (json.dumps(told).encode(), shown.body, patched.body, audit.body):
        assert b"canary" not in answer
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        dump = await connection.fetchval(
            "SELECT string_agg(endpoints::text, '') FROM betimes.endpoints"
        )
    assert "canary" not in dump
    assert await opened(served, told["id"]) == CHAT
    # Under a new data key it is sealed anew, and still opens.
    assert await rotate_key(served.desk, DEFAULT) == 2
    while await reseal_some(served.desk, DEFAULT):
        pass
    endpoint, _ = await get_endpoint(served.desk, DEFAULT, from_text("ep", told["id"]))
    assert endpoint.key_version == 2
    assert await opened(served, told["id"]) == CHAT


async def opened(served: Served, endpoint: str) -> str:
    """The address of a chat, as the dispatcher gets it."""
    found, _ = await get_endpoint(served.desk, DEFAULT, from_text("ep", endpoint))

    async def work(connection: Connection) -> bytes | None:
        return await open_credential(vault_of(served.desk), connection, found)

    text = await served.desk.transact(work, tenant=None)
    assert text is not None
    return text.decode()


async def test_rate_and_payload_are_kept_and_changed(served: Served, admin: Client) -> None:
    """Whoever lets payloads be sent must be allowed to read them."""
    plain = await made(admin)
    assert (plain["rate"], plain["payload"]) == (None, "thin")
    told = await made(admin, rate={"limit": 30, "per": "PT1M"}, payload="full")
    path = f"/v1/endpoints/{told['id']}"
    shown = (await admin("GET", path)).json
    assert (shown["rate"], shown["payload"]) == ({"limit": 30, "per": "PT1M"}, "full")
    named = await admin("PATCH", path, {"name": "other"})
    assert named.json["rate"] == shown["rate"], "what is not named stays"
    changed = await admin("PATCH", path, {"rate": None, "payload": "thin"})
    assert (changed.json["rate"], changed.json["payload"]) == (None, "thin")
    some = ["notifications:read", "notifications:write"]
    little = served.client(await served.key(kind="sk", scopes=some))
    for answer in (
        await little("POST", "/v1/endpoints", {**HOOK, "payload": "full"}),
        await little("PATCH", path, {"payload": "full"}),
    ):
        assert answer.status == 403, answer.body
    assert (await little("POST", "/v1/endpoints", HOOK)).status == 201


async def test_what_makes_no_sense_is_refused_with_its_place(admin: Client) -> None:
    for body, code, pointer in (
        ({**HOOK, "event_types": ["run.exploded"]}, "invalid_parameter", "/event_types/0"),
        ({**HOOK, "event_types": []}, "invalid_parameter", "/event_types"),
        ({**HOOK, "url": "http://127.0.0.1/"}, "url_not_allowed", "/url"),
        ({**HOOK, "url": "https://metadata.internal/"}, "url_not_allowed", "/url"),
        ({**HOOK, "url": None}, "invalid_parameter", "/url"),
        ({**HOOK, "type": "email"}, "invalid_parameter", "/address"),
        ({"type": "email", "address": "a b@c", "event_types": ["*"]}, "invalid_parameter", None),
    ):
        answer = await admin("POST", "/v1/endpoints", body)
        assert answer.code == code, answer.body
        if pointer is not None:
            assert answer.json["errors"][0]["pointer"] == pointer


async def test_an_edit_needs_the_revision_it_was_made_from(admin: Client) -> None:
    path = f"/v1/endpoints/{(await made(admin))['id']}"
    changed = await admin("PATCH", path, {"name": "on-call", "disabled": True})
    assert changed.json["disabled_reason"] == "disabled by hand"
    assert changed.json["status"]["state"] == "disabled"
    stale = await admin("PATCH", path, {"name": "x"}, headers={"If-Match": '"1"'})
    assert stale.code == "precondition_failed"
    enabled = await admin("POST", f"{path}/enable")
    assert enabled.json["disabled"] is False
    assert enabled.json["name"] == "on-call"
    tried = await admin("PATCH", f"{path}?validate_only=true", {"name": "y"})
    assert tried.json["validated"] is True
    assert (await admin("GET", path)).json["name"] == "on-call"
    assert (await admin("DELETE", path)).status == 204
    assert (await admin("GET", path)).code == "not_found"


async def test_a_secret_is_replaced_with_an_overlap(admin: Client) -> None:
    told = await made(admin)
    path = f"/v1/endpoints/{told['id']}/rotate-secret"
    rotated = await admin("POST", path, {"overlap": "PT1H"})
    assert rotated.status == 200
    assert rotated.json["secret"] not in (None, told["secret"])
    assert rotated.json["secret_until"] is not None
    assert (await admin("POST", path, {"overlap": "P30D"})).code == "invalid_parameter"


async def test_a_test_says_what_came_of_it_and_a_repetition_the_same(
    served: Served, admin: Client
) -> None:
    async with a_target(body=b"hello") as target, a_dispatcher(served.desk) as bench:
        endpoint = await made(admin)
        async with served.desk.database.connection(Lane.ENGINE) as connection:
            # The guard of the API allows no loopback; the dispatcher of this test does.
            await connection.execute("UPDATE betimes.endpoints SET address = $1", target.url("/t"))
        path = f"/v1/endpoints/{endpoint['id']}/test"
        assert (await admin("POST", path, idem=None)).code == "idempotency_key_required"
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(admin("POST", path, idem="one"))
            while not target.received:
                await bench.courier.tick()
                await bench.courier.idle()
        told = (await asking).json
        assert told["state"] == "delivered"
        assert (told["status"], told["response_snippet"]) == (200, "hello")
        assert told["ms"] > 0
        assert told["is_test"] is True
        again = await admin("POST", path, idem="one")
        assert again.headers["idempotent-replayed"] == "true"
        assert again.json == told
        assert len(target.received) == 1
        assert json.loads(target.received[0].body)["type"] == "endpoint.test"


async def test_deliveries_are_listed_read_and_sent_again(served: Served, admin: Client) -> None:
    async with a_target(status=500) as target, a_dispatcher(served.desk) as bench:
        endpoint = await made(admin)
        async with served.desk.database.connection(Lane.ENGINE) as connection:
            await connection.execute("UPDATE betimes.endpoints SET address = $1", target.url())
        for _ in range(3):
            await an_event(served.desk)
        await bench.turn()
        path = f"/v1/endpoints/{endpoint['id']}/deliveries"
        first = await admin("GET", f"{path}?limit=2&state=waiting")
        assert len(first.json["items"]) == 2
        rest = await admin(
            "GET", f"{path}?limit=2&state=waiting&cursor={first.json['next_cursor']}"
        )
        assert len(rest.json["items"]) == 1
        (oldest,) = rest.json["items"]
        assert (oldest["state"], oldest["status"], oldest["attempt"]) == ("waiting", 500, 1)
        assert oldest["error"] == "it answered 500"
        read = await admin("GET", f"/v1/deliveries/{oldest['id']}")
        assert read.json == oldest
        again = await admin("POST", f"/v1/deliveries/{oldest['id']}/redeliver")
        assert again.status == 202
        assert (await admin("GET", f"{path}?state=delivered")).json["items"] == []


async def test_what_an_endpoint_has_missed_is_told_on_request(
    served: Served, admin: Client
) -> None:
    async with a_target() as target, a_dispatcher(served.desk) as bench:
        path = f"/v1/endpoints/{(await made(admin))['id']}"
        async with served.desk.database.connection(Lane.ENGINE) as connection:
            await connection.execute("UPDATE betimes.endpoints SET address = $1", target.url())
        since = served.service.now().isoformat()
        await an_event(served.desk)
        await bench.turn()
        await admin("PATCH", path, {"disabled": True})
        missed = await an_event(served.desk, "run.dead")
        await an_event(served.desk, "job.created")
        await bench.turn()
        await admin("PATCH", path, {"disabled": False})
        await bench.turn()
        assert len(target.received) == 1
        begun = await admin("POST", f"{path}/redeliver", {"since": since})
        assert begun.status == 202, begun.body
        while await served.operate():
            pass
        over = (await admin("GET", begun.headers["location"])).json
        assert (over["state"], over["result"]["sent"]) == ("succeeded", 1)
        await bench.turn()
        assert len(target.received) == 2
        assert target.received[1].headers["webhook-id"] == to_text("evt", missed)
        ahead = await admin("POST", f"{path}/redeliver", {"since": "2100-01-01T00:00:00Z"})
        assert ahead.code == "invalid_parameter"


async def test_every_type_of_event_is_documented(admin: Client) -> None:
    told = (await admin("GET", "/v1/event-types")).json["items"]
    assert [one["name"] for one in told] == list(CATALOGUE)
    for one in told:
        assert set(one["schema"]["properties"]) == set(one["example"])
        assert one["says"].endswith(".")


async def test_jobs_and_runs_say_whom_they_tell(admin: Client) -> None:
    notify = [{"url": "https://example.com/done", "on": ["failure"]}]
    job = await admin(
        "POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h", "notify": notify}
    )
    assert job.status == 201, job.body
    assert job.json["notify"] == notify
    path = f"/v1/jobs/{job.json['id']}"
    assert (await admin("PATCH", path, {"priority": 7})).json["notify"] == notify
    assert "notify" not in (await admin("PATCH", path, {"notify": None})).json
    by_event = [{"url": "https://example.com/done", "on": ["run.dead"]}]
    assert (await admin("PATCH", path, {"notify": by_event})).json["notify"] == by_event
    run = await admin("POST", "/v1/runs", {"handler": "h", "notify": notify})
    assert run.status == 202
    told = await admin(
        "POST",
        "/v1/enqueue/h",
        raw=b"x",
        headers={"betimes-callback": "https://example.com/done", "content-type": "text/plain"},
    )
    assert told.status == 202, told.body
    for bad, pointer in (
        ([{"url": "http://169.254.169.254/"}], "/notify/0/url"),
        ([{"endpoint": "somebody"}], "/notify/0/endpoint"),
        ([{}], "/notify/0"),
        (
            [{"url": "https://example.com/", "endpoint": "ep_01JD00000000000000000000ZZ"}],
            "/notify/0",
        ),
    ):
        answer = await admin("POST", "/v1/runs", {"handler": "h", "notify": bad})
        assert answer.status in (400, 422), answer.body
        assert answer.json["errors"][0]["pointer"] == pointer


async def test_nobody_names_an_endpoint_that_is_not_theirs(served: Served, admin: Client) -> None:
    """Nobody would be told, and whoever made the job would not know."""
    mine = (await admin("POST", "/v1/endpoints", HOOK)).json["id"]
    other = served.client(await served.key(await served.tenant("other")))
    notify = [{"endpoint": mine}]
    job = {"schedule": "every 1h", "handler": "h", "notify": notify}
    for client, status in ((admin, 2), (other, 4)):
        told = [
            await client("POST", "/v1/runs", {"handler": "h", "notify": notify}),
            await client("POST", "/v1/runs/batch", {"items": [{"handler": "h", "notify": notify}]}),
            await client("POST", "/v1/jobs", job),
            await client("POST", "/v1/jobs/batch", {"items": [job]}),
            await client("PUT", "/v1/jobs/named?force=true", {**job, "name": "named"}),
        ]
        assert [one.status // 100 for one in told] == [status] * 5, [one.body for one in told]
    for path, item in (
        ("runs", {"handler": "h"}),
        ("jobs", {"schedule": "every 1h", "handler": "h"}),
    ):
        items = [item, {**item, "notify": notify}]
        body = {"items": items, "mode": "independent"}
        alone = (await other("POST", f"/v1/{path}/batch", body)).json["items"]
        assert [one["status"] // 100 for one in alone] == [2, 4], alone
        assert alone[1]["error"]["errors"][0]["pointer"] == "/items/1/notify/0/endpoint"
    refused = await other("POST", "/v1/runs", {"handler": "h", "notify": notify})
    assert refused.json["errors"][0]["pointer"] == "/notify/0/endpoint"
    assert "expected the id or name of an endpoint that is there" in refused.json["detail"]


async def test_an_endpoint_is_called_by_its_name(admin: Client) -> None:
    """Wherever a job or run is written; what is kept is the id, so the name may change later."""
    ops = (await admin("POST", "/v1/endpoints", {**HOOK, "name": "ops"})).json["id"]
    asked = [{"endpoint": "ops", "on": ["run.dead"]}]
    kept = [{"endpoint": ops, "name": "ops", "on": ["run.dead"]}]
    job = {"schedule": "every 1h", "handler": "h", "notify": asked}
    run = {"handler": "h", "notify": asked}
    for method, path, body in (
        ("POST", "/v1/runs", run),
        ("POST", "/v1/runs/batch", {"items": [run]}),
        ("POST", "/v1/jobs", {**job, "name": "posted"}),
        ("POST", "/v1/jobs/batch", {"items": [{**job, "name": "batched"}]}),
        ("PUT", "/v1/jobs/put?force=true", job),
        ("PUT", "/v1/jobs/put?force=true", {**job, "priority": 3}),
        ("POST", "/v1/jobs/apply", {"jobs": [{**job, "name": "applied"}]}),
    ):
        done = await admin(method, path, body)
        assert done.status // 100 == 2, (path, done.body)
    for name in ("posted", "batched", "put", "applied"):
        assert (await admin("GET", f"/v1/jobs/{name}")).json["notify"] == kept
    again = {"jobs": [{**job, "name": "applied"}]}
    assert (await admin("POST", "/v1/jobs/apply", again)).json["unchanged"] == ["applied"]
    assert "notify" not in (await admin("PATCH", "/v1/jobs/put", {"notify": None})).json
    assert (await admin("PATCH", "/v1/jobs/put", {"notify": asked})).json["notify"] == kept


async def test_a_name_that_means_nobody_or_several_is_refused(admin: Client) -> None:
    for name in ("ops", "twice", "twice"):
        made = await admin("POST", "/v1/endpoints", {**HOOK, "name": name})
        assert made.status == 201
    job = {"schedule": "every 1h", "handler": "h", "name": "there"}
    assert (await admin("POST", "/v1/jobs", job)).status == 201
    for name, sentence in (
        ("nobody", "got 'nobody'; there are: ops, twice"),
        ("twice", "of 2: say"),
    ):
        wrong = {**job, "notify": [{"endpoint": name}]}
        run = {"handler": "h", "notify": [{"endpoint": name}]}
        for method, path, body, prefix in (
            ("POST", "/v1/runs", run, ""),
            ("POST", "/v1/runs/batch", {"items": [{"handler": "h"}, run]}, "/items/1"),
            ("POST", "/v1/jobs", wrong, ""),
            ("POST", "/v1/jobs/batch", {"items": [wrong]}, "/items/0"),
            ("PUT", "/v1/jobs/there?force=true", wrong, ""),
            ("PUT", "/v1/jobs/fresh?force=true", {**wrong, "name": "fresh"}, ""),
            ("PATCH", "/v1/jobs/there", {"notify": wrong["notify"]}, ""),
            ("POST", "/v1/jobs/apply", {"jobs": [wrong]}, "/jobs/0"),
        ):
            refused = await admin(method, path, body)
            assert refused.status in (400, 422), (path, refused.body)
            assert refused.json["errors"][0]["pointer"] == f"{prefix}/notify/0/endpoint"
            assert sentence in refused.json["detail"], refused.json["detail"]
    wrong = {"handler": "h", "notify": [{"endpoint": "nobody"}]}
    items = {"items": [{"handler": "h"}, wrong], "mode": "independent"}
    told = (await admin("POST", "/v1/runs/batch", items)).json["items"]
    assert [one["status"] // 100 for one in told] == [2, 4]


async def test_a_job_whose_endpoint_is_gone_can_still_be_edited(admin: Client) -> None:
    ops = (await admin("POST", "/v1/endpoints", {**HOOK, "name": "ops"})).json["id"]
    job = {"schedule": "every 1h", "handler": "h", "notify": [{"endpoint": ops}], "name": "j"}
    assert (await admin("POST", "/v1/jobs", job)).status == 201
    assert (await admin("DELETE", f"/v1/endpoints/{ops}")).status == 204
    edited = await admin("PATCH", "/v1/jobs/j", {"priority": 7})
    assert edited.json["notify"] == [{"endpoint": ops}]
    assert (await admin("POST", "/v1/jobs", {**job, "name": "k"})).status // 100 == 4


async def test_reading_is_not_writing(served: Served) -> None:
    reader = served.client(await served.key(kind="rk"))
    assert (await reader("GET", "/v1/endpoints")).status == 200
    assert (await reader("POST", "/v1/endpoints", HOOK)).code == "scope_missing"
