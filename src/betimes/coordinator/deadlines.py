"""Looks for runs that had to start by now and wait for a worker that does not come.

A worker marks what it leases too late; this marks what nobody leases, within a few seconds. It also
ends what was cancelled with a grace that has passed, whatever its worker does.
"""

from datetime import timedelta

from betimes.coordinator.holdings import Held, Holdings
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.store.deadlines import Deadlines
from betimes.telemetry import Outage, Telemetry

LOOK_EVERY = timedelta(seconds=5)
RUNS_MAX = 500
PASSES_MAX = 20


class DeadlineKeeper:
    """Keeps the start deadlines of every shard this node holds."""

    def __init__(
        self,
        *,
        deadlines: Deadlines,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._deadlines = deadlines
        self._holdings = holdings
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._runs = telemetry.counter("betimes_runs_total")
        self._outage = Outage(duty="coordinator.deadlines", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Look until asked to stop."""
        beats = beat(self._clock, every=LOOK_EVERY, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> int:
        """One bounded pass over every shard we may trust; how many runs have ended."""
        if not self._time.known:
            return 0
        with self._telemetry.span("deadlines.tick") as span:
            span.expect_errors()
            held = {one.claim.shard: one for one in self._holdings.trusted(self._clock.monotonic())}
            ended = 0
            if held:
                for shard in await self._deadlines.shards_to_look_at(
                    list(held), now=self._clock.stated()
                ):
                    ended += await self._expire(held[shard])
            span.add(ended=ended)
        return ended

    async def _expire(self, held: Held) -> int:
        ended = 0
        for _ in range(PASSES_MAX):
            try:
                async with held.writing:
                    found = await self._deadlines.expire(
                        held.claim, most=RUNS_MAX, now=self._clock.stated()
                    )
            except FencedOut:
                break  # the publisher notices by itself
            ended += len(found)
            if found.expired:
                self._runs.add(len(found.expired), outcome="expired")
            if found.cancelled:
                self._runs.add(len(found.cancelled), outcome="cancelled")
            if len(found) < RUNS_MAX:
                break
        return ended
