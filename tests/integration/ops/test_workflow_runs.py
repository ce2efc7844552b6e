"""Workflow runs on a real database: with a real worker, and with everything that can go wrong."""

import asyncio
from typing import Any

import pytest

from betimes.domain.errors import IllegalTransition, Invalid, NotFound
from betimes.domain.states import RunState, Trigger
from betimes.domain.workflow import WorkflowState
from betimes.ops.contents import open_bytes, sealed_one
from betimes.ops.runs import cancel_run, retry_run
from betimes.ops.workflow_runs import (
    advance_workflow,
    approve_node,
    cancel_workflow,
    find_lost_turns,
    get_workflow_run,
    retry_workflow,
    signal_node,
    skip_node,
)
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker.builtin import builtin_handlers
from betimes.worker.context import Context
from betimes.workflow.policy import Origin
from ops_kit import OTHER, TENANT, add_tenant, fetch, lost_reply, make_desk
from workflow_kit import a_flow, over

DIAMOND: dict[str, Any] = {
    "left": {"payload": {"side": "left", "of": {"$input": "/name"}}},
    "right": {"payload": {"side": "right"}},
    "both": {
        "payload": {
            "l": {"$output": "left", "path": "/of"},
            "r": {"$output": "right"},
        }
    },
}


async def test_outputs_become_inputs(database: Database, clock: ManualClock) -> None:
    """What a node returns is given to those who refer to it, and all lies in one shard."""
    async with a_flow(database, clock) as flow:
        await flow.start(DIAMOND, given={"name": "x"})
        assert await flow.states() == {"left": "RUNNING", "right": "RUNNING", "both": "WAITING"}
        view = await flow.live()

        assert over(view) is WorkflowState.SUCCEEDED
        results = await flow.results()
        assert results["both"] == {"l": "x", "r": {"side": "right"}}
        runs = await fetch(database, "SELECT * FROM betimes.runs")
        assert {row["shard"] for row in runs} == {view.run.shard}
        assert {row["workflow_run_id"] for row in runs} == {view.run.id}
        assert sorted(row["node"] for row in runs) == ["both", "left", "right"]
        assert {row["trigger"] for row in runs} == {Trigger.WORKFLOW}
        assert await fetch(database, "SELECT FROM betimes.workflow_turns") == []
    events = await fetch(database, "SELECT type FROM betimes.outbox ORDER BY id")
    assert [row["type"] for row in events] == ["workflow_run.started", "workflow_run.succeeded"]


async def test_only_who_is_out_of_attempts_has_failed(
    database: Database, clock: ManualClock
) -> None:
    """The first failure ends it all, but for what cleans up."""
    nodes: dict[str, Any] = {
        "bad": {"handler": "fail"},
        "after": {"needs": ["bad"]},
        "later": {"needs": ["slow"]},
        "slow": {"handler": "sleep", "payload": {"seconds": 1000}},
        "clean": {"needs": ["bad", "slow"], "when": "all_done", "payload": {"$output": "bad"}},
        "sorry": {"needs": ["bad"], "when": "any_failed"},
    }
    async with a_flow(database, clock) as flow:
        await flow.start(nodes)
        await flow.work()
        running = await flow.states()
        assert running["bad"] == "FAILED"
        assert running["slow"] == "RUNNING"
        assert running["sorry"] == "SUCCEEDED"
        assert (running["after"], running["later"]) == ("CANCELLED", "CANCELLED")
        (row,) = await fetch(database, "SELECT * FROM betimes.runs WHERE node = 'slow'")
        assert row["cancel_at"] == clock.now()
        await cancel_run(flow.desk, TENANT, row["id"], force=True)
        view = await flow.live()

        assert over(view) is WorkflowState.FAILED
        assert view.run.error is not None
        assert view.run.error["node"] == "bad"
        assert "asked to fail" in view.run.error["message"]
        assert (await flow.states())["clean"] == "SUCCEEDED"


async def test_a_handled_failure_is_none(database: Database, clock: ManualClock) -> None:
    """With `continue`, whoever waited for the failure and dealt with it saves the day."""
    nodes: dict[str, Any] = {
        "bad": {"handler": "fail"},
        "fix": {"needs": ["bad"], "when": "any_failed"},
        "other": {},
    }
    async with a_flow(database, clock) as flow:
        await flow.start(nodes, failure_policy="continue")

        assert over(await flow.live()) is WorkflowState.SUCCEEDED


