"""The cell as a whole: whether it answers, who is there, who owns what."""

from datetime import datetime, timedelta

from betimes.domain.errors import SchedulerError
from betimes.ops.desk import Desk
from betimes.store import cluster as rows
from betimes.store.cluster import Cell, NodeRow, ShardRow
from betimes.store.pool import Connection


async def check_database(desk: Desk) -> dict[str, str]:
    """What stands in the way of serving; every value is `ok` when nothing does."""
    try:
        cell = await read_cell(desk)
    except SchedulerError as error:
        return {"database": type(error).__name__.lower()}
    shards = "ok" if cell.shards == desk.shards else "the number of shards has changed"
    return {"database": "ok", "shards": shards}


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
        return await rows.read_nodes(connection)

    return await desk.transact(work, tenant=None)


async def read_lag(desk: Desk) -> timedelta:
    """How late due work is published, at worst."""
    return await desk.transact(rows.read_due_lag, tenant=None)
