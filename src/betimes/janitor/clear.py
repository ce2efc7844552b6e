"""What has expired outside the database is removed there, and then here."""

from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.ids import ShardId
from betimes.ops.blobs import forget_expired
from betimes.ops.desk import Desk
from betimes.rhythm import Stopping, attend, beat
from betimes.telemetry import Items, Outage, Telemetry

PASSES_MAX = 10
"""Batches of one shard in one pass."""


class Clearer:
    """Removes expired blobs from their shelf; any number of janitors may."""

    def __init__(self, *, desk: Desk, clock: Clock, telemetry: Telemetry, every: timedelta) -> None:
        self._desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._every = every
        self._outage = Outage(duty="janitor.clearer", telemetry=telemetry)
        self._places = Items(duty="janitor.clearer", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Look now and then, until asked to stop."""
        beats = beat(self._clock, every=self._every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> int:
        """One bounded pass; how many blobs went."""
        if self._desk.shelf is None:
            return 0
        with self._telemetry.span("clearer.tick") as span:
            span.expect_errors()
            gone = sum(await self._places.each(range(self._desk.shards), self._clear))
            span.add(blobs=gone)
        return gone

    async def _clear(self, shard: int) -> int:
        gone = 0
        for _ in range(PASSES_MAX):
            piece = await forget_expired(self._desk, ShardId(shard))
            gone += piece
            if not piece:
                break
        return gone
