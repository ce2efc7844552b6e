"""Every rule on every road: what a road lacks is skipped with its reason."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from betimes import App
from betimes.config.settings import DatabaseSettings
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.testing.postgres import PostgresKit
from conformance.database_roads import database_road
from conformance.hands import half
from conformance.harness_road import HarnessRoad
from conformance.roads import HARNESS, LACKS, ROADS, Can, Road
from store_kit import owner


@pytest.fixture(scope="session")
def ground(postgres: PostgresKit) -> str:
    """One database for all rules of a process: to wipe it takes less than to copy one."""
    return asyncio.run(laid(postgres))


@pytest.fixture(params=ROADS)
async def road(
    request: pytest.FixtureRequest, ground: str, clock: ManualClock
) -> AsyncIterator[Road]:
    """A world of its own for each rule and road."""
    if request.param == HARNESS:
        one = HarnessRoad(App(name="conformance"))
        yield one
        one.close()
        return
    await wipe(ground)
    database = await Database.open(DatabaseSettings(), dsn=ground, clock=clock, roll=half)
    try:
        async with database_road(request.param, database, clock) as world:
            yield world
    finally:
        await database.close()


SEEDED = ("shards", "tenants")
"""Tables that a fresh database has rows in, and worlds write to."""
FIXED = ("cluster", "migrations")
"""Those that they do not."""


async def laid(postgres: PostgresKit) -> str:
    """A fresh database that remembers what it was like."""
    dsn = postgres.dsn(await postgres.create())
    async with owner(dsn) as connection:
        for table in SEEDED:
            await connection.execute(f"CREATE TABLE public.{table} AS TABLE betimes.{table}")
    return dsn


async def wipe(dsn: str) -> None:
    """As it was in the beginning, whatever the world before has left."""
    async with owner(dsn) as connection:
        tables = await connection.fetch(
            "SELECT relname AS name FROM pg_class WHERE relnamespace = 'betimes'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> ALL ($1)",
            list(FIXED),
        )
        statements = ["SET session_replication_role = replica"]
        statements += [f"DELETE FROM betimes.{row['name']}" for row in tables]
        statements += [f"INSERT INTO betimes.{one} TABLE public.{one}" for one in SEEDED]
        await connection.execute(";".join(statements))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say of each rule and road whether there is anything to see."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        name = None if callspec is None else callspec.params.get("road")
        if name is None:
            continue
        for can in wanted(item):
            if can in LACKS[name]:
                item.add_marker(pytest.mark.skip(reason=f"{name}: {LACKS[name][can]}"))


def wanted(item: pytest.Item) -> list[Can]:
    """What a rule needs of a road."""
    function = getattr(item, "function", None)
    return list(getattr(function, "needs", ()))
