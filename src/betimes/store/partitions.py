"""A partition per day: made ahead of time, dropped when it has aged.

A row planned for a day that has no partition yet waits in the default partition and moves when the
day's partition is made, long before it is due.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("partitions")
PARENTS = ("runs", "attempts", "decisions", "idempotency", "outbox", "deliveries")
DAY = timedelta(days=1)
SURVEYED_BYTES_MIN = 524_288
"""What is smaller is read in no time, however it is read."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One day of one table."""

    parent: str
    day: date
    bytes: int


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of one database."""

    database: Database

    async def present(self) -> list[Partition]:
        """Every day that has its partition."""
        rows = await self.database.many(SQL["list_partitions"], lane=Lane.ENGINE)
        return [Partition(row["parent"], row["day"], row["bytes"]) for row in rows]

    async def ensure(self, today: date, *, ahead_days: int) -> int:
        """Make what is missing from yesterday to `ahead_days` from now; returns how many."""
        existing = {(one.parent, one.day) for one in await self.present()}
        wanted = [
            (parent, today + offset * DAY)
            for offset in range(-1, ahead_days + 1)
            for parent in PARENTS
        ]
        made = 0
        for parent, day in wanted:
            if (parent, day) not in existing:
                made += await self._change("ensure_partition", parent, day)
        return made

    async def drop(self, today: date, *, keep_days: Mapping[str, int]) -> list[Partition]:
        """Drop what is older than its table keeps; a table that is not named keeps everything."""
        aged = [
            one
            for one in await self.present()
            if one.parent in keep_days and one.day < today - keep_days[one.parent] * DAY
        ]
        return [one for one in aged if await self._change("drop_partition", one.parent, one.day)]

    async def survey(self) -> int:
        """Count anew what tables hold that have outgrown their statistics; how many tables."""
        rows = await self.database.many(
            SQL["survey"], lane=Lane.ENGINE, least_bytes=SURVEYED_BYTES_MIN
        )
        surveyed: int = rows[0]["surveyed"]
        return surveyed

    async def _change(self, statement: str, parent: str, day: date) -> bool:
        # One transaction each: a lock that cannot be had delays one day of one table only.
        rows = await self.database.many(SQL[statement], lane=Lane.ENGINE, parent=parent, day=day)
        return bool(rows[0][0])
