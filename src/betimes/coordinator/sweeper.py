"""Looks for what cannot be: a due run that no parcel holds. Repairs it, and counts it.

The rules of the line make sure that there is none up to the cursor. If the counter ever rises, a
rule is broken somewhere, and the run is late by the sweep instead of lost. A publisher that is late
breaks none: what it has not come to lies beyond the cursor, where nobody sweeps.
"""

from datetime import timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.holdings import Held, Holdings
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.store.sweep import Sweeping
from betimes.telemetry import Outage, Telemetry

SETTLED_AFTER = timedelta(seconds=30)
"""Only runs due this long ago are looked at: everything younger may be on its way."""
RUNS_MAX = 1_000


class Sweeper:
    """Sweeps every shard this node holds."""

    def __init__(
        self,
        *,
        sweeping: Sweeping,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
    ) -> None:
        self._sweeping = sweeping
        self._holdings = holdings
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._found = telemetry.counter("betimes_runs_unpublished_total")
        self._outage = Outage(duty="coordinator.sweeper", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Sweep until asked to stop."""
        beats = beat(self._clock, every=self._settings.sweep_every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> int:
        """One pass over every shard we may trust; returns how many runs had to be repaired."""
        if not self._time.known:
            return 0
        with self._telemetry.span("sweeper.tick") as span:
            span.expect_errors()
            found = 0
            for held in self._holdings.trusted(self._clock.monotonic()):
                found += await self._sweep(held)
            span.add(found=found)
        return found

    async def _sweep(self, held: Held) -> int:
        until = self._time.now() - SETTLED_AFTER
        try:
            swept = await self._sweeping.sweep(
                held.claim,
                after=held.swept_through,
                until=until,
                most=RUNS_MAX,
                now=self._clock.stated(),
            )
        except FencedOut:
            return 0  # the publisher notices by itself
        held.swept_through = swept.through
        found = swept.runs
        if found:
            self._found.add(len(found))
            self._telemetry.event(
                "run.unpublished",
                level="error",
                shard=held.claim.shard,
                runs=[str(run) for run in found[:10]],
            )
        return len(found)
