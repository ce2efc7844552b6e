"""The loop that moves workflow runs on, and what becomes of what is over."""

import asyncio
from datetime import timedelta

from betimes.coordinator.advancer import PATIENCE, SWEEP_EVERY_SECONDS, Advancer
from betimes.domain.workflow import WorkflowState
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.erase import erase_some
from betimes.store.pool import Connection
from betimes.store.prune import Pruning
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from ops_kit import TENANT, fetch, make_desk
from store_kit import eventually, opened
from workflow_kit import a_flow, over

TABLES = ("workflow_runs", "workflow_nodes", "workflow_items", "workflow_turns")


async def counted(database: Database) -> list[int]:
    """How many rows there are."""
    return [len(await fetch(database, f"SELECT FROM betimes.{table}")) for table in TABLES]


async def test_one_that_cannot_go_on_stops_nobody(database: Database, clock: ManualClock) -> None:
    """It is told, put off and tried again; the others are moved."""
    async with a_flow(database, clock) as flow:
        recorder = Recorder()
        telemetry = Telemetry(clock=clock, handlers=[recorder])
        advancer = Advancer(
            desk=flow.desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1)
        )
        bad = (await flow.start({"a": {}})).run
        await fetch(database, "UPDATE betimes.workflow_runs SET definition = 'nonsense'")
        await flow.start({"a": {}})
        await flow.bench.poll_once()

        assert await advancer.tick() == 1
        assert over(await flow.view()) is WorkflowState.SUCCEEDED
        (event,) = recorder.named("advancer.failed")
        assert str(event.metadata["workflow_run"]).startswith("wfr_")
        (turn,) = await fetch(database, "SELECT * FROM betimes.workflow_turns")
        assert (turn["workflow_run_id"], turn["due_at"]) == (bad.id, clock.now() + PATIENCE)
        assert await advancer.tick() == 0
        assert len(recorder.named("advancer.failed")) == 1


async def test_lost_word_is_found_and_counted(database: Database, clock: ManualClock) -> None:
    """Which must never be; a look once a minute costs little."""
    async with a_flow(database, clock) as flow:
        telemetry = Telemetry(clock=clock)
        advancer = Advancer(
            desk=flow.desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1)
        )
        await flow.start({"a": {}, "each": {"map": {"over": [1, 2]}}})
        await flow.bench.poll_once()
        await fetch(database, "DELETE FROM betimes.workflow_turns")
        assert await advancer.tick() == 0
        clock.advance(SWEEP_EVERY_SECONDS)
        assert await advancer.tick() == 1
        assert telemetry.reading("betimes_workflow_turns_lost_total") == 3
        assert over(await flow.view()) is WorkflowState.SUCCEEDED


async def test_it_moves_by_itself(dsn: str) -> None:
    """With every beat, until it is asked to stop."""
    clock, stopping = RealClock(), Stopping()
    async with opened(dsn, clock=clock) as store, asyncio.TaskGroup() as group:
        desk = make_desk(store, clock)
        telemetry = Telemetry(clock=clock)
        advancer = Advancer(
            desk=desk, clock=clock, telemetry=telemetry, every=timedelta(milliseconds=10)
        )
        async with a_flow(store, clock, desk=desk) as flow:  # type: ignore[arg-type]  # any clock
            await flow.start({"a": {"gate": {"type": "timer", "delay": "PT0.05S"}}})
            group.create_task(advancer.run(stopping))

            async def started() -> bool:
                return (await flow.states())["a"] == "RUNNING"

            await eventually(started, what="the timer to open its gate")
            stopping.request("the test is over")


async def test_what_is_long_over_is_forgotten(database: Database, clock: ManualClock) -> None:
    """With everything of it; what goes on is kept, however old it is."""
    async with a_flow(database, clock) as flow:
        view = await flow.start({"a": {}, "each": {"map": {"over": [1, 2]}}})
        await flow.live()
        kept = await flow.start({"wait": {"gate": {"type": "approval", "timeout": "99d"}}})
        assert await counted(database) == [2, 3, 2, 1]
        pruning = Pruning(database)
        now = clock.now()
        assert await pruning.workflow_runs(view.run.shard, before=now) == 0
        later = now + timedelta(days=1)
        assert await pruning.workflow_runs(view.run.shard, before=later) == 1
        assert await pruning.workflow_runs(kept.run.shard, before=later) == 0
        assert await counted(database) == [1, 1, 0, 1]


async def test_nothing_is_left_of_a_tenant(database: Database, clock: ManualClock) -> None:
    """That is erased."""
    async with a_flow(database, clock) as flow:
        await flow.start({"a": {}, "each": {"map": {"over": [1, 2]}}}, timeout="1h")

        async def erase(connection: Connection) -> int:
            return await erase_some(connection, TENANT, "workflows")

        assert await flow.desk.transact(erase, tenant=None) == 1
        assert await flow.desk.transact(erase, tenant=None) == 0
        assert await counted(database) == [0, 0, 0, 0]
        assert await fetch(database, "SELECT FROM betimes.workflows") == []
