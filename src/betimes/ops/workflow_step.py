"""How much one step of a workflow run may do, and the runs that it makes together."""

from dataclasses import dataclass, field

from betimes.domain.run import NewRun
from betimes.ops.workflow_facts import item_name
from betimes.store.workflow_runs import NodeRow

STEP_RUNS_MAX = 500
"""So many runs are started or stopped in one transaction, and so many ends are taken."""
STEP_BYTES_MAX = 4 << 20
"""So much may the payloads of the runs have that are started in one transaction."""


@dataclass(slots=True)
class Room:
    """What a turn may still do."""

    runs: int = STEP_RUNS_MAX
    bytes: int = STEP_BYTES_MAX
    has_more: bool = False
    """Whether something was left for the next turn."""

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be started or stopped."""
        return self.runs <= 0 or self.bytes <= 0

    def take(self, runs: int, size: int = 0) -> None:
        """Use some of it."""
        self.runs -= runs
        self.bytes -= size


@dataclass(slots=True)
class Fresh:
    """Runs that are made together, and for which nodes and items they stand."""

    runs: list[NewRun] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    nodes: list[NodeRow | None] = field(default_factory=list)
    """The node of each run that is not the run of an item."""
    items: list[tuple[str, int]] = field(default_factory=list)
    """Node and place of those that are, in their order."""

    def add_node(self, row: NodeRow, new: NewRun) -> None:
        """The run of a node."""
        self.runs.append(new)
        self.names.append(row.node)
        self.nodes.append(row)

    def add_item(self, node: str, place: int, new: NewRun) -> None:
        """The run of an item."""
        self.runs.append(new)
        self.names.append(item_name(node, place))
        self.nodes.append(None)
        self.items.append((node, place))
