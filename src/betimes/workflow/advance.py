"""What happens next in a workflow run: from what its nodes are to what is to be done. Pure.

`advance` may be asked at any time and as often as one likes. Whatever it says follows from the
states alone, so that a turn that was lost, or taken twice, changes nothing: whoever does what it
says writes the new states in the same transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.workflow.graph import FailurePolicy, Graph, Node
from betimes.workflow.policy import Ends, is_wanted, outcome, stops_at_failure, survives


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """How far a mapped node is; the first `started` of its items have runs."""

    total: int
    started: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    """Also those that were skipped: they have no result, and did not fail."""

    @property
    def running(self) -> int:
        """Those whose runs have not ended."""
        return self.started - self.succeeded - self.failed - self.cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of one node."""

    state: NodeState = NodeState.WAITING
    is_open: bool = False
    """Whether its gate was passed."""
    is_interrupted: bool = False
    """Whether its runs were asked to stop."""
    items: Items | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Make the run of a node; of a mapped one, find its items first."""

    node: str


@dataclass(frozen=True, slots=True)
class StartItems:
    """Make the runs of so many items of a node, from this place on."""

    node: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing but its gate is missing: it is ready and waits."""

    node: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Its condition does not hold."""

    node: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """It has not started and will not."""

    node: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Ask what runs of it to stop."""

    node: str


@dataclass(frozen=True, slots=True)
class Settle:
    """A mapped node has ended."""

    node: str
    state: NodeState


Move = Start | StartItems | Hold | Skip | Cancel | Interrupt | Settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is to be done now, why nothing else starts, and how it ended if it is over."""

    moves: tuple[Move, ...]
    stop: Stop | None
    end: WorkflowState | None


def advance(graph: Graph, standings: Mapping[str, Standing], stop: Stop | None = None) -> Turn:
    """The next turn; without moves and end, something that runs or a gate is waited for."""
    states = {name: standings[name].state for name in graph.nodes}
    moves: list[Move] = []
    for node in graph.nodes.values():
        settled = _settled(graph, node, standings[node.id], stop)
        if settled is not None:
            states[node.id] = settled
            moves.append(Settle(node.id, settled))
    if stop is None and stops_at_failure(graph, states.values()):
        stop = Stop.FAILURE
    ends = Ends.of(states)
    for node in graph.nodes.values():
        state = states[node.id]
        if not state.is_final:
            move = _move(graph, node, standings[node.id], state, ends, stop)
            if move is not None:
                moves.append(move)
                ends.add(node.id, _after(move, state))
    is_over = len(ends.all) == len(graph.nodes)
    return Turn(moves=tuple(moves), stop=stop, end=outcome(graph, ends, stop) if is_over else None)


def _settled(graph: Graph, node: Node, standing: Standing, stop: Stop | None) -> NodeState | None:
    """What a mapped node ends as; None while it has not."""
    items = standing.items
    if standing.state is not NodeState.RUNNING or items is None or items.running > 0:
        return None
    if items.started < items.total and not _is_halted(graph, node, standing, stop):
        return None
    if items.failed:
        return NodeState.FAILED
    return NodeState.SUCCEEDED if items.succeeded == items.total else NodeState.CANCELLED


def _is_halted(graph: Graph, node: Node, standing: Standing, stop: Stop | None) -> bool:
    """Whether a mapped node starts no more items."""
    failed = standing.items is not None and standing.items.failed > 0
    return (
        standing.is_interrupted
        or not survives(node.when, stop)
        or (failed and graph.failure_policy is FailurePolicy.FAIL_FAST)
    )


def _move(
    graph: Graph,
    node: Node,
    standing: Standing,
    state: NodeState,
    ends: Ends,
    stop: Stop | None,
) -> Move | None:
    """What becomes of a node that has not ended."""
    if state is NodeState.RUNNING:
        return _go_on(graph, node, standing, stop)
    if not survives(node.when, stop):
        return Cancel(node.id)
    if not node.need_set <= ends.all:
        return None
    if not is_wanted(node, ends):
        return Skip(node.id)
    if node.gate is None or standing.is_open:
        return Start(node.id)
    return Hold(node.id) if state is NodeState.WAITING else None


def _go_on(graph: Graph, node: Node, standing: Standing, stop: Stop | None) -> Move | None:
    """What becomes of a node that runs."""
    if not survives(node.when, stop):
        return None if standing.is_interrupted else Interrupt(node.id)
    items = standing.items
    if items is None:
        return None
    if _is_halted(graph, node, standing, stop):
        return None if standing.is_interrupted else Interrupt(node.id)
    most = items.total if node.fan is None else node.fan.max_parallel or items.total
    count = min(items.total - items.started, most - items.running)
    return StartItems(node.id, items.started, count) if count > 0 else None


def _after(move: Move, state: NodeState) -> NodeState:
    match move:
        case Start():
            return NodeState.RUNNING
        case Hold():
            return NodeState.READY
        case Skip():
            return NodeState.SKIPPED
        case Cancel():
            return NodeState.CANCELLED
        case _:
            return state
