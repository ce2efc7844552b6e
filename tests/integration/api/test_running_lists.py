"""Lists of what runs: found by what is leased, in the order and with the cursors of all runs."""

from typing import Any
from unittest.mock import patch

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.ops import listing
from betimes.store.pool import Lane

ENDED, LOOKED_AT = 40, 3


async def worker_on(admin: Client, queue: str, most: int) -> tuple[str, list[str]]:
    """A worker, and the runs it has: the latest that were made, under way."""
    body = {"name": f"w-{queue}", "queues": [queue], "slots": most}
    worker = (await admin("POST", "/v1/workers", body)).json["worker_id"]
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"max": most, "wait": 0})
    return worker, [run["run_id"] for run in leased.json["runs"]]


async def pages(admin: Client, path: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Every id on the way to the end, and the pages."""
    found, seen, cursor = list[str](), list[dict[str, Any]](), ""
    while True:
        page = (await admin("GET", f"{path}{cursor}")).json
        seen.append(page)
        assert {one["state"] for one in page["items"]} <= {"running"}
        found += [one["id"] for one in page["items"]]
        if page["next_cursor"] is None:
            return found, seen
        cursor = f"&cursor={page['next_cursor']}"


@pytest.fixture
async def crowd(served: Served, admin: Client) -> dict[str, Any]:
    """Seven runs under way among many that have ended and some that wait."""
    job = {"name": "j", "schedule": "manual", "handler": "of-job", "queue": "jobs"}
    await admin("POST", "/v1/jobs", job)
    early = [
        (await admin("POST", "/v1/runs", {"handler": "h", "queue": "a"})).json["id"]
        for _ in range(3)
    ]
    _, held = await worker_on(admin, "a", 3)
    assert sorted(held) == sorted(early)
    await ended(served)
    jobs = [(await admin("POST", "/v1/jobs/j/run")).json["id"] for _ in range(2)]
    worker, _ = await worker_on(admin, "jobs", 2)
    late = [
        (await admin("POST", "/v1/runs", {"handler": "late", "queue": "b"})).json["id"]
        for _ in range(2)
    ]
    await worker_on(admin, "b", 2)
    await ended(served)
    for _ in range(3):
        await admin("POST", "/v1/runs", {"handler": "h", "queue": "waiting"})
    return {"all": [*early, *jobs, *late], "jobs": jobs, "late": late, "worker": worker}


async def ended(served: Served) -> None:
    """Many runs that are over, made as they would have been left behind."""
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.runs (shard, id, tenant_id, state, trigger, queue, handler,"
            " due_at, fire_at, created_at, finished_at)"
            " SELECT shard, betimes.new_id(shard), tenant_id, 4, trigger, queue, handler,"
            " now(), now(), now(), now() FROM betimes.runs, generate_series(1, $1)"
            " WHERE tenant_id = $2 LIMIT $1",
            ENDED,
            DEFAULT,
        )


async def test_pages_of_what_runs_are_full_however_much_has_ended(
    admin: Client, crowd: dict[str, Any]
) -> None:
    whole = (await admin("GET", "/v1/runs?limit=1000")).json["items"]
    assert len(whole) > 2 * ENDED
    expected = [one["id"] for one in whole if one["state"] == "running"]
    assert sorted(expected) == sorted(crowd["all"])
    found, seen = await pages(admin, "/v1/runs?state=running&limit=3")
    assert found == expected
    assert [len(page["items"]) for page in seen] == [3, 3, 1]
    back = f"/v1/runs?state=running&limit=3&cursor={seen[1]['prev_cursor']}"
    assert [one["id"] for one in (await admin("GET", back)).json["items"]] == found[:3]


async def test_what_runs_is_filtered_by_job_queue_handler_and_who_has_it(
    admin: Client, crowd: dict[str, Any]
) -> None:
    filters = {
        "job=j": crowd["jobs"],
        f"worker={crowd['worker']}": crowd["jobs"],
        "queue=b": crowd["late"],
        "handler=late": crowd["late"],
        "handler=late&queue=a": [],
        "trigger=manual&queue=jobs": crowd["jobs"],
    }
    for words, expected in filters.items():
        found, _ = await pages(admin, f"/v1/runs?state=running&limit=1&{words}")
        assert sorted(found) == sorted(expected), words
    of_job, _ = await pages(admin, "/v1/jobs/j/runs?state=running&limit=1")
    assert sorted(of_job) == sorted(crowd["jobs"])


async def test_a_bounded_number_is_looked_at(admin: Client, crowd: dict[str, Any]) -> None:
    with patch.object(listing, "LOOKED_AT_MAX", LOOKED_AT):
        found, seen = await pages(admin, "/v1/runs?state=running&limit=2&handler=h")
        assert len(found) == LOOKED_AT
        assert seen[0]["items"] == [], "the latest three are others'"
        none, seen = await pages(admin, "/v1/runs?state=running&limit=2&handler=nobody")
        assert (none, len(seen)) == ([], len(crowd["all"]) // LOOKED_AT + 1)


async def test_what_has_ended_in_a_parcel_does_not_run(admin: Client) -> None:
    for _ in range(2):
        await admin("POST", "/v1/runs", {"handler": "h", "queue": "a"})
    body = {"name": "w", "queues": ["a"], "slots": 2}
    worker = (await admin("POST", "/v1/workers", body)).json["worker_id"]
    leased = await admin("POST", f"/v1/workers/{worker}/lease", {"max": 2, "wait": 0})
    over, going_on = leased.json["runs"]
    await admin("POST", f"/v1/leases/{over['lease_id']}/complete")
    found, _ = await pages(admin, "/v1/runs?state=running&limit=5")
    assert found == [going_on["run_id"]]
