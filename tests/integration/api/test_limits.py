"""Rates, quotas and load: who is turned away, and who never is."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

from api_kit import Served, served
from betimes.config.settings import DatabaseSettings
from betimes.store.pool import Lane

JOB = {"schedule": "every 1h", "handler": "h"}


async def test_a_rate_is_told_and_then_enforced(dsn: str) -> None:
    async with served(dsn, creates_per_minute=3, requests_per_minute=1000) as api:
        admin = await api.admin()
        first = await admin("POST", "/v1/jobs", JOB)
        assert first.headers["ratelimit-policy"] == '"create";q=3;w=60'
        assert first.headers["ratelimit"].startswith('"create";r=2;t=')
        await admin("POST", "/v1/jobs", JOB)
        await admin("POST", "/v1/jobs", JOB)
        refused = await admin("POST", "/v1/jobs", JOB)
        assert (refused.status, refused.code) == (429, "rate_limited")
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json["retryable"] is True
        assert (await admin("GET", "/v1/jobs")).status == 200


async def test_a_quota_is_checked_before_anything_is_written(served: Served) -> None:
    admin = await served.admin()
    await admin("POST", "/v1/tenants", {"slug": "small", "name": "S", "quotas": {"jobs": 2}})
    there = {"Betimes-Tenant": "small"}
    for _ in range(2):
        assert (await admin("POST", "/v1/jobs", JOB, headers=there)).status == 201
    refused = await admin("POST", "/v1/jobs", JOB, headers=there)
    assert (refused.status, refused.code) == (429, "quota_exceeded")
    assert (refused.json["quota"], refused.json["limit"], refused.json["used"]) == ("jobs", 2, 2)
    quotas = (await admin("GET", "/v1/quotas", headers=there)).json["items"]
    assert {"name": "jobs", "limit": 2, "used": 2} in quotas


async def test_without_room_creating_goes_first_and_cancelling_never(served: Served) -> None:
    admin = await served.admin()
    job = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    admission = served.service.admission
    for share, creating, reading in ((0.7, 201, 200), (0.85, 503, 200), (1.0, 503, 503)):
        admission.busy = int(served.service.settings.busy_max * share)
        assert (await admin("POST", "/v1/jobs", JOB)).status == creating
        assert (await admin("GET", "/v1/jobs")).status == reading
        assert (await admin("POST", f"/v1/jobs/{job}/pause")).status == 200
        assert (await admin("GET", "/healthz")).status == 200
    assert (await admin("POST", f"/v1/jobs/{job}/cancel")).status == 200


async def test_guessing_keys_ends_and_right_keys_still_open(dsn: str) -> None:
    async with served(dsn, failures_per_minute=3) as api:
        wrong = api.client("btm_sk_nonsense")
        codes = [(await wrong("GET", "/v1/whoami")).status for _ in range(5)]
        assert codes == [401, 401, 401, 429, 429]
        assert (await (await api.admin())("GET", "/v1/whoami")).status == 200


async def test_a_draining_node_says_so(served: Served) -> None:
    admin = await served.admin()
    served.service.draining.begun = True
    refused = await admin("GET", "/v1/jobs")
    assert (refused.status, refused.code) == (503, "draining")
    assert (await admin("GET", "/readyz")).status == 503
    assert (await admin("GET", "/healthz")).status == 200


async def test_behind_schedule_unimportant_work_is_refused_first(served: Served) -> None:
    """Due lag and waiting for connections shed creations by priority, and nothing else ever."""
    admin = await served.admin()
    job = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    await admin("POST", "/v1/runs", {"handler": "h"})
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
    lease = leased.json["runs"][0]["lease_id"]
    pressure = served.service.pressure
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "UPDATE betimes.shards SET epoch = 1, published_through = now() - interval '31 s'"
            " WHERE shard = 0"
        )
    await pressure.look()
    assert 31 <= pressure.due_lag < 60
    for lag, low, usual, urgent in (
        (31.0, 503, 202, 202),
        (121.0, 503, 503, 503),
        (0.0, 202, 202, 202),
    ):
        pressure.due_lag = lag
        for priority, expected in ((1, low), (5, usual), (9, urgent)):
            answer = await admin("POST", "/v1/runs", {"handler": "h", "priority": priority})
            assert answer.status == expected, (lag, priority, answer.body)
            if expected == 503:
                assert (answer.code, answer.json["retryable"]) == ("overloaded", True)
                assert answer.headers["retry-after"] == "5"
        batch = {"items": [{"handler": "h", "priority": 9}, {"handler": "h", "priority": 1}]}
        assert (await admin("POST", "/v1/runs/batch", batch)).status == low
        assert (await admin("GET", "/v1/jobs")).status == 200
        assert (await admin("POST", f"/v1/jobs/{job}/pause")).status == 200
        assert (await admin("POST", f"/v1/jobs/{job}/resume")).status == 200
        beat = {"running": [{"lease_id": lease}], "free_slots": 1}
        assert (await admin("POST", f"/v1/workers/{worker}/heartbeat", beat)).status == 200
    assert (await admin("POST", f"/v1/leases/{lease}/complete", {})).status == 200
    assert (await admin("POST", f"/v1/jobs/{job}/cancel")).status == 200


async def test_waiting_for_a_connection_is_a_signal_that_fades(dsn: str) -> None:
    few, soon = DatabaseSettings(api_connections=2), timedelta(milliseconds=20)
    async with served(dsn, store=few, shed_pool_wait=soon) as api:
        admin = await api.admin()
        database = api.desk.database
        assert (await admin("POST", "/v1/runs", {"handler": "h", "priority": 0})).status == 202
        async with AsyncExitStack() as stack:
            for _ in range(2):  # all there are
                await stack.enter_async_context(database.connection(Lane.API))
            late = asyncio.gather(admin("POST", "/v1/runs", {"handler": "h"}))
            await api.service.clock.sleep(0.1)
        assert (await late)[0].status == 202
        assert database.waited(Lane.API) > 0.02
        refused = await admin("POST", "/v1/runs", {"handler": "h", "priority": 0})
        assert (refused.status, refused.code) == (503, "overloaded")
        assert "wait for the database" in refused.json["detail"]
        while database.waited(Lane.API) > 0.02:
            await api.service.clock.sleep(0.1)
        assert (await admin("POST", "/v1/runs", {"handler": "h", "priority": 0})).status == 202
