"""Nodes at a distance: real coordinators on a real database, on a clock that the test moves.

Each round trip of a far node to the database sleeps on the test's clock first. The loops of the
coordinator run as in production; time passes when nobody has anything left to do but wait.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from betimes.config.settings import DatabaseSettings
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import Query
from betimes.testing import ManualClock

T = TypeVar("T")
HOPS = 60
"""So many turns of the event loop bring everybody to the next thing it waits for."""
LOCKED_SECONDS = 0.3
"""A request that takes longer in earnest waits for a lock of somebody who waits for the clock."""


@dataclass
class Trips:
    """What is asked of the database, by whom, and what is on its way right now."""

    under_way: int = 0
    done: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    statements: Counter[str] = field(default_factory=Counter)
    transactions: int = 0

    @property
    def total(self) -> int:
        return sum(self.statements.values())


class FarConnection:
    """A connection whose requests take time on the test's clock."""

    def __init__(self, real: Any, go: Callable[[str, Awaitable[Any]], Awaitable[Any]]) -> None:
        self._real = real
        self._go = go

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def fetch(self, query: str, *arguments: Any) -> Any:
        return await self._go(query, self._real.fetch(query, *arguments))

    async def fetchrow(self, query: str, *arguments: Any) -> Any:
        return await self._go(query, self._real.fetchrow(query, *arguments))

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        return await self._go(query, self._real.fetchval(query, *arguments))

    async def execute(self, query: str, *arguments: Any) -> Any:
        return await self._go(query, self._real.execute(query, *arguments))


class FarDatabase(Database):
    """The store of a node that is `seconds` away; may be moved while it works."""

    seconds: float
    trips: Trips
    manual: ManualClock

    @asynccontextmanager
    async def _connection(self, lane: Lane) -> AsyncIterator[Connection]:
        async with super()._connection(lane) as connection:
            yield FarConnection(connection, self._go)  # type: ignore[misc]

    async def many(self, query: Query, *, lane: Lane, **given: Any) -> Any:
        self.trips.transactions += 1
        return await super().many(query, lane=lane, **given)

    async def _once(self, *given: Any, **more: Any) -> Any:
        self.trips.transactions += 1
        return await super()._once(*given, **more)

    async def _go(self, query: str, request: Awaitable[T]) -> T:
        self.trips.statements[query] += 1
        try:
            if self.seconds:
                await self.manual.sleep(self.seconds)
        except BaseException:
            request.close()  # type: ignore[attr-defined]
            raise
        self.trips.under_way += 1
        try:
            return await request
        finally:
            self.trips.under_way -= 1
            self.trips.done += 1
            self.trips.changed.set()


@asynccontextmanager
async def far_database(
    dsn: str, clock: ManualClock, *, trips: Trips | None = None
) -> AsyncIterator[FarDatabase]:
    """Pools of its own, all connections made: nobody waits in earnest. Near at first."""
    settings = DatabaseSettings()
    opened = await FarDatabase.open(settings, dsn=dsn, clock=clock, roll=lambda: 0.5)
    opened.seconds, opened.trips, opened.manual = 0.0, trips or Trips(), clock
    for pool in opened._pools.values():
        held = await asyncio.gather(*(pool.acquire() for _ in range(pool.get_max_size())))
        for connection in held:
            await pool.release(connection)
    try:
        yield opened
    finally:
        opened.seconds = 0.0
        await opened.close()


async def pass_time(clock: ManualClock, seconds: float, trips: Trips) -> None:
    """Let time pass: from one deadline to the next, when everybody waits."""
    until = clock.monotonic() + seconds
    while clock.monotonic() < until:
        await _settled(trips)
        pending = [at for at, _, wake in clock._sleepers if not wake.done()]
        step = min([until, *pending]) - clock.monotonic()
        clock.advance(max(step, 0.0) + 1e-9)


async def _settled(trips: Trips) -> None:
    while True:
        before = trips.done
        for _ in range(HOPS):
            await asyncio.sleep(0)  # noqa: TID251 -- gives way to others, takes no time
        if trips.under_way:
            trips.changed.clear()
            try:
                async with asyncio.timeout(LOCKED_SECONDS):
                    await trips.changed.wait()
            except TimeoutError:
                return
        elif trips.done == before:
            return
