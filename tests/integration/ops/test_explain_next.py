"""What is said about the next fire of a job: when it is, and what stands in its way already."""

from datetime import UTC, datetime, timedelta

import pytest

from betimes.domain.job import Definition, Job
from betimes.ops import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.explain import Explanation, explain_job
from betimes.ops.pause import pause_job
from betimes.ops.upcoming import list_upcoming
from betimes.schedule import Calendar, parse
from betimes.store.database import Database
from betimes.testing import ManualClock
from integration.ops.test_explain import a_worker, execute
from ops_kit import HOUR, MINUTE, SECOND, TENANT, every, make_desk, runs_of

BRAKES = {
    "QUEUE_PAUSED": (
        "INSERT INTO betimes.queues (tenant_id, name, paused_at, paused_reason)"
        " SELECT id, 'default', $1, 'x' FROM betimes.tenants"
    ),
    "CLUSTER_PAUSED": "UPDATE betimes.cluster SET paused_at = $1",
    "TENANT_SUSPENDED": (
        "UPDATE betimes.tenants SET state = 2, state_reason = 'unpaid' WHERE created_at <= $1"
        " OR true"
    ),
}
CAPACITY = {
    "NO_WORKER_FOR_QUEUE": "UPDATE betimes.workers SET queues = '{other}'",
    "NO_WORKER_FOR_HANDLER": "UPDATE betimes.workers SET handlers = '{other}'",
    "WORKERS_DRAINING": "UPDATE betimes.workers SET draining = true",
}


async def prepared(
    database: Database, clock: ManualClock, definition: Definition
) -> tuple[Desk, Job]:
    await execute(
        database,
        "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'a', 'A') ON CONFLICT DO NOTHING",
        TENANT,
    )
    await a_worker(database, clock, handlers=["noop"])
    desk = make_desk(database, clock)
    return desk, await create_job(desk, TENANT, NewJob(definition=definition))


def codes(told: Explanation) -> list[str]:
    return [reason.code for reason in told.reasons]


async def test_the_next_fire_is_told_and_not_where_the_planner_is(
    database: Database, clock: ManualClock
) -> None:
    desk, job = await prepared(database, clock, every(5))
    told = await explain_job(desk, TENANT, job.id, at=None)
    first = (await runs_of(database, job.id))[0]
    assert (told.verdict, told.reasons, told.next_fire_at) == ("will_run", [], first["due_at"])
    assert told.next_fire_at != job.next_fire_at
    assert {"cluster", "tenant", "queue", "workers", "calendar", "overlap"} <= set(told.checked)
    assert not {"rate", "quota", "concurrency", "coordinators"} & set(told.checked)


async def test_a_fire_that_was_skipped_is_not_the_next(
    database: Database, clock: ManualClock
) -> None:
    desk, job = await prepared(database, clock, every(5))
    first, second, *_ = await runs_of(database, job.id)
    await execute(
        database,
        "UPDATE betimes.runs SET state = 7, reason = 'SKIPPED_BY_USER', finished_at = $2"
        " WHERE id = $1",
        first["id"],
        clock.now(),
    )
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert told.next_fire_at == second["due_at"]


async def test_beyond_what_is_planned_it_is_computed(
    database: Database, clock: ManualClock
) -> None:
    desk, job = await prepared(database, clock, every(86_400))
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert told.verdict == "will_run"
    assert told.next_fire_at == job.next_fire_at


@pytest.mark.parametrize("code", BRAKES)
async def test_a_brake_holds_the_next_fire(
    database: Database, clock: ManualClock, code: str
) -> None:
    desk, job = await prepared(database, clock, every(5))
    await execute(database, BRAKES[code], clock.now())
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert (told.verdict, told.eligible, codes(told)) == ("waiting", False, [code])
    assert told.next_fire_at is not None
    page = await list_upcoming(desk, TENANT)
    assert {(item.will_run, item.reason) for item in page.items} == {(False, code)}


