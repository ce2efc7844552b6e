"""A durable PostgreSQL of our own, migrated, gone afterwards."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.config.settings import DatabaseSettings
from betimes.domain.ids import TenantId
from betimes.embedded import EmbeddedPostgres, find_binaries
from betimes.store.database import Database
from betimes.store.migrate import migrate
from betimes.store.partitions import Partitions

TENANT = TenantId(UUID("00000000-0000-8000-8000-00000000000a"))


@asynccontextmanager
async def a_server(shards: int, **settings: str) -> AsyncIterator[EmbeddedPostgres]:
    """The embedded server with fsync on, as `betimes dev` runs it."""
    clock, dice = SystemClock(), Dice()
    with tempfile.TemporaryDirectory(prefix="betimes-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # noqa: ASYNC240 -- nothing runs yet
        server = EmbeddedPostgres(
            data=Path(folder) / "server",
            clock=clock,
            password_factory=dice.secret,
            binaries=find_binaries(None),
            settings=settings,
        )
        async with server:
            await migrate(server.dsn(), DatabaseSettings(), shards=shards, clock=clock)
            async with a_database(server) as database:
                await Partitions(database).ensure(datetime.now(UTC).date(), ahead_days=2)
            yield server


@asynccontextmanager
async def a_database(server: EmbeddedPostgres) -> AsyncIterator[Database]:
    """The store, as the service opens it."""
    database = await Database.open(
        DatabaseSettings(), dsn=server.dsn(), clock=SystemClock(), roll=Dice().roll
    )
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def as_owner(server: EmbeddedPostgres) -> AsyncIterator[Any]:
    """A connection that row security does not concern: COPY needs that."""
    connection = await asyncpg.connect(server.dsn())
    try:
        yield connection
    finally:
        await connection.close()


async def execute(server: EmbeddedPostgres, statement: str, *arguments: object) -> None:
    """Something without an answer."""
    async with as_owner(server) as connection:
        await connection.execute(statement, *arguments)


async def value(server: EmbeddedPostgres, statement: str, *arguments: object) -> Any:
    """One value."""
    async with as_owner(server) as connection:
        return await connection.fetchval(statement, *arguments)


async def empty(server: EmbeddedPostgres) -> None:
    """Forget all work, keep the schema; then a checkpoint, so that nobody pays for the past."""
    await execute(server, "TRUNCATE betimes.jobs, betimes.runs, betimes.parcels")
    await execute(server, "CHECKPOINT")
