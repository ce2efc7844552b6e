"""Many creations in one transaction, as groups make them."""

from collections.abc import Sequence

from betimes.domain.ids import RunId, ShardId, TenantId
from betimes.domain.job import Job
from betimes.domain.run import NewRun
from betimes.ops.create import NewJob, create_jobs
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_runs


async def make_jobs(
    desk: Desk, tenant: TenantId, new: Sequence[NewJob], shard: ShardId
) -> Sequence[Job]:
    """Jobs; unnamed ones in one shard, named ones where their names put them."""
    return await create_jobs(desk, tenant, new, shard=shard)


async def make_runs(
    desk: Desk, tenant: TenantId, new: Sequence[NewRun], shard: ShardId
) -> Sequence[RunId]:
    """Runs of one shard, which a few parcels carry."""
    return await enqueue_runs(desk, tenant, new, shard=shard)
