"""Workflows in memory: what is next is said by the rules of the service, and done in the world."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, Protocol

import msgspec

from betimes.domain.errors import Conflict, Invalid
from betimes.domain.states import RunState
from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.sdk.task import AnyTask
from betimes.sdk.workflow import AnyWorkflow, Workflow
from betimes.testing.harness.asking import read_run, span, terms_of
from betimes.testing.harness.kind import Kind
from betimes.testing.harness.run import HarnessRun, Place, Runs
from betimes.testing.harness.workflow_run import (
    ENDS,
    HarnessNode,
    HarnessWorkflowRun,
    WorkflowRuns,
)
from betimes.testing.harness.world import World
from betimes.workflow.advance import (
    Cancel,
    Hold,
    Interrupt,
    Move,
    Settle,
    Skip,
    Start,
    StartItems,
    advance,
)
from betimes.workflow.graph import ITEMS_MAX, GateType, read_graph
from betimes.workflow.policy import Origin, Passing, gate_time, reset
from betimes.workflow.reference import Missing, Values, resolve

CARRIED = {
    WorkflowState.SUCCEEDED: RunState.SUCCEEDED,
    WorkflowState.FAILED: RunState.DEAD,
    WorkflowState.CANCELLED: RunState.CANCELLED,
}


class HasId(Protocol):
    """A handle of a workflow run."""

    id: str


Which = HarnessWorkflowRun | HasId | AnyWorkflow | str
"""A workflow run by itself, its handle or its id, or the workflow."""


class Flows:
    """Workflow runs of a world."""

    def __init__(
        self, world: World, tasks: Mapping[str, AnyTask], workflows: Mapping[str, AnyWorkflow]
    ) -> None:
        self.runs: list[HarnessWorkflowRun] = []
        self.workflows = workflows
        self._world = world
        self._tasks = tasks
        self._numbers = count(1)
        world.on_node_end = self._node_run_ended
        world.on_carrier = self._carried

    @property
    def now(self) -> datetime:
        """The time it is."""
        return self._world.now

    # --- who is meant ---

    def of(self, workflow: AnyWorkflow | str | None) -> WorkflowRuns:
        """All, or those of one workflow."""
        if workflow is None:
            return WorkflowRuns(self.runs)
        name = workflow if isinstance(workflow, str) else workflow.name
        if name not in self.workflows:
            known = ", ".join(sorted(self.workflows)) or "none"
            raise KeyError(f"there is no workflow {name!r} here, only {known}")
        return WorkflowRuns(run for run in self.runs if run.name == name)

    def meant(self, which: Which, node: str) -> HarnessWorkflowRun:
        """The workflow run, or the one run of a workflow that waits at the gate of a node."""
        if isinstance(which, HarnessWorkflowRun):
            return which
        if isinstance(which, str) and (found := self.get(which)) is not None:
            return found
        if not isinstance(which, str | Workflow):
            return self.meant(which.id, node)
        runs = self.of(which)
        at_gate = [run for run in runs if node in run.waiting_for]
        if len(at_gate) != 1:
            raise LookupError(
                f"expected one run of {which!r} that waits at {node!r}, got {len(at_gate)} "
                f"of {list(runs)}"
            )
        return at_gate[0]

    def get(self, name: str) -> HarnessWorkflowRun | None:
        """A workflow run by its id."""
        return next((run for run in self.runs if run.id == name), None)

    # --- what comes in ---

    def start(
        self,
        workflow: AnyWorkflow,
        data: bytes | None,
        *,
        tags: Mapping[str, str] | None = None,
        carrier: HarnessRun | None = None,
    ) -> HarnessWorkflowRun:
        """A new run of a workflow; its first nodes start when time is let go."""
        graph = read_graph(workflow.definition(), duration=_duration)
        for node in graph.nodes.values():
            if node.handler not in self._tasks:
                raise Invalid(
                    f"expected tasks of an app of this Harness in {workflow.name!r}, "
                    f"got {node.handler!r}"
                )
        run = HarnessWorkflowRun(
            number=next(self._numbers),
            workflow=workflow,
            graph=graph,
            input=None if data is None else msgspec.json.decode(data),
            created_at=self._world.now,
            nodes={name: HarnessNode(id=name) for name in graph.nodes},
            tags=dict(tags or {}),
            carrier=carrier,
        )
        self.runs.append(run)
        self._limit(run)
        self._turn_soon(run)
        return run

    def _limit(self, run: HarnessWorkflowRun) -> None:
        if run.graph.timeout is not None:
            lapse = partial(self._time_out, run, run.round)
            self._world.then(self._world.now + run.graph.timeout, Kind.LAPSE, lapse)

    def _time_out(self, run: HarnessWorkflowRun, of_round: int) -> None:
        if not run.is_final and run.round == of_round and run.stop is None:
            run.stop = Stop.TIMEOUT
            self._turn_soon(run)

    def cancel(self, run: HarnessWorkflowRun, *, cleanup: bool = True) -> None:
        """End it; what cleans up still runs, unless that is not wanted either."""
        if run.stored is WorkflowState.CANCELLED:
            return
        if run.is_final:
            raise Conflict(f"expected a workflow run that goes on, {run.id} has {run.state}")
        if run.stop is None or not cleanup:
            run.stop = Stop.CANCEL if cleanup else Stop.ABANDON
        self._turn_soon(run)

    def retry(self, run: HarnessWorkflowRun, origin: Origin, node: str | None = None) -> None:
        """Do again what failed, or a node and what follows it, or everything."""
        if not run.is_final:
            raise Conflict(f"expected a workflow run that is over, {run.id} is {run.state}")
        if origin is Origin.NODE:
            self._node(run, node or "")
        states = {name: one.stored for name, one in run.nodes.items()}
        again = reset(run.graph, states, origin, node)
        if not again:
            raise Conflict(f"nothing of {run.id} has failed or was cancelled")
        run.round += 1
        fresh = {name: HarnessNode(id=name, round=run.round) for name in again}
        run.nodes = {name: fresh.get(name, one) for name, one in run.nodes.items()}
        run.stored, run.stop, run.finished_at = WorkflowState.RUNNING, None, None
        self._limit(run)
        self._turn_soon(run)

    def approve(self, run: HarnessWorkflowRun, node: str) -> None:
        """Open a gate that waits for approval."""
        self._open(run, self._at_gate(run, node, GateType.APPROVAL))

    def signal(self, run: HarnessWorkflowRun, node: str, data: Any) -> None:
        """Open a gate that waits for a signal, and bring what came with it."""
        one = self._at_gate(run, node, GateType.SIGNAL)
        one.signal = msgspec.to_builtins(data)
        self._open(run, one)

    def skip(self, run: HarnessWorkflowRun, node: str) -> None:
        """Leave out a node that has not started."""
        one = self._node(run, node)
        if one.stored not in {NodeState.WAITING, NodeState.READY}:
            raise Conflict(f"expected a node that has not started, {node!r} is {one.state}")
        self._end_node(one, NodeState.SKIPPED)
        self._turn_soon(run)

    def _node(self, run: HarnessWorkflowRun, node: str) -> HarnessNode:
        if node not in run.nodes:
            raise Invalid(f"expected a node out of {', '.join(run.nodes)}, got {node!r}")
        return run.nodes[node]

    def _at_gate(self, run: HarnessWorkflowRun, node: str, kind: GateType) -> HarnessNode:
        one = self._node(run, node)
        gate = run.graph.nodes[node].gate
        if gate is None or gate.type is not kind:
            raise Conflict(f"expected a node with a gate of type {kind}, got {node!r}")
        if one.stored is not NodeState.READY:
            raise Conflict(f"expected a node that waits at its gate, {node!r} is {one.state}")
        return one

    def _open(self, run: HarnessWorkflowRun, node: HarnessNode) -> None:
        node.is_open = True
        self._turn_soon(run)

    # --- what happens ---

    def _turn_soon(self, run: HarnessWorkflowRun) -> None:
        self._world.then(self._world.now, Kind.TURN, partial(self._turn, run))

    def _turn(self, run: HarnessWorkflowRun) -> None:
        """Do what the rules say until they say nothing."""
        while not run.is_final:
            standings = {name: node.standing() for name, node in run.nodes.items()}
            turn = advance(run.graph, standings, run.stop)
            run.stop = turn.stop
            for move in turn.moves:
                self._do(run, move)
            if turn.end is not None:
                self._end(run, turn.end)
            if not turn.moves:
                return

    def _do(self, run: HarnessWorkflowRun, move: Move) -> None:
        node = run.nodes[move.node]
        match move:
            case Start():
                self._start(run, node)
            case StartItems(first=first, count=most):
                self._start_items(run, node, first, most)
            case Hold():
                self._hold(run, node)
            case Skip():
                self._end_node(node, NodeState.SKIPPED)
            case Cancel():
                self._end_node(node, NodeState.CANCELLED)
            case Interrupt():
                node.is_interrupted = True
                for one in node.runs:
                    self._world.cancel(one)
            case Settle(state=state):
                if state is NodeState.SUCCEEDED:
                    node.output = [one.result for one in node.runs]
                self._end_node(node, state)

    def _start(self, run: HarnessWorkflowRun, node: HarnessNode) -> None:
        node.stored, node.started_at = NodeState.RUNNING, self._world.now
        fan = run.graph.nodes[node.id].fan
        try:
            if fan is None:
                node.runs = Runs([self._begin(run, node, self._payload(run, node))])
            else:
                node.elements = _elements(resolve(fan.over, self._values(run, node)))
        except Missing as missing:
            self._give_up(node, missing)

    def _start_items(
        self, run: HarnessWorkflowRun, node: HarnessNode, first: int, most: int
    ) -> None:
        places = range(first, first + most)
        try:
            payloads = [self._payload(run, node, item) for item in places]
        except Missing as missing:
            self._give_up(node, missing)
            return
        begun = [
            self._begin(run, node, payload, item)
            for item, payload in zip(places, payloads, strict=True)
        ]
        node.runs = Runs([*node.runs, *begun])

    def _give_up(self, node: HarnessNode, missing: Missing) -> None:
        """A node cannot be given what it needs: what runs of it is not waited for."""
        node.error = str(missing)
        self._end_node(node, NodeState.FAILED)
        for one in node.runs:
            self._world.cancel(one)

    def _payload(self, run: HarnessWorkflowRun, node: HarnessNode, item: int | None = None) -> Any:
        return resolve(run.graph.nodes[node.id].payload, self._values(run, node, item))

    def _begin(
        self, run: HarnessWorkflowRun, node: HarnessNode, payload: Any, item: int | None = None
    ) -> HarnessRun:
        asked = run.graph.nodes[node.id]
        task = self._tasks[asked.handler or ""]
        return self._world.begin(
            task,
            None if payload is None else msgspec.json.encode(payload),
            terms_of(read_run({"handler": task.name, **asked.options})),
            Place(run.number, node.id, item, node.round, run.id),
        )

    def _values(
        self, run: HarnessWorkflowRun, node: HarnessNode, item: int | None = None
    ) -> Values:
        needs = run.graph.nodes[node.id].needs
        ended = [one for one in needs if run.nodes[one].stored is not NodeState.SUCCEEDED]
        element = None if item is None or node.elements is None else node.elements[item]
        return Values(
            input=run.input,
            outputs={one: run.nodes[one].output for one in needs},
            ended_without=frozenset(ended),
            item=element,
            signal=node.signal,
        )

    def _hold(self, run: HarnessWorkflowRun, node: HarnessNode) -> None:
        node.stored, node.ready_at = NodeState.READY, self._world.now
        gate = run.graph.nodes[node.id].gate
        timed = None if gate is None else gate_time(gate, node.ready_at)
        if timed is not None:
            at, passing = timed
            kind = Kind.TURN if passing is Passing.OPENS else Kind.LAPSE
            self._world.then(at, kind, partial(self._pass, run, node, passing))

    def _pass(self, run: HarnessWorkflowRun, node: HarnessNode, passing: Passing) -> None:
        """The time of a gate has come."""
        if node.stored is not NodeState.READY or node.is_open:
            return
        if passing is Passing.OPENS:
            node.is_open = True
        else:
            node.error = "its gate was not opened in time"
            self._end_node(node, NodeState.FAILED)
        self._turn_soon(run)

    def _node_run_ended(self, ended: HarnessRun) -> None:
        place = ended.place
        run = next((one for one in self.runs if place and one.number == place.workflow_run), None)
        if run is None or place is None:
            return
        node = run.nodes[place.node]
        if node.round != place.round or node.stored is not NodeState.RUNNING:
            return
        if place.item is None:
            state = ENDS[ended.stored]
            node.output = ended.result if state is NodeState.SUCCEEDED else None
            self._end_node(node, state)
        self._turn_soon(run)

    def _end_node(self, node: HarnessNode, state: NodeState) -> None:
        node.stored, node.finished_at = state, self._world.now

    def _end(self, run: HarnessWorkflowRun, state: WorkflowState) -> None:
        run.stored, run.finished_at = state, self._world.now
        if run.carrier is not None:
            self._world.end_carrier(run.carrier, CARRIED[state], "")

    # --- what schedules begin ---

    def _carried(self, carrier: HarnessRun) -> None:
        """A fire begins a workflow run, and its end by an overlap policy ends that."""
        if not carrier.is_final:
            workflow = self.workflows[carrier.name]
            self.start(workflow, workflow.encode(), carrier=carrier)
            return
        for run in self.runs:
            if run.carrier is carrier and not run.is_final:
                self.cancel(run)


def _duration(source: Any, _pointer: str) -> timedelta:
    return span(source)


def _elements(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise Missing(f"expected a list to map over, got {type(found).__name__}")
    if len(found) > ITEMS_MAX:
        raise Missing(f"expected at most {ITEMS_MAX} items to map over, got {len(found)}")
    return found
