"""Single runs: their public state, cancelling, retrying, replaying; and jobs by hand."""

import pytest

from betimes.domain.errors import IllegalTransition, NotFound
from betimes.domain.ids import Fence, ParcelId, RunId, WorkerId, shard_of
from betimes.domain.job import Job
from betimes.domain.run import NewRun
from betimes.domain.states import JobState, RunState, Shown, Trigger
from betimes.ops import NewJob, create_job, enqueue_run, enqueue_runs
from betimes.ops.end import cancel_job
from betimes.ops.manual import Wish, run_now, skip_next
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.runs import cancel_run, get_run, replay_run, retry_run
from betimes.store.database import Database
from betimes.store.ending import Ending, Follow
from betimes.store.finish import Finishing
from betimes.store.finish import Held as Ours
from betimes.testing import ManualClock
from line_kit import WORKER, Held, Line
from ops_kit import (
    MINUTE,
    OTHER,
    SECOND,
    TENANT,
    add_tenant,
    every,
    fetch,
    make_desk,
    parcelled,
    run_row,
    runs_of,
)


async def test_the_public_state_follows_a_run_through_its_life(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="a", delay=15 * SECOND))

    async def state() -> Shown:
        return (await get_run(desk, TENANT, run)).state

    assert await state() is Shown.SCHEDULED
    await line.coordinate(14)
    assert await parcelled(database) == [run]
    assert await state() is Shown.SCHEDULED
    await line.coordinate(1)
    assert await state() is Shown.QUEUED
    await line.lease()
    assert await state() is Shown.RUNNING
    await line.fail()
    assert await state() is Shown.RETRY_WAIT
    await line.live(6)
    assert await state() is Shown.SUCCEEDED


async def test_a_foreign_run_is_not_found(database: Database, clock: ManualClock) -> None:
    await add_tenant(database)
    desk = make_desk(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="a"))
    for verb in (get_run, cancel_run, retry_run, replay_run):
        with pytest.raises(NotFound, match="there is no run run_"):
            await verb(desk, OTHER, run)
    row = await run_row(database, run)
    assert row is not None
    assert row["state"] == RunState.QUEUED


async def test_a_waiting_run_is_cancelled_at_once_and_never_starts(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    keep, drop = await enqueue_runs(desk, TENANT, [NewRun(handler="a")] * 2)
    assert (await cancel_run(desk, TENANT, drop)).state is Shown.CANCELLED
    assert (await cancel_run(desk, TENANT, drop)).state is Shown.CANCELLED
    await line.live(1)
    assert [one.run for one in line.started] == [keep]
    with pytest.raises(IllegalTransition, match="a run that is succeeded cannot become cancelled"):
        await cancel_run(desk, TENANT, keep)


async def test_a_running_run_is_told(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="a"))
    await line.lease()
    view = await cancel_run(desk, TENANT, run)
    assert (view.state, view.run.cancel_at) == (Shown.RUNNING, clock.now())
    with pytest.raises(IllegalTransition, match="cancel it first"):
        await retry_run(desk, TENANT, run)
    await line.finish()
    assert line.told == [run]
    assert (await get_run(desk, TENANT, run)).state is Shown.CANCELLED


async def test_a_cancelled_run_is_retried_out_of_the_parcel_that_still_lists_it(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    run, other = await enqueue_runs(desk, TENANT, [NewRun(handler="a")] * 2)
    await cancel_run(desk, TENANT, run)
    view = await retry_run(desk, TENANT, run)
    assert view.state is Shown.QUEUED
    assert sorted(await parcelled(database)) == sorted([run, other])
    await line.live(1)
    assert sorted(one.run for one in line.started) == sorted([run, other])


async def test_the_fence_of_a_retried_run_goes_on_rising(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="a"))
    await line.lease()
    await line.fail()
    view = await retry_run(desk, TENANT, run)
    assert view.holding is not None
    assert (view.holding.fence, view.holding.visible_at) == (1, clock.now())
    assert view.run.attempt == 1
    await line.lease()
    assert line.held[0].fence == 2


