"""From runs to the parcels that carry them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from betimes.domain.ids import ParcelId, RunId, ShardId, TenantId
from betimes.domain.parcel import RUNS_MAX, Lane, Parcel
from betimes.domain.states import RunState
from betimes.domain.terms import Terms
from betimes.store.occurrences import Occurrence
from betimes.store.pool import Connection
from betimes.store.publish import place_runs

Place = tuple[str, int, datetime, Terms, str | None]
"""Queue, priority, visible at, terms and handler: what the runs of one parcel have in common."""


async def parcel_runs(
    connection: Connection, shard: ShardId, runs: Sequence[Occurrence], *, now: datetime
) -> list[Parcel]:
    """Parcels for the queued ones among runs of jobs that this transaction has made."""
    waiting = [run.waiting() for run in runs if run.state is RunState.QUEUED]
    return (await place_runs(connection, shard, waiting, now=now)).parcels


def pack_groups(
    shard: ShardId,
    tenant: TenantId,
    groups: Mapping[Place, Sequence[RunId]],
    *,
    lane: Lane = Lane.ON_TIME,
) -> list[Parcel]:
    """Parcels for fresh runs that are grouped already; each is named after its first run.

    Runs with a gate, a line or a rate travel alone.
    """
    return [
        Parcel(
            shard=shard,
            id=ParcelId(runs[start]),
            tenant=tenant,
            queue=queue,
            priority=priority,
            visible_at=visible_at,
            runs=tuple(runs[start : start + size]),
            lane=lane,
            terms=terms,
            handler=handler,
        )
        for (queue, priority, visible_at, terms, handler), runs in groups.items()
        for size in (1 if terms.is_gated else RUNS_MAX,)
        for start in range(0, len(runs), size)
    ]
