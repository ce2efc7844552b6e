"""Pauses end when they were to end, and jobs that were to go are gone."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId, to_text
from betimes.domain.job import AfterCompletion
from betimes.domain.states import JobState
from betimes.janitor.errands import Errands
from betimes.ops import pause
from betimes.ops.create import NewJob, create_job
from betimes.ops.pause import pause_job
from betimes.ops.read import get_job
from betimes.store import jobs as stored_jobs
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from ops_kit import HOUR, MINUTE, TENANT, every, fetch, make_desk, once


def errands(database: Database, clock: ManualClock, recorder: Recorder | None = None) -> Errands:
    desk = make_desk(database, clock)
    handlers = [] if recorder is None else [recorder]
    return Errands(desk=desk, clock=clock, telemetry=Telemetry(clock=clock, handlers=handlers))


async def paused_jobs(database: Database, clock: ManualClock, count: int) -> list[JobId]:
    """Jobs of one shard whose pauses end one after the other, and all by now."""
    desk = make_desk(database, clock, shards=1)
    jobs = []
    for number in range(count):
        job = await create_job(desk, TENANT, NewJob(definition=every(60)))
        until = clock.now() + HOUR + number * MINUTE
        await pause_job(desk, TENANT, job.id, reason="lunch", until=until, actor="me")
        jobs.append(job.id)
    clock.advance(2 * HOUR)
    return jobs


async def states_of(database: Database, jobs: list[JobId]) -> list[JobState]:
    desk = make_desk(database, clock=ManualClock())
    return [(await get_job(desk, TENANT, job)).state for job in jobs]


async def test_a_job_whose_schedule_cannot_be_read_is_set_aside_and_the_others_resume(
    database: Database, clock: ManualClock
) -> None:
    broken, *others = await paused_jobs(database, clock, 3)
    await fetch(
        database, """UPDATE betimes.jobs SET schedule = '{"type": "moon"}' WHERE id = $1""", broken
    )
    assert await errands(database, clock).tick() == (2, 0)
    assert await states_of(database, others) == [JobState.ACTIVE] * 2
    (row,) = await fetch(
        database, "SELECT state, state_reason, paused_until FROM betimes.jobs WHERE id = $1", broken
    )
    assert row["state"] == JobState.AUTO_PAUSED
    assert "SCHEDULE_UNREADABLE" in row["state_reason"]
    assert row["paused_until"] is None
    told = await fetch(database, "SELECT FROM betimes.outbox WHERE type = 'job.auto_paused'")
    assert len(told) == 1
    assert await errands(database, clock).tick() == (0, 0)


async def test_a_job_deleted_between_list_and_lock_harms_nobody(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, *others = await paused_jobs(database, clock, 3)
    found = stored_jobs.elapsed_pauses

    async def found_and_then_deleted(connection: Connection, *given: Any, **more: Any) -> Any:
        answer = await found(connection, *given, **more)
        await connection.execute("DELETE FROM betimes.jobs WHERE id = $1", gone)
        return answer

    monkeypatch.setattr(pause, "elapsed_pauses", found_and_then_deleted)
    assert await errands(database, clock).tick() == (2, 0)
    assert await states_of(database, others) == [JobState.ACTIVE] * 2


async def test_a_job_that_cannot_be_resumed_for_a_mistake_of_ours_is_postponed(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, *others = await paused_jobs(database, clock, 3)
    tried = []
    steer = stored_jobs.steer_job

    async def refuses(connection: Connection, job: Any, **more: Any) -> Any:
        if job.id == broken:
            tried.append(clock.monotonic())
            raise KeyError("a mistake of ours")
        return await steer(connection, job, **more)

    monkeypatch.setattr(pause, "steer_job", refuses)
    recorder = Recorder()
    duty = errands(database, clock, recorder)
    assert await duty.tick() == (2, 0)
    assert await states_of(database, others) == [JobState.ACTIVE] * 2
    (failed,) = [event for event in recorder.events if event.name == "item.failed"]
    assert failed.metadata["item"] == to_text("job", broken)
    await duty.tick()
    assert len(tried) == 1, "it waits"
    for wait in (10, 20):
        clock.advance(wait)
        await duty.tick()
    assert len(tried) == 3
    monkeypatch.undo()
    clock.advance(40)
    assert await duty.tick() == (1, 0)


async def test_a_pause_with_an_end_ends(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    until = clock.now() + HOUR
    await pause_job(desk, TENANT, job.id, reason="lunch", until=until, actor="me")

    clock.advance(HOUR - MINUTE)
    assert await errands(database, clock).tick() == (0, 0)
    clock.advance(2 * MINUTE)
    assert await errands(database, clock).tick() == (1, 0)

    resumed = await get_job(desk, TENANT, job.id)
    assert resumed.state is JobState.ACTIVE
    assert resumed.next_fire_at is not None


async def test_a_job_that_was_to_go_when_done_goes(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    definition = once(clock.now() + timedelta(seconds=5), after_completion=AfterCompletion.DELETE)
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    assert await errands(database, clock).tick() == (0, 0), "its run has not ended"
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute("DELETE FROM betimes.parcels")
        await connection.execute("UPDATE betimes.runs SET state = 4, finished_at = now()")
    assert await errands(database, clock).tick() == (0, 1)
    with pytest.raises(NotFound):
        await get_job(desk, TENANT, job.id)


async def test_where_nothing_is_due_one_question_is_asked_for_all_shards(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Lane] = []
    real = database._acquire

    async def counted(lane: Lane) -> object:
        asked.append(lane)
        return await real(lane)

    monkeypatch.setattr(database, "_acquire", counted)
    assert await errands(database, clock).tick() == (0, 0)
    assert asked == [Lane.ENGINE]
