"""Workflow runs, their nodes and items in the store: rows in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from betimes.domain.errors import Bug
from betimes.domain.ids import JobId, RunId, ShardId, TenantId, shard_of
from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.store.ask import execute, many, maybe
from betimes.store.jobs import from_json, to_json, to_optional_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("workflow_runs")


@dataclass(slots=True, kw_only=True)
class WorkflowRun:
    """A workflow run as it is stored; whoever holds its row may change it."""

    id: UUID
    tenant: TenantId
    workflow: str
    version: int
    digest: bytes
    started_at: datetime
    job: JobId | None = None
    run: RunId | None = None
    """The run of a job that waits for its end."""
    state: WorkflowState = WorkflowState.RUNNING
    stop: Stop | None = None
    input: bytes | None = None
    error: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    deadline_at: datetime | None = None
    finished_at: datetime | None = None
    created_by: str | None = None
    retries: int = 0

    @property
    def shard(self) -> ShardId:
        """Its id says where it lives."""
        return shard_of(self.id)


@dataclass(slots=True, kw_only=True)
class NodeRow:
    """A node of a workflow run as it is stored."""

    node: str
    state: NodeState = NodeState.WAITING
    run: RunId | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    ready_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    is_open: bool = False
    is_interrupted: bool = False
    items_total: int | None = None
    items_started: int = 0
    items_succeeded: int = 0
    items_failed: int = 0
    items_cancelled: int = 0
    output: bytes | None = None
    """What it has just returned; not read with the row."""
    signal: bytes | None = None
    """What it was just sent; not read with the row."""


class NewItem(NamedTuple):
    """An item, and the run that stands for it."""

    node: str
    place: int
    run: RunId


class EndedItem(NamedTuple):
    """What became of an item."""

    node: str
    place: int
    run: RunId
    state: NodeState
    output: bytes | None
    error: Mapping[str, Any] | None


async def insert_workflow_run(
    connection: Connection, run: WorkflowRun, *, definition: bytes, nodes: Sequence[str]
) -> None:
    """Keep a workflow run whose nodes all wait."""
    await execute(
        connection,
        SQL["insert_workflow_run"],
        shard=run.shard,
        id=run.id,
        tenant=run.tenant,
        workflow=run.workflow,
        version=run.version,
        job=run.job,
        run=run.run,
        input=run.input,
        options=to_optional_json(run.options),
        definition=definition,
        digest=run.digest,
        now=run.started_at,
        deadline_at=run.deadline_at,
        by=run.created_by,
    )
    await execute(
        connection,
        SQL["insert_workflow_nodes"],
        shard=run.shard,
        workflow_run=run.id,
        tenant=run.tenant,
        nodes=list(nodes),
    )


async def lock_workflow_run(connection: Connection, identifier: UUID) -> WorkflowRun | None:
    """One that nobody else moves until our transaction ends."""
    query = SQL["lock_workflow_run"]
    row = await maybe(connection, query, shard=shard_of(identifier), id=identifier)
    return None if row is None else _workflow_run(row)


async def claim_workflow_run(connection: Connection, identifier: UUID) -> WorkflowRun | None:
    """The same, if nobody else holds it now."""
    query = SQL["claim_workflow_run"]
    row = await maybe(connection, query, shard=shard_of(identifier), id=identifier)
    return None if row is None else _workflow_run(row)


async def read_workflow_run(connection: Connection, identifier: UUID) -> WorkflowRun | None:
    """One as it is."""
    query = SQL["read_workflow_run"]
    row = await maybe(connection, query, shard=shard_of(identifier), id=identifier)
    return None if row is None else _workflow_run(row)


async def read_definition(connection: Connection, identifier: UUID) -> bytes:
    """What a workflow run goes by."""
    query = SQL["read_run_definition"]
    row = await maybe(connection, query, shard=shard_of(identifier), id=identifier)
    if row is None:
        raise Bug(f"expected the workflow run {identifier} that was just read")
    definition: bytes = row["definition"]
    return definition


async def list_workflow_runs(
    connection: Connection,
    tenant: TenantId,
    *,
    before: UUID,
    workflow: str | None,
    states: Sequence[WorkflowState],
    most: int,
) -> list[WorkflowRun]:
    """A page of workflow runs, newest first."""
    rows = await many(
        connection,
        SQL["list_workflow_runs"],
        tenant=tenant,
        before=before,
        workflow=workflow,
        states=[int(one) for one in states] or None,
        most=most,
    )
    return [_workflow_run(row) for row in rows]


async def write_workflow_run(connection: Connection, run: WorkflowRun) -> None:
    """How it stands; the caller holds it."""
    await execute(
        connection,
        SQL["write_workflow_run"],
        shard=run.shard,
        id=run.id,
        state=int(run.state),
        stop=None if run.stop is None else int(run.stop),
        error=None if run.error is None else to_json(run.error),
        finished_at=run.finished_at,
        deadline_at=run.deadline_at,
        retries=run.retries,
    )


async def read_nodes(connection: Connection, run: UUID) -> dict[str, NodeRow]:
    """Its nodes by name, without what they have returned."""
    query = SQL["read_workflow_nodes"]
    rows = await many(connection, query, shard=shard_of(run), workflow_run=run)
    return {row["node"]: _node(row) for row in rows}


async def write_nodes(connection: Connection, run: UUID, nodes: Sequence[NodeRow]) -> None:
    """What became of nodes; the caller holds the workflow run."""
    if not nodes:
        return
    await execute(
        connection,
        SQL["write_workflow_nodes"],
        shard=shard_of(run),
        workflow_run=run,
        nodes=[one.node for one in nodes],
        states=[int(one.state) for one in nodes],
        runs=[one.run for one in nodes],
        details=[to_optional_json(one.detail) for one in nodes],
        ready=[one.ready_at for one in nodes],
        started=[one.started_at for one in nodes],
        finished=[one.finished_at for one in nodes],
        open=[one.is_open for one in nodes],
        interrupted=[one.is_interrupted for one in nodes],
        totals=[one.items_total for one in nodes],
        begun=[one.items_started for one in nodes],
        succeeded=[one.items_succeeded for one in nodes],
        failed=[one.items_failed for one in nodes],
        cancelled=[one.items_cancelled for one in nodes],
        outputs=[one.output for one in nodes],
        signals=[one.signal for one in nodes],
    )


async def read_outputs(
    connection: Connection, run: UUID, nodes: Sequence[str]
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """What nodes have returned, and the signals they were sent."""
    if not nodes:
        return {}
    rows = await many(
        connection,
        SQL["read_node_outputs"],
        shard=shard_of(run),
        workflow_run=run,
        nodes=list(nodes),
    )
    return {row["node"]: (row["output"], row["signal"]) for row in rows}


async def read_item_outputs(
    connection: Connection, run: UUID, nodes: Sequence[str]
) -> dict[str, list[bytes | None]]:
    """What the items of mapped nodes have returned, in their order."""
    found: dict[str, list[bytes | None]] = {node: [] for node in nodes}
    if nodes:
        rows = await many(
            connection,
            SQL["read_item_outputs"],
            shard=shard_of(run),
            workflow_run=run,
            nodes=list(nodes),
        )
        for row in rows:
            found[row["node"]].append(row["output"])
    return found


async def insert_items(
    connection: Connection, run: UUID, tenant: TenantId, items: Sequence[NewItem]
) -> None:
    """Items whose runs were made."""
    if not items:
        return
    await execute(
        connection,
        SQL["insert_workflow_items"],
        shard=shard_of(run),
        workflow_run=run,
        tenant=tenant,
        nodes=[one.node for one in items],
        places=[one.place for one in items],
        runs=[one.run for one in items],
    )


async def end_items(
    connection: Connection, run: UUID, ended: Sequence[EndedItem]
) -> list[tuple[str, NodeState]]:
    """Write what became of items; those that had not ended before come back."""
    if not ended:
        return []
    rows = await many(
        connection,
        SQL["end_workflow_items"],
        shard=shard_of(run),
        workflow_run=run,
        nodes=[one.node for one in ended],
        places=[one.place for one in ended],
        runs=[one.run for one in ended],
        states=[int(one.state) for one in ended],
        outputs=[one.output for one in ended],
        errors=[None if one.error is None else to_json(one.error) for one in ended],
    )
    return [(row["node"], NodeState(row["state"])) for row in rows]


async def running_items(
    connection: Connection, run: UUID, nodes: Sequence[str], *, most: int
) -> list[RunId]:
    """Runs of the items of some nodes that have not ended and were not asked to."""
    rows = await many(
        connection,
        SQL["find_running_items"],
        shard=shard_of(run),
        workflow_run=run,
        nodes=list(nodes),
        most=most,
    )
    return [row["run_id"] for row in rows]


async def delete_items(
    connection: Connection, run: UUID, nodes: Sequence[str], *, most: int
) -> int:
    """Forget items of nodes that are done again, at most so many; how many there were."""
    row = await maybe(
        connection,
        SQL["delete_workflow_items"],
        shard=shard_of(run),
        workflow_run=run,
        nodes=list(nodes),
        most=most,
    )
    return 0 if row is None else int(row["deleted"])


def _workflow_run(row: asyncpg.Record) -> WorkflowRun:
    return WorkflowRun(
        id=row["id"],
        tenant=row["tenant_id"],
        workflow=row["workflow"],
        version=row["version"],
        digest=row["digest"],
        job=row["job_id"],
        run=row["run_id"],
        state=WorkflowState(row["state"]),
        stop=None if row["stop"] is None else Stop(row["stop"]),
        input=row["input"],
        error=from_json(row["error"]) or None,
        options=from_json(row["options"]),
        started_at=row["started_at"],
        deadline_at=row["deadline_at"],
        finished_at=row["finished_at"],
        created_by=row["created_by"],
        retries=row["retries"],
    )


def _node(row: asyncpg.Record) -> NodeRow:
    return NodeRow(
        node=row["node"],
        state=NodeState(row["state"]),
        run=row["run_id"],
        detail=from_json(row["detail"]),
        ready_at=row["ready_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        is_open=row["is_open"],
        is_interrupted=row["is_interrupted"],
        items_total=row["items_total"],
        items_started=row["items_started"],
        items_succeeded=row["items_succeeded"],
        items_failed=row["items_failed"],
        items_cancelled=row["items_cancelled"],
    )
