"""Connections: one pool per class of work, so that no class can starve another.

Lease renewal and completion have connections of their own; a flood of requests or a long plan
cannot take them. No connection carries session state: with a pooler in transaction mode in front,
the next transaction may meet another server process.
"""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg

from betimes.config.dsn import read_dsn
from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import BadSetting, Bug
from betimes.rhythm import within

# Quoted because the driver's classes are generic only in its type stubs.
Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
PooledConnection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Connection: TypeAlias = "Session | PooledConnection"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

if TYPE_CHECKING:
    _Driver = asyncpg.Connection[asyncpg.Record]
else:
    _Driver = asyncpg.Connection

SYSTEM_ROLE = "betimes_system"
TRANSACTION_TIMEOUT_SINCE = 170_000
CLOSE_PATIENCE_SECONDS = 2.0
# A peer that vanished without a word is noticed within about ten seconds.
KEEPALIVE_IDLE_SECONDS, KEEPALIVE_INTERVAL_SECONDS, KEEPALIVE_COUNT = 5, 2, 3
USER_TIMEOUT_MS = 10_000


class Lane(StrEnum):
    """The classes of work, most urgent first."""

    LEASE = "lease"
    COMPLETE = "complete"
    ENGINE = "engine"
    API = "api"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is, and whether a pooler stands in front of it."""

    dsn: str
    pooled: bool

    @classmethod
    def of(cls, dsn: str, *, pgbouncer: bool = False) -> "Address":
        """Read the `pgbouncer=true` switch out of a DSN; the driver does not know it."""
        try:
            said = read_dsn(dsn)
        except ValueError as error:
            raise BadSetting(
                f"expected the address of a database, got one that is {error}"
            ) from error
        return cls(said.dsn, pooled=pgbouncer or said.pgbouncer)


class CheckedSession(_Driver):
    """A session that does not take a refused COMMIT for a commit."""

    async def execute(self, query: str, *args: Any, **options: Any) -> str:
        """Like the driver's, but PostgreSQL's quiet ROLLBACK of a failed transaction is told."""
        status = await super().execute(query, *args, **options)
        if query == "COMMIT;" and status != "COMMIT":
            raise Bug("a transaction with a failed statement was to be committed; it was undone")
        return status


# A prepared statement keeps the plan it got when the tables were as empty as they are at night, and
# would walk through everything that arrives in the morning until the next ANALYZE. The statements
# of the engine find their rows by index, one by one and in its order, whatever the statistics say.
# (A pooler keeps no prepared statements, so there is nothing to keep on the path there.)
_BY_INDEX = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    # With a day per partition, planning anew costs more than most statements of the engine.
    "plan_cache_mode": "force_generic_plan",
}
ROW_BY_ROW: Mapping[str, str] = MappingProxyType(
    _BY_INDEX | {"enable_hashjoin": "off", "enable_mergejoin": "off"}
)
"""For statements that look up each of a few rows, however many there are beside them."""
PLANS: Mapping[Lane, Mapping[str, str]] = MappingProxyType(
    {Lane.LEASE: _BY_INDEX, Lane.ENGINE: _BY_INDEX, Lane.COMPLETE: ROW_BY_ROW}
)


def session_settings(settings: DatabaseSettings, server_version: int) -> dict[str, str]:
    """The bounds every transaction lives in, in the server's own words."""

    def milliseconds(patience: timedelta) -> str:
        return str(int(patience.total_seconds() * 1000))

    bounds = {
        "statement_timeout": milliseconds(settings.statement_timeout),
        "lock_timeout": milliseconds(settings.lock_timeout),
        # Where the server knows no transaction_timeout, this one still ends a frozen client.
        "idle_in_transaction_session_timeout": milliseconds(settings.transaction_timeout),
    }
    if server_version >= TRANSACTION_TIMEOUT_SINCE:
        bounds["transaction_timeout"] = milliseconds(settings.transaction_timeout)
    return bounds


async def server_version(address: Address, settings: DatabaseSettings) -> int:
    """The server's version as a number, 180004 for 18.4: the first proof that it is there."""
    connection = await connect(address, settings)
    try:
        async with connection.transaction():
            return int(await connection.fetchval("SHOW server_version_num"))
    finally:
        await close(connection)


async def connect(address: Address, settings: DatabaseSettings) -> Session:
    """A single connection outside the pools, for listening, migrating and probing."""
    patience = settings.connect_timeout.total_seconds()
    connection = await asyncpg.connect(
        address.dsn, timeout=patience, statement_cache_size=0 if address.pooled else 100
    )
    await _prepare_socket(connection)
    return connection


async def close(connection: Session) -> None:
    """Close politely, then for good."""
    try:
        await connection.close(timeout=CLOSE_PATIENCE_SECONDS)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        connection.terminate()


async def open_pool(
    address: Address, settings: DatabaseSettings, *, size: int, lane: Lane, server_version: int
) -> Pool:
    """A pool for one class of work, with its first connection made unless it may never be used."""
    patience = settings.connect_timeout.total_seconds()
    options: dict[str, Any] = {
        # Many nodes never have a stream.
        "min_size": 0 if lane is Lane.STREAM else 1,
        "max_size": size,
        "timeout": patience,
        "command_timeout": settings.statement_timeout.total_seconds() + patience,
        "connection_class": CheckedSession,
        "init": _prepare_socket,
        "reset": _keep,
        "max_inactive_connection_lifetime": 60.0,
    }
    if address.pooled:
        options["statement_cache_size"] = 0
    else:
        names = {"application_name": f"betimes-{lane}", "jit": "off", "role": SYSTEM_ROLE}
        bounds = session_settings(settings, server_version)
        options["server_settings"] = names | bounds | dict(PLANS.get(lane, {}))
    async with within(settings.connect_timeout * 2, f"opening the pool of the lane {lane}"):
        return await asyncpg.create_pool(address.dsn, **options)


async def _prepare_socket(connection: Connection) -> None:
    # The driver offers no keep-alive settings; the kernel's default is two hours.
    transport = getattr(connection, "_transport", None)
    raw = transport.get_extra_info("socket") if transport else None
    if raw is None or raw.family == socket.AF_UNIX:
        return
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_SECONDS),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_SECONDS),
        ("TCP_KEEPCNT", KEEPALIVE_COUNT),
        ("TCP_USER_TIMEOUT", USER_TIMEOUT_MS),
    ):
        if hasattr(socket, name):
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _keep(_: Connection) -> None:
    """Leave a returned connection as it is: we set nothing, so there is nothing to reset."""


async def close_pool(pool: Pool) -> None:
    """Close politely, then for good: a frozen server must not hold up the end."""
    try:
        async with asyncio.timeout(CLOSE_PATIENCE_SECONDS):
            await pool.close()
    except TimeoutError:
        pool.terminate()
