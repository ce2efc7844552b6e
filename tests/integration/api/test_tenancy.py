"""Tenants, keys, audit and events over HTTP."""

import asyncio
import json

from api_kit import Client, Served

HOURLY = {"schedule": "every 1h", "handler": "noop", "name": "hourly"}


async def test_a_key_is_made_bound_rotated_and_revoked(served: Served, admin: Client) -> None:
    made = await admin("POST", "/v1/api-keys", {"name": "ci", "role": "viewer"})
    assert made.status == 201, made.body
    reader = served.client(made.json["secret"])
    assert (await reader("GET", "/v1/whoami")).json["key"]["id"] == made.json["id"]
    assert (await reader("GET", "/v1/jobs")).status == 200
    refused = await reader("POST", "/v1/jobs", HOURLY)
    assert (refused.status, refused.code) == (403, "scope_missing")
    rotated = await admin("POST", f"/v1/api-keys/{made.json['id']}/rotate", {"overlap": "PT1H"})
    assert rotated.status == 201, rotated.body
    both = [reader, served.client(rotated.json["secret"])]
    assert [(await one("GET", "/v1/whoami")).status for one in both] == [200, 200]
    assert (await admin("DELETE", f"/v1/api-keys/{made.json['id']}")).status == 204
    gone = await reader("GET", "/v1/whoami")
    assert (gone.status, gone.code) == (401, "invalid_credentials")
    listed = (await admin("GET", "/v1/api-keys")).json["items"]
    assert "secret" not in listed[0]
    late = {"name": "late", "expires_at": "2020-01-01T00:00:00Z"}
    assert (await admin("POST", "/v1/api-keys", late)).json["errors"][0]["pointer"] == "/expires_at"
    bound = await admin("POST", "/v1/api-keys", {"name": "far", "ip_allow": ["10.0.0.0/8"]})
    far = await served.client(bound.json["secret"])("GET", "/v1/whoami")
    assert (far.status, far.code) == (403, "ip_not_allowed")


async def test_wrong_keys_are_refused_alike(served: Served) -> None:
    text = await served.key()
    cut = await served.client(text[:-1])("GET", "/v1/whoami")
    assert (cut.status, cut.code) == (401, "invalid_credentials")
    expired = await served.key(kind="rk", expires_at=served.service.now())
    old = await served.client(expired)("GET", "/v1/whoami")
    assert (old.status, old.code) == (401, "expired_credentials")


async def test_an_administrator_acts_for_a_tenant_by_header(served: Served, admin: Client) -> None:
    made = await admin("POST", "/v1/tenants", {"slug": "acme", "name": "Acme"})
    assert made.status == 201, made.body
    twice = await admin("POST", "/v1/tenants", {"slug": "acme", "name": "Acme"})
    assert (twice.status, twice.code) == (409, "already_exists")
    there = {"Betimes-Tenant": "acme"}
    job = await admin("POST", "/v1/jobs", HOURLY, headers=there)
    assert job.status == 201, job.body
    assert (await admin("GET", "/v1/jobs/hourly")).status == 404
    assert (await admin("GET", "/v1/jobs/hourly", headers=there)).status == 200
    service = served.client(await served.key(kind="sk"))
    assert (await service("GET", "/v1/jobs", headers=there)).code == "scope_missing"
    await admin("POST", "/v1/tenants/acme/suspend", {"reason": "unpaid", "mode": "stop_all"})
    await admin("POST", "/v1/tenants/default/suspend", {"mode": "stop_all"})
    closed = await service("GET", "/v1/jobs")
    assert (closed.status, closed.code) == (403, "tenant_suspended")
    assert (await admin("POST", "/v1/jobs", HOURLY)).code == "tenant_suspended"
    assert (await admin("POST", "/v1/tenants/default/resume")).status == 200
    assert (await service("GET", "/v1/jobs")).status == 200
    tenant = (await admin("GET", "/v1/tenants/acme")).json
    assert tenant["state"] == "suspended"


async def test_a_tenant_that_takes_nothing_new_takes_it_by_no_door(
    served: Served, admin: Client
) -> None:
    service = served.client(await served.key(await served.tenant("full"), kind="sk"))
    plain = {"schedule": "every 1h", "handler": "noop"}
    old = {**plain, "name": "old"}
    assert (await service("POST", "/v1/jobs", old)).status == 201
    await admin("POST", "/v1/tenants/full/suspend", {"mode": "reject_new"})
    declared = {"jobs": [{**plain, "name": "new"}]}
    doors = [
        await service("POST", "/v1/jobs", HOURLY),
        await service("PUT", "/v1/jobs/new?force=true", plain),
        await service("POST", "/v1/jobs/apply", declared),
        await service("POST", "/v1/jobs/batch", {"items": [plain]}),
        await service("POST", "/v1/import/betimes", {"format": "betimes/1", "jobs": [plain]}),
    ]
    assert [one.code for one in doors] == ["tenant_suspended"] * len(doors)
    edited = await service("PUT", "/v1/jobs/old?force=true", {**plain, "priority": 1})
    assert edited.status == 200, "what is there may change"
    assert len((await service("GET", "/v1/jobs")).json["items"]) == 1


