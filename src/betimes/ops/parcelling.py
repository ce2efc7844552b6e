"""From runs to the parcels that carry them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from betimes.domain.ids import RunId, ShardId, TenantId
from betimes.domain.parcel import RUNS_MAX, Lane, Parcel
from betimes.domain.states import RunState
from betimes.ops.desk import Desk
from betimes.store.adhoc import insert_parcels
from betimes.store.occurrences import PlannedRun
from betimes.store.pool import Connection

Place = tuple[str, int, datetime]
"""Queue, priority, visible at: what the runs of one parcel have in common."""


async def parcel_runs(
    connection: Connection, desk: Desk, shard: ShardId, runs: Sequence[PlannedRun]
) -> list[Parcel]:
    """Parcels for the runs among these that are queued; their insertion belongs to this one."""
    by_tenant: dict[TenantId, dict[Place, list[RunId]]] = {}
    for run in runs:
        if run.state is RunState.QUEUED:
            groups = by_tenant.setdefault(run.tenant, {})
            groups.setdefault((run.queue, run.priority, run.due_at), []).append(run.id)
    made: list[Parcel] = []
    for tenant, groups in by_tenant.items():
        parcels = pack(desk, shard, tenant, groups)
        await insert_parcels(connection, parcels)
        made += parcels
    return made


def pack(
    desk: Desk,
    shard: ShardId,
    tenant: TenantId,
    groups: Mapping[Place, Sequence[RunId]],
    *,
    lane: Lane = Lane.ON_TIME,
) -> list[Parcel]:
    """Parcels for runs grouped by (queue, priority, visible at), none larger than it may be."""
    pieces = [
        (place, runs[start : start + RUNS_MAX])
        for place, runs in groups.items()
        for start in range(0, len(runs), RUNS_MAX)
    ]
    ids = desk.parcel_ids([place[2] for place, _ in pieces], shard)
    return [
        Parcel(
            shard=shard,
            id=identifier,
            tenant=tenant,
            queue=queue,
            priority=priority,
            visible_at=visible_at,
            runs=tuple(runs),
            lane=lane,
        )
        for identifier, ((queue, priority, visible_at), runs) in zip(ids, pieces, strict=True)
    ]