async def test_a_map_of_a_thousand_keeps_order_and_limit(
    database: Database, clock: ManualClock
) -> None:
    """Each item has its run; never more at once than may be; the output is a list in order."""
    most = 0
    held = 0

    async def count(context: Context) -> bytes | None:
        nonlocal most, held
        held += 1
        most = max(most, held)
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait
        held -= 1
        return context.payload

    handlers = builtin_handlers(clock).also("count", count)
    nodes: dict[str, Any] = {
        "list": {"payload": {"$input": ""}},
        "each": {
            "handler": "count",
            "payload": {"n": {"$item": "/v"}},
            "map": {"over": {"$output": "list"}, "max_parallel": 300},
        },
        "sum": {"payload": {"$output": "each"}},
    }
    async with a_flow(database, clock, handlers=handlers) as flow:
        await flow.start(nodes, given=[{"v": n} for n in range(1000)])
        view = await flow.live(seconds=20)

        assert over(view) is WorkflowState.SUCCEEDED
        assert view.nodes["each"].items_succeeded == 1000
        assert (await flow.results())["sum"] == [{"n": n} for n in range(1000)]
        assert 0 < most <= 300
        (row,) = await fetch(
            database, "SELECT node, result FROM betimes.runs WHERE node = 'each[17]'"
        )
        assert row["result"] == b'{"n":17}'


async def test_a_map_over_nothing_and_over_no_list(database: Database, clock: ManualClock) -> None:
    """Nothing to do is a success; something that is no list fails the node with a sentence."""
    nodes: dict[str, Any] = {
        "each": {"map": {"over": {"$input": ""}}},
        "then": {"payload": {"$output": "each"}},
    }
    async with a_flow(database, clock) as flow:
        await flow.start(nodes, given=[])
        assert over(await flow.live()) is WorkflowState.SUCCEEDED
        assert (await flow.results())["then"] == []

        view = await flow.start(nodes, given={"not": "one"})
        assert over(view) is WorkflowState.FAILED
        assert "expected a list" in view.nodes["each"].detail["error"]["message"]


async def test_a_failed_item_fails_its_node(database: Database, clock: ManualClock) -> None:
    """Without the first failure ending it all, the others are still done."""

    async def picky(context: Context) -> bytes | None:
        if context.payload == b"2":
            raise ValueError("not two")
        return context.payload

    handlers = builtin_handlers(clock).also("picky", picky)
    nodes: dict[str, Any] = {
        "each": {
            "handler": "picky",
            "payload": {"$item": ""},
            "map": {"over": [1, 2, 3, 4], "max_parallel": 1},
        }
    }
    async with a_flow(database, clock, handlers=handlers) as flow:
        await flow.start(nodes, failure_policy="continue")
        view = await flow.live(seconds=20)
        row = view.nodes["each"]
        assert over(view) is WorkflowState.FAILED
        assert (row.items_succeeded, row.items_failed) == (3, 1)
        assert row.detail["error"]["message"] == "1 of 4 items failed"

        await flow.start(nodes)
        row = (await flow.live(seconds=20)).nodes["each"]
        assert (row.items_started, row.items_succeeded, row.items_failed) == (2, 1, 1)


async def test_a_reference_to_nothing_fails_the_node(
    database: Database, clock: ManualClock
) -> None:
    """Before any run of it is made, with a sentence that says which."""
    async with a_flow(database, clock) as flow:
        view = await flow.start({"a": {"payload": {"$input": "/nobody"}}}, given={})

        assert over(view) is WorkflowState.FAILED
        assert view.nodes["a"].detail["error"]["type"] == "REFERENCE_MISSING"
        assert await fetch(database, "SELECT FROM betimes.runs") == []


async def test_a_payload_that_grows_too_large_fails_the_node(
    database: Database, clock: ManualClock
) -> None:
    """The limit of any payload holds for those that are put together as well."""
    nodes: dict[str, Any] = {"a": {"payload": [{"$input": ""}, {"$input": ""}]}}
    async with a_flow(database, clock) as flow:
        view = await flow.start(nodes, given="x" * 200_000)

        assert over(view) is WorkflowState.FAILED
        assert view.nodes["a"].detail["error"]["type"] == "payload_too_large"


