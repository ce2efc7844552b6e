"""A tenant sees and touches its own rows, whatever the statement forgot to say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from betimes.domain.errors import Bug
from betimes.domain.ids import compose, to_ms
from betimes.store.database import API_ROLE, Database
from betimes.store.partitions import PARENTS, Partitions
from betimes.store.pool import SYSTEM_ROLE, Connection, Lane, Session
from betimes.testing.postgres import PostgresKit
from rows_kit import insert_row
from store_kit import opened, owner

A, B = UUID(int=0xA), UUID(int=0xB)
INHERITING_SINCE = 16
"""Since this PostgreSQL a grant says whether it is inherited, not the role."""
TENANT_TABLES = """
    SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity FROM pg_class c
     WHERE c.relnamespace = 'betimes'::regnamespace AND c.relkind IN ('r', 'p')
       AND NOT c.relispartition
       AND (c.relname = 'tenants' OR EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'))
     ORDER BY 1
"""
POLICIES = """
    SELECT tablename, policyname, roles::text[] AS roles, cmd, permissive,
           qual, coalesce(with_check, '') AS checked
      FROM pg_policies WHERE schemaname = 'betimes'
"""


async def holes_in_isolation(connection: Session) -> list[str]:
    """Every table of a tenant that is not behind both policies, for reading and for writing."""
    policies = {
        (row["tablename"], row["policyname"]): row for row in await connection.fetch(POLICIES)
    }
    holes = []
    for name, enabled, forced in await connection.fetch(TENANT_TABLES):
        key = "id" if name == "tenants" else "tenant_id"
        own, whole = (policies.get((name, policy)) for policy in ("own_tenant", "whole_system"))
        rule = f"({key} = betimes.current_tenant())"
        if not (enabled and forced):
            holes.append(f"{name}: row-level security is not enabled and forced")
        if own is None or own["roles"] != [API_ROLE] or own["cmd"] != "ALL":
            holes.append(f"{name}: no policy for the API's role")
        elif own["qual"] != rule or own["checked"] != rule:
            holes.append(f"{name}: reads by {own['qual']}, writes by {own['checked']}")
        if whole is None or whole["roles"] != [SYSTEM_ROLE]:
            holes.append(f"{name}: no policy for the system's role")
        allowed = {"own_tenant", "whole_system"}
        extra = {policy for table, policy in policies if table == name} - allowed
        holes += [f"{name}: unknown policy {policy}" for policy in sorted(extra)]
    return holes


async def tables(connection: Session) -> list[str]:
    return [row["relname"] for row in await connection.fetch(TENANT_TABLES)]


@pytest.fixture
async def both(dsn: str) -> AsyncIterator[Session]:
    """The superuser in a database where A and B have a row in every table."""
    async with owner(dsn) as connection:
        names = await tables(connection)
        for tenant in (A, B):
            await insert_row(connection, "tenants", id=tenant, slug=f"t{tenant.int}")
            for name in names:
                if name != "tenants":
                    await insert_row(connection, name, tenant_id=tenant)
        yield connection


async def enter(connection: Connection, tenant: UUID | None) -> None:
    await connection.execute(f"SET LOCAL ROLE {API_ROLE}")
    if tenant:
        await connection.execute("SELECT set_config('betimes.tenant', $1, true)", str(tenant))


async def test_every_table_of_tenants_is_behind_both_policies(dsn: str) -> None:
    async with owner(dsn) as connection:
        assert len(await tables(connection)) > 20
        assert await holes_in_isolation(connection) == []


@pytest.mark.parametrize(
    ("sabotage", "hole"),
    [
        ("ALTER POLICY own_tenant ON betimes.jobs WITH CHECK (true)", "jobs: reads by"),
        ("ALTER POLICY own_tenant ON betimes.runs USING (true)", "runs: reads by"),
        ("DROP POLICY own_tenant ON betimes.blobs", "blobs: no policy for the API"),
        ("ALTER TABLE betimes.jobs NO FORCE ROW LEVEL SECURITY", "jobs: row-level security"),
        ("CREATE TABLE betimes.extra (tenant_id uuid)", "extra: row-level security"),
        ("CREATE POLICY more ON betimes.jobs USING (true)", "jobs: unknown policy more"),
    ],
)
async def test_the_check_of_the_catalogue_notices_a_hole(
    dsn: str, sabotage: str, hole: str
) -> None:
    async with owner(dsn) as connection:
        await connection.execute(sabotage)
        assert any(line.startswith(hole) for line in await holes_in_isolation(connection))


async def test_without_a_tenant_nothing_is_seen(both: Session) -> None:
    for name in await tables(both):
        async with both.transaction():
            await enter(both, None)
            assert await both.fetchval(f"SELECT count(*) FROM betimes.{name}") == 0, name


async def test_with_a_tenant_only_its_rows_are_seen(both: Session) -> None:
    for name in await tables(both):
        key = "id" if name == "tenants" else "tenant_id"
        async with both.transaction():
            await enter(both, A)
            seen = await both.fetch(f"SELECT {key} FROM betimes.{name}")
        assert [row[0] for row in seen] == [A], name


async def test_rows_of_others_are_neither_made_nor_changed_nor_given_away(both: Session) -> None:
    for name in await tables(both):
        await _no_foreign_insert(both, name)
        await _no_foreign_change(both, name)


async def _no_foreign_insert(both: Session, name: str) -> None:
    row: dict[str, Any] = {"id": B} if name == "tenants" else {"tenant_id": B}
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with both.transaction():
            await insert_row(both, name, before=lambda c: enter(c, A), **row)


async def _no_foreign_change(both: Session, name: str) -> None:
    key = "id" if name == "tenants" else "tenant_id"
    if await may(both, "DELETE", name):
        deleted = await as_tenant(both, A, f"DELETE FROM betimes.{name} WHERE {key} = $1", B)
        assert deleted == "DELETE 0", name
    if await may(both, "UPDATE", name):
        touch = f"UPDATE betimes.{name} SET {key} = {key} WHERE {key} = $1"
        assert await as_tenant(both, A, touch, B) == "UPDATE 0", name
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await as_tenant(both, A, f"UPDATE betimes.{name} SET {key} = $1", B)


async def may(connection: Session, privilege: str, name: str, role: str = API_ROLE) -> bool:
    query = "SELECT has_table_privilege($1, $2, $3)"
    return bool(await connection.fetchval(query, role, f"betimes.{name}", privilege))


async def as_tenant(connection: Session, tenant: UUID, statement: str, *arguments: Any) -> str:
    async with connection.transaction():
        await enter(connection, tenant)
        return str(await connection.execute(statement, *arguments))


async def test_transact_with_a_tenant_is_that_tenant_alone(both: Session, dsn: str) -> None:
    assert both.is_closed() is False

    async def seen(connection: Connection) -> list[UUID]:
        rows = await connection.fetch("SELECT tenant_id FROM betimes.jobs ORDER BY 1")
        return [row["tenant_id"] for row in rows]

    async with opened(dsn, api_connections=1) as database:
        for tenant in (A, B):
            assert await database.transact(seen, lane=Lane.API, repeatable=True, tenant=tenant) == [
                tenant
            ]
        assert await database.transact(seen, lane=Lane.API, repeatable=True) == [A, B]
        with pytest.raises(Bug):
            await database.transact(
                lambda c: c.execute("UPDATE betimes.jobs SET tenant_id = $1", B),
                lane=Lane.API,
                repeatable=True,
                tenant=A,
            )


async def test_two_tenants_at_once_do_not_meet(both: Session, dsn: str) -> None:
    assert both.is_closed() is False

    async def seen(connection: Connection, tenant: UUID) -> None:
        for _ in range(3):
            assert await connection.fetchval("SELECT id FROM betimes.tenants") == tenant

    async with opened(dsn, api_connections=2) as database, asyncio.TaskGroup() as group:
        for number in range(40):
            tenant = (A, B)[number % 2]
            group.create_task(
                database.transact(
                    partial(seen, tenant=tenant),
                    lane=Lane.API,
                    repeatable=True,
                    tenant=tenant,
                )
            )


async def test_nothing_of_a_tenant_stays_in_the_session(dsn: str) -> None:
    async def who(connection: Connection) -> list[Any]:
        row = await connection.fetchrow(
            "SELECT current_user::text, current_setting('betimes.tenant', true)"
        )
        return list(row or ())

    async with opened(dsn, api_connections=1) as database:
        inside = await database.transact(who, lane=Lane.API, repeatable=True, tenant=A)
        outside = await database.transact(who, lane=Lane.API, repeatable=True)
    assert inside == [API_ROLE, str(A)]
    assert outside == [SYSTEM_ROLE, ""]


async def test_our_roles_own_nothing_and_cannot_step_around(dsn: str) -> None:
    async with owner(dsn) as connection:
        for role in (API_ROLE, SYSTEM_ROLE):
            row = await connection.fetchrow("SELECT * FROM pg_roles WHERE rolname = $1", role)
            assert row is not None
            powers = ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolcanlogin")
            assert not any(row[power] for power in powers)
            owned = "SELECT count(*) FROM pg_class WHERE relowner = $1::regrole"
            assert await connection.fetchval(owned, role) == 0
            assert not await connection.fetchval(
                "SELECT has_schema_privilege($1, 'betimes', 'CREATE')", role
            )
        member = "SELECT pg_has_role($1, $2, 'MEMBER')"
        assert not await connection.fetchval(member, API_ROLE, SYSTEM_ROLE)


async def test_the_audit_trail_is_append_only_for_both(dsn: str) -> None:
    async with owner(dsn) as connection:
        for role in (API_ROLE, SYSTEM_ROLE):
            privileges = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
            held = [one for one in privileges if await may(connection, one, "audit", role)]
            assert held == ["SELECT", "INSERT"], role


async def test_partitions_are_reached_through_their_table_only(
    dsn: str, database: Database, clock: Any
) -> None:
    """A partition has no policies of its own, so the API's role must not reach it directly."""
    await Partitions(database).ensure(clock.now().date(), ahead_days=1)
    async with owner(dsn) as connection:
        rows = await connection.fetch(
            "SELECT relname, has_table_privilege($1, oid, 'SELECT, INSERT, UPDATE, DELETE') AS open"
            " FROM pg_class WHERE relispartition AND relkind = 'r'",
            API_ROLE,
        )
    assert len(rows) >= 4 * len(PARENTS)
    assert [row["relname"] for row in rows if row["open"]] == []


async def test_the_api_can_neither_make_nor_drop_partitions(dsn: str) -> None:
    async with owner(dsn) as connection:
        for call in (
            "ensure_partition('runs', '2026-01-01')",
            "scan_partition('runs', '2026-01-01', 1)",
            "drop_partition('runs', '2026-01-01', 1)",
        ):
            statement = f"SELECT betimes.{call}"
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await as_tenant(connection, A, statement)


async def test_the_system_has_every_table_it_works_on(dsn: str) -> None:
    async with owner(dsn) as connection:
        rows = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = 'betimes'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT has_table_privilege($1, oid, 'SELECT')",
            SYSTEM_ROLE,
        )
    assert [row["relname"] for row in rows] == []


