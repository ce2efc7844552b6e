"""Readings beside the great lists: of one job, one attempt, one revision, one log."""

import gzip
import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from api_kit import DEFAULT, Client, Served
from betimes.api.routes import ROUTES
from betimes.domain.ids import from_text
from ops_kit import fetch
from world_kit import World

JOB = {"schedule": "every 1h", "handler": "h"}


async def test_the_runs_of_a_job_are_those_of_the_list(admin: Client) -> None:
    jobs = [(await admin("POST", "/v1/jobs", JOB)).json["id"] for _ in range(2)]
    for job in jobs * 3:
        assert (await admin("POST", f"/v1/jobs/{job}/run")).status == 202
    mine = (await admin("GET", f"/v1/jobs/{jobs[0]}/runs?limit=2")).json
    assert [one["job_id"] for one in mine["items"]] == [jobs[0]] * 2
    rest = await admin("GET", f"/v1/jobs/{jobs[0]}/runs?limit=2&cursor={mine['next_cursor']}")
    whole = [one["id"] for one in (*mine["items"], *rest.json["items"])]
    listed = (await admin("GET", f"/v1/runs?job={jobs[0]}")).json["items"]
    assert whole == [one["id"] for one in listed]
    other = await admin("GET", f"/v1/jobs/{jobs[1]}/runs?cursor={mine['next_cursor']}")
    assert (other.status, other.code) == (400, "cursor_invalid")


async def test_one_revision_and_one_attempt(served: Served, admin: Client) -> None:
    world = World(served, admin, DEFAULT)
    job = await world.edited_job()
    old = await admin("GET", f"/v1/jobs/{job}/revisions/1")
    assert (old.json["revision"], old.json["current"]) == (1, False)
    tag = {"If-None-Match": old.headers["etag"]}
    assert (await admin("GET", f"/v1/jobs/{job}/revisions/1", headers=tag)).status == 304
    assert (await admin("GET", f"/v1/jobs/{job}/revisions/2")).json["current"] is True
    assert (await admin("GET", f"/v1/jobs/{job}/revisions/3")).status == 404
    run = await world.letter()
    one = await admin("GET", f"/v1/runs/{run}/attempts/1")
    assert (one.json["number"], one.json["outcome"]) == (1, "failed")
    assert (await admin("GET", f"/v1/runs/{run}/attempts/2")).status == 404


async def test_explain_by_parameter_is_the_same(served: Served, admin: Client) -> None:
    world = World(served, admin, DEFAULT)
    job, run = await world.paused_job(), await world.run()
    for path, same in (
        (f"/v1/explain?job={job}", f"/v1/jobs/{job}/explain"),
        (f"/v1/explain?run={run}", f"/v1/runs/{run}/explain"),
    ):
        told, known = (await admin("GET", path)).json, (await admin("GET", same)).json
        assert (told["subject"], told["verdict"]) == (known["subject"], known["verdict"])
    for wrong in ("", f"?job={job}&run={run}", f"?run={run}&at=2026-01-01T00:00:00Z"):
        assert (await admin("GET", f"/v1/explain{wrong}")).code == "invalid_parameter"
    assert (await admin("GET", "/v1/explain?job=nobody")).status == 404


async def test_a_log_by_level_by_its_end_and_as_text(served: Served, admin: Client) -> None:
    leased = await World(served, admin, DEFAULT).running()
    lines = [{"message": f"m{n}", "level": "error" if n % 2 else "info"} for n in range(5)]
    await admin("POST", f"/v1/leases/{leased['lease_id']}/logs", {"lines": lines})
    place = f"/v1/runs/{leased['run_id']}/logs"

    async def read(query: str) -> list[str]:
        items = (await admin("GET", f"{place}?{query}")).json["items"]
        return [one["message"] for one in items]

    assert await read("level=error") == ["m1", "m3"]
    assert await read("tail=2") == ["m3", "m4"]
    assert await read("tail=1&level=info,error&after=1") == ["m4"]
    text = await admin("GET", f"{place}?tail=1", headers={"Accept": "text/plain"})
    assert text.headers["content-type"].startswith("text/plain")
    assert text.body.endswith(b"info m4\n")


