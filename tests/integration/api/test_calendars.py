"""Calendars over HTTP, and what they do to the jobs that name them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from api_kit import DEFAULT, Answer, Client, Served
from betimes.domain.ids import compose, from_text, shard_of, to_ms
from betimes.ops.trail import SETTLED_AFTER
from betimes.store.pool import Lane
from ops_kit import fetch

NOON = "2030-01-{:02}T12:00:00.000000Z"
DAILY = {"type": "cron", "expr": "0 12 * * *", "start_at": "2030-01-01T00:00:00Z"}
EXCLUDED = "calendar_excluded"
NEW = {"If-None-Match": "*"}


def daily(**calendars: Any) -> dict[str, Any]:
    return {
        "name": "daily",
        "handler": "h",
        "schedule": {**DAILY, "calendars": calendars},
    }


def pointers(answer: Answer) -> list[str]:
    return [error["pointer"] for error in answer.json["errors"]]


async def next_days(admin: Client, job: str = "daily", count: int = 3) -> list[str]:
    told = (await admin("GET", f"/v1/jobs/{job}/next?count={count}")).json
    return days_of(told)


def days_of(told: dict[str, Any]) -> list[str]:
    """The days on which it fires; those a calendar takes away are shown as such."""
    return [one["utc"][:10] for one in told["occurrences"] if EXCLUDED not in one["flags"]]


async def settled(served: Served) -> None:
    """Let the operation believe that every transaction of its time has ended."""
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "UPDATE betimes.operations SET created_at = created_at - $1::interval, due_at = now()",
            SETTLED_AFTER,
        )


async def test_a_calendar_is_made_read_replaced_and_deleted(admin: Client) -> None:
    body = {
        "dates": ["2030-01-02", "2030-01-01"],
        "ranges": ["2030-05-01/2030-05-03"],
        "weekdays": ["sun"],
        "description": "closed",
    }
    need = await admin("PUT", "/v1/calendars/holidays", body)
    assert (need.status, need.code) == (428, "precondition_required")
    made = await admin("PUT", "/v1/calendars/holidays", body, headers=NEW)
    assert (made.status, made.headers["etag"]) == (201, '"1"'), made.body
    assert made.json["ranges"] == ["2030-01-01/2030-01-02", "2030-05-01/2030-05-03"]
    again = await admin("PUT", "/v1/calendars/holidays", body, headers=NEW)
    assert (again.status, again.code) == (412, "precondition_failed")
    changed = await admin(
        "PUT", "/v1/calendars/holidays", {"dates": ["2030-02-01"]}, headers={"If-Match": '"1"'}
    )
    assert (changed.status, changed.json["revision"]) == (200, 2)
    stale = await admin(
        "PUT", "/v1/calendars/holidays", {"dates": ["2030-02-01"]}, headers={"If-Match": '"1"'}
    )
    assert (stale.status, stale.headers["etag"]) == (412, '"2"')
    read = await admin("GET", "/v1/calendars/holidays")
    assert (read.json["dates"], read.json["used_by"]) == (["2030-02-01"], 0)
    same = await admin("GET", "/v1/calendars/holidays", headers={"If-None-Match": '"2"'})
    assert (same.status, same.body) == (304, b"")
    await admin("PUT", "/v1/calendars/a", {"weekdays": ["sat"]}, headers=NEW)
    first = (await admin("GET", "/v1/calendars?limit=1")).json
    assert [one["name"] for one in first["items"]] == ["a"]
    rest = (await admin("GET", f"/v1/calendars?limit=1&cursor={first['next_cursor']}")).json
    assert [one["name"] for one in rest["items"]] == ["holidays"]
    late = await admin("DELETE", "/v1/calendars/holidays", headers={"If-Match": '"1"'})
    assert late.status == 412
    assert (await admin("DELETE", "/v1/calendars/holidays")).status == 204
    assert (await admin("GET", "/v1/calendars/holidays")).code == "not_found"
    acts = (await admin("GET", "/v1/audit?resource=calendar:holidays")).json["items"]
    names = [act["action"] for act in reversed(acts)]
    assert names == ["calendars.put", "calendars.put", "calendars.delete"]


async def test_what_is_no_date_is_pointed_at(served: Served, admin: Client) -> None:
    async def put(body: dict[str, Any]) -> Answer:
        return await admin("PUT", "/v1/calendars/x", body, headers=NEW)

    bad = await put({"dates": ["2030-01-01", "2030-02-30"]})
    assert (bad.status, pointers(bad)) == (422, ["/dates/1"])
    backwards = await put({"ranges": ["2030-01-02/2030-01-01"]})
    assert pointers(backwards) == ["/ranges/0"]
    assert pointers(await put({})) == ["/dates"]
    assert pointers(await put({"weekdays": ["someday"]})) == ["/weekdays/0"]
    assert pointers(await put({"ics": "no calendar"})) == ["/ics"]
    ticking = "BEGIN:VEVENT\nDTSTART:20261225\nRRULE:FREQ=SECONDLY\nEND:VEVENT\n"
    assert pointers(await put({"ics": ticking})) == ["/ics"]
    crowd = "BEGIN:VEVENT\nDTSTART:20261225\nRRULE:FREQ=YEARLY\nEND:VEVENT\n" * 501
    assert pointers(await put({"ics": crowd})) == ["/ics"]
    reader = served.client(await served.key(kind="rk"))
    refused = await reader("PUT", "/v1/calendars/x", {"dates": ["2030-01-01"]}, headers=NEW)
    assert (refused.status, refused.code) == (403, "scope_missing")


async def test_holidays_come_from_an_icalendar_text(admin: Client) -> None:
    year = datetime.now(UTC).year + 1  # noqa: TID251 -- the text is read relative to today
    ics = f"BEGIN:VEVENT\nDTSTART;VALUE=DATE:{year}1225\nEND:VEVENT\n"
    made = await admin("PUT", "/v1/calendars/ics", {"ics": ics}, headers=NEW)
    assert made.json["dates"] == [f"{year}-12-25"], made.body


async def test_a_job_keeps_to_a_calendar_and_follows_its_changes(
    served: Served, admin: Client
) -> None:
    await admin("PUT", "/v1/calendars/closed", {"dates": ["2030-01-02"]}, headers=NEW)
    made = await admin("POST", "/v1/jobs", daily(exclude=["closed"]))
    assert made.status == 201, made.body
    assert made.json["next_fires"] == [NOON.format(day) for day in (1, 3, 4)]
    assert made.json["schedule"]["calendars"]["exclude"] == ["closed"], "shown as it was written"
    used = (await admin("GET", "/v1/calendars/closed")).json
    assert used["used_by"] == 1
    held = await admin("DELETE", "/v1/calendars/closed")
    assert (held.status, held.code) == (409, "dependency_in_use")

    changed = await admin(
        "PUT",
        "/v1/calendars/closed",
        {"dates": ["2030-01-01", "2030-01-03"]},
        headers={"If-Match": '"1"'},
    )
    place = f"/v1/operations/{changed.json['operation_id']}"
    await served.operate()
    assert await next_days(admin) == ["2030-01-02", "2030-01-04", "2030-01-05"]
    job = (await admin("GET", "/v1/jobs/daily")).json
    assert job["status"]["next_fire_at"] == NOON.format(2), "planned anew"
    assert job["revision"] == 2
    assert (await admin("GET", place)).json["state"] == "running", "somebody may be late"
    await settled(served)
    await served.operate()
    done = (await admin("GET", place)).json
    assert (done["state"], done["result"]) == ("succeeded", {"changed": 1, "refused": 0})


async def test_planned_runs_of_a_closed_day_are_forgotten(served: Served, admin: Client) -> None:
    """What the planner has made already goes, as long as nobody has published it."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251 -- runs lie ahead of today
    await admin("PUT", "/v1/calendars/c", {"dates": ["2000-01-01"]}, headers=NEW)
    schedule = {"type": "cron", "expr": "0 12 * * *", "calendars": {"exclude": ["c"]}}
    job = (await admin("POST", "/v1/jobs", {"handler": "h", "schedule": schedule})).json["id"]
    identity = from_text("job", job)
    noon = tomorrow.replace(hour=12, minute=0, second=0, microsecond=0)
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.runs (id, shard, tenant_id, job_id, due_at, fire_at, revision,"
            " queue) VALUES ($1, $2, $5, $3, $4, $4, 1, 'default')",
            compose(to_ms(noon), shard_of(identity), 7),
            shard_of(identity),
            identity,
            noon,
            DEFAULT,
        )
    body = {"dates": [noon.date().isoformat()]}
    await admin("PUT", "/v1/calendars/c?force=true", body)
    await served.operate()
    left = await fetch(served.desk.database, "SELECT FROM betimes.runs WHERE job_id = $1", identity)
    assert left == []
    assert noon.date().isoformat() not in await next_days(admin, job)