@pytest.mark.parametrize("code", CAPACITY)
async def test_nobody_could_take_the_next_fire(
    database: Database, clock: ManualClock, code: str
) -> None:
    desk, job = await prepared(database, clock, every(5))
    await execute(database, CAPACITY[code])
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert (told.verdict, codes(told)) == ("waiting", [code])


async def test_a_pause_with_an_end_holds_what_is_due_before_it(
    database: Database, clock: ManualClock
) -> None:
    desk, job = await prepared(database, clock, every(5))
    end = clock.now() + MINUTE
    await execute(
        database,
        "INSERT INTO betimes.queues (tenant_id, name, paused_at, paused_until)"
        " VALUES ($1, 'default', $2, $3)",
        TENANT,
        clock.now(),
        end,
    )
    page = await list_upcoming(desk, TENANT, job=job.id)
    assert {item.will_run for item in page.items} == {True, False}
    assert all(item.will_run == (item.due_at >= end) for item in page.items)


async def test_what_a_calendar_takes_away_before_the_next_fire_is_told(
    database: Database, clock: ManualClock
) -> None:
    away = [(clock.now() + timedelta(days=day)).date() for day in (1, 2)]
    members = {"type": "cron", "expr": "0 * * * *", "calendars": {"exclude": ["holidays"]}}
    known = {"holidays": Calendar.of("holidays", away)}
    schedule = parse(members, timezone="UTC", calendars=known).to_dict()
    definition = Definition(
        schedule=schedule, handler="noop", options={"calendars": {"holidays": 1}}
    )
    desk, job = await prepared(database, clock, definition)
    midnight = datetime.combine(away[0], datetime.min.time(), tzinfo=UTC)
    clock.advance(midnight - clock.now() + 40 * HOUR)
    first = midnight + 48 * HOUR
    await execute(database, "DELETE FROM betimes.runs")
    await execute(database, "UPDATE betimes.jobs SET next_fire_at = $1", first)
    await execute(database, "UPDATE betimes.workers SET heartbeat_at = $1", clock.now())
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert told.verdict == "will_run"
    (reason,) = told.reasons
    assert (reason.code, reason.blocking) == ("CALENDAR_EXCLUDED", False)
    assert (reason.evidence["fires"], reason.evidence["calendars"]) == (7, ["holidays"])
    assert told.next_fire_at == first


async def test_fires_that_gave_way_lately_are_told(database: Database, clock: ManualClock) -> None:
    desk, job = await prepared(database, clock, every(5))
    first, second, *_ = await runs_of(database, job.id)
    await execute(
        database,
        "UPDATE betimes.runs SET state = 7, reason = 'OVERLAP_SKIPPED', finished_at = $3,"
        " blocked_by = $2 WHERE id = $1",
        second["id"],
        first["id"],
        second["due_at"],
    )
    clock.advance(second["due_at"] - clock.now() + SECOND)
    told = await explain_job(desk, TENANT, job.id, at=None)
    (reason,) = told.reasons
    assert (told.verdict, reason.code, reason.since) == (
        "will_run",
        "OVERLAP_LATELY",
        second["due_at"],
    )
    assert (reason.evidence["skipped"], reason.evidence["looked_at"]) == (1, 2)


async def test_a_job_that_never_fires_by_itself(database: Database, clock: ManualClock) -> None:
    manual = Definition(schedule=parse({"type": "manual"}).to_dict(), handler="noop")
    desk, job = await prepared(database, clock, manual)
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert (told.verdict, codes(told), told.next_fire_at) == ("will_not_run", ["MANUAL_ONLY"], None)
    assert told.checked == ("job",)


async def test_a_paused_job_says_so_and_no_next_fire(
    database: Database, clock: ManualClock
) -> None:
    desk, job = await prepared(database, clock, every(5))
    await pause_job(desk, TENANT, job.id)
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert (told.verdict, codes(told), told.next_fire_at) == ("will_not_run", ["JOB_PAUSED"], None)
