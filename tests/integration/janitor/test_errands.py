"""Pauses end when they were to end, and jobs that were to go are gone."""

from datetime import timedelta

import pytest

from betimes.domain.errors import NotFound
from betimes.domain.job import AfterCompletion
from betimes.domain.states import JobState
from betimes.janitor.errands import Errands
from betimes.ops.create import NewJob, create_job
from betimes.ops.pause import pause_job
from betimes.ops.read import get_job
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from ops_kit import HOUR, MINUTE, TENANT, every, make_desk, once


def errands(database: Database, clock: ManualClock) -> Errands:
    desk = make_desk(database, clock)
    return Errands(desk=desk, clock=clock, telemetry=Telemetry(clock=clock))


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
