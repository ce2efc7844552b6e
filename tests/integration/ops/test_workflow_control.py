"""What people and time do to workflow runs: gates, deadlines, cancelling, skipping, retrying."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.errors import IllegalTransition, Invalid, NotFound
from betimes.domain.ids import RunId
from betimes.domain.states import RunState
from betimes.domain.workflow import WorkflowState
from betimes.ops.dead_letters import redrive_one
from betimes.ops.runs import cancel_run, retry_run
from betimes.ops.workflow_control import (
    approve_node,
    cancel_workflow,
    retry_workflow,
    signal_node,
    skip_node,
)
from betimes.ops.workflow_runs import get_workflow_run
from betimes.store.database import Database
from betimes.store.prune import Pruning
from betimes.testing import ManualClock
from betimes.worker.builtin import builtin_handlers
from betimes.worker.context import Context
from betimes.workflow.policy import Origin
from ops_kit import OTHER, TENANT, add_tenant, fetch
from workflow_kit import a_flow, over


async def test_an_approval_is_waited_for(database: Database, clock: ManualClock) -> None:
    """The node is ready, told of, and starts when somebody says so; a second time is refused."""
    nodes: dict[str, Any] = {"a": {}, "gated": {"needs": ["a"], "gate": {"type": "approval"}}}
    async with a_flow(database, clock) as flow:
        view = await flow.start(nodes)
        run = view.run.id
        with pytest.raises(IllegalTransition, match="that is waiting cannot be let through"):
            await approve_node(flow.desk, TENANT, run, "gated")
        await flow.live()
        assert (await flow.states())["gated"] == "READY"
        with pytest.raises(IllegalTransition, match="no gate that waits for a signal"):
            await signal_node(flow.desk, TENANT, run, "gated", b"1")
        with pytest.raises(NotFound, match="no node 'nobody'"):
            await approve_node(flow.desk, TENANT, run, "nobody")
        await approve_node(flow.desk, TENANT, run, "gated", by="me")
        with pytest.raises(IllegalTransition, match="that is running"):
            await approve_node(flow.desk, TENANT, run, "gated")
        view = await flow.live()
        assert over(view) is WorkflowState.SUCCEEDED
        assert view.nodes["gated"].detail["approved_by"] == "me"
    events = await fetch(
        database, "SELECT body FROM betimes.outbox WHERE type = 'workflow_run.waiting'"
    )
    assert len(events) == 1


async def test_gates_have_their_time(database: Database, clock: ManualClock) -> None:
    """A timer opens by itself; an approval that does not come in time fails its node."""
    nodes: dict[str, Any] = {
        "soon": {"gate": {"type": "timer", "delay": "30s"}},
        "never": {"needs": ["soon"], "gate": {"type": "approval", "timeout": "1h"}},
    }
    async with a_flow(database, clock) as flow:
        await flow.start(nodes)
        clock.advance(29)
        await flow.work()
        assert (await flow.states())["soon"] == "READY"
        clock.advance(1)
        await flow.work()
        assert await flow.states() == {"soon": "SUCCEEDED", "never": "READY"}
        clock.advance(3600)
        await flow.work()
        view = await flow.view()
        assert over(view) is WorkflowState.FAILED
        assert view.nodes["never"].detail["error"]["type"] == "GATE_TIMED_OUT"


async def test_its_time_can_be_up(database: Database, clock: ManualClock) -> None:
    """Then it fails; what waits is cancelled, and what cleans up still runs."""
    nodes: dict[str, Any] = {
        "wait": {"gate": {"type": "approval"}},
        "clean": {"needs": ["wait"], "when": "all_done"},
    }
    async with a_flow(database, clock) as flow:
        await flow.start(nodes, timeout="10m")
        clock.advance(599)
        await flow.work()
        assert (await flow.states())["wait"] == "READY"
        clock.advance(1)
        await flow.work()
        view = await flow.view()
        assert over(view) is WorkflowState.FAILED
        assert view.run.error == {
            "type": "WORKFLOW_TIMED_OUT",
            "message": "it took longer than it may",
        }
        assert await flow.states() == {"wait": "CANCELLED", "clean": "SUCCEEDED"}


@pytest.mark.parametrize("cleanup", [True, False])
async def test_a_cancel_stops_it(database: Database, clock: ManualClock, *, cleanup: bool) -> None:
    """What waits in the queue ends at once; what cleans up runs if it is wanted."""
    nodes: dict[str, Any] = {
        "queued": {"queue": "nobody-listens", "handler": "unheard"},
        "after": {"needs": ["queued"]},
        "clean": {"needs": ["queued"], "when": "all_done"},
    }
    async with a_flow(database, clock) as flow:
        view = await flow.start(nodes)
        await cancel_workflow(flow.desk, TENANT, view.run.id, cleanup=cleanup)
        view = await flow.live()

        assert over(view) is WorkflowState.CANCELLED
        states = await flow.states()
        assert (states["queued"], states["after"]) == ("CANCELLED", "CANCELLED")
        assert states["clean"] == ("SUCCEEDED" if cleanup else "CANCELLED")
        # Once more changes nothing.
        await cancel_workflow(flow.desk, TENANT, view.run.id)
        assert (await flow.view()).run.finished_at == view.run.finished_at


async def test_a_run_that_somebody_cancels_is_a_cancelled_node(
    database: Database, clock: ManualClock
) -> None:
    """By the verb for runs; its followers are skipped, and it is no success."""
    async with a_flow(database, clock) as flow:
        view = await flow.start({"a": {"queue": "q", "handler": "h"}, "b": {"needs": ["a"]}})
        run = view.nodes["a"].run
        assert run is not None
        await cancel_run(flow.desk, TENANT, run)
        view = await flow.live()

        assert over(view) is WorkflowState.CANCELLED
        assert await flow.states() == {"a": "CANCELLED", "b": "SKIPPED"}


async def test_a_node_can_be_skipped(database: Database, clock: ManualClock) -> None:
    """What wants its success is skipped as well; what has started cannot be."""
    nodes: dict[str, Any] = {
        "a": {},
        "b": {"needs": ["a"], "gate": {"type": "approval"}},
        "c": {"needs": ["b"]},
        "d": {"needs": ["b"], "when": "all_done", "payload": {"b": {"$output": "b"}}},
    }
    async with a_flow(database, clock) as flow:
        view = await flow.start(nodes)
        run = view.run.id
        with pytest.raises(IllegalTransition, match="running cannot be skipped"):
            await skip_node(flow.desk, TENANT, run, "a")
        await flow.live()
        await skip_node(flow.desk, TENANT, run, "b", reason="not today", by="me")
        await skip_node(flow.desk, TENANT, run, "b")  # again, in peace
        view = await flow.live()
        assert over(view) is WorkflowState.SUCCEEDED
        assert await flow.states() == {
            "a": "SUCCEEDED",
            "b": "SKIPPED",
            "c": "SKIPPED",
            "d": "SUCCEEDED",
        }
        assert view.nodes["b"].detail["words"] == "not today"
        assert (await flow.results())["d"] == {"b": None}


async def test_a_failed_one_is_retried_from_where_it_failed(
    database: Database, clock: ManualClock
) -> None:
    """What succeeded and does not depend on it is kept, with its output."""
    broken = True

    async def flaky(context: Context) -> bytes | None:
        if broken:
            raise ValueError("not yet")
        return context.payload

    handlers = builtin_handlers(clock).also("flaky", flaky)
    nodes: dict[str, Any] = {
        "a": {"payload": 1},
        "b": {"handler": "flaky", "payload": {"$output": "a"}},
        "each": {
            "handler": "flaky",
            "payload": {"$item": ""},
            "map": {"over": [5, 6]},
            "needs": ["a"],
        },
        "c": {"payload": [{"$output": "b"}, {"$output": "each"}]},
    }
    async with a_flow(database, clock, handlers=handlers) as flow:
        view = await flow.start(nodes, timeout="1h")
        run = view.run.id
        with pytest.raises(IllegalTransition, match="is running cannot be retried"):
            await retry_workflow(flow.desk, TENANT, run)
        view = await flow.live()
        assert over(view) is WorkflowState.FAILED
        first = view.nodes["a"].run
        broken = False
        view = await retry_workflow(flow.desk, TENANT, run)
        assert (over(view), view.run.retries) == (WorkflowState.RUNNING, 1)
        assert view.run.deadline_at is not None
        assert view.run.deadline_at > clock.now()
        view = await flow.live()
        assert over(view) is WorkflowState.SUCCEEDED
        assert view.nodes["a"].run == first
        assert (await flow.results())["c"] == [1, [5, 6]]
        with pytest.raises(IllegalTransition, match="nothing of this workflow run has failed"):
            await retry_workflow(flow.desk, TENANT, run)
        view = await retry_workflow(flow.desk, TENANT, run, origin=Origin.NODE, node="b")
        assert await flow.states() == {
            "a": "SUCCEEDED",
            "b": "RUNNING",
            "each": "SUCCEEDED",
            "c": "WAITING",
        }
        assert over(await flow.live()) is WorkflowState.SUCCEEDED


async def test_a_redriven_run_does_not_revive_what_is_over(
    database: Database, clock: ManualClock
) -> None:
    """The dead run of a node may be done again; the workflow run stays as it ended."""
    async with a_flow(database, clock) as flow:
        view = await flow.start({"bad": {"handler": "fail"}})
        view = await flow.live()
        assert over(view) is WorkflowState.FAILED
        run = view.nodes["bad"].run
        assert run is not None
        await fetch(database, "UPDATE betimes.shards SET published_through = $1", clock.now())
        await retry_run(flow.desk, TENANT, run, reset_attempts=True)
        await flow.live(seconds=2)
        rows = await fetch(database, "SELECT state FROM betimes.runs")
        assert [row["state"] for row in rows] == [RunState.DEAD]
        again = await flow.view()
        assert (over(again), again.run.finished_at) == (
            WorkflowState.FAILED,
            view.run.finished_at,
        )
        assert await fetch(database, "SELECT FROM betimes.workflow_turns") == []


async def test_a_dead_letter_outlives_its_workflow_run(
    database: Database, clock: ManualClock
) -> None:
    """Redriven, its run is done for its own sake; nothing waits for a workflow run that is gone."""
    async with a_flow(database, clock) as flow:
        view = await flow.start(
            {"bad": {"handler": "fail"}, "each": {"handler": "fail", "map": {"over": [1]}}}
        )
        view = await flow.live()
        assert over(view) is WorkflowState.FAILED
        later = clock.now() + timedelta(days=1)
        assert await Pruning(database).workflow_runs(view.run.shard, before=later) == 1
        letters = await fetch(database, "SELECT run_id FROM betimes.dead_letters")
        await fetch(database, "UPDATE betimes.shards SET published_through = $1", clock.now())
        for letter in letters:
            await redrive_one(flow.desk, TENANT, RunId(letter["run_id"]))
        await flow.work()
        rows = await fetch(database, "SELECT state, attempt FROM betimes.runs")
        assert {(row["state"], row["attempt"]) for row in rows} == {(RunState.DEAD, 1)}
        open_ones = await fetch(database, "SELECT state FROM betimes.dead_letters")
        assert [row["state"] for row in open_ones] == [0] * len(letters)
        assert len(letters) == 2
        clock.advance(1)
        await flow.work()
        assert await fetch(database, "SELECT FROM betimes.workflow_turns") == []
        assert await fetch(database, "SELECT FROM betimes.parcels") == []


async def test_an_input_is_held_to_its_schema(database: Database, clock: ManualClock) -> None:
    """Refused before anything is stored, with a pointer to what is wrong."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with a_flow(database, clock) as flow:
        with pytest.raises(Invalid, match="does not fit the workflow 'flow'") as caught:
            await flow.start({"a": {}}, given={"n": "x"}, input_schema=schema)
        assert (caught.value.code, caught.value.pointer) == ("invalid_payload", "/input/n")
        await flow.start({"a": {}}, given={"n": 1}, input_schema=schema)


async def test_nobody_sees_the_workflow_runs_of_others(
    database: Database, clock: ManualClock
) -> None:
    """Not by reading, not by any verb, and not through the rules of the database either."""
    await add_tenant(database)
    async with a_flow(database, clock) as flow:
        view = await flow.start({"a": {"gate": {"type": "approval"}}})
        run = view.run.id
        for verb in (
            get_workflow_run(flow.desk, OTHER, run),
            cancel_workflow(flow.desk, OTHER, run),
            approve_node(flow.desk, OTHER, run, "a"),
            skip_node(flow.desk, OTHER, run, "a"),
            retry_workflow(flow.desk, OTHER, run),
        ):
            with pytest.raises(NotFound):
                await verb

        async def count(connection: Any) -> list[int]:
            tables = ("workflow_runs", "workflow_nodes", "workflow_turns", "workflows")
            return [
                await connection.fetchval(f"SELECT count(*) FROM betimes.{table}")
                for table in tables
            ]

        assert await flow.desk.transact(count, tenant=OTHER) == [0, 0, 0, 0]
