"""What tests of transactional enqueue share: a role that may call the function and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from os import getpid
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import asyncpg

from betimes.domain.ids import RunId, from_text
from betimes.ops.desk import Desk
from betimes.ops.intake import TakenIn, shards_to_take_in, take_in
from betimes.ops.producers import admit_producer
from betimes.store.database import Database
from betimes.store.pool import SYSTEM_ROLE
from store_kit import owner

NUMBERS = count(1)
PASSWORD = "shop"  # noqa: S105 -- of a server that lives as long as the test
CALL = "SELECT run_id, deduplicated FROM betimes.enqueue_v1($1, $2::jsonb, $3::jsonb)"


@dataclass(frozen=True, slots=True)
class Shop:
    """Somebody whose tables lie in the same database: a login role and its address."""

    role: str
    dsn: str


@asynccontextmanager
async def open_shop(dsn: str, database: Database | None) -> AsyncIterator[Shop]:
    """A role that owns a table `orders`; a registered producer where a store is given."""
    # Roles belong to the whole server, which several tests use at once.
    role = f"shop_{getpid()}_{next(NUMBERS)}"
    async with owner(dsn) as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        await connection.execute(f"CREATE SCHEMA {role} AUTHORIZATION {role}")
        await connection.execute(
            f"CREATE TABLE {role}.orders (id integer PRIMARY KEY, paid boolean DEFAULT false);"
            f"ALTER TABLE {role}.orders OWNER TO {role}"
        )
    if database is not None:
        await admit_producer(database, role, "default")
    try:
        yield Shop(role, as_role(dsn, role))
    finally:
        async with owner(dsn) as connection:
            # What the system has granted, only the system takes back.
            await connection.execute(f"SET ROLE {SYSTEM_ROLE}")
            await connection.execute(f"REVOKE ALL ON SCHEMA betimes FROM {role}")
            await connection.execute(f"RESET ROLE; DROP OWNED BY {role} CASCADE")
            await connection.execute(f"DROP ROLE {role}")


def as_role(dsn: str, role: str) -> str:
    """The same address with another login."""
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{PASSWORD}@{host}"))


def sqlalchemy_url(dsn: str, driver: str) -> str:
    """The same address in SQLAlchemy's words."""
    parts = urlsplit(dsn)
    return f"postgresql+{driver}://{parts.netloc}{parts.path}?{parts.query}"


def django_database(shop: Shop) -> dict[str, Any]:
    """The same address in Django's words."""
    parts = urlsplit(shop.dsn)
    said = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "PASSWORD": parts.password,
        "HOST": said["host"],
        "PORT": said["port"],
        "OPTIONS": {"options": f"-csearch_path={shop.role}"},
    }


async def ask(
    connection: asyncpg.Connection, handler: str, payload: str | None = None, options: str = "{}"
) -> tuple[RunId, bool]:
    """Call the function as a user of SQL does."""
    row = await connection.fetchrow(CALL, handler, payload, options)
    assert row is not None
    return RunId(from_text("run", row["run_id"])), row["deduplicated"]


async def take_all_in(desk: Desk) -> TakenIn:
    """One pass of a coordinator."""
    whole = TakenIn()
    for shard in await shards_to_take_in(desk.database):
        whole.add(await take_in(desk, shard))
    return whole
