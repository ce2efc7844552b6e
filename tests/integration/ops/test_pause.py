"""Pauses that end by themselves, that are edited under way, and jobs with a fixed delay."""

from datetime import timedelta

import pytest

from betimes.domain.errors import IllegalTransition, Invalid
from betimes.domain.states import JobState, RunState
from betimes.ops import NewJob, create_job
from betimes.ops.end import cancel_job
from betimes.ops.gap import Missed
from betimes.ops.manual import skip_next
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
    line = await Line.make(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=once(clock.now() + SECOND)))
    same = once(clock.now() + SECOND, payload=b"x")
    await line.live(30)
    kept = await update_job(desk, TENANT, job.id, same)
    assert (kept.state, kept.definition.payload) == (JobState.COMPLETED, b"x")
    again = await update_job(desk, TENANT, job.id, once(clock.now() + MINUTE))
    assert (again.state, again.next_fire_at) == (JobState.ACTIVE, clock.now() + MINUTE)


STEPS = [0.0, 3.0, 4.5, 6.0]
"""Into the margin, into what the publisher has read, and into what it has published."""


@pytest.mark.parametrize("seconds", STEPS)
@pytest.mark.parametrize("missed", list(Missed))
async def test_a_pause_that_is_called_off_at_once_loses_no_fire(
    database: Database, clock: ManualClock, seconds: float, missed: Missed
) -> None:
    """What the pause has ended in its row comes back, once, wherever its publisher has got to."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(8)))
    await line.coordinate(seconds)
    for _ in range(2):
        await pause_job(desk, TENANT, job.id)
        await line.coordinate(0.5)
        resumed = await resume_job(desk, TENANT, job.id, missed=missed)
        assert resumed.caught_up == ()
    await line.live(30)
    expected = [began + n * SECOND for n in (8, 16, 24, 32)]
    assert await line.executed(job.id) == [fire for fire in expected if fire <= clock.now()]
    rows = await runs_of(database, job.id)
    assert len({row["fire_at"] for row in rows}) == len(rows), "no fire has two runs"
    assert RunState.SKIPPED not in {row["state"] for row in rows}
    assert not await fetch(database, "SELECT FROM betimes.decisions")
    assert (await get_job(desk, TENANT, job.id)).fires == len(rows)


@pytest.mark.parametrize("missed", list(Missed))
@pytest.mark.parametrize("asleep", [4, 12])
async def test_fires_that_a_pause_ended_are_missed_like_all_others(
    database: Database, clock: ManualClock, missed: Missed, asleep: int
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(3)))
    await line.coordinate(7)
    paused_at = clock.now()
    await pause_job(desk, TENANT, job.id)
    await line.coordinate(asleep)
    inside = [paused_at + n * SECOND for n in range(1, asleep + 1) if (7 + n) % 3 == 0]
    resumed = await resume_job(desk, TENANT, job.id, missed=missed)
    wanted = {Missed.SKIP: [], Missed.RUN_LATEST: inside[-1:], Missed.RUN_ALL: inside}[missed]
    assert list(resumed.caught_up) == wanted
    invoked = clock.now()
    await line.live(20)
    late = [fire for fire in await line.executed(job.id) if paused_at < fire <= invoked]
    assert sorted(late) == wanted
    rows = await runs_of(database, job.id)
    with_run = {row["fire_at"] for row in rows}
    assert len(with_run) == len(rows)
    decided = set()
    for gap in await fetch(database, "SELECT fire_at, until_at FROM betimes.decisions"):
        ends = gap["until_at"] or gap["fire_at"]
        decided |= {fire for fire in inside if gap["fire_at"] <= fire <= ends}
    assert with_run.isdisjoint(decided)
    assert set(inside) <= with_run | decided


async def test_what_came_back_after_a_pause_can_be_skipped_and_edited(
    database: Database, clock: ManualClock
) -> None:
    """Verbs find it although its id is not the one that its fire would give it."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(4)))
    await line.coordinate(1)
    await pause_job(desk, TENANT, job.id)
    await resume_job(desk, TENANT, job.id)
    assert await skip_next(desk, TENANT, job.id) == [began + 4 * SECOND]
    await update_job(desk, TENANT, job.id, every(4, payload=b"new"))
    await line.live(16)
    assert await line.executed(job.id) == [began + n * SECOND for n in (8, 12, 16)]
    rows = await runs_of(database, job.id)
    assert len({row["fire_at"] for row in rows}) == len(rows)


async def test_a_pause_is_edited_to_another_schedule_and_called_off(
    database: Database, clock: ManualClock
) -> None:
    """Fires that both schedules have come back, as runs of the new revision; others do not."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(3)))
    await line.coordinate(1)
    await pause_job(desk, TENANT, job.id)
    await update_job(desk, TENANT, job.id, every(6))
    await resume_job(desk, TENANT, job.id)
    await line.live(13)
    assert await line.executed(job.id) == [began + 6 * SECOND, began + 12 * SECOND]
    assert {one.revision for one in line.started} == {2}


async def test_a_pause_cannot_have_ended_already(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(5)))
    for until in (clock.now(), clock.now() - timedelta(days=2_000)):
        with pytest.raises(Invalid, match="expected an end in the future, got 20") as refused:
            await pause_job(desk, TENANT, job.id, until=until)
        assert (refused.value.code, refused.value.pointer) == ("invalid_parameter", "/until")
    assert (await get_job(desk, TENANT, job.id)).state is JobState.ACTIVE


async def test_an_end_that_comes_late_finds_no_fire_that_was_decided_upon(
    database: Database, clock: ManualClock
) -> None:
    """The pause was over and nobody saw it when the job was edited, which closed its gap."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    await pause_job(desk, TENANT, job.id, until=began + 30 * SECOND)
    await line.live(65)
    await update_job(desk, TENANT, job.id, every(20, payload=b"new"))
    assert await resume_elapsed(desk, job.shard) == [job.id]
    await line.live(20)
    assert await line.executed(job.id) == [began + 80 * SECOND]
    with_run = {row["fire_at"] for row in await runs_of(database, job.id)}
    (gap,) = await fetch(database, "SELECT fire_at, until_at, fires FROM betimes.decisions")
    assert tuple(gap) == (began + 20 * SECOND, began + 60 * SECOND, 3)
    assert min(with_run) == began + 80 * SECOND
