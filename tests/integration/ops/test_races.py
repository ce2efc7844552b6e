"""Verbs against a planner, a publisher and other verbs at the very same moment."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from unittest.mock import patch

import pytest

from betimes.domain.errors import VersionMismatch
from betimes.domain.states import JobState
from betimes.ops import NewJob, create_job
from betimes.ops.end import cancel_job
from betimes.ops.pause import pause_job
from betimes.ops.update import update_job
from betimes.store import jobs, publish
from betimes.store.database import Database
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import TENANT, every, fetch, make_desk, runs_of
from store_kit import eventually, owner


class Pause:
    """Stops a coroutine function at its call until it is let go."""

    def __init__(self, function: Callable[..., Awaitable[Any]]) -> None:
        self._function = function
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, *given: Any, **named: Any) -> Any:
        self.reached.set()
        await self.go.wait()
        return await self._function(*given, **named)


async def somebody_waits_for_a_lock(dsn: str) -> bool:
    async with owner(dsn) as connection:
        return bool(
            await connection.fetch(
                "SELECT FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
        )


@pytest.mark.parametrize("verb", [pause_job, cancel_job])
async def test_a_planner_that_meets_a_verb_plans_nothing(
    dsn: str, database: Database, clock: ManualClock, verb: Callable[..., Coroutine[Any, Any, Any]]
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    line = await Line.make(database, clock)
    stopped = Pause(jobs.steer_job)
    name = "betimes.ops.pause.steer_job" if verb is pause_job else "betimes.ops.end.steer_job"
    async with asyncio.TaskGroup() as tasks:
        with patch(name, stopped):
            saying = tasks.create_task(verb(desk, TENANT, job.id))
            await stopped.reached.wait()
            planning = tasks.create_task(line.coordinate(1))
            await eventually(lambda: somebody_waits_for_a_lock(dsn), what="the planner")
            stopped.go.set()
            await saying
            await planning
    assert await runs_of(database, job.id) == []


async def test_a_verb_that_meets_a_planner_sees_what_it_planned(
    dsn: str, database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    line = await Line.make(database, clock)
    inserting = Pause(publish.place_runs)
    async with asyncio.TaskGroup() as tasks:
        with patch("betimes.store.plan.place_runs", inserting):
            planning = tasks.create_task(line.coordinate(1))
            await inserting.reached.wait()
            saying = tasks.create_task(pause_job(desk, TENANT, job.id))
            await eventually(lambda: somebody_waits_for_a_lock(dsn), what="the verb")
            inserting.go.set()
            await planning
            paused = await saying
    assert (paused.state, paused.fires) == (JobState.PAUSED, 0)
    assert await runs_of(database, job.id) == []


async def test_of_writers_with_the_same_revision_exactly_one_wins(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    answers = await asyncio.gather(
        *(
            update_job(desk, TENANT, job.id, every(60, payload=b"%d" % n), expected_revision=1)
            for n in range(5)
        ),
        return_exceptions=True,
    )
    lost = [answer for answer in answers if isinstance(answer, VersionMismatch)]
    assert len(lost) == 4
    assert "expected revision 1 of the job, got 2" in lost[0].sentence
    rows = await fetch(database, "SELECT revision FROM betimes.jobs")
    assert [row["revision"] for row in rows] == [2]
    kept = await fetch(database, "SELECT revision FROM betimes.job_revisions")
    assert [row["revision"] for row in kept] == [1]
