"""A job that fails so many times in a row is paused in the transaction of its last failure."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.ids import Fence, JobId, ParcelId, RunId, WorkerId
from betimes.domain.job import Job
from betimes.domain.states import JobState, RunState
from betimes.ops import NewJob, create_job
from betimes.ops.pause import resume_job
from betimes.store.database import Database
from betimes.store.ending import DeadLetter, Ending
from betimes.store.failures import JOB_AUTO_PAUSED
from betimes.store.finish import Finishing, Held
from betimes.testing import ManualClock
from line_kit import WORKER, Line
from ops_kit import TENANT, every, fetch, make_desk, runs_of

PERIOD = 12


async def end(line: Line, state: RunState) -> list[Any]:
    """End everything under way with the statements of a worker; the jobs that were paused."""
    paused: list[Any] = []
    for one in list(line.held):
        line.held.remove(one)
        row, now = one.row, line.clock.now()
        held = Held({(ParcelId(one.parcel), Fence(one.fence))}, [ParcelId(one.parcel)])
        dead = DeadLetter("f", "RETRIES_EXHAUSTED") if state is RunState.DEAD else None
        ending = Ending(
            run=RunId(row["id"]),
            parcel=ParcelId(one.parcel),
            fence=Fence(one.fence),
            tenant=TENANT,
            queue="default",
            priority=5,
            job=row["job_id"],
            handler="noop",
            state=state,
            attempt=1,
            started_at=now,
            ended_at=now,
            dead=dead,
        )
        await Finishing(line.database, WorkerId(WORKER)).otherwise(one.shard, held, [ending])
        paused += held.paused
    return paused


async def state_of(database: Database, job: JobId) -> Any:
    (row,) = await fetch(database, "SELECT * FROM betimes.jobs WHERE id = $1", job)
    return row


async def play(line: Line, endings: Sequence[RunState]) -> list[Any]:
    """One fire after the other, each with its end."""
    paused: list[Any] = []
    for state in endings:
        await line.coordinate(PERIOD)
        assert await line.lease() == 1
        paused += await end(line, state)
    return paused


async def begin(database: Database, clock: ManualClock, failures: int | None) -> tuple[Line, Job]:
    schedule = {} if failures is None else {"pause_after_failures": failures}
    definition = every(PERIOD, schedule=schedule)
    job = await create_job(make_desk(database, clock), TENANT, NewJob(definition=definition))
    line = await Line.make(database, clock)
    await line.coordinate(1)
    return line, job


async def test_after_so_many_failures_in_a_row_it_is_paused(
    database: Database, clock: ManualClock
) -> None:
    line, job = await begin(database, clock, 3)
    dead, fine = RunState.DEAD, RunState.SUCCEEDED
    assert await play(line, [dead, dead, fine, dead, dead]) == []
    assert (await state_of(database, job.id))["state"] == JobState.ACTIVE
    (paused,) = await play(line, [dead])
    assert (paused.job, paused.failures) == (job.id, 3)
    row = await state_of(database, job.id)
    assert (row["state"], row["next_fire_at"]) == (JobState.AUTO_PAUSED, None)
    assert JOB_AUTO_PAUSED in row["state_reason"]
    told = await fetch(database, "SELECT type FROM betimes.outbox")
    assert [one["type"] for one in told].count("job.auto_paused") == 1


async def test_nothing_fires_while_it_is_paused_and_the_count_begins_anew(
    database: Database, clock: ManualClock
) -> None:
    line, job = await begin(database, clock, 2)
    assert len(await play(line, [RunState.DEAD, RunState.DEAD])) == 1
    before = len(line.started)
    await line.live(4 * PERIOD)
    assert len(line.started) == before, "a fire ran although its job is paused"
    unended = [row for row in await runs_of(database, job.id) if row["state"] < RunState.SUCCEEDED]
    assert unended == []

    await resume_job(make_desk(database, clock), TENANT, job.id)
    await line.coordinate(1)
    assert await play(line, [RunState.DEAD]) == []
    assert (await state_of(database, job.id))["state"] == JobState.ACTIVE
    assert len(await play(line, [RunState.DEAD])) == 1
    rows = await runs_of(database, job.id)
    fires = [row["fire_at"] for row in rows]
    decided = await fetch(database, "SELECT fire_at, until_at FROM betimes.decisions")
    for row in decided:
        until = row["until_at"] or row["fire_at"]
        assert not [fire for fire in fires if row["fire_at"] <= fire <= until]


@pytest.mark.parametrize("failures", [None, 5])
async def test_others_go_on(database: Database, clock: ManualClock, failures: int | None) -> None:
    line, job = await begin(database, clock, failures)
    assert await play(line, [RunState.DEAD] * 3) == []
    assert (await state_of(database, job.id))["state"] == JobState.ACTIVE
    assert clock.now() - job.created_at > timedelta(seconds=3 * PERIOD)
