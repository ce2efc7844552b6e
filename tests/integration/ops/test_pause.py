"""Pauses that end by themselves, that are edited under way, and jobs with a fixed delay."""

import pytest

from betimes.domain.errors import IllegalTransition
from betimes.domain.states import JobState, RunState
from betimes.ops import NewJob, create_job
from betimes.ops.end import cancel_job
from betimes.ops.gap import Missed
from betimes.ops.pause import pause_job, resume_elapsed, resume_job
from betimes.ops.read import get_job
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import MINUTE, SECOND, TENANT, every, fetch, make_desk, once, runs_of


async def test_a_pause_with_an_end_is_over_then_and_late_fires_still_run(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    await pause_job(desk, TENANT, job.id, until=began + 50 * SECOND)
    await line.live(45)
    assert await resume_elapsed(desk, job.shard) == []
    await line.live(20)
    assert await resume_elapsed(desk, job.shard) == [job.id]
    assert await resume_elapsed(desk, job.shard) == []
    await line.live(20)
    assert await line.executed(job.id) == [began + 60 * SECOND, began + 80 * SECOND]
    (gap,) = await fetch(database, "SELECT fire_at, until_at, fires, code FROM betimes.decisions")
    assert tuple(gap) == (began + 20 * SECOND, began + 40 * SECOND, 2, "JOB_PAUSED")


async def test_an_edit_during_a_pause_closes_the_gap_of_the_old_schedule(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    await pause_job(desk, TENANT, job.id)
    clock.advance(50)
    edited = await update_job(desk, TENANT, job.id, every(30))
    assert (edited.state, edited.revision, edited.next_fire_at) == (JobState.PAUSED, 2, None)
    clock.advance(50)
    resumed = await resume_job(desk, TENANT, job.id, missed=Missed.RUN_ALL)
    assert resumed.caught_up == (began + 60 * SECOND, began + 90 * SECOND)
    await line.live(25)
    assert await line.executed(job.id) == [began + n * SECOND for n in (60, 90, 120)]
    rows = await fetch(database, "SELECT fire_at, until_at, fires, revision FROM betimes.decisions")
    assert [tuple(row) for row in rows] == [(began + 20 * SECOND, began + 40 * SECOND, 2, 1)]


@pytest.mark.parametrize("under_way", [False, True])
async def test_a_job_with_a_fixed_delay_goes_on_in_one_chain(
    database: Database, clock: ManualClock, under_way: bool
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    definition = every(5, schedule={"mode": "fixed_delay", "anchor": clock.now().isoformat()})
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    clock.advance(6)
    assert await line.lease() == 1
    if not under_way:
        await line.finish()
    await pause_job(desk, TENANT, job.id)
    resumed = await resume_job(desk, TENANT, job.id)
    rows = await runs_of(database, job.id)
    waiting = [row for row in rows if row["state"] < RunState.SUCCEEDED]
    assert len(waiting) == 1
    assert (resumed.job.state, resumed.job.next_fire_at) == (JobState.ACTIVE, None)


async def test_what_is_not_paused_cannot_be_resumed(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    done = await create_job(desk, TENANT, NewJob(definition=once(clock.now() + SECOND)))
    with pytest.raises(IllegalTransition, match="got one that is completed"):
        await resume_job(desk, TENANT, done.id)
    with pytest.raises(IllegalTransition, match="a job that is completed cannot become paused"):
        await pause_job(desk, TENANT, done.id)
    with pytest.raises(IllegalTransition, match="completed cannot become cancelled"):
        await cancel_job(desk, TENANT, done.id)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    cancelled = await cancel_job(desk, TENANT, job.id, reason="enough", actor="ada")
    assert cancelled.state_reason == {"code": "JOB_CANCELLED", "reason": "enough", "by": "ada"}
    assert await cancel_job(desk, TENANT, job.id) == await get_job(desk, TENANT, job.id)
    with pytest.raises(IllegalTransition, match="create a new one"):
        await update_job(desk, TENANT, job.id, every(30))


async def test_a_completed_job_gets_new_fires_by_an_edit(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=once(clock.now() + SECOND)))
    same = once(clock.now() + SECOND, payload=b"x")
    clock.advance(30)
    kept = await update_job(desk, TENANT, job.id, same)
    assert (kept.state, kept.definition.payload) == (JobState.COMPLETED, b"x")
    again = await update_job(desk, TENANT, job.id, once(clock.now() + MINUTE))
    assert (again.state, again.next_fire_at) == (JobState.ACTIVE, clock.now() + MINUTE)
