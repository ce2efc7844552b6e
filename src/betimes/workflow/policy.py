"""The rules of workflows, one small question each."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import StrEnum, unique
from typing import assert_never

from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.workflow.graph import FailurePolicy, Gate, GateType, Graph, When

CLEANING = frozenset({When.ALL_DONE, When.ANY_FAILED})
"""Conditions of nodes that still run when a workflow run is being stopped."""


@unique
class Origin(StrEnum):
    """Where a retry of a workflow run begins."""

    FAILED = "failed"
    NODE = "node"
    START = "start"


@unique
class Passing(StrEnum):
    """What the time of a gate does when it comes."""

    OPENS = "opens"
    FAILS = "fails"


def is_wanted(when: When, needs: Collection[NodeState]) -> bool:
    """Whether a node runs, now that everything it needs has ended; otherwise it is skipped.

    What was skipped or cancelled is neither a success nor a failure.
    """
    match when:
        case When.ALL_SUCCESS:
            return all(state is NodeState.SUCCEEDED for state in needs)
        case When.ALL_DONE:
            return True
        case When.ANY_SUCCESS:
            return NodeState.SUCCEEDED in needs
        case When.ANY_FAILED:
            return NodeState.FAILED in needs
    assert_never(when)


def survives(when: When, stop: Stop | None) -> bool:
    """Whether a node with this condition may still run while a workflow run is being stopped."""
    return stop is None or (stop is not Stop.ABANDON and when in CLEANING)


def is_handled(graph: Graph, node: str, states: Mapping[str, NodeState]) -> bool:
    """Whether somebody who waited for this very failure has dealt with it."""
    return any(
        one.when is When.ANY_FAILED and node in one.needs and states[one.id] is NodeState.SUCCEEDED
        for one in graph.nodes.values()
    )


def outcome(graph: Graph, states: Mapping[str, NodeState], stop: Stop | None) -> WorkflowState:
    """How a workflow run ends, all of whose nodes have ended.

    Whoever stopped it decides; else a failure that nobody handled; else a node that was cancelled.
    A failure that stops everything is never handled: with `fail_fast` there is nothing to go on
    with.
    """
    match stop:
        case Stop.FAILURE | Stop.TIMEOUT:
            return WorkflowState.FAILED
        case Stop.CANCEL | Stop.ABANDON:
            return WorkflowState.CANCELLED
        case None:
            pass
    failed = [node for node, state in states.items() if state is NodeState.FAILED]
    if not all(is_handled(graph, node, states) for node in failed):
        return WorkflowState.FAILED
    if NodeState.CANCELLED in states.values():
        return WorkflowState.CANCELLED
    return WorkflowState.SUCCEEDED


def stops_at_failure(graph: Graph, states: Iterable[NodeState]) -> bool:
    """Whether a failure among these ends it all."""
    return graph.failure_policy is FailurePolicy.FAIL_FAST and NodeState.FAILED in states


def gate_time(gate: Gate, ready_at: datetime) -> tuple[datetime, Passing] | None:
    """When something happens to a closed gate by itself, and what; None if it waits for ever."""
    if gate.type is GateType.TIMER and gate.delay is not None:
        return ready_at + gate.delay, Passing.OPENS
    if gate.timeout is not None:
        return ready_at + gate.timeout, Passing.FAILS
    return None


def reset(
    graph: Graph, states: Mapping[str, NodeState], origin: Origin, node: str | None = None
) -> frozenset[str]:
    """The nodes that a retry does again: where it begins, and everything that follows from there.

    From `failed`, what was cancelled is done as well; whatever succeeded and does not depend on
    either is kept.
    """
    match origin:
        case Origin.START:
            return frozenset(graph.nodes)
        case Origin.NODE:
            begin = {node} if node in graph.nodes else set()
        case Origin.FAILED:
            wanted = {NodeState.FAILED, NodeState.CANCELLED}
            begin = {name for name, state in states.items() if state in wanted}
        case _:
            assert_never(origin)
    again: set[str] = set()
    for one in graph.nodes.values():
        if one.id in begin or not again.isdisjoint(one.needs):
            again.add(one.id)
    return frozenset(again)
