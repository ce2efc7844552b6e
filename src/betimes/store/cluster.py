"""The cell as a whole, as it is stored."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from betimes.store.ask import many, maybe, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("cluster")
NODES_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What was fixed when the cell was made."""

    id: UUID
    shards: int
    paused_at: datetime | None
    paused_reason: str | None
    created_at: datetime
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRow:
    """A shard, who owns it, and how far it has come."""

    shard: int
    owner: UUID | None
    epoch: int
    lease_until: datetime | None
    published_through: datetime | None
    swept_through: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as it reported itself."""

    id: UUID
    name: str
    version: str
    tzdata: str
    roles: list[str]
    started_at: datetime
    heartbeat_at: datetime
    skew_ms: float | None
    draining: bool
    live: bool = True
    """Whether it has been heard lately; whoever knows the time and the bound says so."""


async def read_cell(connection: Connection) -> Cell:
    """The cell."""
    return Cell(**dict(await one(connection, SQL["read_cluster"])))


async def read_due_lag(connection: Connection) -> timedelta:
    """How late the shard that is last publishes what is due."""
    lag: timedelta = (await one(connection, SQL["read_due_lag"]))["lag"]
    return lag


async def read_shards(connection: Connection) -> list[ShardRow]:
    """Its shards."""
    return [ShardRow(**dict(row)) for row in await many(connection, SQL["read_all_shards"])]


async def read_nodes(connection: Connection) -> list[NodeRow]:
    """Its nodes."""
    rows = await many(connection, SQL["read_all_nodes"], most=NODES_MAX)
    return [NodeRow(**dict(row)) for row in rows]


async def pause_cell(
    connection: Connection, *, paused_at: datetime | None, reason: str | None
) -> None:
    """Put the brake on, or let it go."""
    await one(connection, SQL["pause_cluster"], paused_at=paused_at, reason=reason)


async def drain_node(connection: Connection, node: UUID, *, now: datetime) -> bool:
    """Ask a node to go; False when there is none."""
    return await maybe(connection, SQL["drain_node"], id=node, now=now) is not None
