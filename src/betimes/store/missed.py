"""Fires that were planned, and that nobody came to publish: catch-up decides about them, too.

A fire is planned minutes ahead. When every coordinator was away at its time, it is missed like one
that was never planned: its run, which nobody has seen, is taken back and its job leaves a gap, or,
if it is behind anyway, begins again with it. One transaction that keeps the shard to itself; all
planned fires of a job go together.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from betimes.domain.errors import FencedOut
from betimes.domain.ids import JobId, NodeId, ShardId, floor_of, to_ms
from betimes.store.database import Database
from betimes.store.plan import Span, insert_gaps
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.shards import Claim

SQL = load("catchup")
SHARDS = load("shards")


@dataclass(frozen=True, slots=True)
class Missing:
    """What a new owner does before it publishes."""

    database: Database
    node: NodeId

    async def shards_behind(
        self, published: Mapping[ShardId, int], *, edge_ms: int
    ) -> set[ShardId]:
        """In which shards a planned fire lies between the cursor and an instant, in milliseconds.

        A look without a lock: `take_back` decides.
        """
        lows = [floor_of(through + 1) for through in published.values()]
        rows = await self.database.many(
            SQL["find_shards_missed"],
            lane=Lane.ENGINE,
            shards=list(published),
            lows=lows,
            low=min(lows),
            high=floor_of(edge_ms),
        )
        return {ShardId(row["shard"]) for row in rows}

    async def take_back(
        self, claim: Claim, *, edge: datetime, most: int, now: datetime | None
    ) -> int:
        """Take back what should have been published up to an instant; how many fires, 0 at the end.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> int:
            rows = await SHARDS["take_shard"].fetch(
                connection, shard=claim.shard, node=self.node, epoch=claim.epoch, now=now
            )
            if not rows:
                raise FencedOut(f"shard {claim.shard} has another owner")
            published = rows[0]["published_through"]
            if published is None or published >= edge:
                return 0
            span = {
                "shard": claim.shard,
                "low": floor_of(to_ms(published) + 1),
                "high": floor_of(to_ms(edge)),
            }
            found = await SQL["find_missed_jobs"].fetch(connection, **span, most=most)
            if not found:
                return 0
            jobs = [row["job_id"] for row in found]
            gone = await SQL["delete_missed_runs"].fetch(connection, **span, jobs=jobs)
            fires: dict[JobId, list[datetime]] = defaultdict(list)
            for row in gone:
                fires[row["job_id"]].append(row["fire_at"])
            await self._leave(connection, claim, fires, edge)
            return len(gone)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _leave(
        self,
        connection: Connection,
        claim: Claim,
        fires: dict[JobId, list[datetime]],
        edge: datetime,
    ) -> None:
        rows = await SQL["turn_jobs_back"].fetch(
            connection,
            shard=claim.shard,
            ids=list(fires),
            firsts=[min(some) for some in fires.values()],
            fires=[len(some) for some in fires.values()],
            edge=edge,
        )
        ahead = [row["id"] for row in rows if not row["behind"]]
        gaps = {job: Span(min(fires[job]), max(fires[job])) for job in ahead}
        await insert_gaps(connection, claim.shard, gaps)
