"""Ad-hoc runs on their way into the store: one shard per batch, a handful of statements each.

INSERT from arrays, not COPY: PostgreSQL refuses COPY into a table with row-level security, and
measured side by side the arrays are as fast (docs/decisions/0022-control-verbs.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from betimes.domain.ids import RunId, ShardId, TenantId
from betimes.domain.parcel import Parcel
from betimes.domain.run import bounds
from betimes.domain.states import RunState, Trigger
from betimes.domain.terms import BARE, Terms
from betimes.store.ask import execute, many
from betimes.store.jobs import follow_events
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("adhoc")
WORKFLOWS = load("workflow_runs")
NOTIFY = '"notify"'
"""How the member stands in the text of options."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What many runs of a batch have in common; `options` is JSON text."""

    handler: str | None
    queue: str
    priority: int
    due_at: datetime
    state: RunState
    options: str | None
    terms: Terms = BARE
    start_by: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Runs of one tenant and one shard; `shapes[i]` is what `ids[i]` looks like."""

    shard: ShardId
    tenant: TenantId
    created_at: datetime
    trigger: Trigger
    ids: Sequence[RunId]
    payloads: Sequence[bytes | None]
    shapes: Sequence[Shape]
    workflow_run: UUID | None = None
    nodes: Sequence[str] = ()
    """Whose work each of them is, if they belong to a workflow run."""


async def insert_runs(connection: Connection, batch: Batch) -> None:
    """Insert every run of the batch; one that exists already fails the transaction."""
    first = batch.shapes[0]
    if any(shape.options and NOTIFY in shape.options for shape in batch.shapes):
        await follow_events(connection, batch.tenant)
    if batch.workflow_run is not None:
        await _insert_nodes(connection, batch)
    elif all(shape is first or shape == first for shape in batch.shapes):
        await _insert_uniform(connection, batch, first)
    else:
        await _insert_mixed(connection, batch)


async def existing(connection: Connection, shard: ShardId, runs: Sequence[RunId]) -> set[RunId]:
    """Which of these runs are there."""
    low, high = bounds(runs)
    rows = await many(connection, SQL["find_runs"], shard=shard, ids=list(runs), low=low, high=high)
    return {row["id"] for row in rows}


async def insert_parcels(connection: Connection, parcels: Sequence[Parcel]) -> None:
    """Put parcels of one shard and tenant into the queue."""
    if not parcels:
        return
    lasts: list[int] = []
    for parcel in parcels:
        lasts.append((lasts[-1] if lasts else 0) + len(parcel.runs))
    await execute(
        connection,
        SQL["insert_waiting_parcels"],
        shard=parcels[0].shard,
        tenant=parcels[0].tenant,
        ids=[parcel.id for parcel in parcels],
        queues=[parcel.queue for parcel in parcels],
        priorities=[parcel.priority for parcel in parcels],
        lanes=[int(parcel.lane) for parcel in parcels],
        ranks=[parcel.rank for parcel in parcels],
        visible=[parcel.visible_at for parcel in parcels],
        fences=[parcel.fence for parcel in parcels],
        fairs=[parcel.terms.fair for parcel in parcels],
        whens=[parcel.terms.when_full for parcel in parcels],
        gates=[parcel.terms.gate for parcel in parcels],
        lines=[parcel.terms.line for parcel in parcels],
        rate_keys=[parcel.terms.rate for parcel in parcels],
        handlers=[parcel.handler for parcel in parcels],
        firsts=[last - len(parcel.runs) + 1 for last, parcel in zip(lasts, parcels, strict=True)],
        lasts=lasts,
        runs=[run for parcel in parcels for run in parcel.runs],
    )


async def _insert_uniform(connection: Connection, batch: Batch, shape: Shape) -> None:
    await execute(
        connection,
        SQL["insert_uniform_runs"],
        shard=batch.shard,
        tenant=batch.tenant,
        due_at=shape.due_at,
        created_at=batch.created_at,
        state=int(shape.state),
        trigger=int(batch.trigger),
        priority=shape.priority,
        queue=shape.queue,
        handler=shape.handler,
        options=shape.options,
        fair=shape.terms.fair,
        when_full=shape.terms.when_full,
        gate=shape.terms.gate,
        rate_key=shape.terms.rate,
        start_by=shape.start_by,
        ids=batch.ids,
        payloads=batch.payloads,
    )


async def _insert_mixed(connection: Connection, batch: Batch) -> None:
    await execute(connection, SQL["insert_mixed_runs"], **_columns(batch))


async def _insert_nodes(connection: Connection, batch: Batch) -> None:
    await execute(
        connection,
        WORKFLOWS["insert_node_runs"],
        **_columns(batch),
        workflow_run=batch.workflow_run,
        nodes=list(batch.nodes),
    )


def _columns(batch: Batch) -> dict[str, Any]:
    shapes = batch.shapes
    return {
        "shard": batch.shard,
        "tenant": batch.tenant,
        "created_at": batch.created_at,
        "trigger": int(batch.trigger),
        "ids": batch.ids,
        "dues": [shape.due_at for shape in shapes],
        "states": [int(shape.state) for shape in shapes],
        "priorities": [shape.priority for shape in shapes],
        "queues": [shape.queue for shape in shapes],
        "handlers": [shape.handler for shape in shapes],
        "payloads": batch.payloads,
        "options": [shape.options for shape in shapes],
        "fairs": [shape.terms.fair for shape in shapes],
        "whens": [shape.terms.when_full for shape in shapes],
        "gates": [shape.terms.gate for shape in shapes],
        "rate_keys": [shape.terms.rate for shape in shapes],
        "starts": [shape.start_by for shape in shapes],
    }
