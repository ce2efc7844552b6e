"""The rules of workflows, one small question each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, unique
from typing import Self, assert_never

from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.workflow.graph import FailurePolicy, Gate, GateType, Graph, Node, When

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


@dataclass(slots=True)
class Ends:
    """The nodes that have ended, as sets: a node is held against them as a whole.

    Asking for each need by itself would cost as many steps as the graph has edges.
    """

    all: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, states: Mapping[str, NodeState]) -> Self:
        """Those among some nodes."""
        ends = cls()
        for node, state in states.items():
            ends.add(node, state)
        return ends

    def add(self, node: str, state: NodeState) -> None:
        """Note what a node is, if that is an end."""
        if state.is_final:
            self.all.add(node)
            if state is NodeState.SUCCEEDED:
                self.succeeded.add(node)
            elif state is NodeState.FAILED:
                self.failed.add(node)
            elif state is NodeState.CANCELLED:
                self.cancelled.add(node)


def is_wanted(node: Node, ends: Ends) -> bool:
    """Whether a node runs, now that everything it needs has ended; otherwise it is skipped.

    What was skipped or cancelled is neither a success nor a failure.
    """
    match node.when:
        case When.ALL_SUCCESS:
            return node.need_set <= ends.succeeded
        case When.ALL_DONE:
            return True
        case When.ANY_SUCCESS:
            return not node.need_set.isdisjoint(ends.succeeded)
        case When.ANY_FAILED:
            return not node.need_set.isdisjoint(ends.failed)
    assert_never(node.when)


def survives(when: When, stop: Stop | None) -> bool:
    """Whether a node with this condition may still run while a workflow run is being stopped."""
    return stop is None or (stop is not Stop.ABANDON and when in CLEANING)


def unhandled(graph: Graph, ends: Ends) -> set[str]:
    """The failures with which nobody who waited for them has dealt."""
    left = set(ends.failed)
    for one in graph.nodes.values():
        if not left:
            break
        if one.when is When.ANY_FAILED and one.id in ends.succeeded:
            left -= one.need_set
    return left


def outcome(graph: Graph, ends: Ends, stop: Stop | None) -> WorkflowState:
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
    if unhandled(graph, ends):
        return WorkflowState.FAILED
    return WorkflowState.CANCELLED if ends.cancelled else WorkflowState.SUCCEEDED


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
        if one.id in begin or not again.isdisjoint(one.need_set):
            again.add(one.id)
    return frozenset(again)
