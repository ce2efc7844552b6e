"""Named statements inside a transaction that somebody else opened."""

from typing import Any

import asyncpg
import msgspec

from betimes.domain.errors import Bug
from betimes.store.pool import Connection
from betimes.store.queries import Query


async def many(connection: Connection, query: Query, **given: Any) -> list[asyncpg.Record]:
    """Every row."""
    return await connection.fetch(query.text, *query.arguments(given))


async def maybe(connection: Connection, query: Query, **given: Any) -> asyncpg.Record | None:
    """The row, if there is one."""
    return await connection.fetchrow(query.text, *query.arguments(given))


async def one(connection: Connection, query: Query, **given: Any) -> asyncpg.Record:
    """The row that must be there."""
    row = await maybe(connection, query, **given)
    if row is None:
        raise Bug(f"statement {query.name} returned no row")
    return row


async def estimate(connection: Connection, query: Query, **given: Any) -> int:
    """About how many rows a statement would find without its LIMIT; costs no more than planning."""
    told = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {query.text}", *query.arguments(given))
    plan = msgspec.json.decode(told)[0]["Plan"]
    while plan["Node Type"] == "Limit":
        plan = plan["Plans"][0]
    return int(plan["Plan Rows"])


async def execute(connection: Connection, query: Query, **given: Any) -> None:
    """Nothing comes back."""
    await connection.execute(query.text, *query.arguments(given))
