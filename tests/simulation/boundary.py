"""The driver below the store, as one host sees it: latency, and everything that can go wrong.

`Database` is the product's own; only its pools are ours. So what repeats a transaction, what knows
that a commit may have happened, and what gives up, is the real thing.

A transaction is made at one instant, its latency comes before it and with its commit; or, in seeds
that ask for it, statement by statement, with the world going on in between. Then two transactions
may want the same row: whoever comes second is refused at once, as after a lock timeout.

Long because it stands in for a whole driver.
"""

import asyncio
import contextvars
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.domain.clock import Clock
from betimes.store.database import Database
from betimes.store.hints import SQL as HINTS
from betimes.store.pool import Address, Lane
from simulation.loop import LIFE, WORLD, Life, VirtualLoop
from simulation.server import Server

NOTIFY = HINTS["send_hint"].text
IDLE_IN_TRANSACTION_SECONDS = 5.0
SIZES = {Lane.LEASE: 1, Lane.COMPLETE: 2, Lane.ENGINE: 4, Lane.API: 6}
SIZE_OTHER = 2


class Fault(StrEnum):
    """What may happen to one transaction."""

    LOST_BEFORE = "lost_before"
    """The connection breaks before anything is written."""
    LOST_BETWEEN = "lost_between"
    """The connection breaks in the middle; what was written is undone."""
    COMMIT_LOST = "commit_lost"
    """The connection breaks with the commit, which did not happen."""
    REPLY_LOST = "reply_lost"
    """The commit happened, and its reply is lost."""
    CONFLICT = "conflict"
    """The server ends the transaction: a deadlock, a conflict."""
    NO_ROOM = "no_room"
    """Too many clients."""
    SLOW_BEFORE = "slow_before"
    """The request takes long."""
    SLOW_AFTER = "slow_after"
    """The reply takes long."""


@dataclass(eq=False)
class Link:
    """How a host reaches the database."""

    rtt: float
    rates: dict[Fault, float]
    spread: bool = False
    cut: bool = False


@dataclass(eq=False)
class Domain:
    """What all hosts share: the server, the dice, and whether the database is there."""

    server: Server
    loop: VirtualLoop
    dice: Random
    began: datetime
    db_offset: timedelta = timedelta(0)
    away: bool = False
    calm: bool = False
    """After healing nothing goes wrong any more."""
    over: bool = False
    transactions: int = 0
    met: dict[str, int] = field(default_factory=dict)
    trace: Callable[..., None] = lambda *_: None
    notified: Callable[[str, str], None] = lambda *_: None

    def now(self) -> datetime:
        """The clock of the database."""
        return self.began + timedelta(seconds=self.loop.time()) + self.db_offset

    def meet(self, what: str) -> None:
        """Count that something happened."""
        self.met[what] = self.met.get(what, 0) + 1


class HostClock:
    """The clock of one host: its wall may be off, its patience is everybody's."""

    def __init__(self, domain: Domain, *, skew: timedelta) -> None:
        self._domain = domain
        self._skew = skew

    def now(self) -> datetime:
        domain = self._domain
        return domain.began + timedelta(seconds=domain.loop.time()) + self._skew

    def monotonic(self) -> float:
        return self._domain.loop.time()

    def stated(self) -> datetime | None:
        return None

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


class SimPool:
    """Connections of one lane of one host."""

    def __init__(self, domain: Domain, link: Link, lane: Lane, size: int) -> None:
        self._domain = domain
        self._link = link
        self._lane = lane
        self._size = size
        self._busy = 0
        self._places = asyncio.Semaphore(size)
        self.open: list[SimConnection] = []

    async def acquire(self, *, timeout: float) -> "SimConnection":  # noqa: ASYNC109 -- as the driver's
        if self._places.locked():
            async with asyncio.timeout(timeout):
                await self._places.acquire()
        else:
            await self._places.acquire()
        try:
            fault = await self._reach()
        except BaseException:
            self._places.release()
            raise
        self._busy += 1
        connection = SimConnection(self._domain, self._link, self._lane, fault)
        self.open.append(connection)
        return connection

    async def _reach(self) -> Fault | None:
        domain, link = self._domain, self._link
        fault = None
        if not domain.calm:
            fault = _drawn(domain.dice, link.rates)
        if domain.away or link.cut:
            await asyncio.sleep(link.rtt)
            if domain.away or link.cut:
                raise asyncpg.CannotConnectNowError("the database is away")
        if fault is not None:
            domain.meet(fault)
        if fault is Fault.NO_ROOM:
            raise asyncpg.TooManyConnectionsError("too many clients")
        return fault

    async def release(self, connection: "SimConnection") -> None:
        self._busy -= 1
        self.open.remove(connection)
        connection.abandon()
        self._places.release()

    async def close(self) -> None:
        for connection in list(self.open):
            connection.abandon()

    def terminate(self) -> None:
        for connection in list(self.open):
            connection.abandon()

    def get_size(self) -> int:
        return self._size

    def get_max_size(self) -> int:
        return self._size

    def get_idle_size(self) -> int:
        return self._size - self._busy


