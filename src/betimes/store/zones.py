"""Next fires after the zone rules have changed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from betimes.domain.ids import JobId, NodeId, ShardId
from betimes.store.database import Database
from betimes.store.jobs import hold_jobs
from betimes.store.occurrences import accounted_for
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
    updated_at: datetime
    schedule: str


Following = Callable[[FarJob, datetime], datetime | None]
"""The first fire of a job after an instant."""


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
        following: Following,
        tzdata: str,
        now: datetime | None,
    ) -> int:
        """Give jobs their new next fire; returns how many were still as they were read.

        No job goes back to fires that have a run or a decision. There are some only where the clock
        of the database was set back, or the horizon of planning was longer before.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> int:
            await hold(connection, claim, node=self.node, now=now)
            steps = await self._behind_accounts(connection, claim.shard, moved, following)
            rows = await SQL["refresh_jobs"].fetch(
                connection,
                shard=claim.shard,
                tzdata=tzdata,
                ids=[job.id for job, _ in steps],
                revisions=[job.revision for job, _ in steps],
                expected=[job.next_fire_at for job, _ in steps],
                next_fires=[fire for _, fire in steps],
            )
            return len(rows)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _behind_accounts(
        self,
        connection: Connection,
        shard: ShardId,
        moved: Sequence[tuple[FarJob, datetime]],
        following: Following,
    ) -> list[tuple[FarJob, datetime]]:
        """The same steps, each of them behind the last fire that somebody has accounted for."""
        back = [(job.id, fire, job.next_fire_at) for job, fire in moved if fire < job.next_fire_at]
        await hold_jobs(connection, shard, {job for job, _, _ in back})
        known = await accounted_for(connection, shard, back)
        steps: list[tuple[FarJob, datetime]] = []
        for job, fire in moved:
            found = known.get((job.id, fire))
            step = fire if found is None else following(job, found.last)
            if step is not None and step != job.next_fire_at:
                steps.append((job, step))
        return steps
