"""Receivers that take effect once."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator

import asyncpg
import pytest

from betimes.domain.errors import Invalid
from betimes.inbox import SCHEMA, AsyncInbox, Inbox, StaleDelivery
from betimes.webhooks import Delivery


def a_delivery(identity: str = "run_1", *, fence: int | None = 1, at: int = 100) -> Delivery:
    return Delivery(id=identity, timestamp=at, fence=fence)


def test_sqlite_takes_effect_once() -> None:
    """A repeat does nothing; another run is another run."""
    inbox = Inbox("qmark")
    with sqlite3.connect(":memory:") as connection:
        connection.execute(SCHEMA)
        assert inbox.first(connection, a_delivery())
        assert not inbox.first(connection, a_delivery())
        assert not inbox.first(connection, a_delivery(fence=3))
        with pytest.raises(StaleDelivery, match="at least 3, got 2"):
            inbox.first(connection, a_delivery(fence=2))
        assert inbox.first(connection, a_delivery("run_2", fence=None))
        assert inbox.forget(connection, before=100) == 0
        assert inbox.forget(connection, before=101) == 2
    connection.close()


def test_an_effect_that_failed_may_be_tried_again() -> None:
    """The row goes with the transaction."""
    inbox = Inbox("qmark")
    connection = sqlite3.connect(":memory:")
    connection.execute(SCHEMA)
    assert inbox.first(connection, a_delivery())
    connection.rollback()
    with connection:
        assert inbox.first(connection, a_delivery())
    connection.close()


def test_only_known_styles() -> None:
    """There are two."""
    with pytest.raises(Invalid):
        Inbox("named")  # type: ignore[arg-type]


@pytest.fixture
async def receiver(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    """A database of somebody else's."""
    async with asyncpg.create_pool(dsn, min_size=1, max_size=10) as pool:
        await pool.execute(SCHEMA)
        await pool.execute("CREATE TABLE effects (id text)")
        yield pool


async def test_postgres_takes_effect_once_however_many_come_together(
    receiver: asyncpg.Pool,
) -> None:
    """Ten at the same time: nine wait for the first, and see that it is done."""
    inbox = AsyncInbox()

    async def handle(fence: int) -> str:
        try:
            async with receiver.acquire() as connection, connection.transaction():
                if not await inbox.first(connection, a_delivery(fence=fence)):
                    return "repeat"
                await connection.execute("INSERT INTO effects VALUES ('run_1')")
                return "done"
        except StaleDelivery:
            return "stale"

    said = await asyncio.gather(*(handle(fence) for fence in range(1, 11)))
    assert said.count("done") == 1
    assert await receiver.fetchval("SELECT count(*) FROM effects") == 1
    assert await handle(1) == "stale"
    assert await handle(10) == "repeat"
    assert await receiver.fetchval("SELECT max(fence) FROM betimes_inbox") == 10
    assert await inbox.forget(receiver, before=1_000) == 1
