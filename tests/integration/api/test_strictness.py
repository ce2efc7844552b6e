"""Strict tenants, and how long they keep answers with their keys."""

from datetime import timedelta
from typing import Any

from api_kit import DEFAULT, Client, Served
from ops_kit import fetch

JOB = {"schedule": "every 1h", "handler": "known"}


async def settings(admin: Client, **said: object) -> None:
    answer = await admin("PATCH", "/v1/tenants/default", {"settings": said})
    assert answer.status == 200, answer.body


async def test_a_strict_tenant_refuses_handlers_and_queues_nobody_knows(
    served: Served, admin: Client
) -> None:
    assert (await admin("POST", "/v1/runs", {"handler": "unheard"})).status == 202, "not yet"
    await settings(admin, strict=True)
    refused = await admin("POST", "/v1/jobs", JOB)
    assert (refused.status, refused.code) == (422, "unknown_handler")
    assert refused.json["errors"][0]["pointer"] == "/handler"
    worker = {"name": "w", "queues": ["mail", "*"], "handlers": ["known"]}
    await admin("POST", "/v1/workers", worker)
    assert (await admin("POST", "/v1/jobs", {**JOB, "name": "j"})).status == 201
    for queue, status in (("mail", 202), ("maill", 422)):
        body = {"handler": "known", "queue": queue}
        assert (await admin("POST", "/v1/runs", body)).status == status
        items = [{"handler": "known"}, body]
        batch = await admin("POST", "/v1/runs/batch", {"items": items, "mode": "independent"})
        assert batch.status == 207, batch.body
        assert [item["status"] for item in batch.json["items"]] == [202, status]
        whole = await admin("POST", "/v1/runs/batch", {"items": items})
        assert whole.status == status, whole.body
        pointers = [error["pointer"] for error in whole.json.get("errors", ())]
        assert pointers == ([] if status == 202 else ["/items/1/queue"])
    assert (await admin("POST", "/v1/enqueue/unknown", raw=b"{}")).code == "unknown_handler"
    patched = await admin("PATCH", "/v1/jobs/j", {"queue": "maill"})
    assert (patched.status, patched.code) == (422, "unknown_queue")
    assert (await admin("PATCH", "/v1/jobs/j", {"handler": "x"})).code == "unknown_handler"
    await admin("PUT", "/v1/queues/maill", {})
    assert (await admin("PATCH", "/v1/jobs/j", {"queue": "maill"})).status == 200
    await settings(admin, strict=False)
    assert (await admin("POST", "/v1/runs", {"handler": "any", "queue": "any"})).status == 202


async def test_answers_are_kept_as_long_as_the_tenant_says(served: Served, admin: Client) -> None:
    async def kept(key: str) -> timedelta:
        await admin("POST", "/v1/runs", {"handler": "h"}, idem=key)
        (row,) = await fetch(
            served.desk.database,
            "SELECT expires_at - created_at AS kept FROM betimes.idempotency"
            " WHERE tenant_id = $1 AND key = $2",
            DEFAULT,
            key,
        )
        found: timedelta = row["kept"]
        return found

    assert await kept("a") == timedelta(days=1)
    change: dict[str, Any] = {"settings": {"idempotency_retention": "P7D"}}
    refused = await admin("PATCH", "/v1/tenants/default", change)
    assert (refused.status, refused.code) == (400, "invalid_parameter"), refused.body
    assert "janitor.retain_idempotency_days" in refused.json["detail"]
    object.__setattr__(served.service, "keys_kept", timedelta(days=30))
    await settings(admin, idempotency_retention="P7D")
    assert await kept("b") == timedelta(days=7)
    for wrong in ("P31D", "PT1H", "soon", True):
        change = {"settings": {"idempotency_retention": wrong}}
        assert (await admin("PATCH", "/v1/tenants/default", change)).status == 400
    assert (await admin("PATCH", "/v1/tenants/default", {"settings": {"strict": 1}})).status == 400
    await settings(admin, idempotency_retention=None)
    assert await kept("c") == timedelta(days=1), "null removes"
