"""The router: events that have arrived, into the mailboxes of those who want to be told.

Any number of routers may work on the same tenant: what one has handed out, another hands out in
vain. A router looks a little back each time, because a row may appear after one that arrived later,
and leaves out what it remembers to have seen.

Events come from everywhere and nobody tells of them, so as long as anybody listens looks follow
each other with `route_every`. Where nobody does, there is nothing to hand out: then the router
rests, and is called by whoever makes an endpoint (a hint), and otherwise after `REST`.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from betimes.config.notify import NotifySettings
from betimes.domain.clock import Clock
from betimes.domain.ids import TenantId
from betimes.ops.matching import Matched, matches, subjects_of
from betimes.rhythm import Stopping, attend, beat
from betimes.store.database import Database
from betimes.store.endpoints import Endpoint, insert_callback, listeners_of
from betimes.store.pool import Connection, Lane
from betimes.store.routing import (
    SETTLED_AFTER,
    Handout,
    Labels,
    News,
    Routing,
    find_news,
    hand_out,
    list_routings,
    move_routing,
    read_labels,
    read_news,
)
from betimes.store.server import read_clock
from betimes.telemetry import Items, Outage, Telemetry

REST = timedelta(seconds=2)
TENANTS_PER_PAGE = 500
EVENTS_PER_PAGE = 500
PAGES_MAX = 20
FIRST = UUID(int=0)


class Router:
    """Hands events out; `nudge` is set when something was."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        telemetry: Telemetry,
        settings: NotifySettings,
        shards: int,
        nudge: asyncio.Event | None = None,
        rest: timedelta | None = REST,
    ) -> None:
        self._rest = rest
        self._is_heard = False
        self.called = asyncio.Event()
        self._database = database
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._shards = shards
        self._nudge = nudge
        self._seen: dict[TenantId, dict[UUID, datetime]] = {}
        self._outage = Outage(duty="dispatcher.router", telemetry=telemetry)
        self._tenants = Items(
            duty="dispatcher.router", telemetry=telemetry, first_wait=1, longest_wait=60
        )
        self._handed = telemetry.counter("betimes_deliveries_handed_out_total")

    async def run(self, stopping: Stopping) -> None:
        """Hand out until asked to stop."""
        beats = beat(
            self._clock,
            every=self._settings.route_every,
            stopping=stopping,
            nudge=self.called,
            rest=self._rest,
        )
        await attend(self._turn, beats=beats, troubles=self._outage, survives=True)

    async def _turn(self) -> bool:
        """One pass; whether anybody listens."""
        await self.tick()
        return self._is_heard

    async def tick(self) -> int:
        """One pass over all tenants; how many deliveries were made."""
        with self._telemetry.span("router.tick") as span:
            span.expect_errors()
            after, handed = FIRST, 0
            self._is_heard = False
            while page := await list_routings(self._database, after=after, most=TENANTS_PER_PAGE):
                self._is_heard = True
                handed += await self._pass(page)
                after = page[-1].tenant
            span.add(handed=handed)
        if handed:
            self._handed.add(handed)
            if self._nudge is not None:
                self._nudge.set()
        return handed

    async def _pass(self, page: Sequence[Routing]) -> int:
        # The database's own time, whatever a test states: arrivals are by that clock.
        now = await read_clock(self._database)
        begins = {one.tenant: min(one.through, now - SETTLED_AFTER) for one in page}
        news = await find_news(self._database, list(begins.items()))
        if not news:
            return 0
        listeners = await self._listeners(sorted(news))
        return sum(
            await self._tenants.each(
                sorted(news),
                lambda one: self._route(one, listeners.get(one, []), begins[one], now),
            )
        )

    async def _listeners(self, tenants: Sequence[TenantId]) -> dict[TenantId, list[Endpoint]]:
        async def work(connection: Connection) -> dict[TenantId, list[Endpoint]]:
            return await listeners_of(connection, tenants)

        return await self._database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _route(
        self, tenant: TenantId, listeners: Sequence[Endpoint], begin: datetime, now: datetime
    ) -> int:
        place, handed = (begin, FIRST), 0
        for _ in range(PAGES_MAX):
            news = await read_news(self._database, tenant, after=place, most=EVENTS_PER_PAGE)
            full = len(news) == EVENTS_PER_PAGE
            through = now - SETTLED_AFTER
            if full:
                through = min(through, news[-1].arrived_at)
            handed += await self._hand_out(tenant, listeners, news, through=through)
            if not full:
                break
            place = news[-1].place
        return handed

    async def _hand_out(
        self,
        tenant: TenantId,
        listeners: Sequence[Endpoint],
        news: Sequence[News],
        *,
        through: datetime,
    ) -> int:
        seen = self._seen.setdefault(tenant, {})
        fresh = [one for one in news if one.id not in seen]

        async def work(connection: Connection) -> int:
            labels = await self._labels(connection, tenant, listeners, fresh)
            found = list(matches(tenant, listeners, fresh, labels, shards=self._shards))
            handouts = [Handout(one.event, one.endpoint.id) for one in found]
            now = self._clock.stated() or max(one.arrived_at for one in fresh)
            handed = await hand_out(connection, tenant, handouts, now=now)
            # After their mailboxes are ours: whoever forgets idle ones holds those first.
            for callback in _callbacks(found):
                await insert_callback(connection, callback)
            await move_routing(connection, tenant, through)
            return handed

        if not fresh:
            if news and news[-1].arrived_at <= through:
                await self._move(tenant, through)
            return 0
        handed = await self._database.transact(work, lane=Lane.ENGINE, repeatable=True)
        seen |= {one.id: one.arrived_at for one in fresh}
        kept = {one: at for one, at in seen.items() if at > through - SETTLED_AFTER}
        self._seen[tenant] = kept
        return handed

    async def _move(self, tenant: TenantId, through: datetime) -> None:
        """Everything up to there is settled and was handed out: never look at it again."""

        async def work(connection: Connection) -> None:
            await move_routing(connection, tenant, through)

        await self._database.transact(work, lane=Lane.ENGINE, repeatable=True)

    @staticmethod
    async def _labels(
        connection: Connection,
        tenant: TenantId,
        listeners: Sequence[Endpoint],
        news: Sequence[News],
    ) -> dict[UUID, Labels]:
        jobs, runs = subjects_of(news, with_tags=any(one.filter.needs_tags for one in listeners))
        if not jobs and not runs:
            return {}
        return await read_labels(connection, tenant, jobs=jobs, runs=runs)


def _callbacks(found: Sequence[Matched]) -> Iterator[Endpoint]:
    """The endpoints of callbacks, each once, in one order."""
    every = {one.endpoint.id: one.endpoint for one in found if one.endpoint.is_callback}
    for _, endpoint in sorted(every.items()):
        yield endpoint
