"""Every verb at every step of a fire that came too soon, whatever its policy."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from betimes.domain.ids import JobId
from betimes.domain.states import RunState
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.ops import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.end import RunsOf, cancel_job, delete_job
from betimes.ops.grip import Running
from betimes.ops.manual import skip_next
from betimes.ops.pause import pause_job
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.store.overlap import OVERLAP_CANCELLED
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import TENANT, every, fetch, make_desk, runs_of

PERIOD = 12
Verb = Callable[[Desk, JobId], Awaitable[object]]


async def allow(desk: Desk, job: JobId) -> object:
    return await update_job(desk, TENANT, job, every(PERIOD, schedule={"overlap": "skip"}))


VERBS: dict[str, Verb] = {
    "pause": lambda desk, job: pause_job(desk, TENANT, job),
    "pause all": lambda desk, job: pause_job(desk, TENANT, job, running=Running.CANCEL),
    "cancel": lambda desk, job: cancel_job(desk, TENANT, job, running=Running.CANCEL),
    "delete": lambda desk, job: delete_job(desk, TENANT, job, runs=RunsOf.CANCEL),
    "keep runs": lambda desk, job: delete_job(desk, TENANT, job),
    "skip next": lambda desk, job: skip_next(desk, TENANT, job, count=1),
    "update": allow,
}
ENDS = {"pause", "pause all", "cancel", "delete", "keep runs"}
# When the verb is said, in seconds: the second fire is planned, held for its verdict, or decided.
STEPS = {"planned": PERIOD + 2, "held": 2 * PERIOD - 1, "decided": 2 * PERIOD + 1}


@pytest.mark.parametrize("policy", ["skip", "buffer_all", "replace"])
@pytest.mark.parametrize("step", list(STEPS))
@pytest.mark.parametrize("verb", list(VERBS))
async def test_a_verb_while_a_run_takes_too_long(
    database: Database, clock: ManualClock, verb: str, step: str, policy: str
) -> None:
    desk, began = make_desk(database, clock), clock.now()
    definition = every(PERIOD, schedule={"overlap": policy})
    job = (await create_job(desk, TENANT, NewJob(definition=definition))).id
    line = await Line.make(database, clock)
    await line.coordinate(PERIOD + 1)
    assert await line.lease() == 1
    await line.coordinate((began + timedelta(seconds=STEPS[step]) - clock.now()).total_seconds())
    held = await fetch(database, "SELECT held FROM betimes.parcels WHERE worker_id IS NULL")
    if step == "held":
        assert [row["held"] for row in held] == [2]

    await VERBS[verb](desk, job)
    said_at = clock.now()
    for _ in range(PERIOD + 4):
        await line.coordinate(1)
        await line.lease()
        assert len(line.held) <= 1, "two runs of one job are under way"
    await line.finish()
    await line.live(PERIOD)

    late = [one.fire_at for one in line.started if one.fire_at and one.fire_at > said_at]
    if verb in ENDS:
        assert late == [], "a fire ran that lies after the verb"
        await line.coordinate(2)
        left = await fetch(database, "SELECT held, run_ids FROM betimes.parcels")
        assert left == [], "something was left behind"
    await everything_accounted_for(database, job, began, clock.now() if late else said_at)


async def everything_accounted_for(
    database: Database, job: JobId, began: datetime, until: datetime
) -> None:
    """Every fire that is due has one run, and exactly those that gave way have a record."""
    rows = [row for row in await runs_of(database, job) if row["fire_at"] is not None]
    fires = sorted(row["fire_at"] for row in rows if row["fire_at"] <= until)
    count = int((until - began).total_seconds() // PERIOD)
    assert fires == [began + timedelta(seconds=PERIOD * n) for n in range(1, count + 1)]
    gave_way = sorted(row["fire_at"] for row in rows if row["reason"] == OVERLAP_SKIPPED)
    decided = await fetch(database, "SELECT fire_at FROM betimes.decisions WHERE job_id = $1", job)
    assert sorted(row["fire_at"] for row in decided) == gave_way
    for row in rows:
        named = row["reason"] in {OVERLAP_SKIPPED, OVERLAP_CANCELLED}
        assert (row["blocked_by"] is not None) == named
        assert row["blocked_by"] != row["id"]
        assert row["reason"] != OVERLAP_SKIPPED or row["state"] == RunState.SKIPPED
