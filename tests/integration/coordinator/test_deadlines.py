"""Runs that nobody has started in time are marked, also where no worker ever comes."""

from datetime import timedelta

import pytest

from betimes.config.settings import CoordinatorSettings
from betimes.domain.ids import RunId, to_text
from betimes.domain.run import NewRun
from betimes.domain.states import RunState
from betimes.domain.verdict import START_DEADLINE_PASSED
from betimes.ops import NewJob, create_job
from betimes.ops.enqueue import enqueue_runs
from betimes.store.database import Database
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import TENANT, every, fetch, make_desk, parcelled, run_row, runs_of

DEADLINE = {"start_deadline_ms": 8_000}
HORIZON = CoordinatorSettings().horizon


async def test_a_run_that_nobody_starts_expires(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    made = await enqueue_runs(
        desk,
        TENANT,
        [
            NewRun(handler="h", options=DEADLINE),
            NewRun(handler="h"),
            NewRun(handler="h", options=DEADLINE, delay=timedelta(seconds=30)),
        ],
    )
    line = await Line.make(database, clock)
    await line.coordinate(9, without=["deadlines"])
    assert await line.coordinator.deadlines.tick() == 1
    late, patient, later = [await run_row(database, run) for run in made]
    assert late is not None
    assert (late["state"], late["reason"]) == (RunState.EXPIRED, START_DEADLINE_PASSED)
    assert late["finished_at"] == clock.now()
    assert patient is not None
    assert later is not None
    assert max(patient["state"], later["state"]) < RunState.SUCCEEDED
    assert made[0] not in await parcelled(database)
    assert await line.coordinator.deadlines.tick() == 0
    await line.coordinate(30, without=["deadlines"])
    assert await line.coordinator.deadlines.tick() == 1
    assert await parcelled(database) == [made[1]]
    told = await fetch(
        database,
        "SELECT type, subject, body ->> 'reason' AS reason FROM betimes.outbox ORDER BY id",
    )
    assert [tuple(row) for row in told] == [
        ("run.expired", to_text("run", run), START_DEADLINE_PASSED) for run in (made[0], made[2])
    ]


@pytest.mark.parametrize("handed", ["held", "given up"])
async def test_what_was_handed_out_in_time_is_left_alone(
    database: Database, clock: ManualClock, handed: str
) -> None:
    desk = make_desk(database, clock)
    (run,) = await enqueue_runs(desk, TENANT, [NewRun(handler="h", options=DEADLINE)])
    line = await Line.make(database, clock)
    await line.coordinate(1)
    assert await line.lease() == 1
    if handed == "given up":
        await fetch(
            database,
            "UPDATE betimes.parcels SET worker_id = NULL, lease_until = NULL, slot = false",
        )
    await line.coordinate(20)
    assert await line.coordinator.deadlines.tick() == 0
    row = await run_row(database, run)
    assert row is not None
    assert row["state"] == RunState.QUEUED


async def test_fires_of_a_job_expire_and_a_fixed_delay_goes_on(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    definition = every(15, schedule={"mode": "fixed_delay"}, options=DEADLINE)
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    line = await Line.make(database, clock)
    await line.coordinate(25, without=["deadlines"])
    assert await line.coordinator.deadlines.tick() == 1
    (row,) = await runs_of(database, job.id)
    assert row["state"] == RunState.EXPIRED
    (stored,) = await fetch(database, "SELECT next_fire_at FROM betimes.jobs")
    assert stored["next_fire_at"] == clock.now() + timedelta(seconds=15)


async def test_planned_fires_have_their_deadline(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(20, options=DEADLINE)))
    line = await Line.make(database, clock)
    await line.coordinate(1)
    rows = await runs_of(database, job.id)
    assert len(rows) > HORIZON.total_seconds() / 20 - 2
    assert all(row["start_by"] == row["due_at"] + timedelta(seconds=8) for row in rows)


async def test_more_than_one_pass_holds_expire_too(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("betimes.coordinator.deadlines.RUNS_MAX", 3)
    desk = make_desk(database, clock)
    made: list[RunId] = []
    for _ in range(8):
        made += await enqueue_runs(
            desk, TENANT, [NewRun(handler="h", options=DEADLINE)], shard=desk.next_shard()
        )
        clock.advance(0.01)
    same = [NewRun(handler="h", options=DEADLINE)] * 7
    made += await enqueue_runs(desk, TENANT, same)
    line = await Line.make(database, clock)
    await line.coordinate(10, without=["deadlines"])
    expired = 0
    for _ in range(4):
        expired += await line.coordinator.deadlines.tick()
    assert expired == len(made)
    assert await parcelled(database) == []
