"""One heartbeat renews every lease of the worker.

Why a thread. Handlers are somebody else's code: one that computes on the event loop for longer
than a lease would cost the worker all its leases, also those of runs that behave. So the heartbeat
lives on an event loop of its own, in a thread, with a database connection of its own, and nothing
that happens on the main loop can delay it.

Why that is not a timer beside the work. A lease means progress: whoever looks alive but does
nothing must lose what it holds. So the main loop leaves a sign of life (`Pulse`) whenever it comes
round, and the heartbeat renews only while the last sign is younger than one lease. A main loop that
is stuck for good therefore loses its leases after at most two lease times, one that is busy for a
few seconds does not.

The answer goes back to the main loop, which alone knows what it believes to hold (see `watch`).
"""

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.rhythm import beat
from betimes.worker.transport import Renewal, Renews

NOTHING = Renewal([])


class Answer(NamedTuple):
    """What a heartbeat brought: the leases that are ours, or why we do not know."""

    asked_at: float
    renewal: Renewal = NOTHING
    fault: BaseException | None = None
    heard_at: float | None = None
    """When it came to the thread of the heartbeat; the main loop may hear of it much later."""


class Pulse:
    """When the main loop last came round; written there, read by the heartbeat's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.last_at = clock.monotonic()

    def note(self) -> None:
        """Leave a sign of life."""
        self.last_at = self._clock.monotonic()

    def stuck_for(self) -> float:
        """Seconds since the last sign."""
        return self._clock.monotonic() - self.last_at


class Heartbeat:
    """Renews leases; knows nothing about threads."""

    def __init__(
        self,
        *,
        renews: Renews,
        pulse: Pulse,
        clock: Clock,
        every: timedelta,
        ttl: timedelta,
        hear: Callable[[Answer], None],
    ) -> None:
        self._renews = renews
        self._pulse = pulse
        self._clock = clock
        self._every = every
        self._ttl = ttl
        self._hear = hear

    async def run(self) -> None:
        """Renewal until cancelled."""
        async for _ in beat(self._clock, every=self._every):
            await self.tick()

    async def tick(self) -> bool:
        """One heartbeat; whether it was made. A stuck main loop gets none."""
        if self._pulse.stuck_for() > self._ttl.total_seconds():
            return False
        asked_at = self._clock.monotonic()
        try:
            answer = await self._renews.renew(ttl=self._ttl, now=self._clock.stated())
        except Unavailable as fault:
            self._hear(Answer(asked_at, fault=fault))
        else:
            self._hear(Answer(asked_at, answer, heard_at=self._clock.monotonic()))
        return True
