"""Jobs that come to the end of their schedules are told."""

from json import dumps, loads
from typing import Any

from betimes.domain.ids import to_text
from betimes.domain.job import Definition
from betimes.ops import NewJob, create_job
from betimes.store.database import Database
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import HOUR, TENANT, every, fetch, make_desk, once


def twice(clock: ManualClock) -> Definition:
    return every(60, schedule={"max_fires": 2, "start_at": clock.now().isoformat()})


async def completed(database: Database) -> list[dict[str, Any]]:
    rows = await fetch(
        database, "SELECT body FROM betimes.outbox WHERE type = 'job.completed' ORDER BY id"
    )
    return [loads(row["body"]) for row in rows]


async def test_the_planner_tells_of_a_schedule_that_has_ended(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    new = NewJob(definition=twice(clock), name="report")
    job = await create_job(desk, TENANT, new)
    await create_job(desk, TENANT, NewJob(definition=every(60)))
    await line.coordinate(2)
    text = to_text("job", job.id)
    assert await completed(database) == [{"job_id": text, "name": "report", "state": "completed"}]
    await line.coordinate(2)
    assert len(await completed(database)) == 1


async def test_what_was_missed_completes_a_job_as_well(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=twice(clock)))
    line = await Line.make(database, clock)
    clock.advance(2 * HOUR.total_seconds())
    await line.coordinate(3)
    assert [body["job_id"] for body in await completed(database)] == [to_text("job", job.id)]


async def test_single_fires_are_told_only_to_those_who_asked(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    definition = once(clock.now() + HOUR / 20)
    await create_job(desk, TENANT, NewJob(definition=definition))
    await line.coordinate(2)
    assert await completed(database) == []
    settings = dumps({"run_events": "all"})
    await fetch(
        database, "UPDATE betimes.tenants SET settings = $2::jsonb WHERE id = $1", TENANT, settings
    )
    again = await create_job(desk, TENANT, NewJob(definition=definition))
    await line.coordinate(2)
    assert [body["job_id"] for body in await completed(database)] == [to_text("job", again.id)]
