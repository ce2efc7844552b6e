"""Facts about the server itself: its clock, and how well its tables keep."""

from dataclasses import dataclass
from datetime import datetime

from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("server")


async def read_clock(database: Database) -> datetime:
    """The database clock, which alone decides what is due."""
    rows = await database.many(SQL["read_clock"], lane=Lane.ENGINE)
    now: datetime = rows[0]["now"]
    return now


@dataclass(frozen=True, slots=True)
class TableHealth:
    """How well a table keeps: updates that stayed on their page, and rows nobody can see."""

    table: str
    updates: int
    hot_updates: int
    dead: int
    live: int

    @property
    def hot_share(self) -> float:
        """The part of the updates that touched no index; 1 when there were none."""
        return self.hot_updates / self.updates if self.updates else 1.0


@dataclass(frozen=True, slots=True)
class Bloat:
    """What keeps vacuum from cleaning up, and what has piled up."""

    oldest_snapshot_seconds: float
    tables: tuple[TableHealth, ...]


async def read_bloat(database: Database) -> Bloat:
    """The age of the oldest snapshot and the state of our hot tables."""
    oldest = await database.many(SQL["read_oldest_snapshot"], lane=Lane.ENGINE)
    rows = await database.many(SQL["read_table_health"], lane=Lane.ENGINE)
    return Bloat(
        oldest[0]["seconds"] or 0.0,
        tuple(
            TableHealth(row["name"], row["updates"], row["hot_updates"], row["dead"], row["live"])
            for row in rows
        ),
    )
