"""Workflow runs: starting them, moving them on, and what people may do to them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import msgspec

from betimes.domain.errors import IllegalTransition, Invalid, NotFound
from betimes.domain.ids import (
    TAIL_BYTES,
    JobId,
    RunId,
    ShardId,
    TenantId,
    random_ids,
    to_ms,
    to_text,
)
from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.ops.checks import check_payload, check_reason
from betimes.ops.contents import open_bytes, sealed_one
from betimes.ops.desk import Desk
from betimes.ops.schemas import compiled
from betimes.ops.workflow_turn import WorkflowTurn
from betimes.ops.workflows import Plan, Workflow, plan_of
from betimes.store import workflow_runs as rows
from betimes.store.hints import LaterHints
from betimes.store.pool import Connection
from betimes.store.workflow_runs import NodeRow, WorkflowRun
from betimes.workflow.graph import GateType
from betimes.workflow.policy import Origin, reset

T = TypeVar("T")
SKIPPED_BY_USER = "SKIPPED_BY_USER"
TAGS = "tags"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunView:
    """A workflow run with its nodes and its plan."""

    run: WorkflowRun
    nodes: Mapping[str, NodeRow]
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflowRun:
    """A workflow run that somebody asks for."""

    workflow: Workflow
    input: bytes | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None
    job: JobId | None = None
    run: RunId | None = None
    shard: ShardId | None = None
    id: UUID | None = None
    """Whoever may have started it before names it."""

    def check(self) -> None:
        """Refuse an input that the workflow does not take."""
        check_payload(self.input)
        schema = plan_of(self.workflow.content).graph.input_schema
        if schema is None:
            return
        value = None if self.input is None else msgspec.json.decode(self.input)
        text = msgspec.json.encode(schema, order="sorted").decode()
        for found in compiled(text).iter_errors(value):
            place = "".join(f"/{step}" for step in found.instance_path)
            raise Invalid(
                f"the input does not fit the workflow {self.workflow.name!r}: "
                f"{found.message[:500]}",
                code="invalid_payload",
                pointer=f"/input{place}",
            )


async def start_workflow(desk: Desk, tenant: TenantId, new: NewWorkflowRun) -> WorkflowRunView:
    """Start a workflow: what needs nothing is queued in the same transaction."""
    new.check()
    plan = plan_of(new.workflow.content)
    shard = desk.next_shard() if new.shard is None else new.shard
    tail = desk.entropy(TAIL_BYTES)
    identifier = new.id

    async def start(inner: Desk, connection: Connection, now: datetime) -> WorkflowRunView:
        nonlocal identifier
        if identifier is None:
            (identifier,) = random_ids(to_ms(now), shard, tail)
        else:
            known = await rows.lock_workflow_run(connection, identifier)
            if known is not None:  # started before, or our own commit, whose reply was lost
                return await _view(desk, connection, known)
        timeout = plan.graph.timeout
        run = WorkflowRun(
            id=identifier,
            tenant=tenant,
            workflow=new.workflow.name,
            version=new.workflow.version,
            digest=new.workflow.digest,
            job=new.job,
            run=new.run,
            input=await sealed_one(desk, connection, tenant, new.input),
            options={TAGS: dict(new.tags)} if new.tags else {},
            started_at=now,
            deadline_at=None if timeout is None else now + timeout,
            created_by=new.by,
        )
        definition = await sealed_one(desk, connection, tenant, new.workflow.content)
        nodes = {name: NodeRow(node=name) for name in plan.graph.nodes}
        await rows.insert_workflow_run(
            connection, run, definition=definition or b"", nodes=list(nodes)
        )
        turn = WorkflowTurn(inner, connection, run, plan, nodes, now=now)
        turn.tell("workflow_run.started")
        await turn.go()
        return WorkflowRunView(run=run, nodes=nodes, plan=plan)

    return await _transact(desk, tenant, start)


async def advance_workflow(desk: Desk, identifier: UUID) -> bool:
    """Take the turn of a workflow run; whether it was still there to be moved."""

    async def move(inner: Desk, connection: Connection, now: datetime) -> bool:
        run = await rows.lock_workflow_run(connection, identifier)
        if run is None:
            await rows.drop_turns(connection, identifier)
            return False
        causes = await rows.take_turns(connection, identifier, now=now)
        if run.state.is_final or not causes:
            return False
        turn = await _turn(inner, connection, run, now)
        await turn.absorb(causes)
        turn.keep_time()
        await turn.go()
        return True

    return await _transact(desk, None, move)


async def postpone_workflow(desk: Desk, identifier: UUID, *, pause: timedelta) -> None:
    """Look at a workflow run later: its turn could not be taken, and others wait."""

    async def postpone(connection: Connection) -> None:
        now = await desk.now(connection)
        await rows.postpone_turns(connection, identifier, now=now, due_at=now + pause)

    await desk.transact(postpone, tenant=None)


async def due_workflows(desk: Desk, *, most: int) -> list[UUID]:
    """Workflow runs for which there is word."""

    async def find(connection: Connection) -> list[UUID]:
        due = await rows.due_turns(connection, now=desk.clock.stated(), most=most)
        return [one.id for one in due]

    return await desk.transact(find, tenant=None)


async def find_lost_turns(desk: Desk, *, page: int) -> int:
    """Leave word for nodes whose runs are over and whose word was lost; how many there were.

    There must be none: every statement that ends a run leaves its own. A run that its partition has
    taken along counts as over.
    """
    found = 0
    for items in (False, True):
        after: tuple[int, UUID] = (-1, UUID(int=0))
        while True:
            suspects = await _sweep(desk, after, items=items, page=page)
            found += sum(one.is_over for one in suspects)
            if len(suspects) < page:
                break
            after = (suspects[-1].shard, suspects[-1].run)
    return found


async def _sweep(
    desk: Desk, after: tuple[int, UUID], *, items: bool, page: int
) -> list[rows.Suspect]:
    async def look(connection: Connection) -> list[rows.Suspect]:
        suspects = await rows.suspects(connection, items=items, after=after, most=page)
        now = await desk.now(connection)
        for one in suspects:
            if one.is_over:
                await rows.add_turn(
                    connection, one.workflow_run, one.tenant, cause=one.run, due_at=now
                )
        return suspects

    return await desk.transact(look, tenant=None)


async def get_workflow_run(desk: Desk, tenant: TenantId, identifier: UUID) -> WorkflowRunView:
    """One workflow run with its nodes."""

    async def read(connection: Connection) -> WorkflowRunView:
        run = await rows.read_workflow_run(connection, identifier)
        if run is None or run.tenant != tenant:
            raise no_such_workflow_run(identifier)
        return await _view(desk, connection, run)

    return await desk.transact(read, tenant=tenant)


async def list_workflow_runs(
    desk: Desk,
    tenant: TenantId,
    *,
    before: UUID,
    workflow: str | None = None,
    states: Sequence[WorkflowState] = (),
    most: int,
) -> list[WorkflowRun]:
    """A page of workflow runs, newest first."""

    async def read(connection: Connection) -> list[WorkflowRun]:
        return await rows.list_workflow_runs(
            connection, tenant, before=before, workflow=workflow, states=states, most=most
        )

    return await desk.transact(read, tenant=tenant)


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


def no_such_workflow_run(identifier: UUID) -> NotFound:
    """The same sentence for what is missing and for what belongs to somebody else."""
    return NotFound(f"there is no workflow run {to_text('wfr', identifier)}")


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
        turn = await _turn(inner, connection, run, now)
        await change(turn)
        if not run.state.is_final:
            await turn.go()
        return WorkflowRunView(run=run, nodes=turn.nodes, plan=turn.plan)

    return await _transact(desk, tenant, work)


async def _transact(
    desk: Desk,
    tenant: TenantId | None,
    work: Callable[[Desk, Connection, datetime], Awaitable[T]],
) -> T:
    """One transaction whose hints leave after it."""
    hints = LaterHints()

    async def inside(connection: Connection) -> T:
        hints.clear()
        now = await desk.now(connection)
        return await work(desk.inside(connection, hints, at=now), connection, now)

    done = await desk.transact(inside, tenant=tenant)
    hints.pass_on(desk.hints)
    return done


async def _turn(
    desk: Desk, connection: Connection, run: WorkflowRun, now: datetime
) -> WorkflowTurn:
    plan = await _plan(desk, connection, run)
    nodes = await rows.read_nodes(connection, run.id)
    return WorkflowTurn(desk, connection, run, plan, nodes, now=now)


async def _view(desk: Desk, connection: Connection, run: WorkflowRun) -> WorkflowRunView:
    plan = await _plan(desk, connection, run)
    nodes = await rows.read_nodes(connection, run.id)
    return WorkflowRunView(run=run, nodes=nodes, plan=plan)


async def _plan(desk: Desk, connection: Connection, run: WorkflowRun) -> Plan:
    stored = await rows.read_definition(connection, run.id)
    (content,) = await open_bytes(desk, connection, run.tenant, [stored])
    return plan_of(content or b"")


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
