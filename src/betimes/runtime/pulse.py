"""One heartbeat renews every lease, from a thread that no handler can hold up.

A handler that computes on the main loop for longer than a lease must not cost the worker what it
holds; so heartbeats have an event loop, a thread and a line of their own. But a lease means
progress: the main loop leaves a sign of life whenever it comes round, and there is no heartbeat
when the last sign is older than one lease. Who is stuck for good loses all after at most two.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from betimes.domain.clock import Clock
from betimes.domain.errors import NotFound, Unavailable
from betimes.rhythm import beat
from betimes.runtime.line import Line, OpenLine
from betimes.wire.workers import Heartbeat, HeartbeatAnswer, RunningLease

LEASES_AT_ONCE = 1_000


class Heard(NamedTuple):
    """What a heartbeat brought."""

    asked_at: float
    answer: HeartbeatAnswer | None = None
    fault: Exception | None = None
    """Why there is no answer; `NotFound` means that the service has forgotten this worker."""


class Condition(NamedTuple):
    """What a worker says of itself."""

    worker: str
    leases: list[RunningLease]
    free: int
    draining: bool


class Pulse:
    """Beats; knows nothing about threads."""

    def __init__(
        self,
        *,
        open_line: OpenLine,
        clock: Clock,
        every: timedelta,
        ttl: timedelta,
        condition: Callable[[], Condition],
        hear: Callable[[Heard], None],
    ) -> None:
        self._open_line = open_line
        self._clock = clock
        self._every = every
        self._ttl = ttl.total_seconds()
        self._condition = condition
        self._hear = hear
        self.alive_at = clock.monotonic()

    def note(self) -> None:
        """The main loop has come round."""
        self.alive_at = self._clock.monotonic()

    async def live(self) -> None:
        """Beat until cancelled; on the loop of the heartbeat's own thread."""
        async with self._open_line() as line:
            async for _ in beat(self._clock, every=self._every):
                await self.tick(line)

    async def tick(self, line: Line) -> bool:
        """One heartbeat; whether it was made. A stuck main loop gets none."""
        if self._clock.monotonic() - self.alive_at > self._ttl:
            return False
        now = self._condition()
        for start in range(0, max(1, len(now.leases)), LEASES_AT_ONCE):
            await self.tell(line, now._replace(leases=now.leases[start : start + LEASES_AT_ONCE]))
        return True

    async def tell(self, line: Line, condition: Condition) -> None:
        """Send one heartbeat and hand on what it brought."""
        asked_at = self._clock.monotonic()
        told = Heartbeat(
            running=condition.leases,
            free_slots=condition.free,
            state="draining" if condition.draining else "ok",
        )
        try:
            answer = await line.beat(condition.worker, told)
        except (Unavailable, NotFound) as fault:
            self._hear(Heard(asked_at, fault=fault))
        else:
            self._hear(Heard(asked_at, answer))
