"""Jobs of declared sets, by name."""

from collections.abc import Sequence

from betimes.domain.ids import ShardId, TenantId
from betimes.domain.job import Job
from betimes.store.ask import many
from betimes.store.jobs import job_of
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("apply")


async def read_named_jobs(
    connection: Connection,
    tenant: TenantId,
    places: Sequence[tuple[str, str]],
    *,
    shards: Sequence[ShardId],
) -> list[Job]:
    """Jobs by group and name, each in its shard; those that do not exist are missing."""
    rows = await many(
        connection,
        SQL["read_named_jobs"],
        tenant=tenant,
        shards=list(shards),
        groups=[group for group, _ in places],
        names=[name for _, name in places],
    )
    return [job_of(row) for row in rows]
