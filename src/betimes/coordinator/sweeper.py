"""Looks for what cannot be: a due run that no parcel holds. Repairs it, and counts it.

The rules of the line make sure that there is none up to the cursor. If the counter ever rises, a
rule is broken somewhere, and the run is late by the sweep instead of lost. A publisher that is late
breaks none: what it has not come to lies beyond the cursor, where nobody sweeps.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.renewal import instant
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.store import sweep
from betimes.store.shards import Shards
from betimes.store.sweep import Sweeping
from betimes.telemetry import Outage, Telemetry

SETTLED_AFTER = timedelta(seconds=30)
"""Only runs due this long ago are looked at: everything younger may be on its way."""
RUNS_MAX = 1_000
SHARDS_TOGETHER = 64


class Sweeper:
    """Sweeps every shard this node holds."""

    def __init__(
        self,
        *,
        sweeping: Sweeping,
        shards: Shards,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
    ) -> None:
        self._sweeping = sweeping
        self._shards = shards
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
            until = self._time.now() - SETTLED_AFTER
            held = self._holdings.trusted(self._clock.monotonic())
            for start in range(0, len(held), SHARDS_TOGETHER):
                for one in await self._look(held[start : start + SHARDS_TOGETHER], until):
                    found += await self._sweep(one, until)
            span.add(found=found)
        return found

    async def _look(self, some: Sequence[Held], until: datetime) -> list[Held]:
        """Those in which something seems to be missing; the others are swept by this."""
        wanted = {
            one.claim.shard: (one.swept_through, through)
            for one in some
            if one.published_through_ms >= 0
            and (through := sweep.published_part(until, instant(one.published_through_ms)))
        }
        spans = {
            shard: (after, through)
            for shard, (after, through) in wanted.items()
            if after is None or after < through
        }
        if not spans:
            return []
        missing = await self._sweeping.shards_to_sweep(spans)
        clean = [one for one in some if one.claim.shard in spans.keys() - missing]
        # Each only as far as it was looked through: the shard that is furthest behind says it.
        if clean:
            through = min(spans[one.claim.shard][1] for one in clean)
            moved = await self._shards.move_swept([one.claim for one in clean], through)
            for one in clean:
                one.swept_through = moved.get(one.claim.shard, one.swept_through)
        return [one for one in some if one.claim.shard in missing]

    async def _sweep(self, held: Held, until: datetime) -> int:
        try:
            async with held.writing:
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
