"""Word of what has ended in workflow runs, and the runs that it is about."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from betimes.domain.ids import RunId, ShardId, TenantId, shard_of
from betimes.domain.run import bounds
from betimes.domain.states import RunState
from betimes.store.ask import execute, many, one
from betimes.store.jobs import from_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("workflow_runs")
TURNS_ROWS = 10
"""So many rows of due turns are read for each workflow run that is wanted."""


class EndedRun(NamedTuple):
    """A run that is over, as far as its node is concerned."""

    id: RunId
    node: str | None
    state: RunState
    result: bytes | None
    error: Mapping[str, Any] | None
    reason: str | None
    started_at: datetime | None
    finished_at: datetime


class DueRun(NamedTuple):
    """A workflow run that is to be looked at."""

    shard: ShardId
    id: UUID


class Due(NamedTuple):
    """Workflow runs that are to be looked at, and whether these are all there are."""

    runs: list[DueRun]
    is_all: bool


class Ahead(NamedTuple):
    """What is to be expected when nothing is due: for those who rest meanwhile."""

    due_in: float | None
    """Seconds until the next workflow run is due by the clock."""
    under_way: bool
    """A run is under way whose end may leave word at any time."""


class Suspect(NamedTuple):
    """A node or an item that counts as running."""

    shard: ShardId
    workflow_run: UUID
    run: RunId
    tenant: TenantId
    is_lost: bool
    """Its run is over, and no word of that waits to be taken."""


async def read_ended(
    connection: Connection, shard: ShardId, runs: Sequence[RunId]
) -> list[EndedRun]:
    """Those of some runs that are over."""
    if not runs:
        return []
    low, high = bounds(runs)
    rows = await many(
        connection, SQL["read_ends_of_nodes"], shard=shard, runs=list(runs), low=low, high=high
    )
    return [
        EndedRun(
            row["id"],
            row["node"],
            RunState(row["state"]),
            row["result"],
            from_json(row["error"]) or None,
            row["reason"],
            row["started_at"],
            row["finished_at"],
        )
        for row in rows
    ]


class Vanished(NamedTuple):
    """A run of which no row is left, and the item it stands for if it is the run of one."""

    run: RunId
    node: str | None
    place: int | None


async def read_vanished(
    connection: Connection, shard: ShardId, workflow_run: UUID, runs: Sequence[RunId]
) -> list[Vanished]:
    """Those of some runs of which no row is left."""
    if not runs:
        return []
    rows = await many(
        connection,
        SQL["find_vanished_runs"],
        shard=shard,
        workflow_run=workflow_run,
        runs=list(runs),
    )
    return [Vanished(row["run_id"], row["node"], row["place"]) for row in rows]


async def link_run(connection: Connection, run: RunId, workflow_run: UUID) -> None:
    """Remember what a run has started, so that its end leaves word there."""
    await execute(
        connection, SQL["link_run"], shard=shard_of(run), id=run, workflow_run=workflow_run
    )


async def wake_run(
    connection: Connection, run: RunId, tenant: TenantId, *, now: datetime
) -> list[tuple[str, int]]:
    """Let a run that sleeps be handed out at once; the queue and bucket where it waits."""
    rows = await many(
        connection, SQL["wake_run"], shard=shard_of(run), tenant=tenant, run=run, now=now
    )
    return [(row["queue"], row["fair"]) for row in rows]


async def due_turns(
    connection: Connection, *, now: datetime | None, most: int, but: Sequence[UUID] = ()
) -> Due:
    """Workflow runs that are to be looked at, but for some."""
    read = most * TURNS_ROWS
    rows = await many(
        connection, SQL["find_due_turns"], now=now, rows=read, most=most, but=list(but)
    )
    found = [DueRun(row["shard"], row["workflow_run_id"]) for row in rows]
    return Due(found, is_all=sum(row["words"] for row in rows) < read)


async def turns_ahead(connection: Connection, *, now: datetime | None) -> Ahead:
    """How soon somebody has to look again."""
    row = await one(connection, SQL["read_turns_ahead"], now=now)
    return Ahead(row["due_in"], row["under_way"])


async def take_turns(connection: Connection, run: UUID, *, now: datetime, most: int) -> list[UUID]:
    """Take word that was left for a workflow run; the causes, at most so many."""
    query = SQL["take_turns"]
    rows = await many(connection, query, shard=shard_of(run), workflow_run=run, now=now, most=most)
    return [row["cause"] for row in rows]


async def postpone_turns(
    connection: Connection, run: UUID, *, now: datetime, due_at: datetime
) -> None:
    """Leave the word that is due for later."""
    await execute(
        connection,
        SQL["postpone_turns"],
        shard=shard_of(run),
        workflow_run=run,
        now=now,
        due_at=due_at,
    )


async def drop_turns(connection: Connection, run: UUID) -> None:
    """Nobody needs to look at it any more."""
    await execute(connection, SQL["drop_turns"], shard=shard_of(run), workflow_run=run)


async def add_turn(
    connection: Connection, run: UUID, tenant: TenantId, *, cause: UUID, due_at: datetime
) -> None:
    """Somebody is to look at it at an instant."""
    await execute(
        connection,
        SQL["add_turn"],
        shard=shard_of(run),
        workflow_run=run,
        tenant=tenant,
        cause=cause,
        due_at=due_at,
    )


async def add_turns(
    connection: Connection, suspects: Sequence[Suspect], *, due_at: datetime
) -> None:
    """Somebody is to look at what has no word."""
    if suspects:
        await execute(
            connection,
            SQL["add_turns"],
            shards=[one.shard for one in suspects],
            workflow_runs=[one.workflow_run for one in suspects],
            causes=[one.run for one in suspects],
            tenants=[one.tenant for one in suspects],
            due_at=due_at,
        )


async def suspects(
    connection: Connection, *, items: bool, after: tuple[int, UUID], most: int
) -> list[Suspect]:
    """A page of nodes, or of items, that count as running."""
    query = SQL["find_lost_items" if items else "find_lost_nodes"]
    rows = await many(connection, query, shard=after[0], after=after[1], most=most)
    return [Suspect(*row.values()) for row in rows]
