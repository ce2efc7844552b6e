"""The loop that moves workflow runs on, and what becomes of what is over."""

import asyncio
from datetime import timedelta
from unittest.mock import patch

import pytest

from betimes.coordinator.advancer import PAUSE, SWEEP_EVERY_SECONDS, Advancer
from betimes.domain.errors import OutOfTime, Unavailable
from betimes.domain.workflow import WorkflowState
from betimes.ops.workflow_advance import postpone_workflow
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.erase import erase_some
from betimes.store.pool import Connection
from betimes.store.prune import Pruning
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from ops_kit import TENANT, fetch, make_desk
from store_kit import eventually, opened, owner
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
        assert (turn["workflow_run_id"], turn["due_at"]) == (bad.id, clock.now() + PAUSE)
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


async def test_a_node_whose_run_is_gone_fails_and_is_counted_once(
    database: Database, clock: ManualClock
) -> None:
    """Nobody can say how it ended; waiting for its word would be waiting for ever."""
    async with a_flow(database, clock) as flow:
        telemetry = Telemetry(clock=clock)
        advancer = Advancer(
            desk=flow.desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1)
        )
        await flow.start(
            {"a": {}, "each": {"map": {"over": [1, 2]}}, "after": {"needs": ["a", "each"]}},
            failure_policy="continue",
        )
        await fetch(database, "DELETE FROM betimes.runs")
        await fetch(database, "DELETE FROM betimes.parcels")
        clock.advance(SWEEP_EVERY_SECONDS)
        assert await advancer.tick() == 1
        view = await flow.view()
        assert over(view) is WorkflowState.FAILED
        error = view.nodes["a"].detail["error"]
        assert error["type"] == "RUN_GONE"
        assert "how it ended" in error["message"]
        assert view.nodes["each"].detail["error"]["type"] == "ITEMS_FAILED"
        clock.advance(SWEEP_EVERY_SECONDS)
        await advancer.tick()
        assert telemetry.reading("betimes_workflow_turns_lost_total") == 3


async def test_a_node_whose_run_only_waits_is_left_alone(
    database: Database, clock: ManualClock
) -> None:
    """Word of a run that is not over means nothing yet."""
    async with a_flow(database, clock) as flow:
        view = await flow.start({"a": {}, "each": {"map": {"over": [1]}}})
        await fetch(
            database,
            "INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)"
            " SELECT shard, workflow_run_id, id, tenant_id, created_at FROM betimes.runs",
        )
        assert await flow.advancer.tick() == 1
        assert await flow.states() == {"a": "RUNNING", "each": "RUNNING"}
        assert over(await flow.live()) is WorkflowState.SUCCEEDED, view


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


async def slow_inserts(dsn: str, *, above: int) -> None:
    """The server takes longer than it may over statements that insert more runs than this."""
    async with owner(dsn) as connection:
        await connection.execute(
            f"""
            CREATE FUNCTION betimes.take_long() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF (SELECT count(*) FROM fresh) > {above} THEN PERFORM pg_sleep(60); END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER take_long AFTER INSERT ON betimes.runs REFERENCING NEW TABLE AS fresh
               FOR EACH STATEMENT EXECUTE FUNCTION betimes.take_long();
            """
        )


async def test_a_step_that_runs_out_of_time_does_less_and_stops_nobody(
    dsn: str, clock: ManualClock
) -> None:
    """It is put off and told as what it is; a chain beside it goes on in the same look."""
    limit = timedelta(milliseconds=300)
    async with (
        opened(dsn, clock=clock, statement_timeout=limit) as store,
        a_flow(store, clock) as flow,
    ):
        recorder = Recorder()
        telemetry = Telemetry(clock=clock, handlers=[recorder])
        advancer = Advancer(
            desk=flow.desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1)
        )
        await slow_inserts(dsn, above=100)
        wide = await flow.start(
            {"root": {}} | {f"n{place}": {"needs": ["root"]} for place in range(300)}
        )
        chain = await flow.start({"a": {}, "b": {"needs": ["a"]}})
        await flow.bench.poll_once()

        assert await advancer.tick() == 1
        assert (await flow.states())["b"] == "RUNNING"
        (event,) = recorder.named("advancer.failed")
        assert isinstance(event.error, OutOfTime)
        assert "longer" in str(event.error)
        assert recorder.named("outage.began") == []
        due = await fetch(
            store,
            "SELECT due_at FROM betimes.workflow_turns WHERE workflow_run_id = $1",
            wide.run.id,
        )
        assert [row["due_at"] for row in due] == [clock.now() + PAUSE]
        assert chain.run.id != wide.run.id

        for failures in (1, 2):  # half as much each time, after twice as long
            clock.advance(2.0**failures)
            assert await advancer.tick() == 0
            assert len(recorder.named("advancer.failed")) == 1 + failures
        clock.advance(8)
        assert await advancer.tick() == 1
        flow.id = wide.run.id
        started = [state for state in (await flow.states()).values() if state == "RUNNING"]
        assert 0 < len(started) <= 100
        assert await advancer.tick() == 1, "what fitted is not followed by what did not"
        assert len(recorder.named("advancer.failed")) == 3
        while await advancer.tick():
            pass


