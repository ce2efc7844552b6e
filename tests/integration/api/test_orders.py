"""Jobs in other orders than that of their creation, and with their latest runs."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from api_kit import Client, Served
from betimes.domain.states import JobState
from betimes.ops import listing
from ops_kit import fetch

NAMES = ["beta", "alpha", "delta", "gamma", "epsilon"]


async def make_jobs(admin: Client) -> dict[str, str]:
    """Five named jobs and one without a name; by name, their ids."""
    begin = datetime(2030, 1, 1, tzinfo=UTC)
    made = {}
    for place, name in enumerate(NAMES):
        at = (begin + timedelta(days=-place)).isoformat()
        job = {"name": name, "handler": "h", "schedule": {"type": "once", "at": at}}
        made[name] = (await admin("POST", "/v1/jobs", job)).json["id"]
    bare = {"handler": "h", "schedule": {"type": "manual"}}
    made[""] = (await admin("POST", "/v1/jobs", bare)).json["id"]
    await admin("PATCH", "/v1/jobs/gamma", {"priority": 7})
    return made


async def names(admin: Client, query: str) -> list[Any]:
    answer = await admin("GET", f"/v1/jobs?{query}")
    assert answer.status == 200, answer.body
    return [job.get("name") for job in answer.json["items"]]


async def test_jobs_are_listed_by_name_next_fire_and_last_change(admin: Client) -> None:
    await make_jobs(admin)
    assert await names(admin, "sort=name") == [*sorted(NAMES), None], "without a name at the end"
    assert await names(admin, "sort=next_fire_at") == [*reversed(NAMES), None]
    assert (await names(admin, "sort=-updated_at"))[:2] == ["gamma", None]
    assert await names(admin, "sort=name&name_prefix=a") == ["alpha"]
    assert await names(admin, 'sort=name&q="eta"') == ["beta"]


@pytest.mark.parametrize("sort", ["name", "next_fire_at", "-updated_at", "created_at"])
async def test_pages_turn_in_both_directions_while_jobs_come_and_go(
    admin: Client, sort: str
) -> None:
    await make_jobs(admin)
    whole = await names(admin, f"sort={sort}")
    first = (await admin("GET", f"/v1/jobs?sort={sort}&limit=2")).json
    assert first["prev_cursor"] is None
    gone = next(job["name"] for job in reversed(first["items"]) if "name" in job)
    second = (
        await admin("GET", f"/v1/jobs?sort={sort}&limit=2&cursor={first['next_cursor']}")
    ).json
    assert [job.get("name") for job in second["items"]] == whole[2:4]
    assert (await admin("DELETE", f"/v1/jobs/{gone}")).status == 204
    third = (
        await admin("GET", f"/v1/jobs?sort={sort}&limit=9&cursor={second['next_cursor']}")
    ).json
    assert [job.get("name") for job in third["items"]] == whole[4:]
    assert third["next_cursor"] is None
    back = (await admin("GET", f"/v1/jobs?sort={sort}&limit=9&cursor={third['prev_cursor']}")).json
    assert [job.get("name") for job in back["items"]] == [
        name for name in whole[:4] if name != gone
    ]
    assert back["prev_cursor"] is None


async def test_a_cursor_belongs_to_its_order(admin: Client) -> None:
    await make_jobs(admin)
    cursor = (await admin("GET", "/v1/jobs?sort=name&limit=2")).json["next_cursor"]
    wrong = await admin("GET", f"/v1/jobs?sort=next_fire_at&limit=2&cursor={cursor}")
    assert (wrong.status, wrong.code) == (400, "cursor_invalid")
    unknown = await admin("GET", "/v1/jobs?sort=priority")
    assert (unknown.status, unknown.code) == (400, "invalid_parameter")


async def test_too_many_are_not_sorted_but_told(admin: Client) -> None:
    await make_jobs(admin)
    with patch.object(listing, "WALKED_MAX", 5):
        refused = await admin("GET", "/v1/jobs?sort=name&tag=no:thing")
        assert "at most 5 jobs in all to sort by name" in refused.json["detail"]
    with patch.object(listing, "SORTED_MAX", 5):
        refused = await admin("GET", "/v1/jobs?sort=name")
        assert (refused.status, refused.code) == (400, "invalid_parameter"), refused.body
        assert "at most 5 jobs that fit to sort by name" in refused.json["detail"]
        assert await names(admin, "sort=name&group=default&name_prefix=g") == ["gamma"]
        assert len(await names(admin, "sort=-created_at")) == 6


async def test_others_are_not_in_it(served: Served, admin: Client) -> None:
    await make_jobs(admin)
    other = served.client(await served.key(await served.tenant("other")))
    assert await names(other, "sort=name") == []


async def test_the_latest_run_of_a_job_is_told_to_those_who_ask(admin: Client) -> None:
    job = {"name": "j", "handler": "h", "schedule": {"type": "manual"}}
    await admin("POST", "/v1/jobs", job)
    assert "last_run" not in (await admin("GET", "/v1/jobs/j")).json["status"]
    none = await admin("GET", "/v1/jobs/j?include=last_run")
    assert none.json["status"]["last_run"] is None
    runs = [(await admin("POST", "/v1/jobs/j/run")).json["id"] for _ in range(2)]
    for listed in ("/v1/jobs/j?include=last_run", "/v1/jobs?include=last_run"):
        told = (await admin("GET", listed)).json
        status = told["items"][0]["status"] if "items" in told else told["status"]
        assert status["last_run"] == {"id": runs[1], "state": "queued", "finished_at": None}
    await admin("POST", f"/v1/runs/{runs[1]}/cancel")
    last = (await admin("GET", "/v1/jobs/j?include=last_run")).json["status"]["last_run"]
    assert (last["id"], last["state"]) == (runs[1], "cancelled")
    assert last["finished_at"] is not None


async def test_the_last_day_of_a_job_is_told_to_those_who_ask(admin: Client) -> None:
    job = {"name": "j", "handler": "h", "schedule": {"type": "manual"}}
    await admin("POST", "/v1/jobs", job)
    run = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    await admin("POST", f"/v1/runs/{run}/cancel")
    told = (await admin("GET", "/v1/jobs/j?include=stats_24h,last_run")).json["status"]
    assert (told["stats_24h"]["counts"]["cancelled"], told["last_run"]["id"]) == (1, run)
    assert "stats_24h" not in (await admin("GET", "/v1/jobs/j?include=last_run")).json["status"]
    assert told["stats_24h"] == (await admin("GET", "/v1/jobs/j/stats?window=P1D")).json


async def test_runs_are_listed_by_the_name_of_their_job(served: Served, admin: Client) -> None:
    job = {"name": "j", "handler": "h", "schedule": {"type": "manual"}}
    made = (await admin("POST", "/v1/jobs", job)).json["id"]
    run = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    await admin("POST", "/v1/runs", {"handler": "h"})
    for query in ("job=j", "job=default~j", f"job={made}", "q=job:j"):
        listed = await admin("GET", f"/v1/runs?{query}")
        assert [one["id"] for one in listed.json["items"]] == [run], query
    missing = await admin("GET", "/v1/runs?job=none")
    assert (missing.status, missing.json["resource_type"]) == (404, "job")
    other = served.client(await served.key(await served.tenant("other")))
    assert (await other("GET", "/v1/runs?job=j")).json["detail"] == (
        (await other("GET", "/v1/runs?job=k")).json["detail"].replace("'k'", "'j'")
    )
    assert (await admin("GET", "/v1/upcoming?job=j")).status == 200
    assert (await admin("GET", "/v1/dead-letters?job=j")).json["items"] == []


SORTS = ["created_at", "-created_at", "name", "next_fire_at", "-updated_at"]


@pytest.mark.parametrize("also", ["", "&name_prefix=j", "&tag=kept:yes", "&count=estimate"])
@pytest.mark.parametrize("sort", SORTS)
async def test_a_filter_by_state_means_the_state_that_is_shown(
    served: Served, admin: Client, sort: str, also: str
) -> None:
    """A job whose last fire is planned and not over is stored as completed and shown as active."""
    now = served.service.clock.now()
    soon = (now + timedelta(hours=1)).isoformat()
    schedules = {
        "j-active": {"type": "once", "at": soon},
        "j-paused": {"type": "once", "at": soon},
        "j-near": {"type": "once", "at": (now + timedelta(seconds=5)).isoformat()},
    }
    for name, schedule in schedules.items():
        job = {"name": name, "handler": "h", "schedule": schedule, "tags": {"kept": "yes"}}
        assert (await admin("POST", "/v1/jobs", job)).status == 201
    await admin("POST", "/v1/jobs/j-paused/pause", {"reason": "lunch"})
    every = (await admin("GET", f"/v1/jobs?sort={sort}{also}")).json["items"]
    assert {job["name"] for job in every} == set(schedules)
    (near,) = await fetch(
        served.service.desk.database, "SELECT state FROM betimes.jobs WHERE name = 'j-near'"
    )
    assert near["state"] == JobState.COMPLETED
    for state in {job["status"]["state"] for job in every} | {"completed"}:
        found = (await admin("GET", f"/v1/jobs?sort={sort}&state={state}{also}")).json["items"]
        assert [job["name"] for job in found] == [
            job["name"] for job in every if job["status"]["state"] == state
        ], state
        assert {job["status"]["state"] for job in found} <= {state}
