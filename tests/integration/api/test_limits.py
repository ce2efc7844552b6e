"""Rates, quotas and load: who is turned away, and who never is."""

from api_kit import Served, served

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
