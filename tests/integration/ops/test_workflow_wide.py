"""Wide workflows: a step is bounded, and costs the same few statements however wide they are."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pytest

from betimes.domain.workflow import NodeState, WorkflowState
from betimes.ops.desk import Desk
from betimes.ops.workflow_advance import advance_workflow
from betimes.ops.workflow_control import cancel_workflow, retry_workflow
from betimes.ops.workflow_step import STEP_RUNS_MAX
from betimes.store.database import Database
from betimes.store.pool import Connection
from betimes.testing import ManualClock
from ops_kit import TENANT, fetch, make_desk
from workflow_kit import Flow, a_flow, over

T = TypeVar("T")
WIDTHS = (10, 100, 998)
STEP_STATEMENTS_MAX = 20
"""Of one step, whatever it finds to do."""


@dataclass
class Counting:
    """A store that keeps the statements of each transaction."""

    inner: Database
    transactions: list[list[str]] = field(default_factory=list)

    async def transact(self, work: Callable[[Connection], Awaitable[T]], **how: Any) -> T:
        """As the store does it."""

        async def counted(connection: Connection) -> T:
            said: list[str] = []
            self.transactions.append(said)
            connection.add_query_logger(note := lambda record: said.append(record.query))
            try:
                return await work(connection)
            finally:
                connection.remove_query_logger(note)

        return await self.inner.transact(counted, **how)

    @property
    def most(self) -> int:
        """The statements of the transaction that had the most."""
        return max((len(one) for one in self.transactions), default=0)


def counting(database: Database, clock: ManualClock, **changes: Any) -> tuple[Desk, Counting]:
    """A desk whose statements are counted."""
    counter = Counting(database)
    return make_desk(cast("Database", counter), clock, **changes), counter


def siblings(width: int, **each: Any) -> dict[str, Mapping[str, Any]]:
    """A root, and so many that need it."""
    return {"root": {}} | {f"n{place}": {"needs": ["root"], **each} for place in range(width)}


async def states_of(flow: Flow) -> dict[str, int]:
    """How many nodes are in which state."""
    found: dict[str, int] = {}
    for state in (await flow.states()).values():
        found[state] = found.get(state, 0) + 1
    return found


async def steps(flow: Flow, desk: Desk, *, most: int = 50) -> int:
    """Take steps until there is nothing left to do; how many moved something."""
    assert flow.id is not None
    for taken in range(most):
        if not await advance_workflow(desk, flow.id):
            return taken
    raise AssertionError("it never comes to rest")


@pytest.mark.parametrize("width", WIDTHS)
async def test_siblings_are_started_with_few_statements(
    database: Database, clock: ManualClock, width: int
) -> None:
    """Freed at once, they are started in steps, each bounded; nothing is lost between two."""
    desk, counter = counting(database, clock)
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start(siblings(width))
        await flow.bench.poll_once()
        taken = await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        assert taken == -(-width // STEP_RUNS_MAX)
        assert await states_of(flow) == {"SUCCEEDED": 1, "RUNNING": width}
        assert len(await fetch(database, "SELECT FROM betimes.runs")) == width + 1
        assert over(await flow.live(60)) is WorkflowState.SUCCEEDED


@pytest.mark.parametrize("width", WIDTHS)
async def test_outputs_of_many_are_read_together(
    database: Database, clock: ManualClock, width: int
) -> None:
    """Each node uses what another one has returned, sealed: read and opened once for all."""
    pairs = width // 2
    nodes: dict[str, Mapping[str, Any]] = {
        f"a{place}": {"payload": {"number": place}} for place in range(pairs)
    }
    nodes |= {
        f"b{place}": {"payload": {"got": {"$output": f"a{place}"}, "all": {"$input": ""}}}
        for place in range(pairs)
    }
    desk, counter = counting(database, clock, seals=True)
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start(nodes, given={"x": 1})
        while await flow.bench.poll_once():
            pass
        await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        assert over(await flow.live(60)) is WorkflowState.SUCCEEDED
        last = f"b{pairs - 1}"
        plain = await fetch(database, "SELECT node, state FROM betimes.runs WHERE node = $1", last)
        assert len(plain) == 1


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_wide_end_is_absorbed_in_steps(
    database: Database, clock: ManualClock, width: int
) -> None:
    """Word of a thousand ends is taken in steps, and what needs them all starts once."""
    nodes = siblings(width - 1)
    nodes["last"] = {"needs": [name for name in nodes if name != "root"]}
    desk, counter = counting(database, clock)
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start(nodes)
        await flow.bench.poll_once()
        await steps(flow, desk)
        while await flow.bench.poll_once():
            pass
        counter.transactions.clear()
        await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        assert (await flow.states())["last"] == "RUNNING"
        assert over(await flow.live(60)) is WorkflowState.SUCCEEDED
        assert await fetch(database, "SELECT FROM betimes.workflow_turns") == []


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_cancel_stops_a_wide_run_in_steps(
    database: Database, clock: ManualClock, width: int
) -> None:
    """What runs is asked to stop, all of it, however much there is."""
    desk, counter = counting(database, clock)
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start(siblings(width))
        await flow.bench.poll_once()
        await steps(flow, desk)
        counter.transactions.clear()
        assert flow.id is not None
        await cancel_workflow(desk, TENANT, flow.id)
        await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        view = await flow.view()
        assert over(view) is WorkflowState.CANCELLED
        ended = await fetch(database, "SELECT FROM betimes.runs WHERE state >= 4")
        assert len(ended) == width + 1
        await retry_workflow(desk, TENANT, flow.id)
        await steps(flow, desk)
        assert await states_of(flow) == {"SUCCEEDED": 1, "RUNNING": width}
        assert counter.most <= STEP_STATEMENTS_MAX


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_skip_goes_through_a_wide_graph(
    database: Database, clock: ManualClock, width: int
) -> None:
    """Three layers of nodes that are not wanted any more."""
    layers = [[f"{layer}{place}" for place in range(width // 3)] for layer in "abc"]
    nodes: dict[str, Mapping[str, Any]] = {"root": {"handler": "fail"}}
    before: list[str] = ["root"]
    for layer in layers:
        nodes |= {name: {"needs": before[:20]} for name in layer}
        before = layer
    desk, counter = counting(database, clock)
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start(nodes, failure_policy="continue")
        await flow.bench.poll_once()
        counter.transactions.clear()
        assert await steps(flow, desk) == 1
        assert counter.most <= STEP_STATEMENTS_MAX
        assert over(await flow.view()) is WorkflowState.FAILED


async def test_a_map_of_ten_thousand_is_started_and_stopped_in_steps(
    database: Database, clock: ManualClock
) -> None:
    """No transaction holds more of it than a step may."""
    desk, counter = counting(database, clock)
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start({"each": {"map": {"over": {"$input": ""}}}}, given=list(range(10_000)))
        await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        (row,) = (await flow.view()).nodes.values()
        assert (row.items_total, row.items_started) == (10_000, 10_000)
        found = await fetch(
            database,
            "SELECT max(n) AS most FROM (SELECT count(*) AS n FROM betimes.runs GROUP BY"
            " xmin) AS written",
        )
        assert found[0]["most"] <= STEP_RUNS_MAX
        counter.transactions.clear()
        assert flow.id is not None
        await cancel_workflow(desk, TENANT, flow.id)
        await steps(flow, desk, most=100)
        assert counter.most <= STEP_STATEMENTS_MAX
        assert over(await flow.view()) is WorkflowState.CANCELLED
        (row,) = (await flow.view()).nodes.values()
        assert (row.state, row.items_cancelled) == (NodeState.CANCELLED, 10_000)


WRITTEN_TOGETHER = (
    "SELECT coalesce(max(n), 0) AS most FROM (SELECT count(*) AS n FROM betimes.runs"
    " WHERE state = 6 GROUP BY xmin) AS written"
)
"""The most runs that one transaction has cancelled."""


async def test_a_map_that_is_given_up_is_stopped_in_steps(
    database: Database, clock: ManualClock
) -> None:
    """A late item cannot be given its payload when thousands of others run already."""
    desk, counter = counting(database, clock)
    given: list[Any] = [{"x": place} for place in range(1_200)] + [{"y": 0}]
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start(
            {
                "each": {"map": {"over": {"$input": ""}}, "payload": {"$item": "/x"}},
                "after": {"needs": ["each"], "when": "all_done"},
            },
            given=given,
        )
        await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        row = (await flow.view()).nodes["each"]
        assert row.state is NodeState.FAILED
        assert row.detail["error"]["type"] == "REFERENCE_MISSING"
        (found,) = await fetch(database, WRITTEN_TOGETHER)
        assert 0 < found["most"] <= STEP_RUNS_MAX
        left = await fetch(database, "SELECT FROM betimes.runs WHERE state < 4 AND node <> 'after'")
        assert left == []
        assert over(await flow.live()) is WorkflowState.FAILED


async def test_items_of_the_last_time_are_deleted_in_steps(
    database: Database, clock: ManualClock
) -> None:
    """Nothing of a mapped node starts again before they are gone."""
    desk, counter = counting(database, clock)
    width = 1_200
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start({"each": {"map": {"over": {"$input": ""}}}}, given=list(range(width)))
        await steps(flow, desk)
        assert flow.id is not None
        await cancel_workflow(desk, TENANT, flow.id)
        await steps(flow, desk)
        before = await fetch(database, "SELECT run_id FROM betimes.workflow_items")
        assert (len(before), over(await flow.view())) == (width, WorkflowState.CANCELLED)
        await retry_workflow(desk, TENANT, flow.id)
        left = await fetch(database, "SELECT run_id FROM betimes.workflow_items")
        assert len(left) == width - STEP_RUNS_MAX
        # Asked to end and to begin again in between, it still forgets all of the first time.
        await cancel_workflow(desk, TENANT, flow.id)
        await steps(flow, desk)
        assert over(await flow.view()) is WorkflowState.CANCELLED
        await retry_workflow(desk, TENANT, flow.id)
        await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        after = await fetch(database, "SELECT run_id FROM betimes.workflow_items")
        assert len(after) == width
        assert not {one["run_id"] for one in after} & {one["run_id"] for one in before}
        (row,) = (await flow.view()).nodes.values()
        assert (row.state, row.items_started, dict(row.detail)) == (NodeState.RUNNING, width, {})


async def test_many_small_maps_are_started_together(database: Database, clock: ManualClock) -> None:
    """A hundred mapped nodes cost what one does."""
    desk, counter = counting(database, clock)
    async with a_flow(database, clock, desk=desk) as flow:
        await flow.start({f"m{place}": {"map": {"over": [1, 2]}} for place in range(100)})
        await steps(flow, desk)
        assert counter.most <= STEP_STATEMENTS_MAX
        assert len(await fetch(database, "SELECT FROM betimes.workflow_items")) == 200
        assert over(await flow.live(60)) is WorkflowState.SUCCEEDED


async def test_large_payloads_are_started_in_smaller_steps(
    database: Database, clock: ManualClock
) -> None:
    """A step is bounded by what it carries as well."""
    desk, counter = counting(database, clock)
    async with a_flow(database, clock, desk=desk) as flow:
        text = "x" * 200_000
        each = {"payload": {"text": {"$input": "/text"}}}
        await flow.start({f"n{place}": each for place in range(60)}, given={"text": text})
        assert (await states_of(flow))["WAITING"] > 0
        await steps(flow, desk)
        assert await states_of(flow) == {"RUNNING": 60}
        assert counter.most <= STEP_STATEMENTS_MAX
