"""Hints that leave after a commit and never inside one; losing every one of them only costs time.

NOTIFY takes a lock that is global to the server until after its commit, so it has no place in a
transaction that writes. The first hint about a (shard, queue) leaves at once; what follows within
the pause is folded into one hint with the earliest time.
"""

import asyncio
from datetime import datetime
from typing import Protocol

from betimes.domain.clock import Clock
from betimes.domain.errors import SchedulerError
from betimes.domain.ids import ShardId, TenantId, to_ms
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("server")
READY, PLAN = "betimes_ready", "betimes_plan"
PAUSE_SECONDS = 0.05

Place = tuple[ShardId, str]


class Hinter(Protocol):
    """Whoever wrote something tells it here, after the commit."""

    def hint(self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime) -> None:
        """A parcel waits, or will from an instant on."""
        ...

    def replan(self, shard: ShardId) -> None:
        """A job of the shard has a fire that may be near."""
        ...


class NoHints:
    """Says nothing, for those who need nobody to hurry."""

    def hint(self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime) -> None:
        """Nothing."""

    def replan(self, shard: ShardId) -> None:
        """Nothing."""


class LaterHints:
    """Keeps hints until the transaction they belong to has ended."""

    def __init__(self) -> None:
        self._ready: list[tuple[ShardId, str, TenantId, datetime]] = []
        self._plans: list[ShardId] = []

    def hint(self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime) -> None:
        """Remember it."""
        self._ready.append((shard, queue, tenant, visible_at))

    def replan(self, shard: ShardId) -> None:
        """Remember it."""
        self._plans.append(shard)

    def clear(self) -> None:
        """Forget everything: the transaction is done over."""
        self._ready.clear()
        self._plans.clear()

    def pass_on(self, hints: Hinter) -> None:
        """Tell it all to somebody who sends."""
        for ready in self._ready:
            hints.hint(*ready)
        for shard in self._plans:
            hints.replan(shard)


class Hints:
    """Collects hints and sends them from a loop of its own; failures are only counted."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        lane: Lane = Lane.ENGINE,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._database = database
        self._clock = clock
        self._lane = lane
        self._pause_seconds = pause_seconds
        self._waiting: dict[Place, tuple[datetime, TenantId]] = {}
        self._plans: set[ShardId] = set()
        self._quiet_until: dict[Place, float] = {}
        self._changed = asyncio.Event()
        self.sent = 0
        self.failures = 0

    def hint(self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime) -> None:
        """Remember the earliest time per (shard, queue) until it is sent."""
        place = (shard, queue)
        known = self._waiting.get(place)
        if known is None or visible_at < known[0]:
            self._waiting[place] = (visible_at, tenant)
        self._changed.set()

    def replan(self, shard: ShardId) -> None:
        """Remember that a planner should look."""
        self._plans.add(shard)
        self._changed.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if (pause := await self.tick()) is not None:
                await self._clock.sleep(pause)
                self._changed.set()

    async def tick(self) -> float | None:
        """Send what may leave now; how long to wait for the rest, or None when nothing is left."""
        now = self._clock.monotonic()
        self._quiet_until = {
            place: until for place, until in self._quiet_until.items() if until > now
        }
        for place in [place for place in self._waiting if place not in self._quiet_until]:
            visible_at, tenant = self._waiting.pop(place)
            self._quiet_until[place] = now + self._pause_seconds
            shard, queue = place
            await self._send(READY, f"{shard}:{queue}:{tenant}:{to_ms(visible_at)}")
        plans, self._plans = self._plans, set()
        for shard in sorted(plans):
            await self._send(PLAN, str(shard))
        if not self._waiting:
            return None
        return max(0.0, min(self._quiet_until[place] for place in self._waiting) - now)

    async def _send(self, channel: str, payload: str) -> None:
        try:
            await self._database.many(
                SQL["send_hint"], lane=self._lane, channel=channel, payload=payload
            )
            self.sent += 1
        except SchedulerError:
            # Whoever waits for it polls; a queue of undelivered hints would be worth less.
            self.failures += 1
