"""Telling everybody that this worker is alive, what it serves and how busy it is.

Purely informative: leases live by the heartbeat, which is another matter.
"""

from collections.abc import Callable
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.rhythm import DatabaseTime, attend, beat
from betimes.store.workers import WorkerCard, Workers
from betimes.telemetry import Outage, Telemetry

MILLISECOND = timedelta(milliseconds=1)


class Registry:
    """Keeps the worker's row fresh, from the loop that does the work."""

    def __init__(
        self,
        *,
        workers: Workers,
        card: WorkerCard,
        busy: Callable[[], int],
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        every: timedelta,
    ) -> None:
        self._workers = workers
        self._card = card
        self._busy = busy
        self._time = time
        self._clock = clock
        self._every = every
        self._outage = Outage(duty="worker.registry", telemetry=telemetry)
        self.draining = False

    async def run(self) -> None:
        """Report until cancelled."""
        beats = beat(self._clock, every=self._every)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> None:
        """Write the row once."""
        known = self._time.known
        await self._workers.beat(
            self._card,
            busy=self._busy(),
            skew_ms=(self._clock.now() - self._time.now()) / MILLISECOND if known else None,
            draining=self.draining,
            now=self._clock.stated(),
        )

    async def leave(self) -> None:
        """Say goodbye; if the database does not listen, the janitor forgets us later."""
        try:
            await self._workers.leave(self._card.id)
        except Unavailable as error:
            self._outage.failed(error)
