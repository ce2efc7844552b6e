"""The door to PostgreSQL: pools, transactions that may be repeated, errors in our own words."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar
from uuid import UUID

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import Contended, Unavailable, UnknownOutcome
from betimes.store.faults import translated
from betimes.store.pool import (
    Address,
    Connection,
    Lane,
    Pool,
    close_pool,
    open_pool,
    server_version,
    session_settings,
)
from betimes.store.queries import Query

T = TypeVar("T")

TRIES = 5
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.02, 1.0
ROLLBACK_PATIENCE_SECONDS = 1.0
API_ROLE = "betimes_api"

Roll = Callable[[], float]
"""A throw of the die in [0, 1); app/ owns the dice."""


class Database:
    """One PostgreSQL cluster, spoken to in short transactions.

    `transact` runs `work` in one transaction and repeats it when that is safe: always after a
    conflict or a connection lost before the commit, and after an unknown commit only if the caller
    says that the work is `repeatable`.
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
        self._local = session_settings(settings, version) if address.pooled else {}
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
        """Give every connection back."""
        for pool in self._pools.values():
            await close_pool(pool)

    async def transact(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        lane: Lane,
        repeatable: bool,
        tenant: UUID | None = None,
    ) -> T:
        """Run `work` in one transaction, as the system or, with `tenant`, as that tenant alone."""
        for attempt in range(1, TRIES):
            try:
                return await self._once(work, lane=lane, tenant=tenant)
            except UnknownOutcome:
                if not repeatable:
                    raise
            except (Contended, Unavailable):
                pass
            await self._clock.sleep(self._pause(attempt))
        return await self._once(work, lane=lane, tenant=tenant)

    async def many(self, query: Query, *, lane: Lane, **given: Any) -> list[asyncpg.Record]:
        """The rows of one statement in a transaction of its own; not repeated."""
        arguments = query.arguments(given)
        async with self._connection(lane) as connection:
            if self.address.pooled:
                async with connection.transaction():
                    return await connection.fetch(query.text, *arguments)
            return await connection.fetch(query.text, *arguments)

    async def maybe(self, query: Query, *, lane: Lane, **given: Any) -> asyncpg.Record | None:
        """The first row of one statement, if there is any."""
        rows = await self.many(query, lane=lane, **given)
        return rows[0] if rows else None

    @asynccontextmanager
    async def connection(self, lane: Lane) -> AsyncIterator[Connection]:
        """A connection outside any transaction, for COPY and for loops that hold one."""
        async with self._connection(lane) as connection:
            yield connection

    async def _once(
        self, work: Callable[[Connection], Awaitable[T]], *, lane: Lane, tenant: UUID | None
    ) -> T:
        async with self._connection(lane) as connection:
            transaction = connection.transaction()
            began = self._clock.monotonic()
            await transaction.start()
            try:
                await self._enter(connection, tenant)
                answer = await work(connection)
                self._check_duration(began)
            except BaseException:
                await _roll_back(transaction)
                raise
            with translated(committing=True):
                await transaction.commit()
            return answer

    async def _enter(self, connection: Connection, tenant: UUID | None) -> None:
        chosen = dict(self._local)
        if tenant is not None:
            chosen |= {"role": API_ROLE, "betimes.tenant": str(tenant)}
        if chosen:
            await connection.execute(
                "SELECT set_config(name, value, true) FROM unnest($1::text[], $2::text[])"
                " AS setting (name, value)",
                list(chosen),
                list(chosen.values()),
            )

    def _check_duration(self, began: float) -> None:
        # The publisher relies on no transaction living longer; see "The straight line", rule 1.
        if self._clock.monotonic() - began > self._transaction_seconds:
            raise Contended("the transaction took longer than it may; it was rolled back")

    def _pause(self, attempt: int) -> float:
        return min(PAUSE_SECONDS * 2.0**attempt, PAUSE_SECONDS_MAX) * self._roll()

    @asynccontextmanager
    async def _connection(self, lane: Lane) -> AsyncIterator[Connection]:
        patience = self._settings.connect_timeout.total_seconds()
        with translated():
            async with self._pools[lane].acquire(timeout=patience) as connection:
                yield connection


async def _roll_back(transaction: asyncpg.transaction.Transaction) -> None:
    try:
        async with asyncio.timeout(ROLLBACK_PATIENCE_SECONDS):
            await transaction.rollback()
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
        pass  # the connection is gone, and the transaction with it
