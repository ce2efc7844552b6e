"""What turns go by: the codes they write, and what rows mean to the rules."""

from datetime import datetime
from typing import Any

from betimes.domain.states import RunState
from betimes.domain.workflow import NodeState
from betimes.store.workflow_runs import NodeRow
from betimes.store.workflow_turns import EndedRun
from betimes.workflow.advance import Items, Standing
from betimes.workflow.graph import Gate
from betimes.workflow.policy import Passing, gate_time

STOPPED = "WORKFLOW_STOPPED"
TIMED_OUT = "WORKFLOW_TIMED_OUT"
GATE_TIMED_OUT = "GATE_TIMED_OUT"
CONDITION = "CONDITION_NOT_MET"
NODE_FAILED = "NODE_FAILED"
ITEMS_FAILED = "ITEMS_FAILED"
RUN_GONE = "RUN_GONE"
RUN_GONE_SENTENCE = "the row of its run is gone, and nobody can say how it ended"
CLEARING = "clearing"
"""In the detail of a node that is done again: items of the last time are still to be deleted."""
GIVING_UP = "giving_up"
"""In the detail of a mapped node that fails: why, while items are still to be stopped."""
ENDS = {
    RunState.SUCCEEDED: NodeState.SUCCEEDED,
    RunState.DEAD: NodeState.FAILED,
    RunState.EXPIRED: NodeState.FAILED,
    RunState.MISSED: NodeState.FAILED,
    RunState.CANCELLED: NodeState.CANCELLED,
    RunState.SKIPPED: NodeState.SKIPPED,
}


def item_name(node: str, place: int) -> str:
    """What the run of an item is told to be the work of."""
    return f"{node}[{place}]"


def read_item_name(text: str) -> tuple[str, int | None]:
    """The node, and the place of the item if it is one."""
    node, bracket, rest = text.partition("[")
    return node, int(rest.removesuffix("]")) if bracket else None


def standing_of(row: NodeRow) -> Standing:
    """What the rules are told of a node."""
    items = None
    if row.items_total is not None:
        items = Items(
            total=row.items_total,
            started=row.items_started,
            succeeded=row.items_succeeded,
            failed=row.items_failed,
            cancelled=row.items_cancelled,
        )
    return Standing(
        state=row.state, is_open=row.is_open, is_interrupted=row.is_interrupted, items=items
    )


def closed_gate_time(gate: Gate | None, row: NodeRow) -> tuple[datetime, Passing] | None:
    """When something happens to the closed gate of a node that waits before it."""
    closed = row.state is NodeState.READY and not row.is_open
    if gate is None or not closed or row.ready_at is None:
        return None
    return gate_time(gate, row.ready_at)


def error_of(ended: EndedRun) -> dict[str, Any] | None:
    """What is kept of a failure."""
    if ENDS[ended.state] is NodeState.SUCCEEDED:
        return None
    if ended.error:
        return {name: ended.error.get(name) for name in ("type", "message")}
    return {"type": ended.reason or ended.state.name, "message": ""}


def items_error(row: NodeRow) -> dict[str, Any]:
    """What is kept where items have failed."""
    return {
        "type": ITEMS_FAILED,
        "message": f"{row.items_failed} of {row.items_total} items failed",
    }
