"""Next fires after the zone rules have changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from betimes.domain.ids import JobId, NodeId, ShardId
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.shards import Claim, hold

SQL = load("plan")


@dataclass(frozen=True, slots=True)
class FarJob:
    """A job whose next fire is not planned yet, as it was computed."""

    id: JobId
    revision: int
    next_fire_at: datetime
    schedule: str


@dataclass(frozen=True, slots=True)
class Zones:
    """Reading and replacing next fires, under the shard's epoch."""

    database: Database
    node: NodeId

    async def far_jobs(
        self, after: Mapping[ShardId, UUID], *, beyond: datetime, most: int
    ) -> dict[ShardId, list[FarJob]]:
        """The next page of each of some shards: jobs whose next fire lies beyond an instant."""
        rows = await self.database.many(
            SQL["read_far_jobs"],
            lane=Lane.ENGINE,
            shards=list(after),
            afters=list(after.values()),
            beyond=beyond,
            most=most,
        )
        found: dict[ShardId, list[FarJob]] = {shard: [] for shard in after}
        for row in rows:
            shard, *values = row.values()
            found[shard].append(FarJob(*values))
        return found

    async def refresh(
        self,
        claim: Claim,
        moved: Sequence[tuple[FarJob, datetime]],
        *,
        tzdata: str,
        now: datetime | None,
    ) -> int:
        """Give jobs their new next fire; returns how many were still as they were read.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> int:
            await hold(connection, claim, node=self.node, now=now)
            rows = await SQL["refresh_jobs"].fetch(
                connection,
                shard=claim.shard,
                tzdata=tzdata,
                ids=[job.id for job, _ in moved],
                revisions=[job.revision for job, _ in moved],
                expected=[job.next_fire_at for job, _ in moved],
                next_fires=[fire for _, fire in moved],
            )
            return len(rows)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)
