"""From runs to the parcels that carry them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from betimes.domain.ids import ParcelId, RunId, ShardId, TenantId
from betimes.domain.parcel import RUNS_MAX, Lane, Parcel, Waiting, pack
from betimes.domain.states import RunState
from betimes.store.occurrences import Occurrence
from betimes.store.pool import Connection
from betimes.store.publish import insert_parcels

Place = tuple[str, int, datetime]
"""Queue, priority, visible at: what the runs of one parcel have in common."""


async def parcel_runs(
    connection: Connection, shard: ShardId, runs: Sequence[Occurrence]
) -> list[Parcel]:
    """Parcels for the queued ones among runs that this transaction has inserted."""
    waiting = [
        Waiting(run.id, run.tenant, run.due_at, run.priority, run.queue)
        for run in runs
        if run.state is RunState.QUEUED
    ]
    parcels = pack(shard, waiting)
    await insert_parcels(connection, shard, parcels)
    return parcels


def pack_groups(
    shard: ShardId,
    tenant: TenantId,
    groups: Mapping[Place, Sequence[RunId]],
    *,
    lane: Lane = Lane.ON_TIME,
) -> list[Parcel]:
    """Parcels for fresh runs that are grouped already; each is named after its first run."""
    return [
        Parcel(
            shard=shard,
            id=ParcelId(runs[start]),
            tenant=tenant,
            queue=queue,
            priority=priority,
            visible_at=visible_at,
            runs=tuple(runs[start : start + RUNS_MAX]),
            lane=lane,
        )
        for (queue, priority, visible_at), runs in groups.items()
        for start in range(0, len(runs), RUNS_MAX)
    ]
