"""Workflow runs of the Harness, and what a test can ask about them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, overload

from betimes.domain.ids import compose, to_ms, to_text
from betimes.domain.states import RunState
from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.sdk.workflow import AnyWorkflow
from betimes.testing.harness.run import HarnessRun, Runs
from betimes.workflow.advance import Items, Standing
from betimes.workflow.graph import Graph

FAILED = frozenset({RunState.DEAD, RunState.EXPIRED, RunState.MISSED})
ENDS = {
    RunState.SUCCEEDED: NodeState.SUCCEEDED,
    **dict.fromkeys(FAILED, NodeState.FAILED),
    RunState.CANCELLED: NodeState.CANCELLED,
    RunState.SKIPPED: NodeState.SKIPPED,
}
"""What the end of its run means to a node."""
WITHOUT = (NodeState.CANCELLED, NodeState.SKIPPED)


@dataclass(slots=True, eq=False, kw_only=True)
class HarnessNode:
    """One node of a workflow run, as far as it has come."""

    id: str
    stored: NodeState = NodeState.WAITING
    output: Any = None
    error: str = ""
    """Why it failed, where that is not told by its runs."""
    is_open: bool = False
    is_interrupted: bool = False
    signal: Any = None
    ready_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    elements: list[Any] | None = None
    runs: Runs = field(default_factory=lambda: Runs(()))
    """Its runs; of a mapped node one for each element that was begun."""
    round: int = 0

    @property
    def state(self) -> str:
        """As every interface shows it: `waiting`, `ready` (for its gate), `running` and so on."""
        return self.stored.name.lower()

    def standing(self) -> Standing:
        """As the rules of workflows see it."""
        return Standing(
            state=self.stored,
            is_open=self.is_open,
            is_interrupted=self.is_interrupted,
            items=None if self.elements is None else self._items(self.elements),
        )

    def _items(self, elements: list[Any]) -> Items:
        ends = [ENDS.get(run.stored) for run in self.runs]
        return Items(
            total=len(elements),
            started=len(self.runs),
            succeeded=ends.count(NodeState.SUCCEEDED),
            failed=ends.count(NodeState.FAILED),
            cancelled=sum(end in WITHOUT for end in ends),
        )

    def __repr__(self) -> str:
        return f"<node {self.id!r}: {self.state}>"


@dataclass(slots=True, eq=False, kw_only=True)
class HarnessWorkflowRun:
    """One run of a graph, as far as it has come."""

    number: int
    workflow: AnyWorkflow
    graph: Graph
    input: Any
    created_at: datetime
    nodes: Mapping[str, HarnessNode]
    tags: Mapping[str, str] = field(default_factory=dict)
    stored: WorkflowState = WorkflowState.RUNNING
    stop: Stop | None = None
    finished_at: datetime | None = None
    carrier: HarnessRun | None = None
    round: int = 0
    """How often it was tried again."""

    @property
    def id(self) -> str:
        """As the service would write it."""
        return to_text("wfr", compose(to_ms(self.created_at), 0, self.number))

    @property
    def name(self) -> str:
        """The name of its workflow."""
        return self.workflow.name

    @property
    def state(self) -> str:
        """`running`, `succeeded`, `failed` or `cancelled`."""
        return self.stored.name.lower()

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self.stored.is_final

    @property
    def fire_at(self) -> datetime | None:
        """The fire of its schedule that began it."""
        return None if self.carrier is None else self.carrier.fire_at

    @property
    def states(self) -> dict[str, str]:
        """What its nodes are: `{"list_files": "succeeded", "publish": "ready"}`."""
        return {name: node.state for name, node in self.nodes.items()}

    @property
    def outputs(self) -> dict[str, Any]:
        """What the nodes that have succeeded resulted in."""
        return {
            name: node.output
            for name, node in self.nodes.items()
            if node.stored is NodeState.SUCCEEDED
        }

    @property
    def waiting_for(self) -> list[str]:
        """Nodes that only wait for their gate."""
        return [name for name, node in self.nodes.items() if node.stored is NodeState.READY]

    def __repr__(self) -> str:
        return f"<workflow run {self.number} of {self.name!r}: {self.state}, {self.states}>"


class WorkflowRuns(Sequence[HarnessWorkflowRun]):
    """Some workflow runs, in the order in which they came to be."""

    def __init__(self, runs: Iterable[HarnessWorkflowRun]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[HarnessWorkflowRun]:
        return iter(self._runs)

    @overload
    def __getitem__(self, place: int) -> HarnessWorkflowRun: ...
    @overload
    def __getitem__(self, place: slice) -> "WorkflowRuns": ...
    def __getitem__(self, place: int | slice) -> "HarnessWorkflowRun | WorkflowRuns":
        return WorkflowRuns(self._runs[place]) if isinstance(place, slice) else self._runs[place]

    def __repr__(self) -> str:
        return f"WorkflowRuns({self._runs!r})"

    def _count(self, state: WorkflowState) -> int:
        return sum(run.stored is state for run in self._runs)

    @property
    def running(self) -> int:
        """How many are not over."""
        return self._count(WorkflowState.RUNNING)

    @property
    def succeeded(self) -> int:
        """How many have succeeded."""
        return self._count(WorkflowState.SUCCEEDED)

    @property
    def failed(self) -> int:
        """How many have failed."""
        return self._count(WorkflowState.FAILED)

    @property
    def cancelled(self) -> int:
        """How many somebody has ended."""
        return self._count(WorkflowState.CANCELLED)
