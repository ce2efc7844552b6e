"""Rates, quotas and load: who is turned away, and who never is."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from api_kit import DEFAULT, Served, served
from betimes.api.application import ANYBODY
from betimes.api.limits import Admission
from betimes.api.problem import Trouble
from betimes.api.routes import ROUTES
from betimes.config.api import ApiSettings
from betimes.config.settings import DatabaseSettings
from betimes.store.pool import Lane
from betimes.testing.clock import ManualClock

JOB = {"schedule": "every 1h", "handler": "h"}


async def test_a_rate_is_told_and_then_enforced(dsn: str) -> None:
    async with served(dsn, creates_per_minute=3, requests_per_minute=1000) as api:
        admin = await api.admin()
        limits = (await admin("GET", "/v1/whoami")).json["limits"]
        assert (limits["create_per_minute"], limits["default_per_minute"]) == (3, 1000)
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
        missing = await admin("GET", "/v1/jobs/nowhere")
        assert missing.headers["ratelimit-policy"] == '"default";q=1000;w=60', "bad news, too"


def test_those_who_are_refused_together_do_not_come_back_together() -> None:
    rolls = iter([0.0, 0.0, 0.999, 0.999])
    settings = ApiSettings(bulk_per_minute=1)
    admission = Admission(settings=settings, clock=ManualClock(), roll=lambda: next(rolls))
    (route,) = [one for one in ROUTES if one.name == "jobs.create_many"]
    caller = replace(ANYBODY, tenant=DEFAULT)
    admission.charge(caller, route)
    waits = []
    for _ in range(2):
        with pytest.raises(Trouble) as refused:
            admission.charge(caller, route)
        waits.append(int(refused.value.headers["Retry-After"]))
    assert waits == [60, 76]


async def test_a_quota_is_checked_before_anything_is_written(served: Served) -> None:
    admin = await served.admin()
    await admin("POST", "/v1/tenants", {"slug": "small", "name": "S", "quotas": {"jobs": 2}})
    there = {"Betimes-Tenant": "small"}
    for _ in range(2):
        assert (await admin("POST", "/v1/jobs", JOB, headers=there)).status == 201
    refused = await admin("POST", "/v1/jobs", JOB, headers=there)
    assert (refused.status, refused.code) == (429, "quota_exceeded")
    assert (refused.json["quota"], refused.json["limit"], refused.json["used"]) == ("jobs", 2, 2)
    assert refused.headers["retry-after"] == "60", "every 429 says when to come back"
    quotas = (await admin("GET", "/v1/quotas", headers=there)).json["items"]
    jobs = {"name": "jobs", "limit": 2, "used": 2, "soft_limit": 1, "resets_at": None}
    assert jobs in quotas
    (creates,) = [one for one in quotas if one["name"] == "create_per_minute"]
    assert (creates["limit"], creates["soft_limit"]) == (600_000, 480_000)
    assert creates["resets_at"].endswith("Z")


async def test_without_room_what_matters_least_goes_first_and_cancelling_never(
    served: Served,
) -> None:
    admin = await served.admin()
    job = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    admission = served.service.admission
    rows = (
        (0.6, 200, 200, 201, 200),
        (0.75, 503, 200, 201, 200),
        (0.85, 503, 503, 201, 200),
        (0.95, 503, 503, 503, 200),
        (1.0, 503, 503, 503, 503),
    )
    for share, counting, reading, creating, changing in rows:
        admission.busy = int(served.service.settings.busy_max * share)
        assert (await admin("GET", "/v1/usage")).status == counting, share
        assert (await admin("GET", "/v1/jobs")).status == reading, share
        assert (await admin("POST", "/v1/jobs", JOB)).status == creating, share
        assert (await admin("PATCH", f"/v1/jobs/{job}", {"priority": 1})).status == changing, share
        assert (await admin("POST", f"/v1/jobs/{job}/pause")).status == 200
        assert (await admin("GET", "/healthz")).status == 200
    assert (await admin("POST", f"/v1/jobs/{job}/cancel")).status == 200


async def test_ten_times_too_much_is_borne(dsn: str) -> None:
    """What is accepted is done, what is refused is told, and what is vital always gets through."""
    async with served(dsn, busy_max=10, store=DatabaseSettings(api_connections=2)) as api:
        admin = await api.admin()
        job = (await admin("POST", "/v1/jobs", JOB)).json["id"]
        worker = (await admin("POST", "/v1/workers", {"name": "w", "slots": 9})).json["worker_id"]
        for _ in range(5):
            await admin("POST", "/v1/runs", {"handler": "h"})
        leased = await admin("POST", f"/v1/workers/{worker}/lease", {"max": 5, "wait": 0})
        leases = [run["lease_id"] for run in leased.json["runs"]]
        running = [{"lease_id": lease} for lease in leases]
        vital = [
            *(("POST", f"/v1/jobs/{job}/{verb}", {}) for verb in ("pause", "resume")),
            ("POST", f"/v1/workers/{worker}/heartbeat", {"running": running}),
        ]
        creating = [admin("POST", "/v1/jobs", JOB) for _ in range(60)]
        reading = [admin("GET", "/v1/jobs") for _ in range(40)]
        saving = [admin(*one) for one in vital * 5]
        created, read, saved = await asyncio.gather(
            asyncio.gather(*creating), asyncio.gather(*reading), asyncio.gather(*saving)
        )
        assert {one.status for one in saved} == {200}
        assert {one.status for one in created} == {201, 503}
        refused = [one for one in (*created, *read) if one.status == 503]
        assert {(one.code, one.headers["retry-after"]) for one in refused} == {("overloaded", "1")}
        for lease in leases:
            assert (await admin("POST", f"/v1/leases/{lease}/complete")).status == 200
        assert api.service.admission.busy == 0, "nothing is left behind"
        made = {one.json["id"] for one in created if one.status == 201}
        listed = (await admin("GET", "/v1/jobs?limit=1000")).json["items"]
        assert made | {job} == {one["id"] for one in listed}


async def test_a_refusal_for_want_of_room_takes_its_time(dsn: str) -> None:
    """Who asks again at once would otherwise take the time of those that are served."""
    async with served(dsn, shed_pause=timedelta(seconds=1)) as api:
        admin = await api.admin()
        api.service.admission.busy = api.service.settings.busy_max
        asked_at = api.service.clock.monotonic()
        assert (await admin("GET", "/v1/jobs")).status == 503
        assert api.service.clock.monotonic() - asked_at >= 1.0
        assert api.service.admission.busy == api.service.settings.busy_max


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
    for lag, low, usual, urgent in ((31, 503, 202, 202), (300, 503, 503, 503), (0, 202, 202, 202)):
        async with served.desk.database.connection(Lane.ENGINE) as connection:
            await connection.execute(
                "UPDATE betimes.shards SET epoch = 1, published_through = now() - $1::interval"
                " WHERE shard = 0",
                timedelta(seconds=lag),
            )
        await served.service.pressure.look()
        assert lag <= served.service.pressure.due_lag < lag + 60
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
    few, soon = DatabaseSettings(api_connections=2), timedelta(milliseconds=400)
    async with served(dsn, store=few, shed_pool_wait=soon) as api:
        admin = await api.admin()
        database = api.desk.database
        async with AsyncExitStack() as stack:
            for _ in range(2):  # all there are
                await stack.enter_async_context(database.connection(Lane.API))
            late = asyncio.gather(admin("POST", "/v1/runs", {"handler": "h"}))
            await api.service.clock.sleep(0.6)
        assert (await late)[0].status == 202
        assert database.waited(Lane.API) > 0.4
        refused = await admin("POST", "/v1/runs", {"handler": "h", "priority": 0})
        assert (refused.status, refused.code) == (503, "overloaded")
        assert "wait for the database" in refused.json["detail"]
        statistics = await admin("GET", "/v1/usage")
        assert (statistics.status, statistics.code) == (503, "overloaded")
        while database.waited(Lane.API) > 0.4:
            await api.service.clock.sleep(0.1)
        assert (await admin("POST", "/v1/runs", {"handler": "h", "priority": 0})).status == 202


async def test_every_creation_meets_the_quotas(served: Served) -> None:
    """By whatever door: 429, the quota by name, and nothing written."""
    admin = await served.admin()
    body = {"slug": "none", "name": "N", "quotas": {"jobs": 1, "active_runs": 0}}
    await admin("POST", "/v1/tenants", body)
    there = {"Betimes-Tenant": "none"}
    job = (await admin("POST", "/v1/jobs", JOB, headers=there)).json["id"]
    doors = [
        ("POST", "/v1/jobs", JOB, "jobs"),
        ("POST", "/v1/jobs/batch", {"items": [JOB]}, "jobs"),
        ("PUT", "/v1/jobs/named", JOB, "jobs"),
        ("POST", "/v1/runs", {"handler": "h"}, "active_runs"),
        ("POST", "/v1/runs/batch", {"items": [{"handler": "h"}]}, "active_runs"),
        ("POST", "/v1/enqueue/h", {}, "active_runs"),
        ("POST", f"/v1/jobs/{job}/run", {}, "active_runs"),
    ]
    for method, path, sent, quota in doors:
        match = {"If-None-Match": "*"} if method == "PUT" else {}
        refused = await admin(method, path, sent, headers=there | match)
        assert (refused.status, refused.code) == (429, "quota_exceeded"), path
        assert refused.json["quota"] == quota
        assert refused.json["limit"] == (1 if quota == "jobs" else 0)
        assert refused.json["resets_at"] is None
    assert len((await admin("GET", "/v1/jobs", headers=there)).json["items"]) == 1
    assert (await admin("GET", "/v1/runs", headers=there)).json["items"] == []


async def test_a_rate_of_creations_says_when_there_is_room_again(served: Served) -> None:
    admin = await served.admin()
    body = {"slug": "slow", "name": "S", "quotas": {"runs_per_minute": 2}}
    await admin("POST", "/v1/tenants", body)
    there = {"Betimes-Tenant": "slow"}
    for _ in range(2):
        assert (await admin("POST", "/v1/runs", {"handler": "h"}, headers=there)).status == 202
    refused = await admin("POST", "/v1/runs", {"handler": "h"}, headers=there)
    assert (refused.status, refused.json["quota"]) == (429, "runs_per_minute")
    assert refused.json["resets_at"].endswith("Z")
    quotas = (await admin("GET", "/v1/quotas", headers=there)).json["items"]
    (runs,) = [one for one in quotas if one["name"] == "runs_per_minute"]
    assert (runs["limit"], runs["used"], runs["resets_at"][-1]) == (2, 2, "Z")
    assert 1 <= int(refused.headers["retry-after"]) <= 30


async def test_a_repeated_request_is_answered_even_when_there_is_no_room_left(
    served: Served,
) -> None:
    """Its reply may have been lost; what it made is there."""
    admin = await served.admin()
    await admin("POST", "/v1/tenants", {"slug": "small", "name": "S", "quotas": {"jobs": 1}})
    there = {"Betimes-Tenant": "small"}
    first = await admin("POST", "/v1/jobs", JOB, headers=there, idem="one")
    again = await admin("POST", "/v1/jobs", JOB, headers=there, idem="one")
    assert (first.status, again.status) == (201, 201)
    assert again.json["id"] == first.json["id"]
    assert again.headers["idempotent-replayed"] == "true"
    other = {**JOB, "handler": "x"}
    assert (await admin("POST", "/v1/jobs", other, headers=there, idem="one")).status == 429


async def test_an_unknown_quota_is_refused_with_those_there_are(served: Served) -> None:
    admin = await served.admin()
    tenant = (await admin("GET", "/v1/whoami")).json["tenant"]["slug"]
    path = f"/v1/tenants/{tenant}/quotas"
    refused = await admin("PUT", path, {"quotas": {"in_flight": 1}})
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (400, "/quotas")
    for told in ("'in_flight'", "active_runs", "jobs", "max_in_flight", "runs_per_minute"):
        assert told in refused.json["detail"]
    below = await admin("PUT", path, {"quotas": {"jobs": -1}})
    assert below.json["detail"].endswith("for jobs, got -1")


async def test_keys_and_queues_are_counted(served: Served) -> None:
    admin = await served.admin()
    quotas = {"keys": 1, "queues": 1}
    await admin("POST", "/v1/tenants", {"slug": "few", "name": "F", "quotas": quotas})
    there = {"Betimes-Tenant": "few"}
    first = await admin("POST", "/v1/api-keys", {"name": "a"}, headers=there)
    second = await admin("POST", "/v1/api-keys", {"name": "b"}, headers=there)
    assert (first.status, second.code) == (201, "quota_exceeded")
    assert (second.json["quota"], second.json["limit"], second.json["used"]) == ("keys", 1, 1)
    await admin("DELETE", f"/v1/api-keys/{first.json['id']}", headers=there)
    assert (await admin("POST", "/v1/api-keys", {"name": "b"}, headers=there)).status == 201
    for name, status in (("mail", 200), ("mail", 200), ("other", 429)):
        put = await admin("PUT", f"/v1/queues/{name}", {"max_concurrency": 1}, headers=there)
        assert put.status == status, put.body
    told = (await admin("GET", "/v1/quotas", headers=there)).json["items"]
    used = {one["name"]: one["used"] for one in told}
    assert (used["keys"], used["queues"]) == (1, 1)


async def test_a_rate_of_nothing_lets_nothing_through_but_what_frees(served: Served) -> None:
    admin = await served.admin()
    await admin("POST", "/v1/tenants", {"slug": "none", "name": "N"})
    there = {"Betimes-Tenant": "none"}
    await admin("POST", "/v1/jobs", {**JOB, "name": "j"}, headers=there)
    await admin("PUT", "/v1/tenants/none/quotas", {"quotas": {"default_per_minute": 0}})
    refused = await admin("GET", "/v1/jobs", headers=there)
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert int(refused.headers["retry-after"]) >= 60
    assert (await admin("POST", "/v1/jobs/j/pause", headers=there)).status == 200