@asynccontextmanager
async def plain_owner(postgres: PostgresKit, role: str) -> AsyncIterator[str]:
    """As a managed PostgreSQL gives it: a login that owns its database and nothing else."""
    async with owner(postgres.dsn("postgres")) as connection:
        await connection.execute(
            f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN PASSWORD 'plain';"
            f"GRANT {API_ROLE}, {SYSTEM_ROLE} TO {role}"
        )
    name = await postgres.create(template="template0")
    try:
        async with owner(postgres.dsn("postgres")) as connection:
            await connection.execute(f"ALTER DATABASE {name} OWNER TO {role}")
        account, _, place = postgres.dsn(name).partition("@")
        dsn = f"{account.partition('://')[0]}://{role}:plain@{place}"
        await postgres.migrate(dsn)
        yield dsn
    finally:
        await postgres.drop(name)
        async with owner(postgres.dsn("postgres")) as connection:
            await connection.execute(f"DROP ROLE {role}")


async def a_dead_run(database: Database, day: date) -> None:
    """A run of a day that lies among the dead letters."""
    run = compose(to_ms(datetime(day.year, day.month, day.day, tzinfo=UTC)), 0, 1)
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, queue, state, finished_at)"
            " VALUES (0, $1, $2, now(), 'q', 5, now())",
            run,
            A,
        )
        await connection.execute(
            "INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, dead_at, attempts, queue,"
            " fingerprint, reason) VALUES (0, $1, $2, now(), 1, 'q', 'f', 'r')",
            run,
            A,
        )


