"""Requests that wait for work: woken by hints, and by their own patience when hints get lost."""

import asyncio
from collections.abc import Iterable
from uuid import UUID

from betimes.domain.ids import TenantId

Place = tuple[str, TenantId]


class Waiters:
    """Who waits for which queue of which tenant."""

    def __init__(self) -> None:
        self._events: dict[Place, set[asyncio.Event]] = {}

    def wake(self, queue: str, tenant: TenantId) -> None:
        """Something may wait there now."""
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
        """Read lines of `shard:queue:tenant:visible_at_ms`; what is no hint wakes nobody."""
        for line in payload.split("\n"):
            try:
                queue, tenant, _ = line.partition(":")[2].rsplit(":", 2)
                self.wake(queue, TenantId(UUID(tenant)))
            except ValueError:
                continue
