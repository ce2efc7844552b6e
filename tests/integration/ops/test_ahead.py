"""Jobs as they are shown: the fire that comes next, and complete only when the last one is over."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from betimes.domain.errors import IllegalTransition
from betimes.domain.job import Definition, Job
from betimes.domain.states import JobState, RunState
from betimes.ops import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.end import cancel_job
from betimes.ops.explain import explain_job
from betimes.ops.listing import JobFilter, find_jobs
from betimes.ops.manual import run_now, skip_next
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.read import get_job, job_reader, list_jobs
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import HOUR, MINUTE, SECOND, TENANT, every, fetch, make_desk, once, runs_of


def last_of_a_series(clock: ManualClock) -> Definition:
    return every(20, schedule={"end_at": (clock.now() + 90 * SECOND).isoformat()})


def in_four_minutes(clock: ManualClock) -> Definition:
    return once(clock.now() + 4 * MINUTE)


def in_five_seconds(clock: ManualClock) -> Definition:
    return once(clock.now() + 5 * SECOND)


ENDING = [last_of_a_series, in_four_minutes, in_five_seconds]


@pytest.fixture(params=ENDING, ids=lambda make: make.__name__)
def ending(request: pytest.FixtureRequest, clock: ManualClock) -> Definition:
    definition: Definition = request.param(clock)
    return definition


async def planned(desk: Desk, line: Line, definition: Definition) -> Job:
    """A job whose last fire is planned, and not due yet."""
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    await line.coordinate(2)
    (row,) = await fetch(desk.database, "SELECT state, next_fire_at FROM betimes.jobs")
    assert tuple(row) == (JobState.COMPLETED, None), "its planner has nothing left to do"
    assert len(await runs_of(desk.database, job.id)) > 0
    return job


async def shown(desk: Desk, job: Job, wanted: JobState) -> list[bool]:
    """What every way of reading says about the state of a job."""
    one = await get_job(desk, TENANT, job.id)
    shared = await desk.transact(partial(_read, job_reader(desk), job), tenant=TENANT)
    page = await list_jobs(desk, TENANT)
    found = {
        state: await find_jobs(
            desk,
            TENANT,
            JobFilter(states=[state]),
            after=None,
            newest_first=newest_first,
            limit=10,
        )
        for state, newest_first in ((JobState.ACTIVE, False), (JobState.COMPLETED, True))
    }
    told = [one.state, shared.state, page.jobs[0].state]
    told += [state for state, jobs in found.items() for _ in jobs]
    return [state is wanted for state in told]


async def _read(reader, job, connection):  # type: ignore[no-untyped-def]
    return (await reader(connection, [job.id]))[job.id]


async def test_a_job_is_not_complete_before_its_last_run_is_over(
    database: Database, clock: ManualClock, ending: Definition
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await planned(desk, line, ending)
    assert all(await shown(desk, job, JobState.ACTIVE))
    told = await explain_job(desk, TENANT, job.id, at=None)
    assert [reason.code for reason in told.reasons if reason.code == "AFTER_END"] == []
    *_, last = await runs_of(database, job.id)
    await line.coordinate((last["due_at"] - clock.now()).total_seconds())
    await line.lease()
    assert all(await shown(desk, job, JobState.ACTIVE)), "it runs"
    await line.finish()
    await line.live(1)
    assert all(await shown(desk, job, JobState.COMPLETED))
    assert {row["state"] for row in await runs_of(database, job.id)} <= {
        RunState.SUCCEEDED,
        RunState.SKIPPED,
    }
    await run_now(desk, TENANT, job.id)
    assert all(await shown(desk, job, JobState.COMPLETED)), "a run by hand is no fire"


async def test_cancelling_bites_while_a_planned_run_is_open(
    database: Database, clock: ManualClock, ending: Definition
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await planned(desk, line, ending)
    assert (await cancel_job(desk, TENANT, job.id)).state is JobState.CANCELLED
    await line.live(250)
    assert line.started == []
    assert (await get_job(desk, TENANT, job.id)).state is JobState.CANCELLED


async def test_pausing_bites_and_resuming_goes_on(
    database: Database, clock: ManualClock, ending: Definition
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await planned(desk, line, ending)
    fires = [row["fire_at"] for row in await runs_of(database, job.id)]
    assert (await pause_job(desk, TENANT, job.id)).state is JobState.PAUSED
    await line.live(1)
    resumed = await resume_job(desk, TENANT, job.id)
    assert (resumed.job.state, resumed.job.coming_fire_at) == (JobState.ACTIVE, fires[0])
    await line.live(250)
    assert await line.executed(job.id) == fires
    assert (await get_job(desk, TENANT, job.id)).state is JobState.COMPLETED


async def test_what_lay_in_a_pause_is_recorded_and_the_job_is_complete(
    database: Database, clock: ManualClock, ending: Definition
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await planned(desk, line, ending)
    fires = [row["fire_at"] for row in await runs_of(database, job.id)]
    await pause_job(desk, TENANT, job.id)
    await line.live(250)
    assert line.started == []
    assert (await resume_job(desk, TENANT, job.id)).job.state is JobState.COMPLETED
    with_run = {row["fire_at"] for row in await runs_of(database, job.id)}
    decided: set[datetime] = set()
    for gap in await fetch(database, "SELECT fire_at, until_at FROM betimes.decisions"):
        ends = gap["until_at"] or gap["fire_at"]
        decided |= {fire for fire in fires if gap["fire_at"] <= fire <= ends}
    assert with_run | decided == set(fires)
    assert with_run.isdisjoint(decided)


async def test_the_last_fires_can_be_skipped(
    database: Database, clock: ManualClock, ending: Definition
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await planned(desk, line, ending)
    fires = [row["fire_at"] for row in await runs_of(database, job.id)]
    assert await skip_next(desk, TENANT, job.id) == fires[:1]
    if fires[1:]:
        assert await skip_next(desk, TENANT, job.id, count=100) == fires[1:]
    assert (await get_job(desk, TENANT, job.id)).state is JobState.COMPLETED
    await line.live(250)
    assert line.started == []


async def test_the_last_fire_can_be_edited_until_it_is_near(
    database: Database, clock: ManualClock, ending: Definition
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await planned(desk, line, ending)
    fires = [row["fire_at"] for row in await runs_of(database, job.id)]
    edited = await update_job(desk, TENANT, job.id, replace(ending, payload=b"new"))
    assert (edited.state, edited.revision) == (JobState.ACTIVE, 2)
    assert edited.coming_fire_at == fires[0]
    await line.live(250)
    assert await line.executed(job.id) == fires
    near = {fire for fire in fires if fire <= edited.updated_at + desk.margin}
    assert {one.fire_at for one in line.started if one.revision == 1} == near


async def test_a_job_that_is_over_stays_so(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    done = await create_job(desk, TENANT, NewJob(definition=once(clock.now() + SECOND)))
    await line.live(3)
    for verb in (pause_job, cancel_job):
        with pytest.raises(IllegalTransition, match="a job that is completed cannot become"):
            await verb(desk, TENANT, done.id)
    with pytest.raises(IllegalTransition, match="got one that is completed"):
        await skip_next(desk, TENANT, done.id)
    with pytest.raises(IllegalTransition, match="got one that is completed"):
        await resume_job(desk, TENANT, done.id)


@pytest.mark.parametrize("seconds", [5, 20, 3600])
async def test_the_next_fire_is_the_one_that_happens_next(
    database: Database, clock: ManualClock, seconds: int
) -> None:
    """Not where the planner goes on, which is minutes ahead."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    period = timedelta(seconds=seconds)
    job = await create_job(desk, TENANT, NewJob(definition=every(seconds)))
    began = clock.now()
    assert job.coming_fire_at == began + period
    await line.coordinate(2)
    for _ in range(2):
        found = await get_job(desk, TENANT, job.id)
        expected = began + ((clock.now() - began) // period + 1) * period
        assert found.coming_fire_at == expected
        for newest_first in (False, True):
            listed = partial(
                find_jobs, desk, TENANT, after=None, newest_first=newest_first, limit=10
            )
            soon, later = expected + SECOND, expected - SECOND
            assert [one.coming_fire_at for one in await listed(JobFilter())] == [expected]
            assert len(await listed(JobFilter(fire_before=soon, fire_after=later))) == 1
            assert await listed(JobFilter(fire_before=later)) == []
            assert await listed(JobFilter(fire_after=soon)) == []
        await line.live(7)


async def test_a_fire_that_is_skipped_does_not_come_next(
    database: Database, clock: ManualClock
) -> None:
    """Also where its planner has not come to it, and when it is paused there is none."""
    desk = make_desk(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(3600)))
    assert await skip_next(desk, TENANT, job.id, count=2) == [began + HOUR, began + 2 * HOUR]
    assert (await get_job(desk, TENANT, job.id)).coming_fire_at == began + 3 * HOUR
    await pause_job(desk, TENANT, job.id)
    assert (await get_job(desk, TENANT, job.id)).coming_fire_at is None
