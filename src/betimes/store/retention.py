"""Runs of queues and jobs that keep what has ended for a shorter time than runs are kept at all.

A partition is dropped with everything in it that has ended, so nobody can keep that for longer. To
keep it for shorter, runs are deleted row by row. Queues with the same retention are looked after
together: one walk over the ids of a shard for each length of time, a page at a time. Jobs are found
by an index of those that have one, and their runs by the index of the job.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from betimes.domain.ids import ShardId, TenantId, floor_of, to_ms
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("prune")
FIRST = UUID(int=0)
JOBS_MAX = 500
"""So many jobs are looked after at once."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long some queues keep what has ended."""

    kept: timedelta
    tenants: Sequence[TenantId]
    queues: Sequence[str]


@dataclass(frozen=True, slots=True)
class Retaining:
    """The pruner's look at queues and jobs with a retention of their own."""

    database: Database
    most: int = 5_000

    async def retentions(self) -> list[Retention]:
        """All of them, the shortest first."""
        rows = await self.database.many(SQL["find_retentions"], lane=Lane.ENGINE)
        return [
            Retention(timedelta(milliseconds=row["retain_ms"]), row["tenants"], row["queues"])
            for row in rows
        ]

    async def prune(
        self, shard: ShardId, retention: Retention, *, after: UUID, now: datetime
    ) -> tuple[int, UUID | None]:
        """One page of a shard: how many runs went, and where to go on; None when it was the last.

        Whatever of it has not ended long enough ago stays, and is found by a later walk.
        """
        before = now - retention.kept

        async def work(connection: Connection) -> tuple[int, UUID | None]:
            (page,) = await SQL["find_page_end"].fetch(
                connection,
                shard=shard,
                low=after,
                high=floor_of(to_ms(before)),
                most=self.most,
            )
            if not page["runs"]:
                return 0, None
            rows = await SQL["prune_queue_runs"].fetch(
                connection,
                shard=shard,
                low=after,
                high=page["last_id"],
                tenants=list(retention.tenants),
                queues=list(retention.queues),
                before=before,
            )
            gone = await forget_words(connection, shard, rows)
            return gone, page["last_id"] if page["runs"] == self.most else None

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def prune_of_jobs(
        self, shard: ShardId, *, after: UUID, now: datetime
    ) -> tuple[int, UUID | None]:
        """Runs of one page of jobs: how many went, and after which job to go on; None at the end.

        Where more have outlived their time than go at once, it goes on with the same jobs.
        """

        async def work(connection: Connection) -> tuple[int, UUID | None]:
            jobs = await SQL["find_retaining_jobs"].fetch(
                connection, shard=shard, after=after, most=JOBS_MAX
            )
            edges = [now - timedelta(milliseconds=job["retain_ms"]) for job in jobs]
            found = await SQL["find_outlived_runs"].fetch(
                connection,
                shard=shard,
                jobs=[job["id"] for job in jobs],
                highs=[floor_of(to_ms(before)) for before in edges],
                edges=edges,
                most=self.most,
            )
            gone = await self._forget(connection, shard, [row["id"] for row in found])
            if len(found) == self.most:
                return gone, after
            return gone, jobs[-1]["id"] if len(jobs) == JOBS_MAX else None

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _forget(self, connection: Connection, shard: ShardId, runs: list[UUID]) -> int:
        if not runs:
            return 0
        rows = await SQL["prune_outlived_runs"].fetch(
            connection, shard=shard, runs=runs, low=min(runs), high=max(runs)
        )
        return await forget_words(connection, shard, rows)


async def forget_words(
    connection: Connection, shard: ShardId, rows: Sequence[asyncpg.Record]
) -> int:
    """What was written about runs that have just gone; how many they were."""
    gone = [row["id"] for row in rows]
    if gone:
        await SQL["prune_words_of"].execute(
            connection, shard=shard, runs=gone, low=min(gone), high=max(gone)
        )
    return len(gone)
