"""`app.tx` over the real libraries: what was asked for commits or vanishes with the order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import django
import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import connections, transaction
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session
from sqlalchemy.orm import sessionmaker as make_sessions

from betimes import App, Middleware
from betimes.domain.errors import BadSetting, Forbidden, Invalid, OverQuota
from betimes.store.database import Database
from betimes.testing.real_clock import RealClock
from ops_kit import make_desk
from store_kit import opened, owner
from tx_kit import Shop, django_database, open_shop, sqlalchemy_url, take_all_in

app = App(name="shop")


@app.task(queue="mail")
def send_receipt(order: int) -> None:
    """The handler is never called here."""


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Database]:
    async with opened(dsn, clock=RealClock()) as database:
        yield database


@pytest.fixture
async def shop(dsn: str, store: Database) -> AsyncIterator[Shop]:
    async with open_shop(dsn, store) as opened_shop:
        yield opened_shop


async def made(store: Database, dsn: str) -> list[bytes]:
    """The payloads of the runs that came of it."""
    await take_all_in(make_desk(store, RealClock()))
    async with owner(dsn) as connection:
        rows = await connection.fetch("SELECT payload FROM betimes.runs ORDER BY payload")
    return [row["payload"] for row in rows]


async def orders(shop: Shop) -> list[int]:
    connection = await asyncpg.connect(shop.dsn)
    try:
        rows = await connection.fetch(f"SELECT id FROM {shop.role}.orders ORDER BY 1")
    finally:
        await connection.close()
    return [row["id"] for row in rows]


class Regret(Exception):
    """Why a transaction is rolled back."""


ENCODED = [b'{"order": 1}', b'{"order": 3}']


def buy_with_psycopg(shop: Shop) -> None:
    insert = f"INSERT INTO {shop.role}.orders VALUES (%s)"
    with psycopg.connect(shop.dsn, row_factory=dict_row) as connection:
        connection.execute(insert, (1,))
        assert not app.tx(connection).enqueue(send_receipt, 1).deduplicated
    with suppress(Regret), psycopg.connect(shop.dsn) as connection:
        connection.execute(insert, (2,))
        app.tx(connection).enqueue(send_receipt, 2)
        raise Regret
    with psycopg.connect(shop.dsn, autocommit=True) as connection:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(insert, (3,))
            app.tx(cursor).enqueue(send_receipt, 3)
            with connection.transaction(force_rollback=True):
                app.tx(cursor).enqueue(send_receipt, 4)
        with pytest.raises(Invalid, match="inside a transaction"):
            app.tx(connection).enqueue(send_receipt, 5)
        with pytest.raises(Invalid, match="`enqueue` for a connection that blocks"):
            asyncio.run(app.tx(connection).aenqueue(send_receipt, 5))


async def buy_with_async_psycopg(shop: Shop) -> None:
    insert = f"INSERT INTO {shop.role}.orders VALUES (%s)"
    async with await psycopg.AsyncConnection.connect(shop.dsn) as connection:
        await connection.execute(insert, (1,))
        await app.tx(connection).aenqueue(send_receipt, 1)
    async with await psycopg.AsyncConnection.connect(shop.dsn) as connection:
        await connection.execute(insert, (2,))
        await app.tx(connection).aenqueue(send_receipt, 2)
        await connection.rollback()
        await connection.execute(insert, (3,))
        async with connection.cursor() as cursor:
            await app.tx(cursor).aenqueue(send_receipt, 3)
        async with connection.transaction(force_rollback=True):
            await app.tx(connection).aenqueue(send_receipt, 4)
        with pytest.raises(Invalid, match="`aenqueue` for a connection that is awaited"):
            app.tx(connection).enqueue(send_receipt, 5)
    async with await psycopg.AsyncConnection.connect(shop.dsn, autocommit=True) as connection:
        with pytest.raises(Invalid, match="inside a transaction"):
            await app.tx(connection).aenqueue(send_receipt, 5)


async def buy_with_asyncpg(shop: Shop) -> None:
    insert = f"INSERT INTO {shop.role}.orders VALUES ($1)"
    async with asyncpg.create_pool(shop.dsn, min_size=1) as pool, pool.acquire() as connection:
        # Somebody's own codec must not encode what is JSON already.
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=repr, decoder=str, format="text"
        )
        async with connection.transaction():
            await connection.execute(insert, 1)
            await app.tx(connection).aenqueue(send_receipt, 1)
        outer = connection.transaction()
        await outer.start()
        await connection.execute(insert, 2)
        await app.tx(connection).aenqueue(send_receipt, 2)
        await outer.rollback()
        with pytest.raises(Invalid, match="inside a transaction"):
            await app.tx(connection).aenqueue(send_receipt, 5)
    plain = await asyncpg.connect(shop.dsn)
    async with plain.transaction():
        await plain.execute(insert, 3)
        await app.tx(plain).aenqueue(send_receipt, 3)
        inner = plain.transaction()
        await inner.start()
        await app.tx(plain).aenqueue(send_receipt, 4)
        await inner.rollback()
    await plain.close()


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    paid: Mapped[bool] = mapped_column(default=False)


def buy_with_sqlalchemy(shop: Shop) -> None:
    engine = create_engine(
        sqlalchemy_url(shop.dsn, "psycopg"), connect_args={"options": f"-csearch_path={shop.role}"}
    )
    with Session(engine) as session, session.begin():
        order = Order(id=1)
        session.add(order)
        app.tx(session).enqueue(send_receipt, order.id)
    with Session(engine) as session:
        session.add(Order(id=2))
        app.tx(session).enqueue(send_receipt, 2)
        session.rollback()
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO orders VALUES (3)"))
        app.tx(connection).enqueue(send_receipt, 3)
        nested = connection.begin_nested()
        app.tx(connection).enqueue(send_receipt, 4)
        nested.rollback()
    scoped = scoped_session(make_sessions(engine))
    app.tx(scoped).enqueue(send_receipt, 4)
    scoped.remove()
    with (
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(Invalid, match="inside a transaction"),
    ):
        app.tx(connection).enqueue(send_receipt, 5)
    engine.dispose()


async def buy_with_async_sqlalchemy(shop: Shop) -> None:
    for driver, first, lost, second in (("asyncpg", 1, 2, None), ("psycopg", None, 2, 3)):
        async with async_engine(shop, driver) as engine:
            async with AsyncSession(engine) as session:
                if first is not None:
                    async with session.begin():
                        session.add(Order(id=first))
                        await app.tx(session).aenqueue(send_receipt, first)
                session.add(Order(id=lost))
                await app.tx(session).aenqueue(send_receipt, lost)
                await session.rollback()
            if second is not None:
                async with engine.begin() as connection:
                    await connection.execute(text(f"INSERT INTO orders VALUES ({second})"))
                    await app.tx(connection).aenqueue(send_receipt, second)


@asynccontextmanager
async def async_engine(shop: Shop, driver: str) -> AsyncIterator[Any]:
    parts = dict(parse_qsl(urlsplit(shop.dsn).query))
    path: dict[str, Any] = {"server_settings": {"search_path": shop.role}}
    options = {"options": f"-csearch_path={shop.role}"}
    url = sqlalchemy_url(shop.dsn, driver)
    if driver == "asyncpg":
        # This driver takes a socket's folder as a host, and no other words of libpq.
        path |= {"host": parts["host"], "port": parts["port"]}
        url = url.partition("?")[0]
    engine = create_async_engine(url, connect_args=path if driver == "asyncpg" else options)
    try:
        yield engine
    finally:
        await engine.dispose()


def buy_with_django(shop: Shop) -> None:
    if not django_settings.configured:
        django_settings.configure(DATABASES={"default": {}})
        django.setup()
    connections.databases["default"] = connections.configure_settings(
        {"default": django_database(shop)}
    )["default"]
    try:
        cursor = connections["default"].cursor()
        with transaction.atomic():
            cursor.execute("INSERT INTO orders VALUES (1)")
            app.tx("default").enqueue(send_receipt, 1)
        with suppress(Regret), transaction.atomic():
            cursor.execute("INSERT INTO orders VALUES (2)")
            app.tx("default").enqueue(send_receipt, 2)
            raise Regret
        with transaction.atomic():
            cursor.execute("INSERT INTO orders VALUES (3)")
            app.tx(connections["default"]).enqueue(send_receipt, 3)
            with suppress(Regret), transaction.atomic():
                app.tx("default").enqueue(send_receipt, 4)
                raise Regret
        with pytest.raises(Invalid, match="inside a transaction"):
            app.tx("default").enqueue(send_receipt, 5)
    finally:
        connections["default"].close()
        del connections["default"]


BLOCKING = [buy_with_psycopg, buy_with_sqlalchemy, buy_with_django]
AWAITED = [buy_with_async_psycopg, buy_with_asyncpg, buy_with_async_sqlalchemy]


@pytest.mark.parametrize("buy", [*BLOCKING, *AWAITED], ids=lambda buy: buy.__name__)
async def test_a_receipt_is_sent_for_every_order_and_for_no_other(
    store: Database, dsn: str, shop: Shop, buy: Any
) -> None:
    if buy in BLOCKING:
        await asyncio.to_thread(buy, shop)
    else:
        await buy(shop)

    assert await orders(shop) == [1, 3]
    assert await made(store, dsn) == ENCODED


async def test_a_duplicate_is_the_same_run_and_hurts_nobody(store: Database, shop: Shop) -> None:
    with psycopg.connect(shop.dsn) as connection:
        tx = app.tx(connection)
        keyed = send_receipt.configure(dedupe_key="receipt-1")
        first = tx.enqueue(keyed, 1)
        second = tx.enqueue(keyed, 1)
        third = tx.enqueue(send_receipt.configure(idempotency_key="a"), 1)
        fourth = tx.enqueue(send_receipt.configure(idempotency_key="a"), 1)
        connection.execute(f"INSERT INTO {shop.role}.orders VALUES (1)")

    assert (second.id, second.deduplicated) == (first.id, True)
    assert (fourth.id, fourth.deduplicated) == (third.id, True)
    assert await orders(shop) == [1]


@pytest.mark.parametrize("library", ["psycopg", "asyncpg", "sqlalchemy", "sqlalchemy+asyncpg"])
async def test_what_is_refused_is_refused_in_our_words(
    dsn: str, store: Database, shop: Shop, library: str
) -> None:
    async with owner(dsn) as admin:
        await admin.execute("""UPDATE betimes.tenants SET quotas = '{"backlog": 0}'""")
    wrong = send_receipt.configure(queue="a:b")

    async def tried(task: Any) -> None:
        if library == "psycopg":
            with psycopg.connect(shop.dsn) as connection:
                app.tx(connection).enqueue(task, 1)
        elif library == "sqlalchemy":
            engine = create_engine(sqlalchemy_url(shop.dsn, "psycopg"))
            try:
                with engine.begin() as connected:
                    app.tx(connected).enqueue(task, 1)
            finally:
                engine.dispose()
        elif library == "asyncpg":
            awaited = await asyncpg.connect(shop.dsn)
            try:
                async with awaited.transaction():
                    await app.tx(awaited).aenqueue(task, 1)
            finally:
                await awaited.close()
        else:
            async with async_engine(shop, "asyncpg") as engine, engine.begin() as connection:
                await app.tx(connection).aenqueue(task, 1)

    with pytest.raises(Invalid, match="queue without a colon") as caught:
        await tried(wrong)
    assert caught.value.pointer == "/queue"
    with pytest.raises(OverQuota, match="allows 0"):
        await tried(send_receipt)


async def test_without_a_right_or_without_the_function_a_sentence_says_what_to_do(
    dsn: str, postgres: Any
) -> None:
    empty = await postgres.create(template="template0")
    async with open_shop(dsn, None) as stranger:
        for address in (stranger.dsn, postgres.dsn(empty)):
            with (
                psycopg.connect(address) as connection,
                pytest.raises(BadSetting, match="betimes producer add"),
            ):
                app.tx(connection).enqueue(send_receipt, 1)
    await postgres.drop(empty)


async def test_a_tenant_can_be_named(shop: Shop) -> None:
    with psycopg.connect(shop.dsn) as connection:
        with pytest.raises(Forbidden, match="may not enqueue here"):
            app.tx(connection, tenant="acme").enqueue(send_receipt, 1)
        connection.rollback()
        app.tx(connection, tenant="default").enqueue(send_receipt, 1)


async def test_middleware_sees_it_and_its_trace_travels(dsn: str, shop: Shop) -> None:
    seen: list[str] = []

    class Tracing(Middleware):
        def before_enqueue(self, prepared: Any) -> None:
            prepared.headers["traceparent"] = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"

        def after_enqueue(self, prepared: Any, run: Any) -> None:
            seen.append(run.id)

    traced = App(name="traced", middleware=[Tracing()])

    @traced.task
    def one() -> None: ...

    with psycopg.connect(shop.dsn) as connection:
        run = traced.tx(connection).enqueue(one)
    async with owner(dsn) as admin:
        options = await admin.fetchval("SELECT options ->> 'trace' FROM betimes.intake")
    assert (seen, options[:6]) == ([run.id], "00-aaa")
