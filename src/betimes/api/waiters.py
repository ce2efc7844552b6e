"""Requests that wait for work: woken by hints, and by their own patience when hints get lost."""

import asyncio
from collections.abc import Callable, Iterable
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.ids import TenantId, to_ms

AHEAD_MS_MAX = 10_000
TIMERS_MAX = 10_000
"""What is announced further ahead, or beside so many others, is found by looking."""

Place = tuple[str, TenantId]


class Waiters:
    """Who waits for which queue of which tenant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers = 0
        self._events: dict[Place, set[asyncio.Event]] = {}
        self.also: Callable[[TenantId], None] = lambda _: None
        """Who else wants to know where something happens."""

    def wake(self, queue: str, tenant: TenantId) -> None:
        """Something may wait there now."""
        self.also(tenant)
        for event in self._events.get((queue, tenant), ()):
            event.set()

    def enter(self, queues: Iterable[str], tenant: TenantId) -> asyncio.Event:
        """Be woken for some queues, from now on."""
        event = asyncio.Event()
        for queue in queues:
            self._events.setdefault((queue, tenant), set()).add(event)
        return event

    def leave(self, queues: Iterable[str], tenant: TenantId, event: asyncio.Event) -> None:
        """Be woken no more."""
        for queue in queues:
            waiting = self._events.get((queue, tenant))
            if waiting is not None:
                waiting.discard(event)
                if not waiting:
                    del self._events[queue, tenant]

    def heard(self, payload: str) -> None:
        """Read lines of `shard:queue:tenant:visible_at_ms,…`; what is no hint wakes nobody.

        Work is announced before it is due: whoever waits for it is woken when it can be had.
        """
        now_ms = to_ms(self._clock.now())
        for line in payload.split("\n"):
            try:
                queue, tenant, visible = line.partition(":")[2].rsplit(":", 2)
                place = (queue, TenantId(UUID(tenant)))
                first, *later = map(int, visible.split(","))
            except ValueError:
                continue
            for visible_ms in (first, *(first + offset for offset in later)):
                self._wake_at(place, visible_ms - now_ms)

    def _wake_at(self, place: Place, milliseconds: int) -> None:
        if milliseconds <= 0:
            self.wake(*place)
        elif milliseconds <= AHEAD_MS_MAX and self._timers < TIMERS_MAX:
            self._timers += 1
            asyncio.get_running_loop().call_later(milliseconds / 1000, self._on_time, place)

    def _on_time(self, place: Place) -> None:
        self._timers -= 1
        self.wake(*place)
