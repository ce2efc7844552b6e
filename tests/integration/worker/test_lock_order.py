"""Everybody locks in one order: shard, job, parcels, runs (ARCHITECTURE.md, "The order of locks").

Whoever waits for something holds nothing that comes later in it. So each test lets somebody wait
for a shard or a job, and looks whether parcels are free meanwhile.

Long because every verb is here.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from betimes.coordinator.deadlines import DeadlineKeeper
from betimes.domain.errors import Unavailable
from betimes.domain.ids import Fence, ParcelId, RunId, ShardId, WorkerId, shard_of
from betimes.domain.job import Job
from betimes.domain.leased import Streak
from betimes.domain.states import RunState
from betimes.ops import NewJob, create_job
from betimes.ops.backfill import backfill_job
from betimes.ops.dead_letters import redrive
from betimes.ops.desk import Desk
from betimes.ops.end import RunsOf, cancel_job, delete_job
from betimes.ops.grip import Running, grip
from betimes.ops.manual import run_now, skip_next
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.runs import cancel_run, retry_run
from betimes.ops.update import update_job
from betimes.ops.workflow_advance import advance_workflow
from betimes.ops.workflow_control import cancel_workflow
from betimes.store.control import hold
from betimes.store.database import Database
from betimes.store.ending import DeadLetter, Ending, Follow
from betimes.store.finish import MARGIN, Finishing, Held, Page, write_endings
from betimes.store.pool import Connection, Lane
from betimes.store.remote import renew
from betimes.store.succeed import Succeeding
from betimes.testing import ManualClock
from line_kit import WORKER, Line
from line_kit import Held as Leased
from ops_kit import SECOND, TENANT, every, fetch, make_desk
from workflow_kit import a_flow

HERE = WorkerId(WORKER)
JOBS, SHARDS = "jobs", "shards"
SHARDS_MADE = 4


async def a_leased_run(
    database: Database, clock: ManualClock, **schedule: Any
) -> tuple[Desk, Line, Job, Leased]:
    """A job, one run of which a worker holds."""
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    begins = {"anchor": clock.now().isoformat()} if "mode" in schedule else {}
    job = await create_job(desk, TENANT, NewJob(definition=every(5, schedule=schedule | begins)))
    await line.coordinate(6)
    assert await line.lease() == 1
    return desk, line, job, line.held[0]


def ending(line: Line, job: Job, leased: Leased, *, follows: bool = False) -> Ending:
    now = line.clock.now()
    follow = Follow(RunId(leased.row["id"]), job.id, job.revision, now + 5 * SECOND)
    return Ending(
        run=RunId(leased.row["id"]),
        parcel=ParcelId(leased.parcel),
        fence=Fence(leased.fence),
        tenant=TENANT,
        queue="default",
        priority=5,
        job=job.id,
        handler="noop",
        state=RunState.SUCCEEDED if follows else RunState.DEAD,
        attempt=1,
        started_at=now,
        ended_at=now,
        dead=None if follows else DeadLetter("f", "RETRIES_EXHAUSTED"),
        follow=follow if follows else None,
    )


def held(leased: Leased) -> Held:
    return Held({(ParcelId(leased.parcel), Fence(leased.fence))}, [ParcelId(leased.parcel)])


@asynccontextmanager
async def locked(database: Database, table: str, shard: ShardId) -> Any:
    """Somebody else has locked the rows of a table in one shard."""
    async with database.connection(Lane.API) as connection, connection.transaction():
        await connection.fetch(
            f"SELECT FROM betimes.{table} WHERE shard = $1 FOR NO KEY UPDATE",
            shard,
        )
        yield


async def somebody_waits(database: Database, work: "asyncio.Task[Any]") -> None:
    """Until a session waits for a lock."""
    while not await fetch(
        database,
        "SELECT pid FROM pg_locks WHERE NOT granted"
        " AND (database IS NULL OR database = (SELECT oid FROM pg_database"
        "                                       WHERE datname = current_database()))",
    ):
        assert not work.done(), "it has waited for nothing"


async def is_free(database: Database, table: str, shard: ShardId) -> bool:
    """Whether nobody has locked a row of a table in one shard."""
    try:
        async with database.connection(Lane.ENGINE) as connection, connection.transaction():
            await connection.fetch(
                f"SELECT FROM betimes.{table} WHERE shard = $1 FOR UPDATE NOWAIT",
                shard,
            )
    except Unavailable:
        return False
    return True


async def check_order(
    database: Database,
    shard: ShardId,
    work: Callable[[], Coroutine[Any, Any, Any]],
    *,
    waits_for: str,
    later: tuple[str, ...] = ("parcels",),
) -> None:
    """While it waits for one thing, what comes later in the order is free."""
    async with asyncio.TaskGroup() as group, locked(database, waits_for, shard):
        task = group.create_task(work())
        await somebody_waits(database, task)
        free = {table: await is_free(database, table, shard) for table in later}
    assert all(free.values()), f"it waits for {waits_for} and has locked {free}"


@pytest.mark.parametrize("waits_for", [JOBS, SHARDS])
async def test_a_death_that_pauses_its_job(
    database: Database, clock: ManualClock, waits_for: str
) -> None:
    _, line, job, leased = await a_leased_run(database, clock, pause_after_failures=1)
    finishing = Finishing(database, HERE)
    later = ("parcels",) if waits_for == JOBS else ("jobs", "parcels")

    async def work() -> None:
        await finishing.otherwise(job.shard, held(leased), [ending(line, job, leased)])

    await check_order(database, job.shard, work, waits_for=waits_for, later=later)
    (row,) = await fetch(database, "SELECT state FROM betimes.jobs")
    assert row["state"] == 2


async def test_a_death_and_plain_successes_in_one_flush(
    database: Database, clock: ManualClock
) -> None:
    """The fast endings of a page come after the jobs of its slow ones."""
    desk, line, job, leased = await a_leased_run(database, clock, pause_after_failures=1)
    for _ in range(SHARDS_MADE):
        await create_job(desk, TENANT, NewJob(definition=every(5)))
    await line.coordinate(6)
    await line.lease()
    others = [one for one in line.held if one.row["job_id"] != job.id]
    other = next(one for one in others if one.shard == job.shard)
    now = clock.now()
    streak = Streak(
        parcel=ParcelId(other.parcel),
        fence=Fence(other.fence),
        attempt=1,
        started_at=now,
        finished_at=now,
        runs=[RunId(other.row["id"])],
        results=None,
    )
    fast, slow = held(other), held(leased)

    async def work() -> None:
        page = Page(job.shard, fast, [streak], slow, [ending(line, job, leased)])
        await Finishing(database, HERE).together([page])

    await check_order(database, job.shard, work, waits_for=JOBS)


async def test_the_end_that_a_fixed_delay_follows(database: Database, clock: ManualClock) -> None:
    _, line, job, leased = await a_leased_run(database, clock, mode="fixed_delay")

    async def work() -> None:
        one = ending(line, job, leased, follows=True)
        await Finishing(database, HERE).otherwise(job.shard, held(leased), [one])

    await check_order(database, job.shard, work, waits_for=JOBS)
    (row,) = await fetch(database, "SELECT next_fire_at FROM betimes.jobs")
    assert row["next_fire_at"] is not None


async def test_an_end_by_force_that_a_fixed_delay_follows(
    database: Database, clock: ManualClock
) -> None:
    desk, _, job, leased = await a_leased_run(database, clock, mode="fixed_delay")

    async def work() -> None:
        await cancel_run(desk, TENANT, RunId(leased.row["id"]), force=True)

    await check_order(database, job.shard, work, waits_for=JOBS)
    (row,) = await fetch(database, "SELECT next_fire_at FROM betimes.jobs")
    assert row["next_fire_at"] is not None


@pytest.mark.parametrize("cancelled", [False, True], ids=["expired", "asked to end"])
async def test_a_deadline_of_a_fixed_delay(
    database: Database, clock: ManualClock, cancelled: bool
) -> None:
    _, line, job, leased = await a_leased_run(database, clock, mode="fixed_delay")
    run = leased.row["id"]
    changes = "start_by = $1, cancel_at = $1" if cancelled else "start_by = $1"
    await fetch(database, f"UPDATE betimes.runs SET {changes} WHERE id = $2", clock.now(), run)
    if not cancelled:
        await fetch(
            database,
            "UPDATE betimes.parcels"
            " SET worker_id = NULL, lease_until = NULL, deliveries = 0, slot = false",
        )
    clock.advance(1)
    keeper: DeadlineKeeper = line.coordinator.deadlines
    await check_order(database, job.shard, keeper.tick, waits_for=JOBS)
    (row,) = await fetch(database, "SELECT next_fire_at FROM betimes.jobs")
    assert row["next_fire_at"] is not None


async def test_a_letter_that_is_redriven_while_its_run_dies_again(
    database: Database, clock: ManualClock
) -> None:
    """Whoever ends a run has its parcel and then writes the letter; so does a redrive."""
    desk, line, job, leased = await a_leased_run(database, clock)
    run = RunId(leased.row["id"])
    finishing = Finishing(database, HERE)
    await finishing.otherwise(job.shard, held(leased), [ending(line, job, leased)])
    await retry_run(desk, TENANT, run)
    line.held.clear()
    await line.lease()

    async def work() -> None:
        await redrive(desk, TENANT, [run])

    await check_order(
        database, job.shard, work, waits_for="parcels", later=("dead_letters", "runs")
    )


async def test_a_pause_and_a_death_at_once(database: Database, clock: ManualClock) -> None:
    """Step by step: the verb has the job, the death comes, the verb goes on to the parcels."""
    desk, line, job, leased = await a_leased_run(database, clock, pause_after_failures=1)

    async def die() -> None:
        async with database.connection(Lane.COMPLETE) as connection, connection.transaction():
            one = ending(line, job, leased)
            await write_endings(connection, HERE, job.shard, held(leased), [one], margin=MARGIN)

    async with (
        asyncio.TaskGroup() as group,
        database.connection(Lane.API) as connection,
        connection.transaction(),
    ):
        await grip(desk, connection, TENANT, job.id)
        await somebody_waits(database, group.create_task(die()))
        found = await hold(connection, job.shard, TENANT, [RunId(leased.row["id"])])
        assert len(found) == 1
    paused = await pause_job(desk, TENANT, job.id)
    assert paused.next_fire_at is None


async def two_leased(database: Database, clock: ManualClock) -> tuple[ParcelId, ParcelId]:
    """Two parcels of a shard that a worker holds, the lower id first, which was written last."""
    first, second = (ParcelId(UUID(int=number)) for number in (1, 2))
    for parcel in (second, first):
        await fetch(
            database,
            "INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, visible_at,"
            " rank, fence, deliveries, run_ids, worker_id, lease_until)"
            " VALUES (0, $1, $2, 'default', 5, 0, $3, $3, 1, 1, ARRAY[$1::uuid], $4, $3)",
            parcel,
            TENANT,
            clock.now(),
            HERE,
        )
    return first, second


Locks = Callable[[Connection, ParcelId, ParcelId], Coroutine[Any, Any, Any]]


async def flush(connection: Connection, first: ParcelId, second: ParcelId) -> None:
    held = Held([(second, Fence(1)), (first, Fence(1))])
    await Succeeding(connection, HERE, ShardId(0)).write(held, [])


async def flush_slowly(connection: Connection, first: ParcelId, second: ParcelId) -> None:
    held = Held([(second, Fence(1)), (first, Fence(1))])
    await write_endings(connection, HERE, ShardId(0), held, [], margin=MARGIN)


async def beat(connection: Connection, first: ParcelId, second: ParcelId) -> None:
    leases = {(ShardId(0), parcel, Fence(1)): SECOND for parcel in (second, first)}
    await renew(connection, HERE, leases, now=None)


@pytest.mark.parametrize("locks", [flush, flush_slowly, beat])
async def test_parcels_are_locked_by_id_in_whatever_order_they_are_named(
    database: Database, clock: ManualClock, locks: Locks
) -> None:
    """A flush and a heartbeat of one worker name the same parcels, each in its own order."""
    first, second = await two_leased(database, clock)

    async def work() -> None:
        async with database.connection(Lane.COMPLETE) as connection, connection.transaction():
            await locks(connection, first, second)

    async with (
        asyncio.TaskGroup() as group,
        database.connection(Lane.API) as connection,
        connection.transaction(),
    ):
        await connection.fetch("SELECT FROM betimes.parcels WHERE id = $1 FOR UPDATE", first)
        task = group.create_task(work())
        await somebody_waits(database, task)
        free = await fetch(
            database, "SELECT id FROM betimes.parcels WHERE shard = 0 FOR UPDATE SKIP LOCKED"
        )
    assert [row["id"] for row in free] == [second], "it waits for the first and has the second"


Verb = Callable[[Desk, Job, RunId], Coroutine[Any, Any, object]]


def _backfill(desk: Desk, job: Job, _: RunId) -> Coroutine[Any, Any, object]:
    end = desk.clock.now()
    return backfill_job(desk, TENANT, job.id, begin=end - 60 * SECOND, end=end)


VERBS: dict[str, Verb] = {
    "pause": lambda desk, job, _: pause_job(desk, TENANT, job.id),
    "pause and cancel": lambda desk, job, _: pause_job(
        desk, TENANT, job.id, running=Running.CANCEL
    ),
    "update": lambda desk, job, _: update_job(desk, TENANT, job.id, every(7)),
    "update what waits": lambda desk, job, _: update_job(
        desk, TENANT, job.id, every(7), pending=True
    ),
    "cancel": lambda desk, job, _: cancel_job(desk, TENANT, job.id, running=Running.CANCEL),
    "delete": lambda desk, job, _: delete_job(desk, TENANT, job.id, runs=RunsOf.CANCEL),
    "run now": lambda desk, job, _: run_now(desk, TENANT, job.id),
    "skip": lambda desk, job, _: skip_next(desk, TENANT, job.id),
    "backfill": _backfill,
}
"""Whatever stops, changes or makes runs of a job."""


@pytest.mark.parametrize("waits_for", [SHARDS, JOBS])
@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_that_waits_has_locked_nothing_that_comes_later(
    database: Database, clock: ManualClock, verb: str, waits_for: str
) -> None:
    desk, _, job, leased = await a_leased_run(database, clock)

    async def work() -> None:
        await VERBS[verb](desk, job, RunId(leased.row["id"]))

    later = (JOBS, "parcels", "runs") if waits_for == SHARDS else ("parcels", "runs")
    await check_order(database, job.shard, work, waits_for=waits_for, later=later)


@pytest.mark.parametrize("waits_for", [SHARDS, JOBS])
async def test_resuming_waits_with_nothing_that_comes_later(
    database: Database, clock: ManualClock, waits_for: str
) -> None:
    desk, _, job, _ = await a_leased_run(database, clock)
    await pause_job(desk, TENANT, job.id)
    clock.advance(20)

    async def work() -> None:
        await resume_job(desk, TENANT, job.id)

    later = (JOBS, "parcels", "runs") if waits_for == SHARDS else ("parcels", "runs")
    await check_order(database, job.shard, work, waits_for=waits_for, later=later)


RUN_VERBS: dict[str, Verb] = {
    "cancel": lambda desk, _, run: cancel_run(desk, TENANT, run),
    "cancel with grace": lambda desk, _, run: cancel_run(desk, TENANT, run, grace=SECOND),
    "cancel by force": lambda desk, _, run: cancel_run(desk, TENANT, run, force=True),
}


@pytest.mark.parametrize("verb", RUN_VERBS)
async def test_a_verb_about_a_run_waits_for_its_parcel_without_the_run(
    database: Database, clock: ManualClock, verb: str
) -> None:
    """Whoever ends the run has its parcel, and goes on to the run."""
    desk, _, job, leased = await a_leased_run(database, clock)

    async def work() -> None:
        await RUN_VERBS[verb](desk, job, RunId(leased.row["id"]))

    await check_order(database, job.shard, work, waits_for="parcels", later=("runs",))


@pytest.mark.parametrize("step", ["cancel", "advance"])
async def test_a_step_of_a_workflow_run_waits_for_it_with_nothing_that_comes_later(
    database: Database, clock: ManualClock, step: str
) -> None:
    async with a_flow(database, clock) as flow:
        view = await flow.start({"a": {}, "b": {"needs": ["a"]}})
        await flow.bench.poll_once()
        shard = shard_of(view.run.id)

        async def work() -> None:
            await cancel_workflow(flow.desk, TENANT, view.run.id)

        async def advance() -> None:
            # The next one that is due: whoever holds the row moves it, so nobody waits for it.
            assert not await advance_workflow(flow.desk, view.run.id)

        if step == "advance":
            async with locked(database, "workflow_runs", shard):
                await advance()
                assert await is_free(database, "parcels", shard)
        else:
            later = ("parcels", "runs")
            await check_order(database, shard, work, waits_for="workflow_runs", later=later)