async def test_a_calendar_nobody_knows_is_refused(admin: Client) -> None:
    refused = await admin("POST", "/v1/jobs", daily(exclude=["nowhere"]))
    assert (refused.status, refused.code) == (422, "invalid_schedule")
    assert pointers(refused) == ["/schedule/calendars"]


async def test_editing_and_rolling_back_take_the_present_calendar(admin: Client) -> None:
    await admin("PUT", "/v1/calendars/closed", {"dates": ["2030-01-01"]}, headers=NEW)
    await admin("POST", "/v1/jobs", daily(exclude=["closed"]))
    patched = await admin("PATCH", "/v1/jobs/daily", {"priority": 3})
    assert patched.json["schedule"]["calendars"]["exclude"] == ["closed"], patched.body
    await admin("PUT", "/v1/calendars/closed?force=true", {"dates": ["2030-01-02"]})
    back = await admin("POST", "/v1/jobs/daily/rollback", {"revision": 1})
    assert back.status == 200, back.body
    assert await next_days(admin) == ["2030-01-01", "2030-01-03", "2030-01-04"]


async def test_a_calendar_that_leaves_no_fire_leaves_the_job_as_it_was(
    served: Served, admin: Client
) -> None:
    await admin("PUT", "/v1/calendars/open", {"dates": ["2030-01-01"]}, headers=NEW)
    await admin("POST", "/v1/jobs", daily(include=["open"]))
    changed = await admin("PUT", "/v1/calendars/open?force=true", {"dates": ["2000-01-01"]})
    await served.operate()
    told = (await admin("GET", f"/v1/operations/{changed.json['operation_id']}")).json
    assert told["result"] == {"changed": 0, "refused": 1}
    assert await next_days(admin) == ["2030-01-01"]


