"""Jobs that come to the end of their schedules are told."""

from json import dumps, loads
from typing import Any

from betimes.domain.ids import to_text
from betimes.domain.job import AfterCompletion, Definition
from betimes.domain.states import JobState
from betimes.janitor.errands import Errands
from betimes.ops import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.end import cancel_job
from betimes.store.database import Database
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import HOUR, TENANT, every, fetch, lost_reply, make_desk, once


def twice(clock: ManualClock) -> Definition:
    return every(60, schedule={"max_fires": 2, "start_at": clock.now().isoformat()})


def soon(clock: ManualClock, **changes: Any) -> Definition:
    """Two fires within seconds beside the one that is now, planned when it is made."""
    start = clock.now().isoformat()
    return every(1, schedule={"max_fires": 3, "start_at": start, "overlap": "allow"}, **changes)


def errands(desk: Desk, clock: ManualClock) -> Errands:
    return Errands(desk=desk, clock=clock, telemetry=Telemetry(clock=clock))


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


async def test_a_job_that_ends_within_seconds_is_told_when_its_last_run_is_over(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=soon(clock), name="report"))
    assert job.next_fire_at is None, "nothing is left to plan"
    await line.coordinate(4)
    janitor = errands(desk, clock)
    await janitor.tick()
    assert await completed(database) == [], "its runs are not over"
    await line.live(4)
    await line.finish()
    assert len(await line.executed(job.id)) == 2
    with lost_reply(clock):
        await janitor.tick()
    await janitor.tick()
    text = to_text("job", job.id)
    assert await completed(database) == [{"job_id": text, "name": "report", "state": "completed"}]


async def test_it_is_told_before_it_is_deleted_for_it(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    definition = soon(clock, after_completion=AfterCompletion.DELETE)
    await create_job(desk, TENANT, NewJob(definition=definition))
    await line.live(6)
    await line.finish()
    await errands(desk, clock).tick()
    rows = await fetch(database, "SELECT type FROM betimes.outbox WHERE type ~ '^job' ORDER BY id")
    assert sorted(row["type"] for row in rows) == ["job.completed", "job.deleted"]


async def test_single_fires_within_seconds_are_told_only_to_those_who_asked(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    await create_job(desk, TENANT, NewJob(definition=once(clock.now() + HOUR / 3600)))
    settings = dumps({"run_events": "all"})
    await fetch(
        database, "UPDATE betimes.tenants SET settings = $2::jsonb WHERE id = $1", TENANT, settings
    )
    asked = await create_job(desk, TENANT, NewJob(definition=once(clock.now() + HOUR / 3600)))
    await line.live(6)
    await line.finish()
    await errands(desk, clock).tick()
    assert [body["job_id"] for body in await completed(database)] == [to_text("job", asked.id)]


async def test_a_job_that_was_cancelled_before_is_not_told_as_complete(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=soon(clock)))
    await cancel_job(desk, TENANT, job.id)
    await errands(desk, clock).tick()
    rows = await fetch(database, "SELECT state, untold FROM betimes.jobs")
    assert [(row["state"], row["untold"]) for row in rows] == [(JobState.CANCELLED, False)]
    assert await completed(database) == []
