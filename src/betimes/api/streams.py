"""Events as they happen: one reader for each tenant, however many streams follow it.

The reader looks with connections of its own, every now and then and when a hint says that something
happens; what it finds is written as text once and kept for a while for all who follow. A stream is
only a place in what is kept: one that reads too slowly falls behind, ends, and resumes after the
last id it was told. So neither statements nor memory grow with the number of streams.

Ids are made before their transactions commit, so an event may appear after one with a later id.
Each look therefore goes a little back, and what was told already is left out.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from betimes.api.event_shapes import event_piece
from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import TenantId, floor_of, time_ms_of, to_ms
from betimes.ops import trail
from betimes.ops.desk import Desk
from betimes.rhythm import first_of
from betimes.telemetry import Telemetry

PAGE = 500
PAGES_MAX = 20
"""Of one look; what is left comes with the next."""
POLL_SECONDS = 0.5
HINTED_SECONDS = 0.1
"""How soon a hint may call for the next look."""
LOOK_BACK_MS = 6_000
KEPT_EVENTS = 2_000
KEPT_BYTES = 4 << 20


class Piece(NamedTuple):
    """An event as streams send it."""

    id: UUID
    type: str
    text: bytes


class Hub:
    """The events of one tenant, for all of its streams."""

    def __init__(self, tenant: TenantId, *, begin: UUID) -> None:
        self.tenant = tenant
        self.followers: list[Sequence[str] | None] = []
        """The types that each stream wants; None for all."""
        self.changed = asyncio.Event()
        """Replaced by a new one when it was set."""
        self.hinted = asyncio.Event()
        self.is_over = False
        self._begin = begin
        self._told: dict[UUID, None] = {begin: None}
        self._kept: deque[Piece] = deque()
        self._bytes = 0
        self._dropped = 0

    @property
    def end(self) -> int:
        """The place behind what is kept."""
        return self._dropped + len(self._kept)

    def since(self, place: int, *, most: int) -> list[Piece] | None:
        """What is kept from a place on; None if some of it is gone."""
        if place < self._dropped:
            return None
        first = place - self._dropped
        return list(islice(self._kept, first, first + most))

    @property
    def types(self) -> list[str] | None:
        """What somebody wants; None for everything."""
        wanted: set[str] = set()
        for types in self.followers:
            if not types:
                return None
            wanted.update(types)
        return sorted(wanted)

    async def look(self, desk: Desk) -> None:
        """Read what is new, page by page."""
        low = floor_of(time_ms_of(max(self._told)) - LOOK_BACK_MS)
        after = max(low, self._begin)
        for _ in range(PAGES_MAX):
            found = await trail.list_events(
                desk, self.tenant, after=after, types=self.types, most=PAGE, settled=False
            )
            self._keep(
                [Piece(one.id, one.type, event_piece(one)) for one in found if self._is_new(one)]
            )
            if len(found) < PAGE:
                break
            after = found[-1].id
        horizon = floor_of(time_ms_of(max(self._told)) - 2 * LOOK_BACK_MS)
        self._told = {one: None for one in self._told if one >= horizon}

    def wake(self) -> None:
        """Let every stream look at what is kept."""
        before, self.changed = self.changed, asyncio.Event()
        before.set()

    def _is_new(self, event: trail.EventRow) -> bool:
        return event.id not in self._told

    def _keep(self, pieces: Sequence[Piece]) -> None:
        if not pieces:
            return
        self._told |= dict.fromkeys(one.id for one in pieces)
        self._kept.extend(pieces)
        self._bytes += sum(len(one.text) for one in pieces)
        while len(self._kept) > KEPT_EVENTS or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
            self._bytes -= len(self._kept.popleft().text)
            self._dropped += 1
        self.wake()


class Streams:
    """Who follows whose events, and the readers that look for them.

    The desk uses connections of their own: what streams read costs requests none of theirs.
    """

    def __init__(self, *, desk: Desk, clock: Clock, telemetry: Telemetry) -> None:
        self.desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._hubs: dict[TenantId, Hub] = {}
        self._turns: dict[TenantId, tuple[asyncio.Lock, int]] = {}
        self._fresh: asyncio.Queue[Hub] = asyncio.Queue()

    async def run(self, is_ending: Callable[[], bool]) -> None:
        """Look for those who follow, until cancelled; streams end when the node is about to."""
        async with asyncio.TaskGroup() as readers:
            while True:
                readers.create_task(self._follow(await self._fresh.get(), is_ending))

    def enter(self, tenant: TenantId, types: Sequence[str] | None) -> Hub:
        """Follow the events of a tenant from now on."""
        hub = self._hubs.get(tenant)
        if hub is None:
            begin = floor_of(to_ms(self._clock.now()) - LOOK_BACK_MS)
            hub = self._hubs[tenant] = Hub(tenant, begin=begin)
            self._fresh.put_nowait(hub)
        hub.followers.append(types)
        return hub

    def leave(self, hub: Hub, types: Sequence[str] | None) -> None:
        """Follow them no more; with the last one its reader ends."""
        hub.followers.remove(types)
        if not hub.followers:
            hub.is_over = True
            hub.hinted.set()
            if self._hubs.get(hub.tenant) is hub:
                del self._hubs[hub.tenant]

    def heard(self, tenant: TenantId) -> None:
        """Something happens there: look soon."""
        hub = self._hubs.get(tenant)
        if hub is not None:
            hub.hinted.set()

    @asynccontextmanager
    async def turn(self, tenant: TenantId) -> AsyncIterator[Desk]:
        """A desk for reading; one at a time of each tenant, so that none takes all connections."""
        lock, users = self._turns.get(tenant, (asyncio.Lock(), 0))
        self._turns[tenant] = (lock, users + 1)
        try:
            async with lock:
                yield self.desk
        finally:
            lock, users = self._turns.pop(tenant)
            if users > 1:
                self._turns[tenant] = (lock, users - 1)

    async def _follow(self, hub: Hub, is_ending: Callable[[], bool]) -> None:
        """Look until nobody follows; the database may be away for a while."""
        try:
            while not hub.is_over and not is_ending():
                try:
                    async with self.turn(hub.tenant) as desk:
                        await hub.look(desk)
                except Unavailable:
                    pass  # whoever follows waits: it is told elsewhere that the database is away
                hub.hinted.clear()
                pause = POLL_SECONDS - HINTED_SECONDS
                await self._clock.sleep(HINTED_SECONDS)
                await first_of(self._clock.sleep(pause), hub.hinted.wait())
        except Exception as error:  # noqa: BLE001 -- the streams of one tenant end, no others
            self._telemetry.event("stream.failed", level="error", error=error)
        finally:
            hub.is_over = True
            if self._hubs.get(hub.tenant) is hub:
                del self._hubs[hub.tenant]
            hub.wake()