async def test_a_run_that_a_publisher_may_have_read_is_not_retried_yet(
    database: Database, clock: ManualClock
) -> None:
    """Else the publisher's parcel and ours would both hold it."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="a", delay=12 * SECOND))
    await line.coordinate(8)
    await cancel_run(desk, TENANT, run)
    with pytest.raises(IllegalTransition, match="in a few seconds"):
        await retry_run(desk, TENANT, run)
    await line.coordinate(5)
    await retry_run(desk, TENANT, run)
    await line.live(3)
    assert [one.run for one in line.started] == [run]


async def test_a_replay_is_a_run_of_its_own(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="a", payload=b"1", options={"x": 1}))
    clock.advance(5)
    again = await replay_run(desk, TENANT, run, payload=b"2")
    view = await get_run(desk, TENANT, again)
    assert again != run
    assert shard_of(again) == shard_of(run)
    assert (view.run.payload, view.run.options) == (b"2", {"x": 1})
    assert view.state is Shown.QUEUED


async def test_run_now_is_a_run_beside_the_schedule(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    await pause_job(desk, TENANT, job.id)
    first = await run_now(desk, TENANT, job.id, Wish(payload=b"x", priority=9))
    second = await run_now(desk, TENANT, job.id, Wish(at=clock.now() + MINUTE))
    rows = {row["id"]: row for row in await runs_of(database, job.id)}
    assert (rows[first]["trigger"], rows[first]["priority"]) == (Trigger.MANUAL, 9)
    assert (rows[first]["state"], rows[second]["state"]) == (RunState.QUEUED, RunState.SCHEDULED)
    assert await parcelled(database) == [first]
    await cancel_job(desk, TENANT, job.id)
    with pytest.raises(IllegalTransition, match="cancelled cannot run any more"):
        await run_now(desk, TENANT, job.id)
    rows = {row["id"]: row for row in await runs_of(database, job.id)}
    assert {row["state"] for row in rows.values()} == {RunState.CANCELLED}


@pytest.mark.parametrize("seconds_before", [0.0, 5.0, 17.0])
async def test_skipped_fires_stay_skipped_whatever_happens_to_the_job(
    database: Database, clock: ManualClock, seconds_before: float
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    began = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    await line.coordinate(seconds_before)
    assert await skip_next(desk, TENANT, job.id) == [began + 20 * SECOND]
    assert await skip_next(desk, TENANT, job.id) == [began + 40 * SECOND]
    await pause_job(desk, TENANT, job.id)
    await resume_job(desk, TENANT, job.id)
    await line.live(65)
    assert (
        await line.executed(job.id)
        == [began + 60 * SECOND, began + 80 * SECOND][: len(line.started)]
    )
    rows = await runs_of(database, job.id)
    skipped = [row for row in rows if row["state"] == RunState.SKIPPED]
    assert [row["reason"] for row in skipped] == ["SKIPPED_BY_USER"] * 2
    (stored,) = await fetch(database, "SELECT state FROM betimes.jobs")
    assert stored["state"] == JobState.ACTIVE


async def test_no_such_job(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="a"))
    with pytest.raises(NotFound):
        await run_now(desk, TENANT, run)  # type: ignore[arg-type]
    assert isinstance(RunId(run), type(run))


@pytest.mark.parametrize("held", [False, True], ids=["waits", "was asked to end, and lost"])
async def test_a_fixed_delay_goes_on_after_a_run_that_was_cancelled(
    database: Database, clock: ManualClock, held: bool
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    begins = {"mode": "fixed_delay", "anchor": clock.now().isoformat()}
    job = await create_job(desk, TENANT, NewJob(definition=every(5, schedule=begins)))
    await line.coordinate(6)
    ((run,),) = await fetch(database, "SELECT id FROM betimes.runs WHERE job_id = $1", job.id)
    if held:
        await line.lease()
        await cancel_run(desk, TENANT, RunId(run), grace=SECOND)
        await fetch(
            database,
            "UPDATE betimes.parcels SET worker_id = NULL, lease_until = NULL, slot = false",
        )
        clock.advance(2)
        await line.coordinator.deadlines.tick()
    else:
        await cancel_run(desk, TENANT, RunId(run))
    await line.coordinate(12)
    rows = await fetch(
        database, "SELECT state FROM betimes.runs WHERE job_id = $1 ORDER BY id", job.id
    )
    assert rows[0]["state"] == RunState.CANCELLED
    assert len(rows) == 2, "the chain has ended"


async def test_a_fixed_delay_stays_one_chain_after_a_run_that_was_brought_back(
    database: Database, clock: ManualClock
) -> None:
    """The end of an old run says nothing about the next fire while a later one is not over."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    begins = {"mode": "fixed_delay", "anchor": clock.now().isoformat()}
    job = await create_job(desk, TENANT, NewJob(definition=every(5, schedule=begins)))
    await line.coordinate(6)
    ((run,),) = await fetch(database, "SELECT id FROM betimes.runs WHERE job_id = $1", job.id)
    await cancel_run(desk, TENANT, RunId(run))
    await line.coordinate(12)
    await retry_run(desk, TENANT, RunId(run))
    waiting = "SELECT id FROM betimes.runs WHERE job_id = $1 AND state < 4"
    assert len(await fetch(database, waiting, job.id)) == 2
    for _ in range(8):
        await line.coordinate(3)
        await line.lease()
        for one in list(line.held):
            line.held.remove(one)
            await end_with_follow(line, job, one)
    rows = await fetch(database, waiting, job.id)
    (cursor,) = await fetch(database, "SELECT next_fire_at FROM betimes.jobs WHERE id = $1", job.id)
    assert len(rows) + (cursor["next_fire_at"] is not None) == 1, "there are two chains"


async def end_with_follow(line: Line, job: Job, one: Held) -> None:
    """A success as a worker of ours reports it."""
    now, run, parcel = line.clock.now(), RunId(one.row["id"]), ParcelId(one.parcel)
    ending = Ending(
        run=run,
        parcel=parcel,
        fence=Fence(one.fence),
        tenant=TENANT,
        queue="default",
        priority=5,
        job=job.id,
        handler="noop",
        state=RunState.SUCCEEDED,
        attempt=1,
        started_at=now,
        ended_at=now,
        follow=Follow(run, job.id, job.revision, now + 5 * SECOND),
    )
    held = Ours({(parcel, Fence(one.fence))}, [parcel])
    await Finishing(line.database, WorkerId(WORKER)).otherwise(one.shard, held, [ending])
