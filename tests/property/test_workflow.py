"""Any workflow run ends, in an order that respects needs, as a plain reading of the rules says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.workflow.advance import (
    Cancel,
    Hold,
    Interrupt,
    Items,
    Move,
    Settle,
    Skip,
    Standing,
    Start,
    StartItems,
    advance,
)
from betimes.workflow.graph import FailurePolicy, Graph, read_graph
from betimes.workflow.policy import CLEANING

NODES_MOST = 9
TURNS_MOST = 500
ENDS = (NodeState.SUCCEEDED, NodeState.FAILED, NodeState.CANCELLED)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """Any graph: a node may need whatever was drawn before it; written in any order."""
    names = [f"n{place}" for place in range(draw(st.integers(1, NODES_MOST)))]
    nodes: dict[str, Any] = {}
    for place, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []
        whens = ["all_success", "all_done"] + (["any_success", "any_failed"] if needs else [])
        node: dict[str, Any] = {
            "handler": "do",
            "needs": needs,
            "when": draw(st.sampled_from(whens)),
        }
        if draw(st.booleans()):
            over = list(range(draw(st.integers(0, 4))))
            node["map"] = {"over": over, "max_parallel": draw(st.integers(1, 3))}
        if draw(st.integers(0, 3)) == 0:
            node["gate"] = {"type": "approval"}
        nodes[name] = node
    order = draw(st.permutations(names))
    policy = draw(st.sampled_from(["fail_fast", "continue"]))
    return {"nodes": {name: nodes[name] for name in order}, "failure_policy": policy}


@dataclass
class World:
    """A workflow run that is done by hand: work ends in any order and in any way."""

    graph: Graph
    choose: Callable[[int], int]
    standings: dict[str, Standing] = field(default_factory=dict)
    stop: Stop | None = None
    started: list[str] = field(default_factory=list)
    ended_before: dict[str, frozenset[str]] = field(default_factory=dict)
    fates: dict[str, list[NodeState]] = field(default_factory=dict)
    stopped_at: int | None = None
    running_most: dict[str, int] = field(default_factory=dict)

    def run(self) -> WorkflowState:
        """From the beginning to the end."""
        self.standings = {name: Standing() for name in self.graph.nodes}
        for _ in range(TURNS_MOST):
            turn = advance(self.graph, self.standings, self.stop)
            assert advance(self.graph, self.standings, self.stop) == turn
            if turn.stop is not None and self.stopped_at is None:
                self.stopped_at = len(self.started)
            self.stop = turn.stop
            for move in turn.moves:
                self.apply(move)
            if turn.end is not None:
                return turn.end
            if not turn.moves:
                self.happen()
        raise AssertionError("it does not end")

    def apply(self, move: Move) -> None:
        standing = self.standings[move.node]
        match move:
            case Start(node):
                self.begin(node)
            case StartItems(node, first, count):
                assert standing.items is not None
                assert first == standing.items.started
                items = replace(standing.items, started=first + count)
                self.running_most[node] = max(self.running_most.get(node, 0), items.running)
                self.standings[node] = replace(standing, items=items)
            case Hold(node):
                assert standing.state is NodeState.WAITING
                self.standings[node] = replace(standing, state=NodeState.READY)
            case Skip(node):
                self.finish(node, NodeState.SKIPPED)
            case Cancel(node):
                self.finish(node, NodeState.CANCELLED)
            case Settle(node, state):
                self.finish(node, state)
            case Interrupt(node):
                assert standing.state is NodeState.RUNNING
                assert not standing.is_interrupted
                self.standings[node] = replace(standing, is_interrupted=True)

    def begin(self, node: str) -> None:
        assert node not in self.started, "a node is started once"
        self.started.append(node)
        done = frozenset(n for n, one in self.standings.items() if one.state.is_final)
        self.ended_before[node] = done
        fan = self.graph.nodes[node].fan
        items = None if fan is None else Items(total=len(fan.over))
        self.standings[node] = replace(self.standings[node], state=NodeState.RUNNING, items=items)

    def finish(self, node: str, state: NodeState) -> None:
        assert not self.standings[node].state.is_final, "a node ends once"
        self.standings[node] = replace(self.standings[node], state=state)

    def happen(self) -> None:
        """One thing that was waited for: a gate opens, a run ends, or somebody cancels it all."""
        waiting = [
            name
            for name, one in self.standings.items()
            if one.state is NodeState.READY or (one.state is NodeState.RUNNING)
        ]
        assert waiting, "nothing is to be done, and nothing is waited for"
        if self.stop is None and self.choose(19) == 0:
            self.stop = Stop.CANCEL if self.choose(1) else Stop.ABANDON
            self.stopped_at = len(self.started)
            return
        node = waiting[self.choose(len(waiting) - 1)]
        standing = self.standings[node]
        if standing.state is NodeState.READY:
            self.standings[node] = replace(standing, is_open=True)
            return
        end = ENDS[self.choose(2)]
        self.fates.setdefault(node, []).append(end)
        if standing.items is None:
            self.finish(node, end)
            return
        member = end.name.lower()
        count = getattr(standing.items, member) + 1
        self.standings[node] = replace(standing, items=replace(standing.items, **{member: count}))


def fate(world: World, node: str) -> NodeState:
    """What the ends of its work make of a node that was started."""
    fan, ends = world.graph.nodes[node].fan, world.fates.get(node, [])
    if fan is None:
        return ends[0]
    if NodeState.FAILED in ends:
        return NodeState.FAILED
    whole = len(ends) == len(fan.over) and NodeState.CANCELLED not in ends
    return NodeState.SUCCEEDED if whole else NodeState.CANCELLED


def runs(when: str, needs: list[NodeState]) -> bool:
    """The conditions, written down a second time."""
    good = sum(1 for one in needs if one is NodeState.SUCCEEDED)
    bad = sum(1 for one in needs if one is NodeState.FAILED)
    return {
        "all_success": good == len(needs),
        "all_done": True,
        "any_success": good > 0,
        "any_failed": bad > 0,
    }[when]


def expected(world: World) -> Mapping[str, NodeState]:
    """The brute force: what each node must have become, given what its work came to.

    Nobody is told about turns here. Which nodes the stop came too late for is all that is taken
    from the history: that depends on the order of events.
    """
    states: dict[str, NodeState] = {}

    def become(name: str) -> NodeState:
        if name not in states:
            node = world.graph.nodes[name]
            if name in world.started:
                states[name] = fate(world, name)
            elif runs(node.when.value, [become(need) for need in node.needs]):
                states[name] = NodeState.CANCELLED
            else:
                states[name] = NodeState.SKIPPED
        return states[name]

    for name in world.graph.nodes:
        become(name)
    return states


@given(definitions(), st.data())
@settings(max_examples=400)
def test_every_workflow_run_ends_as_the_rules_say(
    definition: dict[str, Any], data: st.DataObject
) -> None:
    """Whatever is done in whatever order, and whenever somebody stops it."""
    graph = read_graph(definition, duration=lambda _, __: timedelta(1))
    world = World(graph, lambda most: data.draw(st.integers(0, most)))

    end = world.run()

    final = {name: one.state for name, one in world.standings.items()}
    model = expected(world)
    for name, node in graph.nodes.items():
        assert final[name].is_final
        if name in world.started:
            assert set(node.needs) <= world.ended_before[name]
            needs = [final[need] for need in node.needs]
            assert runs(node.when.value, needs), "started only where its condition holds"
            assert final[name] is model[name]
        elif world.stop is None:
            assert final[name] is NodeState.SKIPPED is model[name]
        elif node.when in CLEANING and world.stop is not Stop.ABANDON:
            assert final[name] is model[name] is NodeState.SKIPPED
        else:
            assert final[name] in {NodeState.CANCELLED, NodeState.SKIPPED}
        if node.fan is not None and node.fan.max_parallel is not None:
            assert world.running_most.get(name, 0) <= node.fan.max_parallel
    if world.stop is not None:
        late = world.started[world.stopped_at or 0 :]
        assert all(graph.nodes[name].when in CLEANING for name in late)
        assert not late or world.stop is not Stop.ABANDON
    check_end(world, end, final)


def check_end(world: World, end: WorkflowState, final: Mapping[str, NodeState]) -> None:
    """How it ended, by the words of the documentation."""
    failed = [name for name, one in final.items() if one is NodeState.FAILED]
    if world.stop in {Stop.CANCEL, Stop.ABANDON}:
        assert end is WorkflowState.CANCELLED
    elif world.graph.failure_policy is FailurePolicy.FAIL_FAST and failed:
        assert end is WorkflowState.FAILED
    else:
        unhandled = [
            name
            for name in failed
            if not any(
                node.when.value == "any_failed"
                and name in node.needs
                and final[node.id] is NodeState.SUCCEEDED
                for node in world.graph.nodes.values()
            )
        ]
        cancelled = NodeState.CANCELLED in final.values()
        assert end is (
            WorkflowState.FAILED
            if unhandled
            else WorkflowState.CANCELLED
            if cancelled
            else WorkflowState.SUCCEEDED
        )
