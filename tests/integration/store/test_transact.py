"""A transaction happens once or not at all, is repeated when that is safe, and ends in time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import asyncpg
import pytest

from betimes.domain.errors import (
    AlreadyExists,
    Bug,
    Contended,
    FencedOut,
    OutOfTime,
    Overloaded,
    SchedulerError,
)
from betimes.store.database import TRIES
from betimes.store.pool import TRANSACTION_TIMEOUT_SINCE, Connection, Lane
from betimes.store.queries import load
from betimes.testing.real_clock import RealClock
from store_kit import (
    MILLISECOND,
    HurriedClock,
    eventually,
    make_probe,
    open_transactions,
    opened,
    owner,
    probe,
    soon,
)

Work = Callable[[Connection], Awaitable[object]]


@pytest.fixture(autouse=True)
async def table(dsn: str) -> None:
    await make_probe(dsn)


async def insert(connection: Connection, number: int = 3) -> None:
    await connection.execute("INSERT INTO betimes.probe (id) VALUES ($1)", number)


async def add(connection: Connection, number: int) -> None:
    await connection.execute("UPDATE betimes.probe SET n = n + 1 WHERE id = $1", number)


class Counted:
    """Work that counts how often it was done."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.calls = 0

    async def __call__(self, connection: Connection) -> object:
        self.calls += 1
        return await self.work(connection)


async def test_what_was_done_is_there_and_the_answer_comes_back(dsn: str) -> None:
    async def work(connection: Connection) -> str:
        await insert(connection)
        return "done"

    async with opened(dsn) as database:
        assert await database.transact(work, lane=Lane.API, repeatable=False) == "done"
    assert 3 in await probe(dsn)


async def test_an_error_of_the_work_undoes_it_and_comes_out_as_it_is(dsn: str) -> None:
    async def work(connection: Connection) -> None:
        await insert(connection)
        raise KeyError("mine")

    counted = Counted(work)
    async with opened(dsn) as database:
        with pytest.raises(KeyError, match="mine"):
            await database.transact(counted, lane=Lane.API, repeatable=True)
    assert counted.calls == 1
    assert 3 not in await probe(dsn)


@pytest.mark.parametrize("fault", [TimeoutError, ConnectionResetError, FileNotFoundError])
async def test_a_fault_of_the_work_is_not_taken_for_a_lost_database(
    dsn: str, fault: type[OSError]
) -> None:
    async def work(connection: Connection) -> None:
        await insert(connection)
        raise fault("mine")

    counted = Counted(work)
    async with opened(dsn) as database:
        with pytest.raises(fault, match="mine"):
            await database.transact(counted, lane=Lane.API, repeatable=True)
    assert counted.calls == 1
    assert 3 not in await probe(dsn)


async def test_a_time_limit_of_the_work_around_a_statement_is_its_own(dsn: str) -> None:
    async def work(connection: Connection) -> None:
        async with asyncio.timeout(0.05):
            await connection.execute("SELECT pg_sleep(3)")

    async with opened(dsn) as database:
        with pytest.raises(TimeoutError):
            await database.transact(Counted(work), lane=Lane.API, repeatable=True)
        await database.transact(insert, lane=Lane.API, repeatable=False)
    assert 3 in await probe(dsn)


async def test_a_failed_statement_that_was_hidden_is_not_taken_for_a_commit(dsn: str) -> None:
    async def work(connection: Connection) -> None:
        await insert(connection)
        try:
            await insert(connection)
        except asyncpg.UniqueViolationError:
            return  # PostgreSQL will answer the COMMIT with a ROLLBACK

    async with opened(dsn) as database:
        with pytest.raises(Bug, match="undone"):
            await database.transact(work, lane=Lane.API, repeatable=False)
    assert 3 not in await probe(dsn)


async def test_errors_of_the_server_come_out_in_our_words(dsn: str) -> None:
    async with opened(dsn) as database:
        with pytest.raises(AlreadyExists):
            await database.transact(partial(insert, number=1), lane=Lane.API, repeatable=False)
        with pytest.raises(SchedulerError):
            await database.transact(
                lambda c: c.execute("SELECT $1::integer", 2**40), lane=Lane.API, repeatable=False
            )


async def test_two_that_wait_for_each_other_both_succeed_once(dsn: str) -> None:
    async with owner(dsn) as connection:
        await connection.execute(
            "ALTER ROLE CURRENT_USER IN DATABASE "
            f"{await connection.fetchval('SELECT current_database()')}"
            " SET deadlock_timeout = '50ms'"
        )
    both_hold_one = asyncio.Barrier(2)

    def work(first: int, second: int) -> Counted:
        async def crossing(connection: Connection) -> None:
            await add(connection, first)
            if counted.calls == 1:
                await both_hold_one.wait()
            await add(connection, second)

        counted = Counted(crossing)
        return counted

    one, other = work(1, 2), work(2, 1)
    async with opened(dsn, clock=RealClock()) as database, asyncio.TaskGroup() as group:
        for each in (one, other):
            group.create_task(database.transact(each, lane=Lane.ENGINE, repeatable=False))
    assert one.calls + other.calls == 3
    assert await probe(dsn) == {1: 2, 2: 2}


async def test_a_serialization_failure_is_repeated(dsn: str) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await connection.fetchval("SELECT count(*) FROM betimes.probe")
        if counted.calls == 1:
            async with owner(dsn) as somebody:
                await add(somebody, 1)
        await add(connection, 1)

    counted = Counted(work)
    async with opened(dsn) as database:
        await database.transact(counted, lane=Lane.ENGINE, repeatable=False)
    assert counted.calls == 2
    assert (await probe(dsn))[1] == 2