class SimConnection:
    """One connection, for one transaction or one statement."""

    def __init__(self, domain: Domain, link: Link, lane: Lane, fault: Fault | None) -> None:
        self._domain = domain
        self._link = link
        self._lane = lane
        self._fault = fault
        self._session: Any = None
        self._closed = False
        self._statements = 0
        self._told: datetime | None = None
        self._life: Life = LIFE.get()
        self._break_at = domain.dice.randint(1, 4) if fault is Fault.LOST_BETWEEN else 0

    def is_closed(self) -> bool:
        return self._closed

    def terminate(self) -> None:
        self.abandon()
        self._closed = True

    def abandon(self) -> None:
        """Whatever is open is undone, and nobody is told."""
        if self._session is not None:
            session, self._session = self._session, None
            if not self._domain.server.forget(session):
                self._domain.server.call(lambda: session.execute("ROLLBACK"))
            self._domain.server.give(self._lane, session)

    async def execute(self, query: str, *arguments: Any, **_: Any) -> str:
        if query.startswith("BEGIN;"):
            return await self._begin(query)
        if query == "COMMIT;":
            return await self._commit()
        if query == "ROLLBACK;":
            self.abandon()
            return "ROLLBACK"
        return str(await self._ask(lambda session: session.execute(query, *arguments), query))

    async def fetch(self, query: str, *arguments: Any, **_: Any) -> list[Any]:
        def work(session: Any) -> Any:
            if query == NOTIFY:
                # The world carries it. In earnest it would take a lock of the whole server, which
                # other simulations share.
                return _nothing()
            return session.fetch(query, *self._timed(query, arguments))

        rows: list[Any] = await self._ask(work, query)
        if query == NOTIFY:
            self._domain.notified(*arguments)
        return rows

    async def fetchrow(self, query: str, *arguments: Any, **_: Any) -> Any:
        def work(session: Any) -> Any:
            return session.fetchrow(query, *self._timed(query, arguments))

        return await self._ask(work, query)

    def _timed(self, query: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        place = place_of_time(query)
        if not place or arguments[place - 1] is not None:
            return arguments
        return (*arguments[: place - 1], self._domain.now(), *arguments[place:])

    async def fetchval(self, query: str, *arguments: Any, **_: Any) -> Any:
        return await self._ask(lambda session: session.fetchval(query, *arguments), query)

    async def executemany(self, query: str, arguments: Any, **_: Any) -> None:
        await self._ask(lambda session: session.executemany(query, arguments), query)

    async def _begin(self, query: str) -> str:
        await self._way(self._link.rtt / 2)
        if self._fault is Fault.LOST_BEFORE:
            self._lose()
        if self._fault is Fault.SLOW_BEFORE:
            await self._way(self._domain.dice.uniform(0.5, 7.0))
        self._check()
        domain = self._domain
        session = self._session = domain.server.take(self._lane)
        self._told = domain.now()
        opening = f"{query} SET LOCAL sim.now = '{self._told.isoformat()}'"
        domain.server.keep(session, opening)
        domain.transactions += 1
        if self._link.spread and not domain.calm:
            loop = asyncio.get_running_loop()
            loop.call_later(IDLE_IN_TRANSACTION_SECONDS, self._expire, session, context=_world())
            await self._way(self._link.rtt / 2)
        else:
            self._statements += 1
        return "BEGIN"

    def _expire(self, session: Any) -> None:
        """The server undoes what its client leaves open for too long."""
        if self._session is session:
            self._domain.meet("idle_in_transaction")
            self.terminate()

    async def _ask(self, work: Callable[[Any], Any], query: str) -> Any:
        if self._session is None:
            return await self._alone(work, query)
        self._statements += 1
        domain, session = self._domain, self._session
        if self._link.spread and not domain.calm:
            await self._way(self._link.rtt / 2)
        if self._statements == self._break_at:
            self._lose()
        if self._fault is Fault.CONFLICT and self._statements >= 2:
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        self._check()
        if self._session is not session:
            self._lose()
        now = domain.now()
        if now != self._told:
            self._told = now
            domain.server.keep(session, f"SET LOCAL sim.now = '{now.isoformat()}'")
        domain.trace("sql", self._life.name, query)
        answer = domain.server.call(lambda: work(session))
        if self._link.spread and not domain.calm:
            await self._way(self._link.rtt / 2)
        return answer

    async def _alone(self, work: Callable[[Any], Any], query: str) -> Any:
        """A statement in a transaction of its own.

        When all is well, its way there and back is one wait: nobody can come between.
        """
        calm = self._domain.calm
        await self._way(self._link.rtt if calm else self._link.rtt / 2)
        if self._fault in {Fault.LOST_BEFORE, Fault.LOST_BETWEEN, Fault.COMMIT_LOST}:
            self._lose()
        if self._fault is Fault.CONFLICT:
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        if self._fault is Fault.SLOW_BEFORE:
            await self._way(self._domain.dice.uniform(0.5, 7.0))
        self._check()
        domain = self._domain
        session = domain.server.take(self._lane)
        stamp = domain.now().isoformat()
        domain.transactions += 1
        domain.trace("sql", self._life.name, query)
        try:
            if not is_timeless(query):
                domain.server.keep(session, f"SET sim.now = '{stamp}'")
            answer = domain.server.call(lambda: work(session))
        finally:
            domain.server.give(self._lane, session)
        if self._fault is Fault.REPLY_LOST:
            await self._way(self._link.rtt / 2)
            self._lose()
        if self._fault is Fault.SLOW_AFTER:
            await self._way(domain.dice.uniform(0.5, 7.0))
        if not calm:
            await self._way(self._link.rtt / 2)
        return answer

    async def _commit(self) -> str:
        domain, session = self._domain, self._session
        if self._link.spread and not domain.calm:
            await self._way(self._link.rtt / 2)
        if self._fault is Fault.COMMIT_LOST or session is None:
            self._lose()
        self._check()
        status: str = domain.server.call(lambda: session.execute("COMMIT;"))
        self._session = None
        domain.server.give(self._lane, session)
        domain.trace("commit", self._life.name)
        if self._fault is Fault.REPLY_LOST:
            await self._way(self._link.rtt / 2)
            self._lose()
        if self._fault is Fault.SLOW_AFTER:
            await self._way(domain.dice.uniform(0.5, 7.0))
        if self._link.spread and not domain.calm:
            await self._way(self._link.rtt / 2)
        else:
            await self._way(self._link.rtt * (self._statements + 0.5))
        return status

    def _check(self) -> None:
        """Whether a request gets through right now."""
        if self._domain.over or self._life.dead:
            raise Gone
        if self._domain.away or self._link.cut or self._closed:
            self._lose()

    def _lose(self) -> None:
        self.terminate()
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle")

    async def _way(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds * self._domain.dice.uniform(0.8, 1.2))


STATED = re.compile(
    r"coalesce\(\$(\d+)::timestamptz, (?:now|statement_timestamp|clock_timestamp)\(\)\)"
)
CLOCK = re.compile(
    r"(now|_timestamp|random\w*|new_id|notify)\(|\b(INSERT|UPDATE|DELETE)\b|betimes\.\w+\("
)


@cache
def place_of_time(query: str) -> int:
    """Where a reading statement takes the time from an argument that is left to the database.

    We are the database: telling it there saves a message that sets its clock. 0: nowhere.
    """
    found = STATED.search(query)
    return int(found[1]) if found and is_timeless(query) else 0


@cache
def is_timeless(query: str) -> bool:
    """Whether a statement asks for no time but what it is told, and changes nothing."""
    return not CLOCK.search(STATED.sub("", query))


async def _nothing() -> list[Any]:
    return []


class Gone(BaseException):
    """Whoever asks is dead, or the world is."""


def _world() -> Any:
    """A context that belongs to no host."""
    context = contextvars.copy_context()
    context.run(LIFE.set, WORLD)
    return context


def _drawn(dice: Random, rates: dict[Fault, float]) -> Fault | None:
    roll = dice.random()
    for fault, rate in rates.items():
        roll -= rate
        if roll < 0:
            return fault
    return None


def make_database(
    domain: Domain, link: Link, clock: Clock, dice: Random, *, lanes: tuple[Lane, ...] = tuple(Lane)
) -> tuple[Database, list[SimPool]]:
    """The product's database on simulated pools."""
    settings = DatabaseSettings()
    pools = {lane: SimPool(domain, link, lane, SIZES.get(lane, SIZE_OTHER)) for lane in lanes}
    database = Database(
        pools=pools,  # type: ignore[arg-type]  # what the store asks of a pool, and no more
        address=Address("postgresql:///simulation", pooled=False),
        settings=settings,
        version=180000,
        clock=clock,
        roll=dice.random,
    )
    return database, list(pools.values())