async def test_a_log_may_come_packed(served: Served, admin: Client) -> None:
    leased = await World(served, admin, DEFAULT).running()
    place = f"/v1/leases/{leased['lease_id']}/logs"
    packed = {"content-encoding": "gzip", "content-type": "application/json"}
    lines = json.dumps({"lines": [{"message": "packed"}]}).encode()
    sent = await admin("POST", place, raw=gzip.compress(lines), headers=packed)
    assert sent.status == 202, sent.body
    (line,) = (await admin("GET", f"/v1/runs/{leased['run_id']}/logs")).json["items"]
    assert line["message"] == "packed"
    bomb = gzip.compress(b" " * (64 << 20))
    refused = [
        await admin("POST", place, raw=raw, headers=packed)
        for raw in (bomb, lines, gzip.compress(lines)[:-9], gzip.compress(lines) * 2)
    ]
    codes = ["payload_too_large", *["malformed_request"] * 3]
    assert [one.code for one in refused] == codes
    elsewhere = await admin("POST", "/v1/jobs", raw=gzip.compress(b"{}"), headers=packed)
    assert elsewhere.status == 415


async def test_runs_by_when_they_were_to_be_and_how_late_they_began(
    served: Served, admin: Client
) -> None:
    world = World(served, admin, DEFAULT)
    dead, fine = await world.letter(), await world.finished_run()
    (letter,) = (await admin("GET", "/v1/dead-letters")).json["items"]
    now = served.service.now()
    soon = (now + timedelta(minutes=1)).isoformat().replace("+00:00", "Z")

    async def found(query: str) -> set[Any]:
        return {one["id"] for one in (await admin("GET", f"/v1/runs?{query}")).json["items"]}

    assert await found(f"error_fingerprint={letter['fingerprint']}") == {dead}
    assert await found(f"finished_before={soon}") == {dead, fine}
    assert await found(f"finished_after={soon}") == set()
    assert await found("min_lag=PT1H") == set()
    assert await found("min_lag=PT0S") == {dead, fine}
    assert await found(f"scheduled_after={soon}") == set()
    await admin(
        "POST", "/v1/jobs", {**JOB, "target": {"type": "task", "handler": "h"}, "handler": None}
    )
    http = {"schedule": "every 1h", "target": {"type": "http", "url": "https://example.com/"}}
    made = (await admin("POST", "/v1/jobs", http)).json["id"]
    listed = (await admin("GET", "/v1/jobs?target_type=http")).json["items"]
    assert [one["id"] for one in listed] == [made]


async def test_what_a_forgotten_worker_held_is_given_to_others(
    served: Served, admin: Client
) -> None:
    leased = await World(served, admin, DEFAULT).running()
    workers = (await admin("GET", "/v1/workers")).json["items"]
    (worker,) = [one for one in workers if one["queues"] == [leased["queue"]]]
    assert (await admin("DELETE", f"/v1/workers/{worker['id']}")).status == 204
    lost = await admin("POST", f"/v1/leases/{leased['lease_id']}/complete")
    assert (lost.status, lost.code) == (409, "lease_lost")
    body = {"name": "next", "queues": [leased["queue"]]}
    other = (await admin("POST", "/v1/workers", body)).json["worker_id"]
    (again,) = (await admin("POST", f"/v1/workers/{other}/lease", {"wait": 0})).json["runs"]
    assert (again["run_id"], again["attempt"]) == (leased["run_id"], 1)
    assert again["fence"] > leased["fence"]


async def test_fires_until_a_time_are_skipped_and_a_resumed_job_tells_its_next(
    served: Served, admin: Client
) -> None:
    job = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    until = (served.service.now() + timedelta(hours=3, minutes=1)).isoformat()
    skipped = await admin(
        "POST", f"/v1/jobs/{job}/skip-next", {"until": until.replace("+00:00", "Z")}
    )
    assert len(skipped.json["skipped"]) == 3, skipped.body
    await admin("POST", f"/v1/jobs/{job}/pause")
    resumed = await admin("POST", f"/v1/jobs/{job}/resume")
    assert resumed.json["will_fire"] == resumed.json["next_fires"]
    fires = (await admin("GET", "/v1/upcoming?within=PT2H&include=fires")).json["items"]
    runs = (await admin("GET", "/v1/upcoming?within=PT2H&include=runs")).json["items"]
    assert {one["kind"] for one in fires} <= {"fire"}
    assert {one["kind"] for one in runs} <= {"run"}


async def test_what_is_due_soon_says_whose_it_is(admin: Client) -> None:
    """The name of its job, and the handler of a run without one."""
    nightly = {"name": "nightly", "group": "reports", "schedule": "every 1h", "handler": "report"}
    await admin("POST", "/v1/jobs", nightly)
    await admin("POST", "/v1/runs", {"handler": "remind", "delay": "10m"})
    items = (await admin("GET", "/v1/upcoming?within=PT90M")).json["items"]
    told = {(one["job_group"], one["job_name"], one["handler"]) for one in items}
    assert told == {("reports", "nightly", "report"), (None, None, "remind")}


