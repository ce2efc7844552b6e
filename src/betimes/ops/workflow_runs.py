"""Workflow runs: starting them, moving them on, and what people may do to them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import msgspec

from betimes.domain.errors import Invalid, NotFound
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
from betimes.domain.workflow import WorkflowState
from betimes.ops.checks import check_payload
from betimes.ops.contents import open_bytes, sealed_one
from betimes.ops.desk import Desk
from betimes.ops.schemas import compiled
from betimes.ops.workflow_facts import closed_gate_time
from betimes.ops.workflow_step import Room
from betimes.ops.workflow_turn import WorkflowTurn
from betimes.ops.workflows import Plan, Workflow, plan_of
from betimes.store import workflow_runs as rows
from betimes.store import workflow_turns as turns
from betimes.store.hints import ADVANCE, LaterHints
from betimes.store.pool import Connection
from betimes.store.workflow_runs import NodeRow, WorkflowRun
from betimes.workflow.graph import Node

__all__ = [
    "NewWorkflowRun",
    "NodeRow",
    "WorkflowRun",
    "WorkflowRunView",
    "gate_until",
    "get_workflow_run",
    "list_workflow_runs",
    "no_such_workflow_run",
    "start_workflow",
    "transact",
    "turn_of",
]

T = TypeVar("T")
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

    def check(self, plan: Plan) -> None:
        """Refuse an input that the workflow does not take."""
        check_payload(self.input)
        schema = plan.graph.input_schema
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
    plan = await plan_of(new.workflow.content)
    new.check(plan)
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
        if new.run is not None:
            await turns.link_run(connection, new.run, identifier)
        turn = WorkflowTurn(inner, connection, run, plan, nodes, now=now)
        turn.tell("workflow_run.started")
        await turn.go()
        inner.hints.wake(ADVANCE)
        return WorkflowRunView(run=run, nodes=nodes, plan=plan)

    return await transact(desk, tenant, start)


async def get_workflow_run(
    desk: Desk, tenant: TenantId, identifier: UUID, *, opened: bool = False
) -> WorkflowRunView:
    """One workflow run with its nodes; opened, with its input as it was given."""

    async def read(connection: Connection) -> WorkflowRunView:
        run = await rows.read_workflow_run(connection, identifier)
        if run is None or run.tenant != tenant:
            raise no_such_workflow_run(identifier)
        if opened:
            (run.input,) = await open_bytes(desk, connection, tenant, [run.input])
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


def gate_until(node: Node, row: NodeRow) -> datetime | None:
    """When something happens by itself to the gate before which a node waits."""
    time = closed_gate_time(node.gate, row)
    return None if time is None else time[0]


def no_such_workflow_run(identifier: UUID) -> NotFound:
    """The same sentence for what is missing and for what belongs to somebody else."""
    return NotFound(f"there is no workflow run {to_text('wfr', identifier)}")


async def transact(
    desk: Desk,
    tenant: TenantId | None,
    work: Callable[[Desk, Connection, datetime], Awaitable[T]],
    *,
    patient: bool = True,
) -> T:
    """One transaction whose hints leave after it."""
    hints = LaterHints()

    async def inside(connection: Connection) -> T:
        hints.clear()
        now = await desk.now(connection)
        return await work(desk.inside(connection, hints, at=now), connection, now)

    done = await desk.transact(inside, tenant=tenant, patient=patient)
    hints.pass_on(desk.hints)
    return done


async def turn_of(
    desk: Desk,
    connection: Connection,
    run: WorkflowRun,
    now: datetime,
    *,
    room: Room | None = None,
) -> WorkflowTurn:
    """A turn of a workflow run whose row the caller holds."""
    plan = await _plan(desk, connection, run)
    nodes = await rows.read_nodes(connection, run.id)
    return WorkflowTurn(desk, connection, run, plan, nodes, now=now, room=room)


async def _view(desk: Desk, connection: Connection, run: WorkflowRun) -> WorkflowRunView:
    plan = await _plan(desk, connection, run)
    nodes = await rows.read_nodes(connection, run.id)
    return WorkflowRunView(run=run, nodes=nodes, plan=plan)


async def _plan(desk: Desk, connection: Connection, run: WorkflowRun) -> Plan:
    stored = await rows.read_definition(connection, run.id)
    (content,) = await open_bytes(desk, connection, run.tenant, [stored])
    return await plan_of(content or b"")
