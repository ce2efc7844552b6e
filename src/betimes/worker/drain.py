"""The end of a worker: finish what can be finished in time, give back the rest.

What is given back costs nobody an attempt: the delivery is not counted, and runs of the parcel that
did end are final in their rows, so whoever leases it next reads only the others.
"""

import asyncio
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.rhythm import first_of, within
from betimes.telemetry import Telemetry
from betimes.worker.held import HeldParcels
from betimes.worker.running import Runnings, Stop
from betimes.worker.transport import Holds, Reports

RESERVED_SHARE = 0.2
"""Share of the time for draining that is kept for giving back."""
LETTING_GO = timedelta(seconds=1)
"""How long released handlers may take to notice."""


async def drain(
    *,
    holds: Holds,
    held: HeldParcels,
    running: Runnings,
    reporter: Reports,
    clock: Clock,
    telemetry: Telemetry,
    patience: timedelta,
) -> int:
    """Called when nothing is claimed any more; returns how many parcels were given back."""
    telemetry.event("worker.draining", attempts=len(running))
    with telemetry.span("worker.drain") as span:
        limit = patience.total_seconds() * (1 - RESERVED_SHARE)
        await first_of(held.empty.wait(), clock.sleep(limit))
        running.closing = True
        tasks = {one.task for one in running if isinstance(one.carrier, asyncio.Task)}
        for one in running:
            running.stop(one, Stop.RELEASE)
        await clock.sleep(0)  # nobody waits for attempts in threads from the next turn on
        tasks |= running.concluding
        if tasks:
            await asyncio.wait(tasks, timeout=LETTING_GO.total_seconds())
        left = patience * RESERVED_SHARE
        try:
            async with within(max(left, LETTING_GO), "worker.drain"):
                await reporter.settle()
                returned = await _give_back(holds, held)
        except Unavailable as error:
            # The leases run out by themselves; all that is lost is time.
            telemetry.event("worker.undrained", level="warning", error=error, parcels=len(held))
            returned = 0
        span.add(returned=returned)
    return returned


async def _give_back(holds: Holds, held: HeldParcels) -> int:
    left = list(held)
    for parcel in left:
        # Whoever goes on with it in a thread has no say any more.
        held.lose(parcel)
    return await holds.give_back(left) if left else 0
