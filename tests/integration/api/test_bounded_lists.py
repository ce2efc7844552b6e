"""Lists look at a bounded number of rows for a page, whatever the filter; and up to now."""

from typing import Any
from unittest.mock import patch

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.ops import listing
from betimes.ops.listing import JobFilter, find_job_page

PAGES_MAX = 30
LOOKED_AT = 3


async def walk(
    admin: Client, path: str, *, link: str = "next_cursor", place: str | None = None
) -> tuple[list[str], int]:
    """Every id on the way to the end, and how many pages that took."""
    found, cursor = list[str](), "" if place is None else f"&cursor={place}"
    for pages in range(1, PAGES_MAX):
        answer = await admin("GET", f"{path}{cursor}")
        assert answer.status == 200, answer.body
        found += [one["id"] for one in answer.json["items"]]
        if (place := answer.json[link]) is None:
            return found, pages
        cursor = f"&cursor={place}"
    raise AssertionError("expected an end")


async def made(admin: Client, path: str, body: dict[str, Any], count: int) -> list[str]:
    """So many, of which every fourth is tagged."""
    ids = []
    for number in range(count):
        tags = {"kept": "yes"} if number % 4 == 0 else {"kept": "no"}
        answer = await admin("POST", path, {**body, "tags": tags})
        ids.append(answer.json["id"])
    return ids


@pytest.mark.parametrize("sort", ["created_at", "-created_at"])
async def test_jobs_that_nothing_fits_end_in_bounded_pages(admin: Client, sort: str) -> None:
    jobs = await made(admin, "/v1/jobs", {"schedule": "every 1h", "handler": "h"}, 9)
    with patch.multiple(listing, LOOKED_AT_MAX=LOOKED_AT, LOOKED_INTO_MAX=LOOKED_AT):
        found, pages = await walk(admin, f"/v1/jobs?limit=2&sort={sort}&tag=kept:maybe")
        assert (found, pages) == ([], 4)
        kept = [job for place, job in enumerate(jobs) if place % 4 == 0]
        path = f"/v1/jobs?limit=2&sort={sort}&tag=kept:yes&state=active"
        found, pages = await walk(admin, path)
        assert found == (kept if sort == "created_at" else kept[::-1])
        first = (await admin("GET", path)).json["next_cursor"]
        second = (await admin("GET", f"{path}&cursor={first}")).json
        back = (await admin("GET", f"{path}&cursor={second['prev_cursor']}")).json
        ids = [one["id"] for one in back["items"]]
        assert ids == [one for one in found if one in ids]
        assert not set(ids) & {one["id"] for one in second["items"]}
        bulk = {"action": "pause", "filter": {"tags": {"kept": "yes"}}, "dry_run": True}
        assert (await admin("POST", "/v1/jobs/bulk", bulk)).json["matched"] == len(kept)
        assert len((await admin("GET", "/v1/jobs?limit=9")).json["items"]) == 9, (
            "nothing to look for"
        )


@pytest.mark.parametrize("of_job", [False, True])
async def test_runs_that_nothing_fits_end_in_bounded_pages(admin: Client, of_job: bool) -> None:
    if of_job:
        await admin("POST", "/v1/jobs", {"name": "j", "schedule": "manual", "handler": "h"})
        runs = [(await admin("POST", "/v1/jobs/j/run")).json["id"] for _ in range(7)]
        path, fits = "/v1/jobs/j/runs?limit=2&", "trigger=manual"
        await admin("POST", "/v1/runs", {"handler": "h"})
    else:
        runs = await made(admin, "/v1/runs", {"handler": "h"}, 7)
        path, fits = "/v1/runs?limit=2&", "handler=h"
    with patch.object(listing, "LOOKED_AT_MAX", LOOKED_AT):
        found, pages = await walk(admin, f"{path}handler=nobody")
        assert (found, pages) == ([], 3)
        found, _ = await walk(admin, f"{path}{fits}")
        assert sorted(found) == sorted(runs)
        last = (await admin("GET", f"{path}{fits}")).json["next_cursor"]
        page = (await admin("GET", f"{path}{fits}&cursor={last}")).json
        link = "prev_cursor"
        back, _ = await walk(admin, f"{path}{fits}", link=link, place=page[link])
        assert back == found[:2]


async def test_payloads_are_read_only_where_they_are_shown(served: Served, admin: Client) -> None:
    job = {"name": "j", "schedule": "every 1h", "handler": "h", "payload": {"n": 1}}
    await admin("POST", "/v1/jobs", job)
    for sort in ("created_at", "-created_at", "name"):
        (basic,) = (await admin("GET", f"/v1/jobs?sort={sort}")).json["items"]
        assert "payload" not in basic
        (full,) = (await admin("GET", f"/v1/jobs?sort={sort}&view=full")).json["items"]
        assert full["payload"] == {"n": 1}
    page = await find_job_page(
        served.desk, DEFAULT, JobFilter(), after=None, newest_first=True, limit=5, payloads=False
    )
    assert [one.definition.payload for one in page.jobs] == [None]


async def test_runs_are_listed_up_to_now(admin: Client) -> None:
    """What lies ahead is listed for those who ask."""
    await admin("POST", "/v1/jobs", {"name": "j", "schedule": "every 10s", "handler": "h"})
    past = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    assert (await walk(admin, "/v1/jobs/j/runs?limit=50"))[0] == [past]
    ahead, _ = await walk(admin, "/v1/jobs/j/runs?limit=50&state=scheduled")
    assert ahead
    assert past not in ahead
    span = "due_after=2026-01-01T00:00:00Z&due_before=2199-01-01T00:00:00Z"
    both, _ = await walk(admin, f"/v1/runs?limit=50&{span}")
    assert not {past, *ahead} - set(both)
    later = (await admin("POST", "/v1/runs", {"handler": "h", "delay": "PT2H"})).json["id"]
    assert later not in (await walk(admin, "/v1/runs?limit=50"))[0]
    assert later in (await walk(admin, "/v1/runs?limit=50&state=scheduled,queued"))[0]
    assert (await walk(admin, "/v1/runs?limit=50&due_after=2198-01-01T00:00:00Z"))[0] == []
