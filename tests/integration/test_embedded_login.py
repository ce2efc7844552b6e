"""The service on the embedded server: a login of its own, and nobody behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from betimes.app import database as databases
from betimes.app.dice import Dice
from betimes.config import DatabaseSettings, Settings
from betimes.domain.errors import Refused
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.server import read_clock
from betimes.testing.real_clock import RealClock
from embedded_kit import Place

pytestmark = pytest.mark.db


@asynccontextmanager
async def a_service(place: Place) -> AsyncIterator[tuple[databases.Place, Database]]:
    """A node's database as `betimes dev` opens it."""
    settings = Settings()
    embedded = replace(settings.embedded, data=place.data, binaries=place.binaries.directory)
    settings = replace(settings, embedded=embedded)
    clock, dice = RealClock(), Dice()
    async with databases.located(settings, clock=clock, dice=dice) as found:
        await databases.migrate(settings, found, clock=clock, progress=lambda _: None)
        await databases.require_schema(settings, found)
        async with databases.opened(settings, found, clock=clock, dice=dice) as database:
            yield found, database


async def said(connection: Connection) -> tuple[Any, ...]:
    """Who a session is, who it acts as, and whether the former is anybody."""
    rows = await connection.fetch(
        "SELECT session_user::text, current_user::text, rolsuper OR rolbypassrls OR "
        "rolcreaterole OR rolcreatedb OR rolreplication AS mighty "
        "FROM pg_roles WHERE rolname = session_user"
    )
    return tuple(rows[0])


async def test_the_service_is_no_superuser_and_cannot_become_one(place: Place) -> None:
    """Whatever statement was smuggled in, there is nobody to fall back to."""
    async with a_service(place) as (found, database):
        within = await database.transact(said, lane=Lane.API, repeatable=True, tenant=None)
        assert within == ("betimes_service", "betimes_system", False)
        connection = await asyncpg.connect(found.dsn)
        try:
            assert await said(connection) == ("betimes_service", "betimes_service", False)
            await connection.execute("SET ROLE betimes_system")
            await connection.execute("RESET ROLE")
            assert await connection.fetchval("SELECT current_user::text") == "betimes_service"
            for statement in (
                "SET ROLE postgres",
                "SET SESSION AUTHORIZATION postgres",
                "ALTER ROLE betimes_service SUPERUSER",
                "CREATE ROLE mighty SUPERUSER",
                "COPY (SELECT 1) TO PROGRAM 'true'",
                "SELECT pg_read_file('/etc/passwd')",
                "SELECT * FROM betimes.api_keys",
                "SELECT betimes.ensure_login('mighty', 'x')",
                "ALTER SYSTEM SET fsync = off",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute(statement)
        finally:
            await connection.close()


async def test_a_directory_from_before_gets_its_login(place: Place) -> None:
    """Also one whose secret somebody has removed."""
    async with a_service(place) as (found, _):
        owner = await asyncpg.connect(found.owner_dsn)
        assert await owner.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        await owner.close()
    (place.data / "secrets" / "service.password").unlink()
    async with a_service(place) as (found, database):
        assert (await read_clock(database)).year > 2000
    async with a_service(place) as (found, _):
        owner = await asyncpg.connect(found.owner_dsn)
        other = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1"
        await owner.fetch(other, "betimes_service")
        await owner.execute("DROP ROLE betimes_service")
        await owner.close()
    async with a_service(place) as (_, database):
        assert (await read_clock(database)).year > 2000


async def test_the_login_of_the_service_may_ask_for_the_version_of_the_schema(place: Place) -> None:
    """A node, or a worker on the database, that is given this login by `--dsn` starts with it."""
    async with a_service(place) as (found, _):
        settings = Settings(database=DatabaseSettings(dsn=found.dsn))
        async with databases.located(settings, clock=RealClock(), dice=Dice()) as given:
            assert await databases.version_complaints(settings, given) == []


async def test_a_login_that_may_do_nothing_is_told_what_it_needs(place: Place) -> None:
    """Not that a statement of ours was refused, which is nothing that anybody can mend."""
    async with a_service(place) as (found, _):
        owner = await asyncpg.connect(found.owner_dsn)
        try:
            await owner.execute("CREATE ROLE stranger LOGIN PASSWORD 'a stranger'")
        finally:
            await owner.close()
        parts = urlsplit(found.dsn)
        rest = parts.netloc.rpartition("@")[2]
        dsn = urlunsplit(parts._replace(netloc=f"stranger:a%20stranger@{rest}"))
        settings = Settings(database=DatabaseSettings(dsn=dsn))
        async with databases.located(settings, clock=RealClock(), dice=Dice()) as given:
            with pytest.raises(Refused, match="GRANT betimes_api, betimes_system TO"):
                await databases.require_schema(settings, given)
            with pytest.raises(Refused, match="the owner of the schema betimes"):
                await databases.migrate(settings, given, clock=RealClock(), progress=lambda _: None)
