"""Many creations in one transaction, as groups make them."""

from collections.abc import Sequence
from typing import NamedTuple

from betimes.domain.ids import ShardId, TenantId
from betimes.domain.run import NewRun
from betimes.ops.create import NewJob
from betimes.ops.dedupe import MadeJob, MadeRun, create_made, enqueue_made
from betimes.ops.desk import Desk
from betimes.ops.runs import RunView, get_run


class Enqueued(NamedTuple):
    """A run that was made, or the one that stands for it, as it is now."""

    made: MadeRun
    view: RunView | None = None


async def make_jobs(
    desk: Desk, tenant: TenantId, new: Sequence[NewJob], shard: ShardId
) -> Sequence[MadeJob]:
    """Jobs; unnamed ones in one shard, the others where their names or keys put them."""
    return await create_made(desk, tenant, new, shard=shard)


async def make_runs(
    desk: Desk, tenant: TenantId, new: Sequence[NewRun], shard: ShardId
) -> Sequence[Enqueued]:
    """Runs of one shard, which a few parcels carry; those with a key where their keys put them."""
    return [
        Enqueued(made, await get_run(desk, tenant, made.id) if made.deduplicated else None)
        for made in await enqueue_made(desk, tenant, new, shard=shard)
    ]
