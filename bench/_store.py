"""A durable store of its own for one measurement: embedded PostgreSQL with fsync on."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from secrets import token_urlsafe

from betimes.config.settings import DatabaseSettings
from betimes.embedded import EmbeddedPostgres, find_binaries
from betimes.store.database import Database
from betimes.store.migrate import migrate
from betimes.store.partitions import Partitions
from betimes.testing.real_clock import RealClock

SHARDS = 64


@asynccontextmanager
async def fresh_store(connections: int) -> AsyncIterator[tuple[Database, str]]:
    """An open store and its address; gone afterwards."""
    clock = RealClock()
    with tempfile.TemporaryDirectory(prefix="betimes-bench-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 -- the server has an account of its own
        postgres = EmbeddedPostgres(
            data=Path(folder) / "server",
            binaries=find_binaries(None),
            settings={"max_wal_size": "4GB"},
            clock=clock,
            password_factory=token_urlsafe,
        )
        await postgres.start()
        try:
            settings = DatabaseSettings(api_connections=connections)
            await migrate(postgres.dsn("postgres"), settings, shards=SHARDS, clock=clock)
            database = await Database.open(
                settings, dsn=postgres.dsn("postgres"), clock=clock, roll=half
            )
            try:
                today = clock.now().date()
                await Partitions(database).ensure(today - timedelta(days=1), ahead_days=2)
                yield database, postgres.dsn("postgres")
            finally:
                await database.close()
        finally:
            await postgres.stop()


def half() -> float:
    """A die that always shows the middle."""
    return 0.5


def entropy(size: int) -> bytes:
    """Bytes for ids."""
    return os.urandom(size)
