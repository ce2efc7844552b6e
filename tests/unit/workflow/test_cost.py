"""What graphs cost: calls are counted, so that nothing grows with the square of anything."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from betimes.domain.errors import Invalid
from betimes.domain.workflow import NodeState, WorkflowState
from betimes.workflow.advance import Standing, advance
from betimes.workflow.critical import Times, critical_path
from betimes.workflow.graph import EDGES_MAX, Graph, read_graph
from betimes.workflow.policy import Origin, reset

NODES, NEEDS = 1_000, 100
CALLS_PER_NODE_MAX = 60
"""Whatever the number of needs."""
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def definition(nodes: int = NODES, needs: int = NEEDS, **each: Any) -> dict[str, Any]:
    """Each node needs the hundred before it."""
    names = [f"n{place}" for place in range(nodes)]
    written = {
        name: {"handler": "do", "needs": names[max(0, place - needs) : place], **each}
        for place, name in enumerate(names)
    }
    return {"nodes": written, "failure_policy": "continue"}


def graph() -> Graph:
    return read_graph(definition(), duration=lambda _, __: timedelta(1))


def counted(work: Callable[[], object]) -> int:
    """How many calls some work makes, of Python's own functions as well."""
    calls = 0

    def count(_frame: object, event: str, _given: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def test_the_rules_cost_the_same_for_few_needs_and_many() -> None:
    """A node is held against sets of nodes, and not each of its needs by itself."""
    wide = graph()
    for state in (NodeState.WAITING, NodeState.SUCCEEDED, NodeState.FAILED):
        standings = {name: Standing(state=state) for name in wide.nodes}
        assert counted(lambda given=standings: advance(wide, given)) <= NODES * CALLS_PER_NODE_MAX  # type: ignore[misc]


def test_failures_are_held_against_those_who_handle_them_at_once() -> None:
    """A thousand failures and a hundred who wait for them: not one question for each pair."""
    names = [f"n{place}" for place in range(900)]
    written: dict[str, Any] = {name: {"handler": "do"} for name in names}
    written |= {
        f"h{place}": {"handler": "do", "needs": names[: NEEDS * 8], "when": "any_failed"}
        for place in range(100)
    }
    found = read_graph(
        {"nodes": written, "failure_policy": "continue"}, duration=lambda _, __: timedelta(1)
    )
    standings = {name: Standing(state=NodeState.FAILED) for name in names}
    standings |= {f"h{place}": Standing(state=NodeState.SUCCEEDED) for place in range(100)}
    assert counted(lambda: advance(found, standings)) <= NODES * CALLS_PER_NODE_MAX
    assert advance(found, standings).end is WorkflowState.FAILED


def test_reading_a_graph_costs_what_is_written() -> None:
    """A few calls for each node and need."""
    written = definition()
    edges = sum(len(one["needs"]) for one in written["nodes"].values())
    calls = counted(lambda: read_graph(written, duration=lambda _, __: timedelta(1)))
    assert calls <= NODES * CALLS_PER_NODE_MAX * 2 + edges * 5


def test_the_critical_path_and_a_retry_cost_what_is_looked_at() -> None:
    """Once over the nodes and their needs."""
    wide = graph()
    edges = sum(len(node.needs) for node in wide.nodes.values())
    times = {
        name: Times(NOON + timedelta(seconds=place), NOON + timedelta(seconds=place + 1))
        for place, name in enumerate(wide.nodes)
    }
    assert counted(lambda: critical_path(wide, times)) <= NODES * CALLS_PER_NODE_MAX + edges * 5
    assert len(critical_path(wide, times)) == NODES
    states = dict.fromkeys(wide.nodes, NodeState.FAILED)
    assert counted(lambda: reset(wide, states, Origin.FAILED)) <= NODES * CALLS_PER_NODE_MAX


def test_a_graph_with_too_many_needs_is_refused() -> None:
    """All of them together, whoever has them."""
    with pytest.raises(Invalid, match=f"at most {EDGES_MAX} needs of all nodes together"):
        read_graph(definition(needs=150), duration=lambda _, __: timedelta(1))
