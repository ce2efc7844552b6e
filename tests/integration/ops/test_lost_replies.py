"""Every verb may be repeated after a commit whose reply was lost: the same effect, once."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from betimes.domain.errors import Refused
from betimes.domain.ids import JobId
from betimes.domain.job import Definition
from betimes.domain.states import JobState
from betimes.ops import NewJob, create_job, create_jobs
from betimes.ops.backfill import backfill_job
from betimes.ops.create import Creation
from betimes.ops.desk import Desk
from betimes.ops.end import cancel_job, delete_job
from betimes.ops.manual import run_now, skip_next
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.read import get_job
from betimes.ops.runs import cancel_run, replay_run, retry_run
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.store.pool import Connection
from betimes.testing import ManualClock
from ops_kit import MINUTE, TENANT, every, fetch, lost_reply, make_desk, parcelled, runs_of

Verb = Callable[[Desk, JobId], Awaitable[object]]


async def _update(desk: Desk, job: JobId) -> object:
    return await update_job(desk, TENANT, job, every(30, payload=b"2"))


async def _backfill(desk: Desk, job: JobId) -> object:
    now = desk.clock.now()
    return await backfill_job(desk, TENANT, job, begin=now - 2 * MINUTE, end=now)


async def _resume(desk: Desk, job: JobId) -> object:
    await pause_job(desk, TENANT, job)
    return await resume_job(desk, TENANT, job)


VERBS: dict[str, tuple[Verb, int]] = {
    "pause": (lambda desk, job: pause_job(desk, TENANT, job), 0),
    "resume": (_resume, 0),
    "cancel": (lambda desk, job: cancel_job(desk, TENANT, job), 0),
    "delete": (lambda desk, job: delete_job(desk, TENANT, job), 0),
    "update": (_update, 0),
    "run now": (lambda desk, job: run_now(desk, TENANT, job), 1),
    "skip next": (lambda desk, job: skip_next(desk, TENANT, job), 1),
    "backfill": (_backfill, 3),
}


@pytest.mark.parametrize("name", VERBS)
async def test_a_verb_on_a_job(database: Database, clock: ManualClock, name: str) -> None:
    desk = make_desk(database, clock)
    verb, runs = VERBS[name]
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    with lost_reply(clock):
        await verb(desk, job.id)
    assert len(await runs_of(database, job.id)) == runs
    held = await parcelled(database)
    assert len(held) == len(set(held)) == (0 if name == "skip next" else runs)
    rows = await fetch(database, "SELECT state, revision FROM betimes.jobs")
    revision = {"update": 2}.get(name, 1)
    assert [row["revision"] for row in rows] == ([] if name == "delete" else [revision])


async def test_creating_jobs(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    new = [NewJob(definition=every(4), name=name) for name in ("a", "b")]
    with lost_reply(clock):
        jobs = await create_jobs(desk, TENANT, [*new, NewJob(definition=every(4))])
    assert {job.state for job in jobs} == {JobState.ACTIVE}
    rows = await fetch(database, "SELECT id FROM betimes.jobs")
    assert sorted(row["id"] for row in rows) == sorted(job.id for job in jobs)
    assert [await get_job(desk, TENANT, job.id) for job in jobs] == jobs
    held = await parcelled(database)
    assert len(held) == len(set(held)) == 6


def in_half_a_minute(now: datetime, _: object) -> dict[str, Any]:
    return {"type": "once", "at": (now + MINUTE / 2).isoformat()}


async def test_a_delay_that_is_written_already_stays_as_it_is(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    past = in_half_a_minute(clock.now() - 2 * MINUTE, None)
    delayed = Definition(schedule=past, handler="h", recount=in_half_a_minute)
    due = clock.now() + MINUTE / 2
    with lost_reply(clock):
        job = await create_job(desk, TENANT, NewJob(definition=delayed))
    assert (await get_job(desk, TENANT, job.id)).next_fire_at == due
    clock.advance(10)
    due = clock.now() + MINUTE / 2
    with lost_reply(clock):
        edited = await update_job(desk, TENANT, job.id, delayed)
    assert (edited.revision, edited.next_fire_at) == (2, due)


async def test_a_delay_that_is_not_written_yet_begins_again(
    database: Database, clock: ManualClock
) -> None:
    """The clock was set forward between the first try and the next."""
    desk = make_desk(database, clock)
    schedule = in_half_a_minute(clock.now(), None)
    delayed = Definition(schedule=schedule, handler="h", recount=in_half_a_minute)
    creation = Creation(desk, TENANT, [NewJob(definition=delayed)], shard=None)

    async def fail(connection: Connection) -> None:
        await creation.place(connection)
        raise Refused("nothing is written")

    with pytest.raises(Refused, match="nothing is written"):
        await desk.transact(fail, tenant=TENANT)
    clock.advance(2 * MINUTE)
    await desk.transact(creation.place, tenant=TENANT)
    (job,) = creation.jobs
    stored = await get_job(desk, TENANT, job.id)
    assert stored.next_fire_at == clock.now() + MINUTE / 2
    assert stored.definition.schedule["at"] == stored.next_fire_at.isoformat()


@pytest.mark.parametrize("verb", [retry_run, replay_run])
async def test_a_verb_on_a_run(
    database: Database, clock: ManualClock, verb: Callable[..., Awaitable[object]]
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    run = await run_now(desk, TENANT, job.id)
    with lost_reply(clock):
        await cancel_run(desk, TENANT, run)
    with lost_reply(clock):
        await verb(desk, TENANT, run)
    held = await parcelled(database)
    assert len(held) == len(set(held)) == len(await runs_of(database, job.id))
