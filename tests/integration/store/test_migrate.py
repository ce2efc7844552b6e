"""Each step is taken once, by one migrator at a time, wholly or not at all."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import BadSetting, Conflict, Contended, SchedulerError, Unavailable
from betimes.store import migrate as room
from betimes.store.durability import complaints as durability_complaints
from betimes.store.migrate import LOCK_KEY, Migration, complaints, known, migrate
from betimes.testing.postgres import SHARDS, PostgresKit
from betimes.testing.real_clock import RealClock
from store_kit import HurriedClock, eventually, opened, owner

SETTINGS = DatabaseSettings()
NEXT = known()[-1].number + 1


@pytest.fixture
async def empty(postgres: PostgresKit) -> AsyncIterator[str]:
    """A database that was never migrated."""
    name = await postgres.create(template="template0")
    yield postgres.dsn(name)
    await postgres.drop(name)


def step(number: int, text: str, kind: str = "expand") -> Migration:
    return Migration(number, f"{number:04}_{kind}_probe", kind, text)


async def bring(dsn: str, *more: Migration, **wishes: Any) -> list[str]:
    wishes = {"shards": SHARDS, "clock": RealClock(), "steps": (*known(), *more), **wishes}
    return await migrate(dsn, SETTINGS, **wishes)


async def value(dsn: str, query: str) -> Any:
    async with owner(dsn) as connection:
        return await connection.fetchval(query)


async def test_a_new_database_is_brought_here_and_then_left_alone(empty: str) -> None:
    assert "lacks" in (await complaints(empty, SETTINGS))[0]
    progress: list[str] = []
    names = [one.name for one in known()]
    assert await bring(empty, progress=progress.append) == names == progress
    assert await bring(empty) == []
    assert await complaints(empty, SETTINGS) == []


async def test_two_migrators_at_once_both_succeed_and_take_each_step_once(empty: str) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(bring(empty)) for _ in range(3)]
    names = [one.name for one in known()]
    assert sorted(task.result() for task in tasks) == [[], [], names]


async def test_a_migrator_waits_for_another_with_bounded_patience(dsn: str) -> None:
    async with owner(dsn) as other:
        await other.execute("SELECT pg_advisory_lock($1::bigint)", LOCK_KEY)
        with pytest.raises(Unavailable, match="another process is migrating"):
            await bring(dsn, clock=HurriedClock())
    assert await bring(dsn) == []


async def test_a_changed_file_is_refused(dsn: str) -> None:
    first, *rest = known()
    changed = Migration(first.number, first.name, first.kind, first.text + "\n")
    with pytest.raises(Conflict, match="was changed after"):
        await migrate(dsn, SETTINGS, shards=SHARDS, clock=RealClock(), steps=(changed, *rest))


async def test_a_failing_step_leaves_nothing_of_itself(dsn: str) -> None:
    good = step(NEXT, "CREATE TABLE betimes.one (id integer);")
    bad = step(NEXT + 1, "CREATE TABLE betimes.two (id integer); SELECT no_such_function();")
    with pytest.raises(SchedulerError):
        await bring(dsn, good, bad)
    assert await value(dsn, "SELECT to_regclass('betimes.one') IS NOT NULL")
    assert await value(dsn, "SELECT to_regclass('betimes.two') IS NULL")
    mended = step(NEXT + 1, "CREATE TABLE betimes.two (id integer);")
    assert await bring(dsn, good, mended) == [mended.name]


async def test_a_step_may_run_outside_a_transaction(dsn: str) -> None:
    text = (
        "-- transaction: no\n"
        "DROP INDEX CONCURRENTLY IF EXISTS betimes.jobs_queue_idx;\n"
        "CREATE INDEX CONCURRENTLY jobs_queue_idx ON betimes.jobs (shard, queue);  -- slow\n"
    )
    assert len(await bring(dsn, step(NEXT, text))) == 1
    assert await value(
        dsn,
        "SELECT indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid"
        " WHERE relname = 'jobs_queue_idx'",
    )


async def test_a_step_outside_a_transaction_that_fails_is_taken_again(dsn: str) -> None:
    bad = step(
        NEXT, "-- transaction: no\nCREATE TABLE IF NOT EXISTS betimes.one ();\nSELECT 1/0;\n"
    )
    with pytest.raises(SchedulerError):
        await bring(dsn, bad)
    mended = step(NEXT, "-- transaction: no\nCREATE TABLE IF NOT EXISTS betimes.one ();\n")
    assert await bring(dsn, mended) == [mended.name]


async def test_a_step_waits_for_no_lock_for_long(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LOCK_TIMEOUT_MS", 100)
    blocked = step(NEXT, "ALTER TABLE betimes.jobs ADD COLUMN probe integer;")
    async with owner(dsn) as reader, reader.transaction():
        await reader.execute("SELECT FROM betimes.jobs")
        with pytest.raises(Contended):
            await bring(dsn, blocked)
    assert await bring(dsn, blocked) == [blocked.name]


async def test_a_database_ahead_by_an_expand_is_served_and_by_a_contract_refused(dsn: str) -> None:
    more = step(NEXT, "ALTER TABLE betimes.jobs ADD COLUMN probe integer;")
    await bring(dsn, more)
    assert await complaints(dsn, SETTINGS) == []
    assert await bring(dsn) == []
    await bring(
        dsn, more, step(NEXT + 1, "ALTER TABLE betimes.jobs DROP COLUMN probe;", "contract")
    )
    [complaint] = await complaints(dsn, SETTINGS)
    assert "contract_probe" in complaint


async def test_the_number_of_shards_is_fixed_once(dsn: str) -> None:
    await bring(dsn, shards=SHARDS * 2)
    assert await value(dsn, "SELECT shards FROM betimes.cluster") == SHARDS
    assert await value(dsn, "SELECT array_agg(shard ORDER BY shard) FROM betimes.shards") == list(
        range(SHARDS)
    )


async def test_a_killed_migrator_frees_the_lock(empty: str) -> None:
    async with asyncio.TaskGroup() as group:
        slow = step(1, "SELECT pg_sleep(30);")
        task = group.create_task(
            migrate(empty, SETTINGS, shards=1, clock=RealClock(), steps=(slow,))
        )

        async def working() -> bool:
            query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(30)%'"
            return bool(await value(empty, query))

        await eventually(working, what="the first migrator is in its step")
        task.cancel()
    assert await bring(empty) == [one.name for one in known()]


async def test_a_pooler_is_no_address_for_migrations(dsn: str) -> None:
    with pytest.raises(BadSetting, match="direct address"):
        await bring(f"{dsn}&pgbouncer=true")


async def test_the_test_server_is_told_not_to_be_durable(dsn: str) -> None:
    async with opened(dsn) as database:
        complained = await durability_complaints(database)
    assert [line.split()[1] for line in complained] == ["fsync", "full_page_writes"]
