"""The end of a worker: finish what can be finished in time, give back the rest.

What is given back costs nobody an attempt: the delivery is not counted, and runs of the parcel that
did end are final in their rows, so whoever leases it next reads only the others.
"""

import asyncio
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import Fence, ParcelId, ShardId
from betimes.rhythm import first_of, within
from betimes.store.parcels import Parcels
from betimes.store.release import Freed
from betimes.telemetry import Telemetry
from betimes.worker.finish import Reporter
from betimes.worker.held import HeldParcels
from betimes.worker.running import Runnings, Stop

RESERVED_SHARE = 0.2
"""Share of the time for draining that is kept for giving back."""
LETTING_GO = timedelta(seconds=1)
"""How long released handlers may take to notice."""


async def drain(
    *,
    parcels: Parcels,
    held: HeldParcels,
    running: Runnings,
    reporter: Reporter,
    clock: Clock,
    telemetry: Telemetry,
    patience: timedelta,
) -> int:
    """Called when nothing is claimed any more; returns how many parcels were given back."""
    with telemetry.span("worker.drain") as span:
        limit = patience.total_seconds() * (1 - RESERVED_SHARE)
        await first_of(held.empty.wait(), clock.sleep(limit))
        running.closing = True
        tasks = [one.task for one in running if isinstance(one.carrier, asyncio.Task)]
        for one in running:
            running.stop(one, Stop.RELEASE)
        if tasks:
            await asyncio.wait(tasks, timeout=LETTING_GO.total_seconds())
        left = patience * RESERVED_SHARE
        try:
            async with within(max(left, LETTING_GO), "worker.drain"):
                await reporter.settle()
                returned = await _give_back(parcels, held, clock)
        except Unavailable as error:
            # The leases run out by themselves; all that is lost is time.
            telemetry.event("worker.undrained", level="warning", error=error, parcels=len(held))
            returned = 0
        span.add(returned=returned)
    return returned


async def _give_back(parcels: Parcels, held: HeldParcels, clock: Clock) -> int:
    by_shard: dict[ShardId, list[tuple[ParcelId, Fence]]] = {}
    freed = Freed(at=clock.stated())
    for parcel in held:
        leased = parcel.leased
        by_shard.setdefault(leased.shard, []).append((leased.id, leased.fence))
        # Whoever goes on with it in a thread has no say any more.
        held.lose(parcel)
        place = leased.tenant, leased.queue
        for _ in range(parcel.left):
            freed.refund(place, leased.terms, admitted=leased.admitted, counted=leased.counted)
    returned = sum([await parcels.give_back(shard, pairs) for shard, pairs in by_shard.items()])
    await parcels.refund(freed)
    return returned
