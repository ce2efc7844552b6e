"""The clock of the database is set, by a minute back or an hour forward, while requests come in."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from api_kit import Answer, Client, Served
from api_kit import served as serving
from betimes.testing.real_clock import RealClock
from step_kit import SteppedKit, faketime, stepped_kit

JOB = {"schedule": "every 1h", "handler": "h"}


@pytest.fixture(scope="module")
def stepped() -> Iterator[SteppedKit]:
    library = faketime()
    if library is None:
        pytest.skip("libfaketime is not installed")
    with stepped_kit(library) as kit:
        yield kit


@pytest.mark.parametrize("seconds", [-66.0, 3600.0])
async def test_creations_do_not_wait_for_the_clock(stepped: SteppedKit, seconds: float) -> None:
    stepped.step(0.0)
    name = await stepped.server.create()
    async with serving(stepped.server.dsn(name)) as served:
        admin = await served.admin()
        assert (await admin("POST", "/v1/runs", {"handler": "h"})).status == 202
        assert (await admin("POST", "/v1/jobs", JOB)).status == 201
        stepped.step(seconds)
        for _ in range(4):
            async with asyncio.timeout(5):
                assert (await admin("POST", "/v1/runs", {"handler": "h"})).status == 202
                assert (await admin("POST", "/v1/jobs", JOB)).status == 201
                ready = await admin("GET", "/readyz")
            assert (ready.status, ready.json["status"]) == (200, "degraded")
    stepped.step(0.0)
    await stepped.server.drop(name)


AHEAD = 120.0
DELAY = {"type": "delay", "after": "PT30S"}
"""Shorter than the step."""
NEVER = {"type": "once", "at": "2090-01-01T00:00:00Z"}
COUNTED: dict[str, Any] = {
    "delay": DELAY,
    "words": "in 30 seconds",
    "union": {"type": "union", "of": [DELAY, NEVER]},
    "count": {"type": "interval", "every": "PT30S", "max_fires": 1},
}


@asynccontextmanager
async def set_forward(stepped: SteppedKit) -> AsyncIterator[tuple[Served, Client]]:
    """An API that was started before the clock of its database was set forward."""
    stepped.step(0.0)
    name = await stepped.server.create()
    try:
        async with serving(stepped.server.dsn(name)) as served:
            admin = await served.admin()
            assert (await admin("POST", "/v1/jobs", JOB)).status == 201
            stepped.step(AHEAD)
            yield served, admin
    finally:
        stepped.step(0.0)
    await stepped.server.drop(name)


def ahead(instant: str) -> float:
    """How many seconds an instant is ahead of the clock of the database."""
    return datetime.fromisoformat(instant).timestamp() - RealClock().now().timestamp() - AHEAD


async def waits(admin: Client, *jobs: str) -> dict[str, float | str]:
    """After how many seconds jobs fire."""
    found = [await admin("GET", f"/v1/jobs/{job}") for job in jobs]
    return {
        job: ahead(one.json["status"]["next_fire_at"]) if one.status == 200 else one.code
        for job, one in zip(jobs, found, strict=True)
    }


def in_time(waits: dict[str, float | str]) -> dict[str, bool]:
    return {job: isinstance(wait, float) and 15 < wait < 31 for job, wait in waits.items()}


async def test_what_counts_from_its_creation_counts_by_the_clock_that_judges_it(
    stepped: SteppedKit,
) -> None:
    async with set_forward(stepped) as (_, admin):
        answers = [
            await admin("POST", "/v1/jobs", {"name": name, "schedule": schedule, "handler": "h"})
            for name, schedule in COUNTED.items()
        ]
        unique = {"name": "unique", "schedule": DELAY, "handler": "h", "dedupe_key": "k"}
        answers.append(await admin("POST", "/v1/jobs", unique))
        many = [{"name": name, "schedule": DELAY, "handler": "h"} for name in ("one", "two")]
        answers.append(await admin("POST", "/v1/jobs/batch", {"items": [*many, JOB]}))
        found = await waits(admin, *COUNTED, "unique", "one", "two")
    assert [one.status for one in answers] == [201] * 6, [one.body for one in answers]
    assert all(in_time(found).values()), found


async def test_an_edited_delay_counts_by_the_clock_that_judges_it(stepped: SteppedKit) -> None:
    async with set_forward(stepped) as (_, admin):
        answers: list[Answer] = []
        for name, schedule in COUNTED.items():
            made = await admin("POST", "/v1/jobs", JOB | {"name": name})
            body = {"name": name, "schedule": schedule, "handler": "h"}
            match = {"if-match": made.headers["etag"]}
            answers.append(await admin("PUT", f"/v1/jobs/{name}", body, headers=match))
        await admin("POST", "/v1/jobs", JOB | {"name": "changed"})
        wanted = [
            {"name": name, "schedule": DELAY, "handler": "h"} for name in ("changed", "added")
        ]
        declared = {"jobs": wanted, "adopt": True}
        answers.append(await admin("POST", "/v1/jobs/apply", declared))
        found = await waits(admin, *COUNTED, "changed", "added")
    assert [one.status for one in answers] == [200] * 5, [one.body for one in answers]
    assert all(in_time(found).values()), found


async def test_a_run_waits_by_the_clock_of_the_database(stepped: SteppedKit) -> None:
    """With a delay when it is enqueued, and for as long as it is snoozed."""
    async with set_forward(stepped) as (served, admin):
        made = await admin("POST", "/v1/runs", {"handler": "noop", "delay": "PT30S"})
        later = (await admin("GET", f"/v1/runs/{made.json['id']}")).json
        worker = served.client(await served.key(kind="wk"))
        card = {"name": "w", "handlers": ["noop"], "slots": 10}
        made = await worker("POST", "/v1/workers", card)
        lease = f"/v1/workers/{made.json['worker_id']}/lease"
        snoozed: list[Answer] = []
        for _ in range(2):
            await admin("POST", "/v1/runs", {"handler": "noop"})
            (one,) = (await worker("POST", lease, {"max": 1, "wait": 0})).json["runs"]
            if not snoozed:
                path = f"/v1/leases/{one['lease_id']}/snooze"
                snoozed.append(await worker("POST", path, {"for": "PT30S"}))
            else:
                report = {"lease_id": one["lease_id"], "action": "snooze", "for": "PT30S"}
                snoozed.append(await worker("POST", "/v1/leases/batch", {"items": [report]}))
    assert 15 < ahead(later["due_at"]) < 31
    assert [one.status for one in snoozed] == [200, 207]
    told = [snoozed[0].json["next_retry_at"], snoozed[1].json["items"][0]["next_retry_at"]]
    assert all(15 < ahead(one) < 31 for one in told), told
