"""What the tests of the store share: quick settings, a clock that hurries, bounded waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.domain.clock import Clock
from betimes.store.database import Database
from betimes.store.pool import Session
from betimes.testing import ManualClock

T = TypeVar("T")
PATIENCE_SECONDS = 20.0
MILLISECOND = timedelta(milliseconds=1)
# For tests in which something does not answer: nobody waits long.
IMPATIENT: dict[str, Any] = {
    "connect_timeout": 300 * MILLISECOND,
    "statement_timeout": 300 * MILLISECOND,
    "lock_timeout": 200 * MILLISECOND,
}


class HurriedClock(ManualClock):
    """Nobody waits: whoever sleeps moves the time."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)  # noqa: TID251 -- gives way to others, takes no time


def half() -> float:
    return 0.5


@asynccontextmanager
async def opened(dsn: str, *, clock: Clock | None = None, **wishes: Any) -> AsyncIterator[Database]:
    """An open store with settings of one's own."""
    settings = DatabaseSettings(**wishes)
    database = await Database.open(settings, dsn=dsn, clock=clock or HurriedClock(), roll=half)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def owner(dsn: str) -> AsyncIterator[Session]:
    """A session of the superuser, beside the store."""
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close(timeout=PATIENCE_SECONDS)


async def eventually(happened: Callable[[], Awaitable[object]], *, what: str) -> None:
    """Ask until the answer is yes; fail the test with its name when it never is."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not await happened():
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain for: {what}"
        await asyncio.sleep(0.01)  # noqa: TID251 -- another process has to do something


async def soon(what: Awaitable[T], *, seconds: float = PATIENCE_SECONDS) -> T:
    """The answer, or a failure instead of a hang."""
    async with asyncio.timeout(seconds):
        return await what


async def make_probe(dsn: str) -> None:
    """A table to try things on; the system role gets it by default privileges."""
    async with owner(dsn) as connection:
        await connection.execute(
            "CREATE TABLE betimes.probe (id integer PRIMARY KEY, n integer NOT NULL DEFAULT 0);"
            "INSERT INTO betimes.probe (id) VALUES (1), (2)"
        )


async def probe(dsn: str) -> dict[int, int]:
    """What is in the table, as somebody else sees it."""
    async with owner(dsn) as connection:
        rows = await connection.fetch("SELECT id, n FROM betimes.probe")
    return {row["id"]: row["n"] for row in rows}


async def open_transactions(dsn: str) -> int:
    """How many of our sessions are inside a transaction."""
    async with owner(dsn) as connection:
        return int(
            await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name LIKE 'betimes-%' AND state <> 'idle'"
            )
        )


async def end_sessions(dsn: str) -> int:
    """Let the server end every other session in this database."""
    async with owner(dsn) as connection:
        return int(
            await connection.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