async def test_a_preview_and_an_export_know_calendars(admin: Client) -> None:
    await admin("PUT", "/v1/calendars/closed", {"dates": ["2030-01-01"]}, headers=NEW)
    schedule = daily(exclude=["closed"])["schedule"]
    asked = {"schedule": schedule, "from": "2030-01-01T00:00:00Z", "count": 1}
    told = await admin("POST", "/v1/schedules/preview", asked)
    assert days_of(told.json) == ["2030-01-02"], told.body
    await admin("POST", "/v1/jobs", daily(exclude=["closed"]))
    exported = (await admin("GET", "/v1/export")).json
    assert exported["jobs"][0]["schedule"]["calendars"]["exclude"] == ["closed"]
    await admin("DELETE", "/v1/jobs/daily")
    back = await admin("POST", "/v1/import/betimes", exported)
    assert (back.status, len(back.json["created"])) == (201, 1), back.body
    assert await next_days(admin, count=1) == ["2030-01-02"]


async def test_an_export_carries_its_calendars_elsewhere(served: Served, admin: Client) -> None:
    await admin("PUT", "/v1/calendars/closed", {"dates": ["2030-01-01"]}, headers=NEW)
    await admin("POST", "/v1/jobs", {**daily(exclude=["closed"]), "tags": {"team": "a"}})
    await admin("POST", "/v1/jobs", {"name": "other", "schedule": "every 1h", "handler": "h"})
    exported = (await admin("GET", "/v1/export?tag=team:a")).json
    assert [one["name"] for one in exported["jobs"]] == ["daily"]
    elsewhere = served.client(await served.key(await served.tenant("elsewhere")))
    dry = await elsewhere("POST", "/v1/import/betimes?dry_run=true", exported)
    assert (dry.status, dry.json["calendars"]) == (200, ["closed"]), dry.body
    assert (await elsewhere("GET", "/v1/calendars/closed")).status == 404
    back = await elsewhere("POST", "/v1/import/betimes", exported)
    assert (back.status, back.json["calendars"]) == (201, ["closed"]), back.body
    assert await next_days(elsewhere, count=1) == ["2030-01-02"]
    again = (await elsewhere("POST", "/v1/import/betimes", exported)).json
    assert (again["created"], again["calendars"], len(again["skipped"])) == ([], [], 1)
    bad = {**exported, "calendars": [{"name": "x", "dates": ["2030-02-30"]}]}
    refused = await elsewhere("POST", "/v1/import/betimes", bad)
    assert (refused.status, pointers(refused)) == (422, ["/calendars/0"])
    undated = await elsewhere("POST", "/v1/import/betimes", {**exported, "exported_at": "once"})
    assert (undated.status, pointers(undated)) == (400, ["/exported_at"])
