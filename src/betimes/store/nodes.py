"""The processes of the service, as they report themselves."""

from dataclasses import dataclass
from datetime import datetime

from betimes.domain.errors import Bug
from betimes.domain.ids import NodeId
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("nodes")
ROWS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCard:
    """What a node says about itself once."""

    id: NodeId
    name: str
    version: str
    tzdata: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """A node as the others see it; `skew_ms` is its clock minus the database's."""

    id: NodeId
    name: str
    version: str
    roles: tuple[str, ...]
    started_at: datetime
    heartbeat_at: datetime
    skew_ms: float | None
    draining: bool
    drain_at: datetime | None = None
    capacity: int | None = None
    """How many shards its coordinator can serve; None when it could serve all."""


async def beat(
    database: Database,
    card: NodeCard,
    *,
    skew_ms: float | None,
    draining: bool,
    now: datetime | None,
) -> datetime:
    """Say that the node is alive; returns the database clock. Safe to repeat."""
    row = await database.maybe(
        SQL["beat_node"],
        lane=Lane.COMPLETE,
        id=card.id,
        name=card.name,
        version=card.version,
        tzdata=card.tzdata,
        roles=list(card.roles),
        skew_ms=skew_ms,
        draining=draining,
        now=now,
    )
    if row is None:
        raise Bug("beat_node returned no row")
    answer: datetime = row["now"]
    return answer


async def note_capacity(database: Database, node: NodeId, capacity: int | None) -> None:
    """Say how many shards a node can serve. Safe to repeat."""
    await database.many(SQL["note_capacity"], lane=Lane.LEASE, id=node, capacity=capacity)


async def seen_since(database: Database, since: datetime) -> list[NodeSeen]:
    """The nodes that were heard of after an instant, oldest first."""
    rows = await database.many(SQL["list_nodes"], lane=Lane.ENGINE, since=since, rows_max=ROWS_MAX)
    return [NodeSeen(**{**dict(row), "roles": tuple(row["roles"])}) for row in rows]


async def leave(database: Database, node: NodeId) -> None:
    """Forget a node that says goodbye. Safe to repeat."""
    await database.many(SQL["leave_node"], lane=Lane.COMPLETE, id=node)
