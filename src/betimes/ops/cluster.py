"""The cell as a whole: whether it answers, who is there, who owns what."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.errors import NotFound, SchedulerError
from betimes.ops.checks import check_reason
from betimes.ops.desk import Desk
from betimes.store import cluster as rows
from betimes.store.cluster import Cell, NodeRow, ShardRow
from betimes.store.migrate import complaints_of_database
from betimes.store.pool import Connection

__all__ = [
    "Cell",
    "NodeRow",
    "ShardRow",
    "check_database",
    "drain_node",
    "pause_cell",
    "read_cell",
    "read_nodes",
    "read_shards",
    "read_skews",
    "resume_cell",
]

OK = "ok"
APART_MAX = timedelta(seconds=5)
"""Signatures and sessions are checked by the clock of the node."""
LATE_MAX = timedelta(seconds=10)
"""Publishing works ahead; whoever takes over from a dead coordinator has caught up by then."""
DEGRADING = frozenset({"clock", "publishing"})
"""Checks that may fail while the node still works: what is due is decided by the database, and
published by coordinators, which may be other nodes."""


async def check_database(desk: Desk) -> dict[str, str]:
    """What stands in the way of serving, or only degrades it; `ok` where nothing does."""

    async def work(connection: Connection) -> tuple[Cell, list[str], str]:
        cell = await rows.read_cell(connection)
        return cell, await complaints_of_database(connection), await _publishing(connection, cell)

    try:
        cell, complaints, publishing = await desk.transact(work, tenant=None)
    except SchedulerError as error:
        return {"database": type(error).__name__.lower()}
    apart = abs(cell.now - desk.clock.now())
    seconds = apart.total_seconds()
    return {
        "database": OK,
        "migrations": complaints[0] if complaints else OK,
        "clock": OK if apart <= APART_MAX else f"{seconds:.1f} s apart from the database",
        "shards": OK if cell.shards == desk.shards else "the number of shards has changed",
        "publishing": publishing,
    }


async def _publishing(connection: Connection, cell: Cell) -> str:
    """Whether what is due gets into the queues; `ok` also before anybody has begun with it."""
    lag = await rows.read_due_lag(connection)
    if lag <= LATE_MAX:
        return OK
    said = f"{lag.total_seconds():.0f} s late"
    free = [
        shard
        for shard in await rows.read_shards(connection)
        if shard.lease_until is None or shard.lease_until <= cell.now
    ]
    return f"{said}, {len(free)} of {cell.shards} shards have no coordinator" if free else said


async def read_cell(desk: Desk) -> Cell:
    """What was fixed when the cell was made, and its time."""

    async def work(connection: Connection) -> Cell:
        return await rows.read_cell(connection)

    return await desk.transact(work, tenant=None)


async def read_skews(desk: Desk) -> tuple[datetime, dict[str, float]]:
    """The time of the database, and how far each node is from it."""

    async def work(connection: Connection) -> tuple[datetime, dict[str, float]]:
        nodes = await rows.read_nodes(connection)
        now = await desk.now(connection)
        return now, {node.name: node.skew_ms for node in nodes if node.skew_ms is not None}

    return await desk.transact(work, tenant=None)


async def read_shards(desk: Desk) -> list[ShardRow]:
    """Who owns which shard."""

    async def work(connection: Connection) -> list[ShardRow]:
        return await rows.read_shards(connection)

    return await desk.transact(work, tenant=None)


async def read_nodes(desk: Desk) -> list[NodeRow]:
    """The processes of the service."""

    async def work(connection: Connection) -> list[NodeRow]:
        now = await desk.now(connection)
        return [judged(row, desk, now) for row in await rows.read_nodes(connection)]

    return await desk.transact(work, tenant=None)


def judged(row: NodeRow, desk: Desk, now: datetime) -> NodeRow:
    """A node with whether it has been heard lately, by the bound that holds for workers, too."""
    return replace(row, live=row.heartbeat_at > now - desk.seen_within)


async def pause_cell(desk: Desk, *, reason: str) -> Cell:
    """Nothing is leased anywhere until it is resumed; what is under way goes on."""
    check_reason(reason)

    async def work(connection: Connection) -> Cell:
        now = await desk.now(connection)
        await rows.pause_cell(connection, paused_at=now, reason=reason or None)
        return await rows.read_cell(connection)

    return await desk.transact(work, tenant=None)


async def resume_cell(desk: Desk) -> Cell:
    """Let the brake go."""

    async def work(connection: Connection) -> Cell:
        await rows.pause_cell(connection, paused_at=None, reason=None)
        return await rows.read_cell(connection)

    return await desk.transact(work, tenant=None)


async def drain_node(desk: Desk, node: UUID) -> NodeRow:
    """Ask a node to finish what it holds and to stop; it hears of it with its next report."""

    async def work(connection: Connection) -> NodeRow:
        now = await desk.now(connection)
        found = None
        if await rows.drain_node(connection, node, now=now):
            found = next((one for one in await rows.read_nodes(connection) if one.id == node), None)
        if found is None:
            raise NotFound("there is no such node")
        return judged(found, desk, now)

    return await desk.transact(work, tenant=None)


async def read_lag(desk: Desk) -> timedelta:
    """How late due work is published, at worst."""
    return await desk.transact(rows.read_due_lag, tenant=None)
