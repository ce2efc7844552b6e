"""Runs that are over, or wait for a retry, go back into the queue.

A run that is over may still be listed in a parcel that is only partly done. It is taken out of
there first, so that it is never in two parcels, and the fence of its new parcel goes on from the
highest one it ever had, so that whoever held it before is refused.
"""

from collections.abc import Sequence
from datetime import datetime

from betimes.domain.ids import ParcelId, RunId, TenantId, compose, shard_of, to_ms
from betimes.domain.parcel import Lane, Parcel
from betimes.ops.desk import TAIL_BYTES
from betimes.store.control import HeldParcel, hold, take_out
from betimes.store.pool import Connection
from betimes.store.publish import insert_parcels
from betimes.store.runs import Revived, revive


async def revive_runs(
    connection: Connection,
    tenant: TenantId,
    runs: Sequence[RunId],
    *,
    visible: Sequence[datetime],
    tails: bytes,
    reason: str,
    reset_attempts: bool,
    queue: str | None = None,
    payload: bytes | None = None,
) -> list[Parcel]:
    """Revive runs of one shard, each visible at its time; those that cannot be are left out.

    `tails` holds eight bytes of entropy for each.
    """
    if not runs:
        return []
    shard = shard_of(runs[0])
    held = await hold(connection, shard, tenant, runs)
    revived = await revive(
        connection,
        shard,
        runs,
        reason=reason,
        reset_attempts=reset_attempts,
        queue=queue,
        payload=payload,
    )
    held = {run: parcel for run, parcel in held.items() if run in revived}
    await take_out(connection, shard, held)
    parcels = []
    for place, (run, at) in enumerate(zip(runs, visible, strict=True)):
        if run in revived:
            tail = int.from_bytes(tails[place * TAIL_BYTES : (place + 1) * TAIL_BYTES], "big")
            parcels.append(_parcel(run, tenant, revived[run], held.get(run), at=at, tail=tail))
    await insert_parcels(connection, shard, parcels)
    return parcels


def _parcel(
    run: RunId,
    tenant: TenantId,
    revived: Revived,
    before: HeldParcel | None,
    *,
    at: datetime,
    tail: int,
) -> Parcel:
    shard = shard_of(run)
    return Parcel(
        shard=shard,
        id=ParcelId(compose(to_ms(at), shard, tail)),
        tenant=tenant,
        queue=revived.queue,
        priority=revived.priority,
        visible_at=at,
        runs=(run,),
        lane=Lane.RETRY,
        fence=revived.fence if before is None else max(revived.fence, before.fence),
        terms=revived.terms,
    )
