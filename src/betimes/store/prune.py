"""Forgetting what has aged, a bounded number of rows at a time."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from betimes.domain.ids import ShardId, floor_of, to_ms
from betimes.store.database import Database
from betimes.store.dedupe import forget_keys
from betimes.store.endpoints import prune_callbacks
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.retention import forget_words

SQL = load("prune")
NODES = load("nodes")
MEMBERS = load("members")
BLOBS_MORE = timedelta(days=1)
"""So much longer is a blob kept each time its time is up and something still needs it."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """The pruner's side of the store; every method returns how many rows went."""

    database: Database
    most: int = 1_000

    async def dead_letters(self, shard: ShardId, *, before: datetime) -> int:
        """Dead letters laid aside before an instant."""
        return await self._count("prune_dead_letters", shard=shard, before=before)

    async def default_runs(self, shard: ShardId, *, before: datetime) -> int:
        """Ended runs that no partition was dropped with, and what was written about them."""
        # A day that has aged today is dropped as a whole, which is far cheaper than row by row.
        day = before.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)

        async def work(connection: Connection) -> int:
            rows = await SQL["prune_default_runs"].fetch(
                connection,
                shard=shard,
                before=before,
                before_id=floor_of(to_ms(day)),
                most=self.most,
            )
            return await forget_words(connection, shard, rows)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def catchups(self, shard: ShardId, *, before: datetime) -> int:
        """Episodes of catching up that were over before an instant."""
        return await self._count("prune_catchups", shard=shard, before=before)

    async def workflow_runs(self, shard: ShardId, *, before: datetime) -> int:
        """Workflow runs that were over before an instant, with everything of them."""
        return await self._count("prune_workflow_runs", shard=shard, before=before)

    async def alerts(self, shard: ShardId, *, before: datetime) -> int:
        """Episodes of alerts that were over before an instant."""
        return await self._count("prune_alerts", shard=shard, before=before)

    async def callbacks(self, shard: ShardId, *, before: datetime) -> int:
        """Endpoints of callbacks to which nothing was sent for long."""

        async def work(connection: Connection) -> int:
            return await prune_callbacks(connection, shard, before=before, most=self.most)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def expired(self, shard: ShardId, *, now: datetime | None) -> int:
        """Operations that ended, and blobs whose time is up and that nothing needs any more."""
        work = await self._count("prune_operations", shard=shard, now=now)
        await self._count("keep_blobs", shard=shard, now=now, more=BLOBS_MORE)
        return work + await self._count("prune_blobs", shard=shard, now=now)

    async def words(self, shard: ShardId, *, before: datetime) -> int:
        """Lines of logs and notes about runs that are older than runs are kept."""
        lines = await self._count("prune_run_logs", shard=shard, before=before)
        return lines + await self._count("prune_run_notes", shard=shard, before=before)

    async def visits(self, *, now: datetime) -> int:
        """Sessions and wishes of devices whose time is up."""
        sessions = await self.database.many(
            MEMBERS["prune_sessions"], lane=Lane.ENGINE, now=now, most=self.most
        )
        grants = await self.database.many(
            MEMBERS["prune_grants"], lane=Lane.ENGINE, now=now, most=self.most
        )
        return len(sessions) + len(grants)

    async def keys(self, shard: ShardId, *, now: datetime) -> int:
        """Business keys that nobody can mean any more; how many were looked at."""

        async def work(connection: Connection) -> int:
            _, looked_at = await forget_keys(connection, shard, now=now, most=self.most)
            return looked_at

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def silent(self, *, after: timedelta, now: datetime | None) -> int:
        """Nodes and workers that were not seen for long."""
        workers = await self.database.many(
            SQL["prune_workers"], lane=Lane.ENGINE, after=after, now=now
        )
        nodes = await self.database.many(
            NODES["prune_nodes"], lane=Lane.ENGINE, after=after, now=now
        )
        return len(workers) + len(nodes)

    async def _count(self, statement: str, **given: object) -> int:
        rows = await self.database.many(
            SQL[statement],
            lane=Lane.ENGINE,
            **given,
            **({"most": self.most} if "most" in SQL[statement].parameters else {}),
        )
        return len(rows)