async def test_sealed_contents_are_passed_on(database: Database, clock: ManualClock) -> None:
    """Input, outputs and signals lie sealed, and nodes are given what is in them."""
    desk = make_desk(database, clock, seals=True)
    nodes: dict[str, Any] = {
        "a": {"payload": {"secret": {"$input": ""}}},
        "b": {
            "gate": {"type": "signal"},
            "payload": {"a": {"$output": "a", "path": "/secret"}, "s": {"$signal": "/word"}},
        },
    }
    async with a_flow(database, clock, desk=desk) as flow:
        view = await flow.start(nodes, given="hush")
        rows = await fetch(database, "SELECT input, definition FROM betimes.workflow_runs")
        assert b"hush" not in rows[0]["input"]
        assert b"$signal" not in rows[0]["definition"]
        (first,) = await fetch(database, "SELECT payload FROM betimes.runs")
        assert b"hush" not in first["payload"]

        # The worker of this test has no keys; what it would have returned is written by hand.
        async def give(connection: Any) -> bytes | None:
            return await sealed_one(desk, connection, TENANT, b'{"secret":"hush"}')

        result = await desk.transact(give, tenant=None)
        await fetch(
            database,
            "UPDATE betimes.runs SET state = 4, finished_at = $1, result = $2",
            clock.now(),
            result,
        )
        assert await find_lost_turns(desk, page=10) == 1
        await flow.advancer.tick()
        await signal_node(desk, TENANT, view.run.id, "b", b'{"word":"go"}')
        (row,) = await fetch(database, "SELECT payload FROM betimes.runs WHERE node = 'b'")

        async def opened(connection: Any) -> Any:
            return await open_bytes(desk, connection, TENANT, [row["payload"]])

        assert row["payload"].startswith(b"\x00betimes")
        assert await desk.transact(opened, tenant=None) == [b'{"a":"hush","s":"go"}']


async def test_word_survives_a_crash_between_end_and_turn(
    database: Database, clock: ManualClock
) -> None:
    """The run has ended and nobody took the turn: whoever comes next does."""
    async with a_flow(database, clock) as flow:
        await flow.start({"a": {}, "b": {"needs": ["a"]}})
        await flow.bench.poll_once()
        assert await flow.states() == {"a": "RUNNING", "b": "WAITING"}
        turns = await fetch(database, "SELECT * FROM betimes.workflow_turns")
        assert len(turns) == 1
    async with a_flow(database, clock, desk=flow.desk) as other:
        other.id = flow.id
        assert await find_lost_turns(other.desk, page=1) == 1  # and its word is not doubled
        assert len(await fetch(database, "SELECT FROM betimes.workflow_turns")) == 1
        assert await other.advancer.tick() == 1
        assert await other.states() == {"a": "SUCCEEDED", "b": "RUNNING"}


async def test_two_advancers_start_nothing_twice(database: Database, clock: ManualClock) -> None:
    """They wait for each other, and the second finds nothing left to do."""
    async with a_flow(database, clock) as flow:
        view = await flow.start(
            {"a": {}, **{f"b{n}": {"needs": ["a"]} for n in range(20)}, "c": {}}
        )
        await flow.bench.poll_once()
        moved = await asyncio.gather(*(advance_workflow(flow.desk, view.run.id) for _ in range(6)))
        assert sum(moved) == 1
        rows = await fetch(
            database, "SELECT node, count(*) AS n FROM betimes.runs GROUP BY node ORDER BY node"
        )
        assert {row["n"] for row in rows} == {1}
        assert len(rows) == 22


async def test_a_lost_reply_starts_nothing_twice(database: Database, clock: ManualClock) -> None:
    """Neither of the start nor of a turn."""
    async with a_flow(database, clock) as flow:
        with lost_reply(clock):
            view = await flow.start({"a": {}, "b": {"needs": ["a"]}})
        assert len(await fetch(database, "SELECT FROM betimes.workflow_runs")) == 1
        await flow.bench.poll_once()
        with lost_reply(clock):
            await advance_workflow(flow.desk, view.run.id)
        rows = await fetch(database, "SELECT node FROM betimes.runs ORDER BY node")
        assert [row["node"] for row in rows] == ["a", "b"]


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
