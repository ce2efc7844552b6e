"""Workflow runs on a real database: with a real worker, and with everything that can go wrong."""

import asyncio
from typing import Any

from betimes.domain.states import Trigger
from betimes.domain.workflow import WorkflowState
from betimes.ops.contents import open_bytes, sealed_one
from betimes.ops.runs import cancel_run
from betimes.ops.workflow_advance import advance_workflow, find_lost_turns
from betimes.ops.workflow_control import signal_node
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker.builtin import builtin_handlers
from betimes.worker.context import Context
from ops_kit import TENANT, fetch, lost_reply, make_desk
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
        assert await find_lost_turns(other.desk, page=1) == 0  # it waits, and is not lost
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
