"""Connections are lost at every moment; the store says so truthfully and goes on by itself."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import Unavailable, UnknownOutcome
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.testing.postgres import PostgresKit, socket_of, through
from betimes.testing.proxy import FaultProxy
from betimes.testing.real_clock import RealClock
from store_kit import (
    IMPATIENT,
    HurriedClock,
    end_sessions,
    eventually,
    half,
    make_probe,
    opened,
    owner,
    probe,
    soon,
)

SQL = load("server")


@pytest.fixture(autouse=True)
async def table(dsn: str) -> None:
    await make_probe(dsn)


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(socket_of(dsn)) as between:
        yield between


def swallow_the_next_commit(proxy: FaultProxy) -> None:
    for link in proxy.links:  # connections made afterwards are honest
        link.change(swallow_reply=b"COMMIT")


async def test_an_unknown_commit_is_told_and_not_repeated(dsn: str, proxy: FaultProxy) -> None:
    calls = 0

    async def work(connection: Connection) -> None:
        nonlocal calls
        calls += 1
        await connection.execute("INSERT INTO betimes.probe (id) VALUES (3)")
        swallow_the_next_commit(proxy)

    async with opened(through(dsn, proxy.port)) as database:
        with pytest.raises(UnknownOutcome):
            await database.transact(work, lane=Lane.COMPLETE, repeatable=False)
    assert calls == 1
    assert 3 in await probe(dsn)


async def test_an_unknown_commit_of_repeatable_work_ends_with_one_effect(
    dsn: str, proxy: FaultProxy
) -> None:
    inserted: list[object] = []

    async def work(connection: Connection) -> None:
        inserted.append(
            await connection.fetchval(
                "INSERT INTO betimes.probe (id, n) VALUES (3, 1)"
                " ON CONFLICT DO NOTHING RETURNING id"
            )
        )
        if len(inserted) == 1:
            swallow_the_next_commit(proxy)

    async with opened(through(dsn, proxy.port)) as database:
        await database.transact(work, lane=Lane.COMPLETE, repeatable=True)
    assert inserted == [3, None]
    assert (await probe(dsn))[3] == 1


@pytest.mark.parametrize("moment", ["before a statement", "before the commit"])
async def test_a_connection_lost_before_the_commit_is_repeated(
    dsn: str, proxy: FaultProxy, moment: str
) -> None:
    calls = 0

    async def work(connection: Connection) -> None:
        nonlocal calls
        calls += 1
        await connection.execute("UPDATE betimes.probe SET n = n + 1 WHERE id = 1")
        if calls == 1:
            proxy.reset_all()
            if moment == "before a statement":
                await connection.execute("SELECT 1")

            async def closed() -> bool:
                return connection.is_closed()

            await eventually(closed, what="the driver notices")

    async with opened(through(dsn, proxy.port)) as database:
        await database.transact(work, lane=Lane.COMPLETE, repeatable=False)
    assert calls == 2
    assert (await probe(dsn))[1] == 1


async def test_a_request_cut_in_the_middle_of_the_commit_is_unknown(
    dsn: str, proxy: FaultProxy
) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute("INSERT INTO betimes.probe (id) VALUES (3)")
        for link in proxy.links:
            link.change(cut_after=b"COMM")

    async with opened(through(dsn, proxy.port)) as database:
        with pytest.raises(UnknownOutcome):
            await database.transact(work, lane=Lane.COMPLETE, repeatable=False)


async def test_a_slow_and_crumbling_network_changes_nothing(dsn: str, proxy: FaultProxy) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute("UPDATE betimes.probe SET n = n + 1 WHERE id = 1")

    proxy.change(latency=(0.002, 0.002), slice=True)
    async with opened(through(dsn, proxy.port)) as database:
        await database.transact(work, lane=Lane.COMPLETE, repeatable=False)
    assert (await probe(dsn))[1] == 1


async def test_a_database_that_is_away_is_told_and_nothing_is_left(proxy: FaultProxy) -> None:
    proxy.change(refuse=True)
    settings = DatabaseSettings(**IMPATIENT)
    dsn = f"postgresql://nobody@127.0.0.1:{proxy.port}/none"
    with pytest.raises(Unavailable):
        await Database.open(settings, dsn=dsn, clock=HurriedClock(), roll=half)
    proxy.change(refuse=False, hold_new_connections=True)
    with pytest.raises(Unavailable):
        await soon(Database.open(settings, dsn=dsn, clock=HurriedClock(), roll=half), seconds=5)


async def test_a_peer_that_vanished_is_noticed_in_bounded_time(dsn: str, proxy: FaultProxy) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute("UPDATE betimes.probe SET n = n + 1 WHERE id = 1")

    async with opened(through(dsn, proxy.port), **IMPATIENT) as database:
        await database.transact(work, lane=Lane.LEASE, repeatable=True)
        proxy.change(half_open=True)
        with pytest.raises(Unavailable):
            await soon(database.transact(work, lane=Lane.LEASE, repeatable=False), seconds=15)
        proxy.heal()
        await database.transact(work, lane=Lane.LEASE, repeatable=True)
    assert (await probe(dsn))[1] >= 2


async def test_closing_is_bounded_when_the_peer_has_vanished(dsn: str, proxy: FaultProxy) -> None:
    inside = asyncio.Event()

    async def hold(_: Connection) -> None:
        inside.set()
        await asyncio.Event().wait()

    settings = DatabaseSettings()
    clock = HurriedClock()
    database = await Database.open(settings, dsn=through(dsn, proxy.port), clock=clock, roll=half)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(database.transact(hold, lane=Lane.API, repeatable=False))
        await soon(inside.wait())
        proxy.change(half_open=True)
        await soon(database.close(), seconds=5)
        task.cancel()


async def test_sessions_ended_by_the_server_are_replaced(dsn: str) -> None:
    async with opened(dsn, clock=RealClock()) as database:
        await database.many(SQL["read_clock"], lane=Lane.API)
        for _ in range(3):
            assert await end_sessions(dsn) >= 4
            async with asyncio.TaskGroup() as group:
                for lane in Lane:
                    group.create_task(
                        database.transact(
                            lambda c: c.execute("UPDATE betimes.probe SET n = n + 1 WHERE id = 1"),
                            lane=lane,
                            repeatable=True,
                        )
                    )
    assert (await probe(dsn))[1] == 3 * len(Lane)


async def test_a_restarted_server_is_found_again(postgres: PostgresKit, dsn: str) -> None:
    async with opened(dsn, clock=RealClock()) as database:
        await database.many(SQL["read_clock"], lane=Lane.API)
        await postgres.postgres.stop()
        try:
            with pytest.raises(Unavailable):
                await database.many(SQL["read_clock"], lane=Lane.API)
        finally:
            await postgres.postgres.start()
        for lane in Lane:
            assert await database.many(SQL["read_clock"], lane=lane)
    async with owner(dsn) as connection:
        assert await connection.fetchval("SELECT count(*) FROM betimes.probe") == 2
