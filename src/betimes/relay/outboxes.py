"""Outboxes in databases of others. Their statements are not our store's: the tables are theirs."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import asyncpg

from betimes.domain.errors import BadSetting, Unavailable

CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 30.0


class Row(NamedTuple):
    """What somebody has asked for and committed."""

    id: str
    handler: str
    payload: str | None
    options: str
    age_seconds: float


@dataclass(slots=True)
class Verdict:
    """What became of rows; whoever is in none of these stays as it is."""

    carried: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    later: dict[str, timedelta] = field(default_factory=dict)


class Batch(Protocol):
    """Rows that are ours while the batch lasts."""

    rows: Sequence[Row]

    async def settle(self, verdict: Verdict) -> None:
        """Write down what became of them."""
        ...


class Outbox(Protocol):
    """A table of rows to carry."""

    def batch(self, most: int) -> AbstractAsyncContextManager[Batch]:
        """The oldest rows that are due."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


def outbox_at(address: str) -> Outbox:
    """The outbox at `postgresql://…` or `sqlite:///path`."""
    parts = urlsplit(address)
    if parts.scheme in {"postgresql", "postgres"}:
        return PostgresOutbox(address)
    if parts.scheme == "sqlite" and parts.path:
        # As SQLAlchemy writes it: three slashes for a relative path, four for an absolute one.
        return SqliteOutbox(Path(unquote(parts.path[1:])))
    raise BadSetting(f"expected postgresql://… or sqlite:///file, got {parts.scheme or address!r}")


class PostgresOutbox:
    """An outbox in PostgreSQL; several relays may share it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    @asynccontextmanager
    async def batch(self, most: int) -> AsyncIterator[Batch]:
        """Rows that no other relay has, locked until the batch ends."""
        try:
            connection = await self._connected()
            async with connection.transaction():
                yield await PostgresBatch.lock(connection, most)
        except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError) as lost:
            await self.close()
            raise Unavailable(f"the database of the outbox is away: {lost}") from lost

    async def _connected(self) -> "asyncpg.Connection[asyncpg.Record]":
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(
                self._dsn, timeout=CONNECT_SECONDS, command_timeout=STATEMENT_SECONDS
            )
        return self._connection

    async def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await connection.close(timeout=1.0)


class PostgresBatch:
    """Locked rows."""

    def __init__(
        self, connection: "asyncpg.Connection[asyncpg.Record]", rows: Sequence[Row]
    ) -> None:
        self._connection = connection
        self.rows = rows

    @classmethod
    async def lock(
        cls, connection: "asyncpg.Connection[asyncpg.Record]", most: int
    ) -> "PostgresBatch":
        """The oldest rows that nobody else has locked."""
        rows = await connection.fetch(
            "SELECT id, handler, payload, options,"
            "       extract(epoch FROM clock_timestamp() - created_at)::float8 AS age_seconds"
            "  FROM betimes_outbox"
            " WHERE refused IS NULL AND (retry_at IS NULL OR retry_at <= clock_timestamp())"
            " ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED",
            most,
        )
        return cls(connection, [Row(*row.values()) for row in rows])

    async def settle(self, verdict: Verdict) -> None:
        """Three statements at most; they commit with the batch."""
        if verdict.carried:
            await self._connection.execute(
                "DELETE FROM betimes_outbox WHERE id = ANY ($1)", verdict.carried
            )
        if verdict.refused:
            await self._connection.execute(
                "UPDATE betimes_outbox SET refused = given.why"
                "  FROM unnest($1::text[], $2::text[]) AS given (id, why)"
                " WHERE betimes_outbox.id = given.id",
                *_columns(verdict.refused),
            )
        if verdict.later:
            await self._connection.execute(
                "UPDATE betimes_outbox SET retry_at = clock_timestamp() + given.pause"
                "  FROM unnest($1::text[], $2::interval[]) AS given (id, pause)"
                " WHERE betimes_outbox.id = given.id",
                *_columns(verdict.later),
            )


class SqliteOutbox:
    """An outbox in a SQLite file; its rows are not locked, so two relays do some work twice."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise BadSetting(f"expected a SQLite file, there is none at {path}")
        self._path = path

    @asynccontextmanager
    async def batch(self, most: int) -> AsyncIterator[Batch]:
        """The oldest rows."""
        try:
            yield SqliteBatch(self._path, await asyncio.to_thread(self._read, most))
        except sqlite3.OperationalError as away:
            raise Unavailable(f"the database of the outbox is away: {away}") from away

    def _read(self, most: int) -> list[Row]:
        connection = sqlite3.connect(self._path, timeout=STATEMENT_SECONDS)
        try:
            rows = connection.execute(
                "SELECT id, handler, payload, options,"
                "       86400.0 * (julianday('now') - julianday(created_at))"
                "  FROM betimes_outbox WHERE refused IS NULL"
                "   AND (retry_at IS NULL OR julianday(retry_at) <= julianday('now'))"
                " ORDER BY seq LIMIT ?",
                (most,),
            )
            return [Row(*row) for row in rows]
        finally:
            connection.close()

    async def close(self) -> None:
        """Nothing is held."""


class SqliteBatch:
    """Rows that were read."""

    def __init__(self, path: Path, rows: Sequence[Row]) -> None:
        self._path = path
        self.rows = rows

    async def settle(self, verdict: Verdict) -> None:
        """One short transaction."""
        await asyncio.to_thread(self._write, verdict)

    def _write(self, verdict: Verdict) -> None:
        connection = sqlite3.connect(self._path, timeout=STATEMENT_SECONDS)
        try:
            with connection:
                connection.executemany(
                    "DELETE FROM betimes_outbox WHERE id = ?", [(one,) for one in verdict.carried]
                )
                connection.executemany(
                    "UPDATE betimes_outbox SET refused = ? WHERE id = ?",
                    [(why, one) for one, why in verdict.refused.items()],
                )
                connection.executemany(
                    "UPDATE betimes_outbox SET retry_at ="
                    " strftime('%Y-%m-%dT%H:%M:%fZ', julianday('now') + ? / 86400.0) WHERE id = ?",
                    [(pause.total_seconds(), one) for one, pause in verdict.later.items()],
                )
        finally:
            connection.close()


def _columns(given: Mapping[str, object]) -> tuple[list[str], list[object]]:
    return list(given), list(given.values())
