"""Who may ask for runs inside transactions of their own, and within which bounds."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

from betimes.domain.errors import NotFound
from betimes.domain.ids import time_of
from betimes.ops.desk import Desk
from betimes.ops.producers import admit_producer, dismiss_producer, list_producers
from betimes.ops.runs import get_run
from betimes.store.database import Database
from betimes.testing.real_clock import RealClock
from ops_kit import TENANT, make_desk
from store_kit import opened, owner
from tx_kit import Shop, ask, open_shop, take_all_in


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Database]:
    async with opened(dsn, clock=RealClock()) as database:
        yield database


@pytest.fixture
def desk(store: Database) -> Desk:
    return make_desk(store, RealClock())


@pytest.fixture
async def shop(dsn: str, store: Database) -> AsyncIterator[Shop]:
    async with open_shop(dsn, store) as opened_shop:
        yield opened_shop


@pytest.fixture
async def buyer(shop: Shop) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(shop.dsn)
    yield connection
    await connection.close()


async def test_the_role_can_do_nothing_else(dsn: str, buyer: asyncpg.Connection) -> None:
    async with owner(dsn) as connection:
        tables = await connection.fetch(
            "SELECT oid::regclass::text AS name FROM pg_class"
            " WHERE relnamespace = 'betimes'::regnamespace AND relkind IN ('r', 'p', 'S', 'v')"
        )
    for table in tables:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await buyer.execute(f"SELECT FROM {table['name']}")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await buyer.execute(f"DELETE FROM {table['name']}")
    for call in (
        "betimes.admit_producer('x', gen_random_uuid(), true)",
        "betimes.dismiss_producer('x', gen_random_uuid())",
        "betimes.holder_of(gen_random_uuid(), 'a', 'unique', 4::smallint)",
        "betimes.stored_options('{}')",
        "betimes.drop_partition('runs', current_date, 1)",
        "betimes.scan_partition('runs', current_date, 1)",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await buyer.execute(f"SELECT {call}")


async def test_a_stranger_may_not_even_call_it(dsn: str) -> None:
    async with open_shop(dsn, None) as stranger:
        connection = await asyncpg.connect(stranger.dsn)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ask(connection, "one")
        async with owner(dsn) as admin:
            await admin.execute(f"GRANT USAGE ON SCHEMA betimes TO {stranger.role}")
            await admin.execute(
                "GRANT EXECUTE ON FUNCTION betimes.enqueue_v1(text, jsonb, jsonb)"
                f" TO {stranger.role}"
            )
        with pytest.raises(asyncpg.PostgresError, match="may not enqueue here"):
            await ask(connection, "one")
        await connection.close()


async def test_a_caller_cannot_bend_the_function(
    desk: Desk, shop: Shop, buyer: asyncpg.Connection
) -> None:
    # Whatever a caller sets or shadows, the function means our tables and its own login.
    await buyer.execute("CREATE TEMP TABLE producers (role name, tenant_id uuid, hints boolean)")
    await buyer.execute(f"SET search_path = pg_temp, {shop.role}; SET row_security = off")
    await buyer.execute("SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'sql_standard'")
    await buyer.execute("SET TimeZone = 'Asia/Tokyo'")
    run, _ = await ask(buyer, "one", options='{"at": "2199-02-01T00:00:00Z"}')
    await take_all_in(desk)

    assert time_of(run) == datetime(2199, 2, 1, tzinfo=UTC)
    assert (await get_run(desk, TENANT, run)).run.tenant == TENANT


async def test_a_role_of_several_tenants_says_which(
    desk: Desk, store: Database, dsn: str, shop: Shop, buyer: asyncpg.Connection
) -> None:
    other = "00000000-0000-8000-8000-000000000077"
    async with owner(dsn) as connection:
        await connection.execute(
            "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'acme', 'Acme')", other
        )
    with pytest.raises(asyncpg.PostgresError, match="may not enqueue"):
        await ask(buyer, "one", options='{"tenant": "acme"}')
    await admit_producer(store, shop.role, "acme", hints=False)
    with pytest.raises(asyncpg.PostgresError, match="several tenants"):
        await ask(buyer, "one")
    run, _ = await ask(buyer, "one", options='{"tenant": "acme"}')
    await take_all_in(desk)
    with pytest.raises(NotFound):
        await get_run(desk, TENANT, run)

    listed = [one for one in await list_producers(store) if one.role == shop.role]
    assert [(one.tenant, one.hints) for one in listed] == [("acme", False), ("default", True)]
    await dismiss_producer(store, shop.role, "acme")
    with pytest.raises(NotFound):
        await dismiss_producer(store, shop.role, "acme")
    await ask(buyer, "one")
    await dismiss_producer(store, shop.role, "default")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await ask(buyer, "one")


async def test_tenant_queue_and_quotas_are_asked(dsn: str, buyer: asyncpg.Connection) -> None:
    async with owner(dsn) as admin:

        async def set_tenant(change: str) -> None:
            await admin.execute(f"UPDATE betimes.tenants SET {change}")

        await set_tenant("""quotas = '{"payload_bytes": 10}'""")
        with pytest.raises(asyncpg.PostgresError, match="payload_bytes allows 10"):
            await ask(buyer, "one", '"more than ten"')
        await set_tenant("""quotas = '{"backlog": 2}'""")
        async with buyer.transaction():
            await ask(buyer, "one")
            await ask(buyer, "one")
            with pytest.raises(asyncpg.PostgresError, match="allows 2, and 2 are in use") as full:
                async with buyer.transaction():
                    await ask(buyer, "one")
        assert full.value.sqlstate == "BT429"
        await set_tenant("quotas = '{}', state = 1")
        with pytest.raises(asyncpg.PostgresError, match="accepts nothing new"):
            await ask(buyer, "one")
        await set_tenant("state = 0")
        await admin.execute(
            "INSERT INTO betimes.queues (tenant_id, name, draining)"
            " SELECT id, 'mail', true FROM betimes.tenants"
        )
        with pytest.raises(asyncpg.PostgresError, match="drains"):
            await ask(buyer, "one", options='{"queue": "mail"}')