async def test_an_owner_who_does_not_see_every_tenant_drops_nothing(
    postgres: PostgresKit,
) -> None:
    day = date(2026, 1, 1)
    async with plain_owner(postgres, "stranger") as dsn, opened(dsn) as database:
        async with owner(postgres.dsn("postgres")) as connection:
            modern = connection.get_server_version().major >= INHERITING_SINCE
            await connection.execute(
                f"GRANT {SYSTEM_ROLE} TO stranger WITH INHERIT FALSE"
                if modern
                else "ALTER ROLE stranger NOINHERIT"
            )
        partitions = Partitions(database)
        await partitions.ensure(day, ahead_days=0)
        await a_dead_run(database, day)
        for aged in await partitions.aged(date(2027, 1, 1), keep_days={"runs": 30}):
            with pytest.raises(Bug):
                await partitions.scan(aged)
            with pytest.raises(Bug):
                await partitions.drop(aged)


async def test_a_plain_owner_who_is_no_superuser_can_run_it_all(postgres: PostgresKit) -> None:
    day = date(2026, 1, 1)
    async with plain_owner(postgres, "plain") as dsn, opened(dsn) as database:
        partitions = Partitions(database)
        assert await partitions.ensure(day, ahead_days=0) == 2 * len(PARENTS)
        await a_dead_run(database, day)
        moved = 0
        for aged in await partitions.aged(date(2027, 1, 1), keep_days={"runs": 30, "outbox": 30}):
            assert (await partitions.scan(aged))[1]
            moved += await partitions.drop(aged) or 0
        assert moved == 1, "it sees what a tenant still needs"
        counted = await database.transact(
            lambda c: c.fetchval("SELECT count(*) FROM betimes.tenants"),
            lane=Lane.API,
            repeatable=True,
        )
        assert counted == 1
        hidden = await database.transact(
            lambda c: c.fetchval("SELECT count(*) FROM betimes.tenants"),
            lane=Lane.API,
            repeatable=True,
            tenant=A,
        )
        assert hidden == 0
