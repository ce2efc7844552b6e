"""Pause, cancel, update and delete, at every step of the line: what must not happen does not.

Each case brings a job that fires every twenty seconds to one step, says one verb there, and then
lets everybody work on. What began is judged by the evidence of the worker.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import pytest

from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId
from betimes.domain.states import JobState, RunState
from betimes.ops import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.end import RunsOf, cancel_job, delete_job
from betimes.ops.gap import Missed
from betimes.ops.grip import Running
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import SECOND, TENANT, every, fetch, make_desk, runs_of

PERIOD = 20
FIRST = timedelta(seconds=PERIOD)


class Step(StrEnum):
    UNPLANNED = "before it is planned"
    PLANNED = "planned"
    READ_AHEAD = "read ahead by the publisher"
    PUBLISHED = "published, not yet due"
    WAITING = "waiting in the queue"
    RUNNING = "running"
    RETRYING = "waiting for a retry"


# When the verb is said, and whether the first fire lies before it.
MOMENTS = {
    Step.UNPLANNED: 0.0,
    Step.PLANNED: 3.0,
    Step.READ_AHEAD: 16.0,
    Step.PUBLISHED: 19.0,
    Step.WAITING: 21.0,
    Step.RUNNING: 21.0,
    Step.RETRYING: 21.0,
}


@dataclass
class Case:
    """A job at a step, and the world around it."""

    line: Line
    desk: Desk
    clock: ManualClock
    job: JobId
    began: datetime
    said_at: datetime

    @property
    def first(self) -> datetime:
        return self.began + FIRST

    def late(self) -> list[datetime]:
        """Fires whose attempts began although they lie after the verb."""
        return [
            one.fire_at
            for one in self.line.started
            if one.fire_at is not None and one.fire_at > self.said_at
        ]

    def began_after(self) -> list[datetime]:
        """When attempts began after the verb."""
        return [one.at for one in self.line.started if one.at > self.said_at]


async def reach(database: Database, clock: ManualClock, step: Step) -> Case:
    desk = make_desk(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(PERIOD)))
    line = await Line.make(database, clock)
    await line.coordinate(MOMENTS[step])
    if step in {Step.RUNNING, Step.RETRYING}:
        assert await line.lease() == 1
    if step is Step.RETRYING:
        await line.fail()
    await assert_step(database, job.id, step)
    return Case(line, desk, clock, job.id, began, clock.now())


async def assert_step(database: Database, job: JobId, step: Step) -> None:
    """The step is really the one it is called."""
    rows = await runs_of(database, job)
    held = await fetch(database, "SELECT worker_id FROM betimes.parcels")
    states = [row["state"] for row in rows]
    match step:
        case Step.UNPLANNED:
            assert not rows
        case Step.PLANNED | Step.READ_AHEAD:
            assert rows
            assert not held
        case Step.PUBLISHED | Step.WAITING:
            assert [row["worker_id"] for row in held] == [None]
        case Step.RUNNING:
            assert held[0]["worker_id"] is not None
        case Step.RETRYING:
            assert RunState.RETRY_WAIT in states
            assert [row["worker_id"] for row in held] == [None]


@pytest.fixture(params=list(Step), ids=lambda step: step.name.lower())
def step(request: pytest.FixtureRequest) -> Step:
    return Step(request.param)


@pytest.mark.parametrize("running", list(Running))
@pytest.mark.parametrize("missed", list(Missed))
async def test_pause(
    database: Database, clock: ManualClock, step: Step, running: Running, missed: Missed
) -> None:
    case = await reach(database, clock, step)
    line, desk = case.line, case.desk
    paused = await pause_job(desk, TENANT, case.job, reason="repairs", running=running)
    assert (paused.state, paused.next_fire_at) == (JobState.PAUSED, None)

    await line.live(45)
    assert case.late() == [], "no fire runs that lies after the pause"
    if running is Running.CANCEL:
        assert case.began_after() == []
        assert line.told == ([one.run for one in line.started] if step is Step.RUNNING else [])

    invoked = clock.now()
    resumed = await resume_job(desk, TENANT, case.job, missed=missed)
    assert resumed.job.state is JobState.ACTIVE
    await line.live(25)
    inside = [fire for fire in case.late() if fire <= invoked]
    assert inside == expected_catch_up(case, invoked, missed)
    await everything_accounted_for(case, database)


def expected_catch_up(case: Case, invoked: datetime, missed: Missed) -> list[datetime]:
    """Fires in the pause that run after all."""
    fires = [fire for fire in fires_between(case.began, invoked) if fire > case.said_at]
    return {Missed.SKIP: [], Missed.RUN_LATEST: fires[-1:], Missed.RUN_ALL: fires}[missed]


@pytest.mark.parametrize("running", list(Running))
async def test_cancel(database: Database, clock: ManualClock, step: Step, running: Running) -> None:
    case = await reach(database, clock, step)
    cancelled = await cancel_job(case.desk, TENANT, case.job, running=running)
    assert cancelled.state is JobState.CANCELLED
    if step is Step.RUNNING and running is Running.LEAVE:
        await case.line.fail()  # its attempt was left in peace, but there is no other
    await case.line.live(45)
    assert case.began_after() == [], "no attempt begins after the cancel"
    assert bool(case.line.told) == (step is Step.RUNNING and running is Running.CANCEL)
    rows = await runs_of(database, case.job)
    assert {row["state"] for row in rows} <= {RunState.CANCELLED}
    assert not await fetch(database, "SELECT FROM betimes.parcels")


@pytest.mark.parametrize("verb", [pause_job, cancel_job, delete_job])
async def test_an_attempt_that_is_left_in_peace_may_succeed(
    database: Database, clock: ManualClock, verb: Callable[..., Awaitable[object]]
) -> None:
    case = await reach(database, clock, Step.RUNNING)
    await verb(case.desk, TENANT, case.job)
    await case.line.finish()
    assert case.line.told == []
    (first, *_) = await runs_of(database, case.job)
    assert (first["state"], first["reason"]) == (RunState.SUCCEEDED, None)


@pytest.mark.parametrize("runs", list(RunsOf))
async def test_delete(database: Database, clock: ManualClock, step: Step, runs: RunsOf) -> None:
    case = await reach(database, clock, step)
    await delete_job(case.desk, TENANT, case.job, runs=runs)
    with pytest.raises(NotFound, match="there is no job job_"):
        await pause_job(case.desk, TENANT, case.job)
    await case.line.live(45)
    assert case.late() == []
    if runs is RunsOf.CANCEL:
        assert case.began_after() == []
    rows = await runs_of(database, case.job)
    assert all(row["state"] >= RunState.SUCCEEDED for row in rows)
    was_due = step in {Step.WAITING, Step.RUNNING, Step.RETRYING}
    ran = [row for row in rows if row["state"] == RunState.SUCCEEDED]
    assert len(ran) == (1 if was_due and runs is RunsOf.KEEP else 0)


@pytest.mark.parametrize("seconds", [PERIOD, 7, 30])
async def test_update(database: Database, clock: ManualClock, step: Step, seconds: int) -> None:
    """What was published keeps the old revision, what follows has the new one; no fire twice."""
    case = await reach(database, clock, step)
    edited = await update_job(
        case.desk, TENANT, case.job, every(seconds, payload=b"new"), expected_revision=1
    )
    assert (edited.revision, edited.state) == (2, JobState.ACTIVE)
    await case.line.live(45)
    began = Counter(one.run for one in case.line.started)
    assert all(
        times == (2 if step is Step.RETRYING and run == retried(case) else 1)
        for run, times in began.items()
    )
    old = [one for one in case.line.started if one.revision == 1]
    new = {one.fire_at for one in case.line.started if one.revision == 2}
    kept = max((one.fire_at for one in old if one.fire_at is not None), default=case.said_at)
    assert all(
        one.fire_at is not None and one.fire_at <= case.said_at + case.desk.margin for one in old
    )
    assert new == set(fires_between(max(kept, case.said_at), clock.now(), seconds))


def retried(case: Case) -> object:
    return case.line.started[0].run


async def test_resuming_twice_and_pausing_twice_change_nothing(
    database: Database, clock: ManualClock
) -> None:
    case = await reach(database, clock, Step.PLANNED)
    first = await pause_job(case.desk, TENANT, case.job, reason="a")
    clock.advance(1)
    again = await pause_job(case.desk, TENANT, case.job, reason="a")
    assert replace(first, updated_at=again.updated_at) == again
    resumed = await resume_job(case.desk, TENANT, case.job)
    assert (await resume_job(case.desk, TENANT, case.job)).job == replace(
        resumed.job, state_reason={}
    )
    await case.line.live(45)
    assert case.late() == [case.first, case.first + PERIOD * SECOND]


async def everything_accounted_for(case: Case, database: Database) -> None:
    """Every fire since the beginning has a run or a decision, and none has both."""
    rows = await runs_of(database, case.job)
    with_run = [row["fire_at"] for row in rows if row["fire_at"] <= case.clock.now()]
    decided: list[datetime] = []
    for row in await fetch(database, "SELECT fire_at, until_at, fires FROM betimes.decisions"):
        inside = fires_between(row["fire_at"] - SECOND, row["until_at"] or row["fire_at"])
        assert len(inside) == row["fires"]
        decided += inside
    expected = fires_between(case.began, case.clock.now())
    assert sorted(with_run + decided) == expected


def fires_between(after: datetime, until: datetime, seconds: int = PERIOD) -> list[datetime]:
    """Recomputed by hand, one second at a time."""
    found, moment = [], after.replace(microsecond=0)
    while moment < until:
        moment += SECOND
        if int(moment.timestamp()) % seconds == 0 and after < moment <= until:
            found.append(moment)
    return found