COSTLY = "FREQ=SECONDLY;INTERVAL=4999;BYMINUTE=7;BYSECOND=9"
EXPENSIVE = "FREQ=SECONDLY;INTERVAL=99991;BYHOUR=3;BYMINUTE=7;BYSECOND=9;COUNT=100000"


async def test_a_page_of_what_is_due_soon_names_the_jobs_that_it_leaves_out(
    served: Served, admin: Client
) -> None:
    """Silence would mean that they do not fire."""
    cheap = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    whole = (await admin("GET", "/v1/upcoming?within=PT2H")).json
    assert "incomplete" not in whole
    dear = (await admin("POST", "/v1/jobs", JOB)).json["id"]
    await fetch(
        served.desk.database,
        "UPDATE betimes.jobs SET schedule = $2 WHERE id = $1",
        from_text("job", dear),
        json.dumps({"type": "rrule", "expr": EXPENSIVE, "anchor": "2026-01-01T00:00:00"}),
    )
    told = (await admin("GET", "/v1/upcoming?within=PT2H")).json
    assert {one["job_id"] for one in told["items"]} >= {cheap}
    assert told["incomplete"] == [
        {"reason": "schedule_too_expensive", "job_ids": [dear], "jobs": 1}
    ]


async def test_a_job_says_why_it_shows_no_next_fires(served: Served, admin: Client) -> None:
    schedule = {"type": "rrule", "expr": COSTLY, "anchor": "2026-01-01T00:00:00"}
    made = await admin("POST", "/v1/jobs", {**JOB, "schedule": schedule})
    assert made.status == 201, made.body
    assert "next_fires" not in made.json
    assert made.json["next_fires_omitted"] == "schedule_too_expensive"
    job = made.json["id"]
    looked = await admin("GET", f"/v1/jobs/{job}/next?count=3")
    assert len(looked.json["occurrences"]) == 3, looked.body
    plain = (await admin("POST", "/v1/jobs", JOB)).json
    assert plain["next_fires"]
    assert "next_fires_omitted" not in plain


MAKERS = {
    "jobs.list": World.job,
    "runs.list": World.run,
    "workers.list": World.worker,
    "keys.list": World.key,
    "members.list": World.member,
    "calendars.list": World.calendar,
    "queues.list": World.queue,
    "operations.list": World.operation,
    "audit.list": World.job,
    "dead_letters.list": World.letter,
    "tenants.list": World.other_tenant,
    "secrets.list": World.secret,
    "rate_limits.list": World.rate_key,
    "endpoints.list": World.endpoint,
    "upcoming.list": World.job,
    "alert_rules.list": World.rule,
    "silences.list": World.silence,
    "workflows.list": World.workflow,
    "workflow_runs.list": World.workflow_run,
}
SINGLE = {"targets.list", "catchups.list", "alerts.list"}
"""Lists of what only other parts of the service make."""


@pytest.mark.parametrize("name", MAKERS)
async def test_a_list_is_walked_forth_and_back(served: Served, admin: Client, name: str) -> None:
    """Page by page to the end and back to the beginning: the same pages, in the other order."""
    world = World(served, admin, DEFAULT)
    for _ in range(3):
        await MAKERS[name](world)
    (route,) = [one for one in ROUTES if one.name == name]
    query = "limit=1&within=PT3H" if name == "upcoming.list" else "limit=1"
    pages: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        told = (await admin("GET", f"{route.path}?{query}{cursor and f'&cursor={cursor}'}")).json
        pages.append(told)
        cursor = told["next_cursor"]
    assert pages[0]["prev_cursor"] is None
    forth = [page["items"] for page in pages if page["items"]]
    assert len(forth) >= 3
    back = []
    cursor = pages[-1]["prev_cursor"]
    while cursor is not None:
        told = (await admin("GET", f"{route.path}?{query}&cursor={cursor}")).json
        back.append(told["items"])
        cursor = told["prev_cursor"]
    last = [page["items"] for page in pages[:-1]]
    assert [items for items in reversed(back) if items] == [items for items in last if items]


def test_every_list_is_walked() -> None:
    lists = {
        route.name
        for route in ROUTES
        if any(one.name == "cursor" for one in msgspec.structs.fields(route.query))
        and not route.parameters
    }
    assert lists - SINGLE - {"export.read"} == MAKERS.keys()