async def test_whoever_never_gets_through_is_told_after_a_bounded_number_of_tries(
    dsn: str,
) -> None:
    async def work(_: Connection) -> None:
        raise Contended("busy")

    counted, clock = Counted(work), HurriedClock()
    async with opened(dsn, clock=clock) as database:
        with pytest.raises(Contended):
            await database.transact(counted, lane=Lane.API, repeatable=True)
    assert counted.calls == TRIES
    assert len(clock.slept) == TRIES - 1
    assert clock.slept == sorted(clock.slept)


@pytest.mark.parametrize("error", [FencedOut, Overloaded, Bug])
async def test_what_repeating_cannot_help_is_not_repeated(
    dsn: str, error: type[SchedulerError]
) -> None:
    async def work(_: Connection) -> None:
        raise error("no")

    counted = Counted(work)
    async with opened(dsn) as database:
        with pytest.raises(error):
            await database.transact(counted, lane=Lane.API, repeatable=True)
    assert counted.calls == 1


async def test_a_transaction_that_took_too_long_is_undone(dsn: str) -> None:
    clock = HurriedClock()

    async def work(connection: Connection) -> None:
        await insert(connection)
        clock.advance(timedelta(seconds=6))

    async with opened(dsn, clock=clock) as database:
        with pytest.raises(Contended, match="longer than it may"):
            await database.transact(work, lane=Lane.API, repeatable=True)
    assert 3 not in await probe(dsn)


async def test_the_server_itself_ends_a_transaction_that_takes_too_long(dsn: str) -> None:
    async def work(connection: Connection) -> None:
        await insert(connection)
        for _ in range(20):
            await connection.execute("SELECT pg_sleep(0.05)")

    limit = 200 * MILLISECOND
    async with opened(dsn, clock=RealClock(), transaction_timeout=limit) as database:
        if database.server_version < TRANSACTION_TIMEOUT_SINCE:
            pytest.skip("this PostgreSQL knows no transaction_timeout")
        with pytest.raises(OutOfTime, match="longer than it may"):
            await database.transact(work, lane=Lane.API, repeatable=True)
    assert 3 not in await probe(dsn)


async def test_a_limit_of_ours_is_not_told_as_the_loss_of_the_database(dsn: str) -> None:
    """A server that ends a transaction between two statements closes the connection."""

    async def work(connection: Connection) -> None:
        await insert(connection)

        async def ended() -> bool:
            return connection.is_closed()

        await eventually(ended, what="the server ends an idle transaction")
        await insert(connection, number=4)

    counted = Counted(work)
    limit = 100 * MILLISECOND
    async with opened(dsn, clock=RealClock(), transaction_timeout=limit) as database:
        with pytest.raises(OutOfTime, match="longer than it may"):
            await database.transact(counted, lane=Lane.API, repeatable=True, patient=False)
    assert counted.calls == 1
    assert 3 not in await probe(dsn)


async def test_the_server_itself_ends_a_transaction_whose_client_is_frozen(dsn: str) -> None:
    async def work(connection: Connection) -> None:
        if counted.calls == 1:
            await insert(connection)

            async def ended() -> bool:
                return connection.is_closed()

            await eventually(ended, what="the server ends an idle transaction")

    counted = Counted(work)
    async with opened(dsn, transaction_timeout=100 * MILLISECOND) as database:
        await database.transact(counted, lane=Lane.API, repeatable=False)
    assert counted.calls == 2
    assert 3 not in await probe(dsn)


async def test_a_flood_of_requests_leaves_leases_and_completions_their_connections(
    dsn: str,
) -> None:
    release = asyncio.Event()
    busy = asyncio.Semaphore(0)

    async def hold(_: Connection) -> None:
        busy.release()
        await release.wait()

    async with opened(dsn, api_connections=2, connect_timeout=200 * MILLISECOND) as database:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(database.transact(hold, lane=Lane.API, repeatable=False))
                await busy.acquire()
            for number, lane in enumerate((Lane.LEASE, Lane.COMPLETE, Lane.ENGINE), start=3):
                await soon(
                    database.transact(partial(insert, number=number), lane=lane, repeatable=False)
                )
            with pytest.raises(Overloaded, match=r"lane api \(2\)"):
                await database.transact(insert, lane=Lane.API, repeatable=True)
            release.set()
        await database.transact(partial(insert, number=9), lane=Lane.API, repeatable=False)
    assert {3, 4, 5, 9} <= set(await probe(dsn))


@pytest.mark.parametrize("where", ["in a statement", "between statements"])
async def test_who_is_cancelled_leaves_nothing_open(dsn: str, where: str) -> None:
    inside = asyncio.Event()

    async def work(connection: Connection) -> None:
        await insert(connection)
        inside.set()
        if where == "in a statement":
            await connection.execute("SELECT pg_sleep(30)")
        await asyncio.Event().wait()

    async with opened(dsn, api_connections=1) as database:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(database.transact(work, lane=Lane.API, repeatable=True))
            await soon(inside.wait())
            task.cancel()
        assert task.cancelled()

        async def nothing_open() -> bool:
            return await open_transactions(dsn) == 0

        await eventually(nothing_open, what="no transaction is left open")
        assert 3 not in await probe(dsn)
        await database.transact(insert, lane=Lane.API, repeatable=False)
    assert 3 in await probe(dsn)


async def test_single_statements_need_no_transaction_of_ours(dsn: str) -> None:
    sql = load("server")
    async with opened(dsn) as database:
        [row] = await database.many(sql["read_clock"], lane=Lane.API)
        assert row["now"].tzinfo is not None
        assert await database.maybe(sql["read_clock"], lane=Lane.API) is not None
        with pytest.raises(Bug, match="not known"):
            await database.many(sql["read_clock"], lane=Lane.API, more=1)
