"""A minute that comes twice: the clock of the database was set back.

Cursors never go back. So for as long as the clock has not come to the cursor of a shard again, a
run may be inserted that is due before the cursor and further ahead than the margin: nobody makes
its parcel, and the publisher has passed there already. While that is so, what lies in that time and
is in no parcel is looked for once a second, by one statement for all shards, and put into parcels
as a sweep does. Nothing is early by it: a parcel becomes visible when its runs are due.
"""

from collections.abc import Sequence
from datetime import timedelta

from betimes.coordinator.holdings import Held
from betimes.coordinator.renewal import instant
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut
from betimes.domain.ids import to_ms
from betimes.rhythm import DatabaseTime
from betimes.store.sweep import Sweeping
from betimes.telemetry import Telemetry

LOOK_EVERY_SECONDS = 1.0
SLACK_MS = 1_000
"""An estimate of the time is never better than that; a smaller step is within the margin."""
BACK = timedelta(seconds=30)
"""How far before now a look begins: more than any transaction takes."""
RUNS_MAX = 1_000


class Relived:
    """A part of the publisher's pass."""

    def __init__(
        self,
        *,
        sweeping: Sweeping,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        lead: timedelta,
    ) -> None:
        self._sweeping = sweeping
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._lead_ms = lead // timedelta(milliseconds=1)
        self._looked_at = float("-inf")

    async def pass_over(self, held: Sequence[Held]) -> int:
        """Publish what was inserted behind the cursors; how many runs."""
        now = self._time.now()
        ahead_ms = to_ms(now) + self._lead_ms + SLACK_MS
        again = {one.claim.shard: one for one in held if one.published_through_ms > ahead_ms}
        at = self._clock.monotonic()
        if not again or at - self._looked_at < LOOK_EVERY_SECONDS:
            return 0
        self._looked_at = at
        spans = {
            shard: (now - BACK, instant(one.published_through_ms)) for shard, one in again.items()
        }
        found = 0
        for shard in sorted(await self._sweeping.shards_to_sweep(spans)):
            found += await self._publish(again[shard])
        if found:
            self._telemetry.event("clock.relived", level="warning", runs=found, database_time=now)
        return found

    async def _publish(self, held: Held) -> int:
        after, until = self._time.now() - BACK, instant(held.published_through_ms)
        try:
            async with held.writing:
                swept = await self._sweeping.sweep(
                    held.claim, after=after, until=until, most=RUNS_MAX, now=self._clock.stated()
                )
        except FencedOut:
            return 0  # the publisher notices by itself
        return len(swept.runs)