async def test_a_slow_step_does_not_hold_the_others_up(dsn: str) -> None:
    """A look goes past what is still being moved."""
    clock, stopping, long = RealClock(), Stopping(), timedelta(minutes=1)
    async with (
        opened(
            dsn, clock=clock, lock_timeout=long, statement_timeout=long, transaction_timeout=long
        ) as store,
        a_flow(store, clock) as flow,  # type: ignore[arg-type]  # any clock
        owner(dsn) as other,
        asyncio.TaskGroup() as group,
    ):
        advancer = Advancer(
            desk=flow.desk,
            clock=clock,
            telemetry=Telemetry(clock=clock),
            every=timedelta(milliseconds=1),
        )
        held = await flow.start({"a": {}, "each": {"map": {"over": [1]}, "needs": ["a"]}})
        await flow.start({"a": {}, "b": {"needs": ["a"]}, "c": {"needs": ["b"]}})
        await flow.bench.poll_once()

        async def chained() -> bool:
            await flow.bench.poll_once()
            return over(await flow.view()) is WorkflowState.SUCCEEDED

        async def mapped() -> bool:
            return (await flow.states())["each"] == "RUNNING"

        async with other.transaction():
            # The insert of its items waits for somebody's lock, as if it were slow.
            await other.execute("LOCK betimes.workflow_items IN ACCESS EXCLUSIVE MODE")
            group.create_task(advancer.run(stopping))
            await eventually(chained, what="the one that nothing holds up")
            flow.id = held.run.id
            assert not await mapped()
        await eventually(mapped, what="the one that was held up")
        stopping.request("the test is over")


async def test_one_with_much_word_hides_nobody(database: Database, clock: ManualClock) -> None:
    """Thousands of words of one workflow run stand before the only word of another."""
    async with a_flow(database, clock) as flow:
        telemetry = Telemetry(clock=clock)
        advancer = Advancer(
            desk=flow.desk,
            clock=clock,
            telemetry=telemetry,
            every=timedelta(seconds=1),
            batch_max=3,
        )
        crowded = await flow.start({"wait": {"gate": {"type": "approval"}}})
        await fetch(
            database,
            "INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)"
            " SELECT $1, $2, gen_random_uuid(), $3, $4 FROM generate_series(1, 5000)",
            crowded.run.shard,
            crowded.run.id,
            TENANT,
            clock.now() - timedelta(hours=1),
        )
        await flow.start({"a": {}, "b": {"needs": ["a"]}})
        await flow.bench.poll_once()
        assert await advancer.tick() == 2
        assert (await flow.states())["b"] == "RUNNING"


async def test_word_that_waits_is_not_lost(database: Database, clock: ManualClock) -> None:
    """However long it waits: nothing is counted, and nothing that was put off is called for."""
    async with a_flow(database, clock) as flow:
        telemetry = Telemetry(clock=clock)
        advancer = Advancer(
            desk=flow.desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1)
        )
        view = await flow.start({"a": {}, "each": {"map": {"over": [1, 2]}}})
        await flow.bench.poll_once()
        later = timedelta(hours=1)
        await postpone_workflow(flow.desk, view.run.id, pause=later)
        clock.advance(SWEEP_EVERY_SECONDS)
        assert await advancer.tick() == 0
        assert telemetry.reading("betimes_workflow_turns_lost_total") == 0
        clock.advance(later.total_seconds())
        assert await advancer.tick() == 1
        assert over(await flow.view()) is WorkflowState.SUCCEEDED


async def test_when_the_database_is_away_nobody_is_blamed(
    database: Database, clock: ManualClock
) -> None:
    """The look fails as a whole, no workflow run is put off for it."""
    async with a_flow(database, clock) as flow:
        recorder = Recorder()
        telemetry = Telemetry(clock=clock, handlers=[recorder])
        advancer = Advancer(
            desk=flow.desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1)
        )
        await flow.start({"a": {}, "b": {"needs": ["a"]}})
        await flow.bench.poll_once()
        away = Unavailable("the database is away")
        with (
            patch("betimes.coordinator.advancer.advance_workflow", side_effect=away),
            patch("betimes.coordinator.advancer.postpone_workflow", side_effect=away),
            pytest.raises(Unavailable),
        ):
            await advancer.tick()
        assert recorder.named("advancer.failed") == []
        assert await advancer.tick() == 1


async def test_siblings_that_do_not_fit_in_a_transaction_start_little_by_little(dsn: str) -> None:
    """Each takes the server 5 ms: three hundred do not fit in its time, and stop nobody."""
    clock, stopping, limit = RealClock(), Stopping(), timedelta(seconds=1)
    async with (
        opened(dsn, clock=clock, transaction_timeout=limit) as store,
        a_flow(store, clock) as flow,  # type: ignore[arg-type]  # any clock
        asyncio.TaskGroup() as group,
    ):
        advancer = Advancer(
            desk=flow.desk,
            clock=clock,
            telemetry=Telemetry(clock=clock),
            every=timedelta(milliseconds=100),
        )
        wide = await flow.start(
            {"root": {}} | {f"n{place}": {"needs": ["root"]} for place in range(300)}
        )
        chain = await flow.start({"a": {}, "b": {"needs": ["a"]}})
        await flow.bench.poll_once()
        async with owner(dsn) as connection:
            await connection.execute(
                """
                CREATE FUNCTION betimes.take_a_while() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM pg_sleep(0.005); RETURN NEW; END $$;
                CREATE TRIGGER take_a_while BEFORE INSERT ON betimes.runs
                   FOR EACH ROW EXECUTE FUNCTION betimes.take_a_while();
                """
            )

        async def moved() -> bool:
            flow.id = chain.run.id
            others = (await flow.states())["b"] == "RUNNING"
            flow.id = wide.run.id
            return others and "WAITING" not in (await flow.states()).values()

        group.create_task(advancer.run(stopping))
        try:
            await eventually(moved, what="all siblings, and the chain beside them")
        finally:
            stopping.request("the test is over")
