"""A partition per day: made ahead of time, dropped when it has aged.

A row planned for a day that has no partition yet waits in the default partition and moves when the
day's partition is made, long before it is due.

Age alone drops nothing that is still needed. Runs that have not ended and runs of dead letters move
into the default partition in the transaction that drops their day, with their attempts; their ids
stay, so whoever refers to them still finds them. A day with more of them than may move under the
lock stays, and the pruner deletes what has ended row by row. A day of events or deliveries stays
until everybody who can be told was told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("partitions")
PARENTS = ("runs", "attempts", "decisions", "idempotency", "outbox", "deliveries")
DAY = timedelta(days=1)
SLICE_BLOCKS = 4_096
"""So much of a day is looked through in one statement: 32 MiB, some 80,000 runs."""
SLICES_MAX = 500
"""So much in one pass, of all days together: 16 GiB."""
MOVED_MAX = 5_000
"""So many rows move while everybody waits for the lock."""
SURVEYED_BYTES_MIN = 524_288
"""What is smaller is read in no time, however it is read."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One day of one table."""

    parent: str
    day: date
    bytes: int = field(compare=False)

    def __str__(self) -> str:
        return f"{self.parent}_{self.day:%Y%m%d}"


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
                made += await self._ensure(parent, day)
        return made

    async def aged(self, today: date, *, keep_days: Mapping[str, int]) -> list[Partition]:
        """What is older than its table keeps; a table that is not named keeps everything."""
        return [
            partition
            for partition in await self.present()
            if partition.parent in keep_days
            and partition.day < today - keep_days[partition.parent] * DAY
        ]

    async def scan(self, partition: Partition, *, slices: int = SLICES_MAX) -> tuple[int, bool]:
        """Look for what is kept of an aged day: slices taken, and whether the day is through."""
        for taken in range(1, slices + 1):
            rows = await self.database.many(
                SQL["scan_partition"],
                lane=Lane.ENGINE,
                parent=partition.parent,
                day=partition.day,
                blocks=SLICE_BLOCKS,
            )
            if rows[0]["scanned"]:
                return taken, True
        return slices, False

    async def drop(self, partition: Partition, *, most: int = MOVED_MAX) -> int | None:
        """Drop an aged day; how many rows moved on, or None when the day stays."""
        rows = await self.database.many(
            SQL["drop_partition"],
            lane=Lane.ENGINE,
            parent=partition.parent,
            day=partition.day,
            most=most,
        )
        moved: int | None = rows[0]["moved"]
        return moved

    async def survey(self) -> int:
        """Count anew what tables hold that have outgrown their statistics; how many tables."""
        rows = await self.database.many(
            SQL["survey"], lane=Lane.ENGINE, least_bytes=SURVEYED_BYTES_MIN
        )
        surveyed: int = rows[0]["surveyed"]
        return surveyed

    async def _ensure(self, parent: str, day: date) -> bool:
        # One transaction each: a lock that cannot be had delays one day of one table only.
        rows = await self.database.many(
            SQL["ensure_partition"], lane=Lane.ENGINE, parent=parent, day=day
        )
        return bool(rows[0]["made"])
