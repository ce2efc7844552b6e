"""A real PostgreSQL for tests: one server per test process, one fresh database per test.

The schema is migrated once into a template; every test gets a copy of it, which takes a few
hundredths of a second. Nothing is faked, only `fsync` is off.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from secrets import token_urlsafe
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.embedded import EmbeddedPostgres, find_binaries
from betimes.store.migrate import migrate
from betimes.testing.real_clock import RealClock

TEMPLATE = "betimes_template"
SHARDS = 4
SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum": "off",  # plans and statistics stay as the test made them
    "log_min_messages": "fatal",
}


@dataclass(frozen=True, slots=True)
class PostgresKit:
    """A running server with a migrated template."""

    postgres: EmbeddedPostgres
    numbers: "count[int]"

    def dsn(self, database: str) -> str:
        """The address of one of its databases."""
        return self.postgres.dsn(database)

    async def create(self, *, template: str = TEMPLATE) -> str:
        """A fresh database; returns its name."""
        name = f"test_{next(self.numbers)}"
        await self._as_admin(f'CREATE DATABASE {name} TEMPLATE "{template}" STRATEGY file_copy')
        return name

    async def drop(self, name: str) -> None:
        """Remove a database with everybody who is still in it."""
        await self._as_admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    async def migrate(self, dsn: str) -> None:
        """Bring a database to the newest schema."""
        await migrate(dsn, DatabaseSettings(), shards=SHARDS, clock=RealClock())

    async def _as_admin(self, statement: str) -> None:
        connection = await asyncpg.connect(self.dsn("postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@contextmanager
def postgres_kit(data: Path, *, binaries: Path | None = None) -> Iterator[PostgresKit]:
    """Start a server in `data`, migrate the template, stop it at the end."""
    postgres = EmbeddedPostgres(
        data=data,
        binaries=find_binaries(binaries),
        settings=SETTINGS,
        unsafe_no_fsync=True,
        clock=RealClock(),
        password_factory=token_urlsafe,
    )
    asyncio.run(postgres.start())
    try:
        server = PostgresKit(postgres, count(1))
        asyncio.run(_make_template(server))
        yield server
    finally:
        asyncio.run(postgres.stop())


async def _make_template(server: PostgresKit) -> None:
    await server._as_admin(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")  # noqa: SLF001 -- same module
    await server.migrate(server.dsn(TEMPLATE))


def socket_of(dsn: str) -> Path:
    """The unix socket behind an address of the kit."""
    said = dict(parse_qsl(urlsplit(dsn).query))
    return Path(said["host"]) / f".s.PGSQL.{said['port']}"


def through(dsn: str, port: int, **more: str) -> str:
    """The same database, reached over a port of this machine: a proxy's or a pooler's."""
    parts = urlsplit(dsn)
    account = parts.netloc.rpartition("@")[0]
    query = urlencode({"sslmode": "disable", **more})
    return f"postgresql://{account}@127.0.0.1:{port}{parts.path}?{query}"
