"""HTTP targets over the API."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.domain.ids import WorkerId
from betimes.store.breakers import BreakerRow, Breakers
from worker_kit import rows as rows_of

URL = "https://example.com/hook"


def job(**target: Any) -> dict[str, Any]:
    return {
        "schedule": "every 1h",
        "name": "hook",
        "target": {"type": "http", "url": URL, **target},
    }


async def test_a_job_can_be_a_request(admin: Client) -> None:
    """It is shown without what may be secret, and in full to who may read payloads."""
    target = {"headers": {"X-Key": "k"}, "body": {"a": 1}, "timeout": "45s", "success_codes": [200]}
    made = await admin("POST", "/v1/jobs", job(**target))
    assert made.status == 201, made.body
    shown = {
        "type": "http",
        "url": URL,
        "method": "POST",
        "timeout": "PT45S",
        "success_codes": [200],
    }
    assert made.json["target"] == shown
    assert "handler" not in made.json
    full = (await admin("GET", "/v1/jobs/hook?view=full")).json["target"]
    assert full == shown | {"headers": {"X-Key": "k"}, "body": {"a": 1}}


async def test_a_patch_keeps_the_rest_of_the_target(admin: Client) -> None:
    """And a handler can take its place."""
    await admin("POST", "/v1/jobs", job(headers={"X-Key": "k"}))
    patched = await admin("PATCH", "/v1/jobs/hook", {"target": {"method": "PUT"}})
    assert patched.status == 200, patched.body
    full = (await admin("GET", "/v1/jobs/hook?view=full")).json["target"]
    assert full == {"type": "http", "url": URL, "method": "PUT", "headers": {"X-Key": "k"}}
    patched = await admin("PATCH", "/v1/jobs/hook", {"target": None, "handler": "noop"})
    assert patched.json["handler"] == "noop"
    assert "target" not in patched.json


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        ({"url": "http://example.com/"}, "/target/url"),
        ({"url": "https://127.0.0.1/"}, "/target/url"),
        ({"url": "https://metadata.google.internal/"}, "/target/url"),
        ({"headers": {"Host": "x"}}, "/target/headers/Host"),
        ({"timeout": "1h"}, "/target/timeout"),
        ({"success_codes": ["2xx"]}, "/target/success_codes/0"),
    ],
)
async def test_what_may_not_be_called_is_refused_at_once(
    admin: Client, target: dict[str, Any], pointer: str
) -> None:
    """On every way in: job, replacement, run, batch of runs."""
    body = job(**target)
    for method, path, sent, where in (
        ("POST", "/v1/jobs", body, pointer),
        ("PUT", "/v1/jobs/hook?force=true", {**body, "name": "hook"}, pointer),
        ("POST", "/v1/runs", {"target": body["target"]}, pointer),
        ("POST", "/v1/runs/batch", {"items": [{"target": body["target"]}]}, f"/items/0{pointer}"),
    ):
        answer = await admin(method, path, sent)
        assert answer.status == 422 or answer.code == "invalid_parameter", (path, answer.body)
        assert [error["pointer"] for error in answer.json["errors"]] == [where]


async def test_a_handler_and_a_target_are_one_too_many(admin: Client) -> None:
    """One thing is to be done."""
    answer = await admin("POST", "/v1/jobs", {**job(), "handler": "noop"})
    assert answer.code == "invalid_parameter"


async def test_a_tenant_s_settings_open_its_own_network(served: Served, admin: Client) -> None:
    """And only its own."""
    tenant = await served.tenant("inner")
    key = await served.key(tenant, kind="sk")
    inner = job(url="https://10.1.2.3/x")
    assert (await served.client(key)("POST", "/v1/jobs", inner)).code == "url_not_allowed"
    opened = await admin(
        "PATCH", "/v1/tenants/inner", {"settings": {"targets": {"allow": ["10.1.0.0/16"]}}}
    )
    assert opened.status == 200, opened.body
    served.service.credentials.forget_all()
    assert (await served.client(key)("POST", "/v1/jobs", inner)).status == 201
    assert (await admin("POST", "/v1/jobs", inner)).code == "url_not_allowed"


async def test_what_is_known_about_origins_is_shown(served: Served, admin: Client) -> None:
    """Page by page, and only to their tenant."""
    other = await served.tenant("other")
    at = served.service.clock.now()
    rows = [
        BreakerRow(
            tenant=tenant,
            origin=f"https://{number}.example",
            state=number % 2,
            failures=number,
            opened_at=at if number % 2 else None,
            probe_at=at if number % 2 else None,
            facts={"in_flight": number},
        )
        for tenant in (DEFAULT, other)
        for number in range(3)
    ]
    store = Breakers(served.desk.database, WorkerId(UUID(int=1)), served.service.clock)
    await store.write(rows)
    first = (await admin("GET", "/v1/targets?limit=2")).json
    assert [one["state"] for one in first["items"]] == ["closed", "open"]
    assert first["items"][1]["seen"] == {"in_flight": 1}
    rest = (await admin("GET", f"/v1/targets?cursor={first['next_cursor']}")).json
    assert [one["origin"] for one in rest["items"]] == ["https://2.example"]
    assert len(await every_breaker(served)) == 6


async def every_breaker(served: Served) -> list[Any]:
    return await rows_of(served.desk.database, "SELECT * FROM betimes.breakers")


async def test_the_signing_secret_is_told_to_who_manages_keys(
    served: Served, admin: Client
) -> None:
    """Where requests are signed at all."""
    assert (await admin("GET", "/v1/targets/signing-secret")).status == 404
    object.__setattr__(served.service, "signing", lambda _: (bytes(32),))
    told = (await admin("GET", "/v1/targets/signing-secret")).json
    assert told == {"secrets": ["whsec_" + "A" * 43 + "="]}
    reader = served.client(await served.key(kind="rk"))
    assert (await reader("GET", "/v1/targets/signing-secret")).code == "scope_missing"


async def test_a_breaker_is_closed_by_hand(served: Served, admin: Client) -> None:
    """And stays so against what workers knew before; a failure since then opens it again."""
    at = served.service.clock.now()
    store = Breakers(served.desk.database, WorkerId(UUID(int=1)), served.service.clock)

    def broken(opened_at: Any) -> BreakerRow:
        return BreakerRow(
            tenant=DEFAULT,
            origin="https://a.example",
            state=1,
            failures=5,
            opened_at=opened_at,
            probe_at=opened_at,
        )

    await store.write([broken(at)])
    body = {"origin": "https://a.example/"}
    reset = await admin("POST", "/v1/targets/reset", body)
    assert (reset.status, reset.json["state"], reset.json["failures"]) == (200, "closed", 0)
    assert (await store.broken())[1] == []
    await store.write([broken(at)])
    assert (await store.broken())[1] == [], "a worker that had not heard yet"
    await store.write([broken(served.service.clock.now())])
    assert len((await store.broken())[1]) == 1
    other = served.client(await served.key(await served.tenant("other")))
    assert (await other("POST", "/v1/targets/reset", body)).status == 404
    assert len((await store.broken())[1]) == 1
    reader = served.client(await served.key(kind="rk"))
    assert (await reader("POST", "/v1/targets/reset", body)).code == "scope_missing"


async def test_a_request_is_not_handed_to_a_remote_worker(served: Served, admin: Client) -> None:
    """It waits for a worker of ours, at once; what else is in the queue is handed out."""
    http = (await admin("POST", "/v1/runs", {"target": job()["target"]})).json["id"]
    task = (await admin("POST", "/v1/runs", {"handler": "noop"})).json["id"]
    worker = (await admin("POST", "/v1/workers", {"name": "w", "slots": 10})).json["worker_id"]
    got = await admin("POST", f"/v1/workers/{worker}/lease", {"max": 10, "wait": 0})
    assert [run["run_id"] for run in got.json["runs"]] == [task]
    shown = (await admin("GET", f"/v1/runs/{http}")).json
    assert (shown["attempt"], "lease" in shown) == (0, False)
    (parcel,) = await rows_of(
        served.desk.database, "SELECT visible_at FROM betimes.parcels WHERE worker_id IS NULL"
    )
    assert parcel["visible_at"] <= served.service.now() + timedelta(seconds=1)
