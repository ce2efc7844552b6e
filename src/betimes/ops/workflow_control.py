"""What people may do to workflow runs and nodes; what follows is in the same transaction."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from uuid import UUID

from betimes.domain.errors import IllegalTransition, NotFound
from betimes.domain.ids import TenantId
from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.ops.checks import check_payload, check_reason
from betimes.ops.desk import Desk
from betimes.ops.workflow_runs import (
    NodeRow,
    WorkflowRun,
    WorkflowRunView,
    no_such_workflow_run,
    transact,
    turn_of,
)
from betimes.ops.workflow_turn import WorkflowTurn
from betimes.store import workflow_runs as rows
from betimes.store.hints import ADVANCE
from betimes.store.pool import Connection
from betimes.workflow.graph import GateType
from betimes.workflow.policy import Origin, reset

SKIPPED_BY_USER = "SKIPPED_BY_USER"


async def cancel_workflow(
    desk: Desk, tenant: TenantId, identifier: UUID, *, reason: str = "", cleanup: bool = True
) -> WorkflowRunView:
    """Stop a workflow run; what cleans up still runs, unless that is not wanted either."""
    check_reason(reason)
    stop = Stop.CANCEL if cleanup else Stop.ABANDON

    async def cancel(turn: WorkflowTurn) -> None:
        run = turn.run
        if run.state is WorkflowState.CANCELLED:
            return
        if run.state.is_final:
            raise _wrong_state(run, "cancelled")
        run.stop = stop if run.stop is None or stop is Stop.ABANDON else run.stop

    return await _change(desk, tenant, identifier, cancel)


async def approve_node(
    desk: Desk, tenant: TenantId, identifier: UUID, node: str, *, by: str | None = None
) -> WorkflowRunView:
    """Open the gate of a node that waits for an approval."""

    async def approve(turn: WorkflowTurn) -> None:
        row = _gated(turn, node, GateType.APPROVAL)
        row.is_open = True
        row.detail = {**row.detail, "approved_by": by}

    return await _change(desk, tenant, identifier, approve)


async def signal_node(
    desk: Desk,
    tenant: TenantId,
    identifier: UUID,
    node: str,
    data: bytes | None,
    *,
    by: str | None = None,
) -> WorkflowRunView:
    """Open the gate of a node that waits for a signal, and hand it what came along."""
    check_payload(data)

    async def signal(turn: WorkflowTurn) -> None:
        row = _gated(turn, node, GateType.SIGNAL)
        row.is_open = True
        row.signal = await turn.sealed(data if data is not None else b"null")
        row.detail = {**row.detail, "signalled_by": by}

    return await _change(desk, tenant, identifier, signal)


async def skip_node(
    desk: Desk,
    tenant: TenantId,
    identifier: UUID,
    node: str,
    *,
    reason: str = "",
    by: str | None = None,
) -> WorkflowRunView:
    """Skip a node that has not started."""
    check_reason(reason)

    async def skip(turn: WorkflowTurn) -> None:
        row = _node(turn, node)
        if row.state is NodeState.SKIPPED:
            return
        if row.state not in {NodeState.WAITING, NodeState.READY}:
            raise _wrong_node(row, "skipped")
        turn.skip(row, SKIPPED_BY_USER, words=reason, by=by)

    return await _change(desk, tenant, identifier, skip)


async def retry_workflow(
    desk: Desk,
    tenant: TenantId,
    identifier: UUID,
    *,
    origin: Origin = Origin.FAILED,
    node: str | None = None,
) -> WorkflowRunView:
    """Do a workflow run again from where it failed, from a node, or from its start."""

    async def retry(turn: WorkflowTurn) -> None:
        run = turn.run
        if not run.state.is_final:
            raise IllegalTransition(
                "a workflow run that is running cannot be retried; cancel it first"
            )
        if origin is Origin.NODE:
            _node(turn, node or "")
        states = {name: row.state for name, row in turn.nodes.items()}
        again = reset(turn.plan.graph, states, origin, node)
        if not again:
            raise IllegalTransition("nothing of this workflow run has failed or was cancelled")
        await turn.reopen(again)

    return await _change(desk, tenant, identifier, retry)


async def _change(
    desk: Desk,
    tenant: TenantId,
    identifier: UUID,
    change: Callable[[WorkflowTurn], Awaitable[None]],
) -> WorkflowRunView:
    """What somebody wants of a workflow run, and what follows from it, in one transaction."""

    async def work(inner: Desk, connection: Connection, now: datetime) -> WorkflowRunView:
        run = await rows.lock_workflow_run(connection, identifier)
        if run is None or run.tenant != tenant:
            raise no_such_workflow_run(identifier)
        turn = await turn_of(inner, connection, run, now)
        await change(turn)
        if not run.state.is_final:
            await turn.go()
        inner.hints.wake(ADVANCE)
        return WorkflowRunView(run=run, nodes=turn.nodes, plan=turn.plan)

    return await transact(desk, tenant, work)


def _node(turn: WorkflowTurn, node: str) -> NodeRow:
    row = turn.nodes.get(node)
    if row is None:
        raise NotFound(f"there is no node {node!r} in this workflow run")
    return turn.touch(row)


def _gated(turn: WorkflowTurn, node: str, kind: GateType) -> NodeRow:
    """A node that waits before a gate of a kind; one whose gate is open already is fine as well."""
    row = _node(turn, node)
    gate = turn.plan.graph.nodes[node].gate
    if gate is None or gate.type is not kind:
        raise IllegalTransition(f"the node {node!r} has no gate that waits for {_words(kind)}")
    if row.state is not NodeState.READY or turn.run.state.is_final:
        raise _wrong_node(row, "let through")
    return row


def _words(kind: GateType) -> str:
    return f"an {kind.value}" if kind is GateType.APPROVAL else f"a {kind.value}"


def _wrong_state(run: WorkflowRun, what: str) -> IllegalTransition:
    return IllegalTransition(
        f"a workflow run that is {run.state.name.lower()} cannot be {what}; it can be retried"
    )


def _wrong_node(row: NodeRow, what: str) -> IllegalTransition:
    return IllegalTransition(f"a node that is {row.state.name.lower()} cannot be {what}")