async def test_a_tenant_is_changed_member_by_member(admin: Client) -> None:
    body = {"slug": "m", "name": "M", "quotas": {"jobs": 5, "backlog": 9}, "settings": {}}
    body["settings"] = {"strict": True, "targets": {"plain_http": True}}
    assert (await admin("POST", "/v1/tenants", body)).status == 201
    change = {"quotas": {"jobs": 6, "backlog": None}, "settings": {"targets": {"names": ["a.b"]}}}
    changed = (await admin("PATCH", "/v1/tenants/m", change)).json
    both = {"plain_http": True, "names": ["a.b"]}
    assert changed["quotas"] == {"jobs": 6}
    assert changed["settings"] == {"strict": True, "targets": both}
    lost = {"settings": {"strict": None, "targets": {"plain_http": None}}}
    gone = (await admin("PATCH", "/v1/tenants/m", lost)).json
    assert gone["settings"] == {"targets": {"names": ["a.b"]}}


async def test_a_tenant_has_no_settings_and_quotas_that_nobody_obeys(admin: Client) -> None:
    made = await admin("POST", "/v1/tenants", {"slug": "m", "name": "M"})
    assert made.status == 201, made.body
    for said, pointer, expected in (
        ({"settings": {"strikt": True}}, "/settings", "out of idempotency_retention, require"),
        ({"settings": {"strict": "yes"}}, "/settings/strict", "true or false"),
        ({"settings": {"require_if_match": 1}}, "/settings/require_if_match", "true or false"),
        ({"settings": {"run_events": "none"}}, "/settings/run_events", "'all', or null"),
        ({"settings": {"targets": []}}, "/settings/targets", "an object"),
        ({"settings": {"targets": {"allowed": []}}}, "/settings/targets", "out of allow, names"),
        ({"settings": {"targets": {"allow": ["10.1"]}}}, "/settings/targets/allow", "10.1.0.0/16"),
        ({"settings": {"targets": {"names": "a"}}}, "/settings/targets/names", "a list of"),
        ({"quotas": {"job": 1}}, "/quotas", "out of active_runs, backlog"),
        ({"quotas": {"jobs": True}}, "/quotas/", "a whole number"),
        ({"quotas": {"jobs": -1}}, "/quotas/jobs", "a whole number"),
    ):
        for method, path, body in (
            ("PATCH", "/v1/tenants/m", said),
            ("POST", "/v1/tenants", {"slug": "n", "name": "N", **said}),
        ):
            told = await admin(method, path, body)
            assert told.status == 400, (said, told.body)
            (error,) = told.json["errors"]
            assert error["pointer"].startswith(pointer), error
            assert expected in error["detail"], error
    assert (await admin("GET", "/v1/tenants/m")).json["settings"] == {}
    assert (await admin("GET", "/v1/tenants/n")).status == 404


async def test_every_act_is_in_the_audit_and_its_chain_holds(admin: Client) -> None:
    job = (await admin("POST", "/v1/jobs", HOURLY)).json["id"]
    await admin("POST", f"/v1/jobs/{job}/pause")
    await admin("PATCH", f"/v1/jobs/{job}", {"priority": 1})
    await admin("DELETE", f"/v1/jobs/{job}")
    refused = await admin("POST", "/v1/jobs", {**HOURLY, "queue": "a:b"})
    assert refused.status == 400
    acts = (await admin("GET", f"/v1/audit?resource={job}")).json["items"]
    names = [act["action"] for act in reversed(acts)]
    assert names == ["jobs.create", "jobs.pause", "jobs.update", "jobs.delete"]
    assert (await admin("GET", f"/v1/audit/{acts[0]['id']}")).json == acts[0]
    assert (await admin("POST", "/v1/audit/verify")).json["intact"] is True


async def test_a_changed_act_breaks_the_chain(admin: Client, dsn: str) -> None:
    from store_kit import owner  # noqa: PLC0415 -- only here

    for number in range(3):
        await admin("POST", "/v1/jobs", {**HOURLY, "name": f"n{number}"})
    async with owner(dsn) as connection:
        await connection.execute("UPDATE betimes.audit SET action = 'jobs.read' WHERE number = 1")
    assert (await admin("POST", "/v1/audit/verify")).json["intact"] is False


async def test_events_stream_and_resume(served: Served, admin: Client) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(
        f"GET /v1/events/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin.key}\r\n\r\n"
        "".encode()
    )
    await reader.readuntil(b"retry: 3000\n\n")
    job = (await admin("POST", "/v1/jobs", HOURLY)).json["id"]
    await reader.readuntil(b"event: job.created\n")
    data = json.loads((await reader.readuntil(b"\n\n")).removeprefix(b"data: "))
    assert data["subject"] == job
    writer.close()
    await writer.wait_closed()


async def test_the_use_of_a_key_is_noted_once_an_hour(served: Served, admin: Client) -> None:
    made = (await admin("POST", "/v1/api-keys", {"name": "ci"})).json
    place = f"/v1/api-keys/{made['id']}"
    assert (await admin("GET", place)).json["last_used_at"] is None
    user, credentials = served.client(made["secret"]), served.service.credentials
    for _ in range(3):
        await user("GET", "/v1/whoami")
    assert await credentials.note_use() >= 1
    first = (await admin("GET", place)).json["last_used_at"]
    assert first is not None
    credentials.forget_all()
    await user("GET", "/v1/whoami")
    await credentials.note_use()
    assert (await admin("GET", place)).json["last_used_at"] == first
