"""A run that has not ended outlives the day it was first due, and a dead letter keeps its run."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from betimes.config.settings import JanitorSettings
from betimes.domain.dedupe import Dedupe, DedupeForm
from betimes.domain.errors import IllegalTransition
from betimes.domain.ids import RunId, ShardId, shard_of
from betimes.domain.run import NewRun
from betimes.domain.states import RunState, Shown
from betimes.domain.workflow import WorkflowState
from betimes.janitor.partitions import PartitionKeeper
from betimes.ops.catchups import Verdict, carry_out, decide_catchup, list_catchups
from betimes.ops.change_run import Change, change_run
from betimes.ops.dead_letters import discard_one, get_dead_letter, redrive_one
from betimes.ops.dedupe import enqueue_made
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_run
from betimes.ops.explain import explain_run
from betimes.ops.pause import pause_job
from betimes.ops.queues import pause_queue, resume_queue
from betimes.ops.runs import cancel_run, get_run, retry_run
from betimes.ops.workflow_control import approve_node
from betimes.store.database import Database
from betimes.store.dead_letters import LetterState
from betimes.store.partitions import Partitions
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker.context import Context
from betimes.worker.handlers import Handlers
from integration.coordinator.conftest import World
from integration.coordinator.test_catchup import HOUR, catch_up, every_minute
from integration.janitor.test_prune_words import pruner
from line_kit import Line
from ops_kit import SHARDS, TENANT, fetch, make_desk, run_row
from overlap_kit import PERIOD, begin
from worker_kit import a_worker
from workflow_kit import a_flow, over

DAY = timedelta(days=1)
Waits = Callable[[Desk, Line, RunId], Awaitable[None]]


def keeper(
    database: Database, clock: ManualClock, telemetry: Telemetry | None = None
) -> PartitionKeeper:
    return PartitionKeeper(
        partitions=Partitions(database),
        clock=clock,
        telemetry=telemetry or Telemetry(clock=clock),
        settings=JanitorSettings(retain_runs_days=30),
    )


async def housekeeping(database: Database, clock: ManualClock) -> None:
    """What a janitor does in a night: drop what has aged, prune the rest."""
    await keeper(database, clock).tick()
    await pruner(database, clock).tick()
    await keeper(database, clock).tick()


async def days_of(database: Database, parent: str) -> set[str]:
    return {
        str(partition.day)
        for partition in await Partitions(database).present()
        if partition.parent == parent
    }


async def nothing(desk: Desk, line: Line, run: RunId) -> None:
    """Nobody serves its handler."""


async def pause(desk: Desk, line: Line, run: RunId) -> None:
    await pause_queue(desk, TENANT, "default", reason="why not", until=None)


async def resume(desk: Desk, line: Line, run: RunId) -> None:
    await resume_queue(desk, TENANT, "default")


async def move(desk: Desk, line: Line, run: RunId) -> None:
    await change_run(desk, TENANT, run, Change(due_at=desk.clock.now() + 39 * DAY))


async def fail(desk: Desk, line: Line, run: RunId) -> None:
    await line.lease()
    await line.fail()


async def cancel_and_retry(desk: Desk, line: Line, run: RunId) -> None:
    await cancel_run(desk, TENANT, run)
    await retry_run(desk, TENANT, run)


async def cancel(desk: Desk, line: Line, run: RunId) -> None:
    await cancel_run(desk, TENANT, run)


async def retry(desk: Desk, line: Line, run: RunId) -> None:
    await retry_run(desk, TENANT, run)


@pytest.mark.parametrize(
    ("waits", "wakes"),
    [
        (nothing, nothing),
        (pause, resume),
        (move, nothing),
        (fail, nothing),
        (cancel_and_retry, nothing),
    ],
    ids=["no_worker", "paused_queue", "moved", "retry_wait", "revived"],
)
async def test_a_run_that_waits_outlives_its_day(
    database: Database, clock: ManualClock, waits: Waits, wakes: Waits
) -> None:
    desk, line = make_desk(database, clock), await Line.make(database, clock)
    await housekeeping(database, clock)
    first_day = str(clock.now().date())
    ended = await enqueue_run(desk, TENANT, NewRun(handler="h"))
    await line.live(2)
    run = await enqueue_run(desk, TENANT, NewRun(handler="h", payload=b"7", options={"tags": {}}))
    await waits(desk, line, run)

    clock.advance(35 * DAY)
    await housekeeping(database, clock)

    assert first_day not in await days_of(database, "runs"), "the day itself has gone"
    assert await run_row(database, ended) is None, "what has ended goes with its day"
    view = await get_run(desk, TENANT, run)
    assert view.state in {Shown.QUEUED, Shown.SCHEDULED, Shown.RETRY_WAIT}
    assert view.run.payload is not None
    assert (await explain_run(desk, TENANT, run)).reasons
    line.started.clear()
    clock.advance(5 * DAY)
    await wakes(desk, line, run)
    await line.live(10)
    assert [start.run for start in line.started] == [run]
    assert (await get_run(desk, TENANT, run)).state is Shown.SUCCEEDED
    clock.advance(31 * DAY)
    await housekeeping(database, clock)
    assert await run_row(database, run) is None, "and goes when it has ended long ago"


async def test_a_run_nobody_published_outlives_its_day(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    await housekeeping(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="h", delay=timedelta(hours=1)))
    clock.advance(35 * DAY)
    await housekeeping(database, clock)
    assert (await get_run(desk, TENANT, run)).run.state is RunState.SCHEDULED
    await cancel_run(desk, TENANT, run)
    assert (await get_run(desk, TENANT, run)).state is Shown.CANCELLED


async def test_a_run_behind_a_concurrency_key_outlives_its_day(
    database: Database, clock: ManualClock
) -> None:
    desk, line = make_desk(database, clock), await Line.make(database, clock)
    await housekeeping(database, clock)
    options = {"concurrency": {"key": "k", "limit": 1}}
    first = await enqueue_run(desk, TENANT, NewRun(handler="h", options=options))
    second = await enqueue_run(desk, TENANT, NewRun(handler="h", options=options))
    assert await line.lease() == 1
    clock.advance(35 * DAY)
    await housekeeping(database, clock)
    await line.finish()
    await line.live(3)
    assert {start.run for start in line.started} == {first, second}


async def test_a_run_held_back_by_overlap_outlives_its_day(
    database: Database, clock: ManualClock
) -> None:
    """Its job is paused, so that nothing fires meanwhile, and the run before it takes weeks."""
    await housekeeping(database, clock)
    case = await begin(database, clock, "buffer_all")
    await case.until(2 * PERIOD + 1)
    waiting = await case.run_at(2 * PERIOD)
    await pause_job(case.desk, TENANT, case.job.id)
    (row,) = await fetch(database, "SELECT state FROM betimes.runs WHERE id = $1", waiting["id"])
    assert row["state"] < RunState.SUCCEEDED, "a pause ends nothing that waits already"
    clock.advance(35 * DAY)
    await housekeeping(database, clock)
    case.line.started.clear()
    await case.line.finish()
    await case.line.live(5)
    assert [start.run for start in case.line.started] == [waiting["id"]]
    view = await get_run(case.desk, TENANT, waiting["id"])
    assert view.state is Shown.SUCCEEDED


async def test_a_debounced_run_that_nobody_does_outlives_its_day(
    database: Database, clock: ManualClock
) -> None:
    """With its key: what comes while it waits replaces it, and is not a second one."""
    desk, line = make_desk(database, clock), await Line.make(database, clock)
    await housekeeping(database, clock)
    key = Dedupe(key="k", window=timedelta(minutes=1), form=DedupeForm.DEBOUNCE)
    (made,) = await enqueue_made(desk, TENANT, [NewRun(handler="h", payload=b"1", dedupe=key)])
    clock.advance(35 * DAY)
    await housekeeping(database, clock)
    assert (await get_run(desk, TENANT, made.id)).run.payload == b"1"
    await line.live(5)
    assert [start.run for start in line.started] == [made.id]
    assert (await get_run(desk, TENANT, made.id)).state is Shown.SUCCEEDED


async def test_a_snoozed_run_outlives_its_day(database: Database, clock: ManualClock) -> None:
    """It asked for weeks of rest, and has them."""
    rest = 40 * DAY
    handlers = Handlers()

    async def sleepy(context: Context) -> object:
        return None if context.fence > 1 else context.snooze(rest)

    handlers.add("sleepy", sleepy)
    desk = make_desk(database, clock)
    await housekeeping(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="sleepy", payload=b"7"))
    clock.advance(1)
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
        assert (await get_run(desk, TENANT, run)).state is Shown.RETRY_WAIT
        clock.advance(35 * DAY)
        await housekeeping(database, clock)
        await bench.poll_once()
        view = await get_run(desk, TENANT, run)
        assert (view.state, view.run.payload) == (Shown.RETRY_WAIT, b"7")
        clock.advance(6 * DAY)
        await housekeeping(database, clock)
        await bench.poll_once()
    assert (await get_run(desk, TENANT, run)).state is Shown.SUCCEEDED


async def test_late_runs_wait_for_approval_longer_than_runs_are_kept(
    database: Database, clock: ManualClock
) -> None:
    world = World(database, clock, Telemetry(clock=clock))
    await housekeeping(database, clock)
    job = await world.insert_job(every_minute())
    desk = make_desk(database, clock)
    clock.advance(HOUR)
    await catch_up(world, catchup_unapproved=20)
    held = [
        run
        for row in await fetch(database, "SELECT run_ids FROM betimes.parcels WHERE held = 3")
        for run in row["run_ids"]
    ]
    assert len(held) == 39
    clock.advance(35 * DAY)
    await housekeeping(database, clock)
    (seen,) = await list_catchups(desk, TENANT, before=None, most=10)
    await decide_catchup(desk, TENANT, seen.catchup.id, Verdict.APPROVE)
    for number in range(SHARDS):
        await carry_out(desk, ShardId(number))
    rows = await fetch(database, "SELECT id FROM betimes.runs WHERE job_id = $1 AND state < 4", job)
    assert {row["id"] for row in rows} >= set(held)


async def test_a_workflow_that_waits_outlives_the_runs_of_its_first_nodes(
    database: Database, clock: ManualClock
) -> None:
    """Behind a gate, and with a node in a queue that is paused."""
    await housekeeping(database, clock)
    nodes: dict[str, Any] = {
        "first": {},
        "slow": {"needs": ["first"], "queue": "slow"},
        "gated": {"needs": ["first"], "gate": {"type": "approval"}},
        "last": {"needs": ["slow", "gated"]},
    }
    async with a_flow(database, clock) as flow:
        await pause_queue(flow.desk, TENANT, "slow", reason="", until=None)
        view = await flow.start(nodes, given={"order": 7})
        await flow.live()
        clock.advance(35 * DAY)
        await housekeeping(database, clock)
        rows = await fetch(database, "SELECT node FROM betimes.runs ORDER BY node")
        assert [row["node"] for row in rows] == ["slow"], "what has ended has gone"
        clock.advance(5 * DAY)
        await resume_queue(flow.desk, TENANT, "slow")
        await approve_node(flow.desk, TENANT, view.run.id, "gated")
        assert over(await flow.live(20)) is WorkflowState.SUCCEEDED


async def test_what_a_run_has_said_is_kept_as_long_as_the_run(
    database: Database, clock: ManualClock
) -> None:
    desk, line = make_desk(database, clock), await Line.make(database, clock)
    await housekeeping(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="h"))
    await fail(desk, line, run)
    await write_about(database, run, clock)
    clock.advance(35 * DAY)
    await housekeeping(database, clock)
    assert await told_of(database, run) == [1, 1, 1]
    await line.live(10)
    clock.advance(35 * DAY)
    await housekeeping(database, clock)
    assert await told_of(database, run) == [0, 0, 0]


async def write_about(database: Database, run: RunId, clock: ManualClock) -> None:
    for statement in (
        (
            "INSERT INTO betimes.attempts (shard, run_id, number, tenant_id, outcome, fence,"
            " finished_at) VALUES ($1, $2, 1, $3, 2, 1, $4)"
        ),
        (
            "INSERT INTO betimes.run_notes (shard, run_id, tenant_id, fence, checkpoint,"
            " updated_at) VALUES ($1, $2, $3, 1, 'x', $4)"
        ),
        (
            "INSERT INTO betimes.run_logs (shard, run_id, tenant_id, at, seq, attempt, level,"
            " message) VALUES ($1, $2, $3, $4, 1, 1, 'info', 'x')"
        ),
    ):
        await fetch(database, statement, shard_of(run), run, TENANT, clock.now())


async def told_of(database: Database, run: RunId) -> list[int]:
    counts = []
    for table in ("attempts", "run_notes", "run_logs"):
        (row,) = await fetch(
            database, f"SELECT count(*) FROM betimes.{table} WHERE run_id = $1", run
        )
        counts.append(row["count"])
    return counts


async def a_dead_letter(desk: Desk, database: Database, clock: ManualClock) -> RunId:
    run = await enqueue_run(desk, TENANT, NewRun(handler="h", payload=b'{"amount": 7}'))
    await fetch(database, "DELETE FROM betimes.parcels WHERE run_ids = ARRAY[$1::uuid]", run)
    await fetch(
        database,
        "UPDATE betimes.runs SET state = 5, finished_at = $2 WHERE id = $1",
        run,
        clock.now(),
    )
    await fetch(
        database,
        "INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, dead_at, attempts, queue,"
        " fingerprint, reason) VALUES ($1, $2, $3, $4, 1, 'default', 'f', 'r')",
        shard_of(run),
        run,
        TENANT,
        clock.now(),
    )
    return run


async def test_a_dead_letter_is_redriven_when_runs_of_its_day_are_gone(
    database: Database, clock: ManualClock
) -> None:
    desk, line = make_desk(database, clock), await Line.make(database, clock)
    await housekeeping(database, clock)
    run = await a_dead_letter(desk, database, clock)
    other = await a_dead_letter(desk, database, clock)
    await write_about(database, run, clock)
    before = await run_row(database, run)
    clock.advance(85 * DAY)
    await housekeeping(database, clock)
    assert str((clock.now() - 85 * DAY).date()) not in await days_of(database, "runs")
    assert await run_row(database, run) == before, "with its payload"
    _, attempts = await get_dead_letter(desk, TENANT, run)
    assert len(attempts) == 1
    assert await redrive_one(desk, TENANT, run) == run
    await line.live(3)
    assert [start.run for start in line.started] == [run]
    clock.advance(6 * DAY)
    await housekeeping(database, clock)
    await housekeeping(database, clock)
    assert await run_row(database, other) is None, "a run goes with its dead letter"


async def test_a_dead_letter_without_its_run_says_so_and_stays_open(
    database: Database, clock: ManualClock
) -> None:
    """Older versions dropped runs before their dead letters."""
    desk = make_desk(database, clock)
    run = await a_dead_letter(desk, database, clock)
    await fetch(database, "DELETE FROM betimes.runs WHERE id = $1", run)
    with pytest.raises(IllegalTransition, match="whose run was deleted"):
        await redrive_one(desk, TENANT, run)
    letter, _ = await get_dead_letter(desk, TENANT, run)
    assert letter.state is LetterState.OPEN
    assert await discard_one(desk, TENANT, run) == run
