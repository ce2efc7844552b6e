"""The door to PostgreSQL: pools, transactions that may be repeated, errors in our own words."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, TypeVar
from uuid import UUID

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import OutOfTime, Overloaded, Unavailable, UnknownOutcome
from betimes.store.faults import LOST, SENTENCES, translated
from betimes.store.gate import Gate
from betimes.store.pool import (
    ROW_BY_ROW,
    SYSTEM_ROLE,
    Address,
    Connection,
    Lane,
    Pool,
    PooledConnection,
    close_pool,
    open_pool,
    server_version,
    session_settings,
)
from betimes.store.queries import Query

T = TypeVar("T")

TRIES = 5
WAITS_SECONDS = 2.0
"""How long a wait for a connection is remembered."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.02, 1.0
ROLLBACK_PATIENCE_SECONDS = 1.0
API_ROLE = "betimes_api"

Roll = Callable[[], float]
"""A throw of the die in [0, 1); app/ owns the dice."""


class Database:
    """One PostgreSQL cluster, spoken to in short transactions.

    `transact` runs `work` in one transaction and repeats it when that is safe: always after a
    conflict or a connection lost before the commit, and after an unknown commit only if the caller
    says that the work is `repeatable`. It does not repeat when there is no room: whoever asks
    should ask for less. An error of `work` itself comes out as it is.

    Needs a migrated database: the service acts as the role `betimes_system`, never as an owner.
    """

    def __init__(
        self,
        *,
        pools: Mapping[Lane, Pool],
        address: Address,
        settings: DatabaseSettings,
        version: int,
        clock: Clock,
        roll: Roll,
    ) -> None:
        self._pools = dict(pools)
        self._settings = settings
        self._clock = clock
        self._roll = roll
        # What each transaction must set for itself because no connection remembers it.
        self._local: dict[str, str] = {}
        if address.pooled:
            self._local = session_settings(settings, version) | {"role": SYSTEM_ROLE}
        self._waits: dict[Lane, tuple[float, float]] = {}
        self._gate = Gate(clock=clock, roll=roll)
        self._transaction_seconds = settings.transaction_timeout.total_seconds()
        self.address = address
        self.server_version = version

    @classmethod
    async def open(
        cls,
        settings: DatabaseSettings,
        *,
        dsn: str,
        clock: Clock,
        roll: Roll,
        lanes: Collection[Lane] = tuple(Lane),
    ) -> Self:
        """Connect the pools of some lanes, or raise `Unavailable` with nothing left behind."""
        address = Address.of(dsn, pgbouncer=settings.pgbouncer)
        sizes = {
            Lane.LEASE: settings.lease_connections,
            Lane.COMPLETE: settings.complete_connections,
            Lane.ENGINE: settings.engine_connections,
            Lane.API: settings.api_connections,
            Lane.STREAM: settings.stream_connections,
        }
        pools: dict[Lane, Pool] = {}
        try:
            with translated():
                version = await server_version(address, settings)
                for lane in lanes:
                    pools[lane] = await open_pool(
                        address, settings, size=sizes[lane], lane=lane, server_version=version
                    )
        except BaseException:
            for pool in pools.values():
                await close_pool(pool)
            raise
        return cls(
            pools=pools,
            address=address,
            settings=settings,
            version=version,
            clock=clock,
            roll=roll,
        )

    async def close(self) -> None:
        """Give every connection back; bounded, even when the server is frozen."""
        await asyncio.gather(*(close_pool(pool) for pool in self._pools.values()))

    async def transact(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        lane: Lane,
        repeatable: bool,
        tenant: UUID | None = None,
        row_by_row: bool = False,
        patient: bool = True,
    ) -> T:
        """Run `work` in one transaction, as the system or, with `tenant`, as that tenant alone.

        With `row_by_row` its statements find their rows one by one, as those of the engine do: a
        plan that was made while a table was small does not walk through it when it has grown. Who
        is not `patient` hears at once of one that ran out of time, and asks for less, or later.
        """
        for attempt in range(1, TRIES):
            try:
                return await self._once(work, lane=lane, tenant=tenant, row_by_row=row_by_row)
            except UnknownOutcome:
                if not repeatable:
                    raise
            except Overloaded:
                raise
            except OutOfTime:
                if not patient:
                    raise
            except Unavailable:
                pass
            await self._clock.sleep(self._pause(attempt))
        return await self._once(work, lane=lane, tenant=tenant, row_by_row=row_by_row)

    async def many(self, query: Query, *, lane: Lane, **given: Any) -> list[asyncpg.Record]:
        """The rows of one statement in a transaction of its own; not repeated."""
        arguments = query.arguments(given)
        if self.address.pooled:
            return await self._once(
                lambda connection: connection.fetch(query.text, *arguments), lane=lane, tenant=None
            )
        async with self._connection(lane) as connection:
            return await connection.fetch(query.text, *arguments)

    async def maybe(self, query: Query, *, lane: Lane, **given: Any) -> asyncpg.Record | None:
        """The first row of one statement, if there is any."""
        rows = await self.many(query, lane=lane, **given)
        return rows[0] if rows else None

    @asynccontextmanager
    async def connection(self, lane: Lane) -> AsyncIterator[Connection]:
        """A connection outside any transaction, for loops that hold one.

        Behind a pooler it has neither our bounds nor our role: there, write in `transact` only.
        """
        async with self._connection(lane) as connection:
            yield connection

    async def _once(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        lane: Lane,
        tenant: UUID | None,
        row_by_row: bool = False,
    ) -> T:
        async with self._connection(lane) as connection:
            began = self._clock.monotonic()
            try:
                await connection.execute(self._opening(tenant, row_by_row=row_by_row))
                answer = await work(connection)
                self._check_duration(began)
            except LOST as fault:
                await _roll_back(connection)
                self._check_duration(began, fault)
                raise
            except BaseException:
                await _roll_back(connection)
                raise
            await _commit(connection)
            return answer

    def _opening(self, tenant: UUID | None, *, row_by_row: bool) -> str:
        """Begin, and set what this transaction needs, in one message to the server.

        The values are our own constants, numbers and an id, so there is nothing to escape.
        """
        chosen = self._local
        if tenant is not None:
            chosen = chosen | {"role": API_ROLE, "betimes.tenant": str(UUID(int=tenant.int))}
        if row_by_row:
            chosen = {**chosen, **ROW_BY_ROW}
        if not chosen:
            return "BEGIN;"
        told = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in chosen.items())
        return f"BEGIN; SELECT {told};"

    def _check_duration(self, began: float, fault: BaseException | None = None) -> None:
        # The publisher relies on no transaction living longer; see "The straight line", rule 1. A
        # server that ends one for that closes its connection, which alone would look like its loss.
        if self._clock.monotonic() - began >= self._transaction_seconds:
            raise OutOfTime(SENTENCES[OutOfTime]) from fault

    def _pause(self, attempt: int) -> float:
        return min(PAUSE_SECONDS * 2.0**attempt, PAUSE_SECONDS_MAX) * self._roll()

    @asynccontextmanager
    async def _connection(self, lane: Lane) -> AsyncIterator[Connection]:
        with translated():
            connection = await self._acquire(lane)
            try:
                yield connection
            finally:
                # Must not hide how the block ended: a cancelled one would be repeated. A
                # connection that cannot be given back has been dropped by the driver.
                with suppress(*LOST):
                    await self._pools[lane].release(connection)

    async def _acquire(self, lane: Lane) -> PooledConnection:
        self._gate.pass_through()
        pool = self._pools[lane]
        patience = self._settings.connect_timeout.total_seconds()
        asked_at = self._clock.monotonic()
        try:
            connection = await pool.acquire(timeout=patience)
        except TimeoutError as fault:
            # Every connection is there and taken: the database is well, we have no room.
            if pool.get_size() == pool.get_max_size() and not pool.get_idle_size():
                self._waits[lane] = (patience, self._clock.monotonic())
                raise Overloaded(
                    f"all connections of the lane {lane} ({pool.get_size()}) were busy "
                    f"for {patience:g} s"
                ) from fault
            self._gate.close()
            raise
        except (asyncpg.PostgresError, *LOST):
            self._gate.close()
            raise
        self._gate.open()
        now = self._clock.monotonic()
        if now - asked_at >= self.waited(lane):
            self._waits[lane] = (now - asked_at, now)
        return connection

    def waited(self, lane: Lane) -> float:
        """The longest that anybody waited for a connection of a lane lately, in seconds."""
        seconds, at = self._waits.get(lane, (0.0, 0.0))
        return seconds if self._clock.monotonic() - at < WAITS_SECONDS else 0.0


async def _commit(connection: Connection) -> None:
    if connection.is_closed():
        raise Unavailable("the connection was lost before the commit; nothing was written")
    with translated(committing=True):
        try:
            await connection.execute("COMMIT;")
        except asyncpg.PostgresError:
            raise  # an answer: the server has ended the transaction
        except BaseException:
            _drop(connection)
            raise


async def _roll_back(connection: Connection) -> None:
    try:
        async with asyncio.timeout(ROLLBACK_PATIENCE_SECONDS):
            await connection.execute("ROLLBACK;")
    except (asyncpg.PostgresError, *LOST):
        # Gone, frozen or confused: the server undoes what it no longer hears from.
        _drop(connection)


def _drop(connection: Connection) -> None:
    with suppress(asyncpg.InterfaceError):  # a pool that was closed has dropped it already
        connection.terminate()
