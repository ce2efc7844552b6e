"""Give parcels whose lease has run out back to the world."""

from datetime import datetime

from betimes.config.settings import JanitorSettings
from betimes.domain.clock import Clock
from betimes.domain.ids import ShardId
from betimes.rhythm import Stopping, attend, beat
from betimes.store.reap import Abandoned, Reaping
from betimes.telemetry import Items, Outage, Telemetry

PARCELS_PER_TRANSACTION = 50
TRANSACTIONS_PER_SHARD_MAX = 20


class Reaper:
    """Looks for expired leases in every shard; any number of them may run at once."""

    def __init__(
        self, *, reaping: Reaping, clock: Clock, telemetry: Telemetry, settings: JanitorSettings
    ) -> None:
        self._reaping = reaping
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._lost = telemetry.counter("betimes_lease_lost_total")
        self._outage = Outage(duty="janitor.reaper", telemetry=telemetry)
        # Briefly: what a lost worker held waits for this.
        self._places = Items(
            duty="janitor.reaper", telemetry=telemetry, first_wait=1, longest_wait=10
        )

    async def run(self, stopping: Stopping) -> None:
        """Reap until asked to stop."""
        beats = beat(self._clock, every=self._settings.reap_every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> int:
        """One bounded pass; returns how many parcels were taken back."""
        with self._telemetry.span("reaper.tick") as span:
            span.expect_errors()
            now = self._clock.stated()
            shards = await self._reaping.shards_to_reap(now=now)
            parcels = sum(await self._places.each(shards, lambda one: self._reap(one, now)))
            span.add(parcels=parcels)
        return parcels

    async def _reap(self, shard: ShardId, now: datetime | None) -> int:
        parcels = 0
        for _ in range(TRANSACTIONS_PER_SHARD_MAX):
            taken = await self._reaping.reap(shard, most=PARCELS_PER_TRANSACTION, now=now)
            parcels += len(taken)
            self._tell(taken)
            if len(taken) < PARCELS_PER_TRANSACTION:
                break
        return parcels

    def _tell(self, taken: list[Abandoned]) -> None:
        if not taken:
            return
        self._lost.add(len(taken), kind="parcel")
        workers = sorted({str(one.worker) for one in taken})
        runs = sum(len(one.parcel.runs) for one in taken)
        self._telemetry.event("lease.expired", level="warning", workers=workers, runs=runs)
