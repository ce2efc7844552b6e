"""Partitions are made ahead, take over what waited for them, and go when they have aged."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from betimes.domain import ids
from betimes.store.database import Database
from betimes.store.partitions import PARENTS, Partitions
from betimes.store.pool import Lane

TODAY = date(2026, 3, 1)
TENANT = UUID("00000000-0000-8000-8000-000000000001")


async def insert_run(database: Database, due: datetime) -> UUID:
    run = ids.compose(ids.to_ms(due), 1, 42)
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, queue) "
            "VALUES (1, $1, $2, $3, 'q')",
            run,
            TENANT,
            due,
        )
    return run


async def home_of(database: Database, run: UUID) -> str:
    async with database.connection(Lane.ENGINE) as connection:
        return str(
            await connection.fetchval(
                "SELECT tableoid::regclass::text FROM betimes.runs WHERE shard = 1 AND id = $1", run
            )
        )


async def test_partitions_are_made_once_and_ahead(database: Database) -> None:
    partitions = Partitions(database)
    assert await partitions.ensure(TODAY, ahead_days=3) == 5 * len(PARENTS)
    assert await partitions.ensure(TODAY, ahead_days=3) == 0
    assert await partitions.ensure(TODAY + timedelta(days=1), ahead_days=3) == len(PARENTS)
    days = sorted(one.day for one in await partitions.present() if one.parent == "runs")
    assert days == [TODAY + timedelta(days=offset) for offset in range(-1, 5)]


async def test_the_edges_of_a_day_are_utc_midnight(database: Database) -> None:
    await Partitions(database).ensure(TODAY, ahead_days=1)
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    last = await insert_run(database, midnight - timedelta(milliseconds=1))
    first = await insert_run(database, midnight)
    assert await home_of(database, last) == "betimes.runs_20260228"
    assert await home_of(database, first) == "betimes.runs_20260301"


async def test_a_far_future_run_moves_into_its_day_when_the_day_is_made(database: Database) -> None:
    partitions = Partitions(database)
    await partitions.ensure(TODAY, ahead_days=1)
    due = datetime(2026, 6, 1, 12, tzinfo=UTC)
    run = await insert_run(database, due)
    assert await home_of(database, run) == "betimes.runs_default"

    await partitions.ensure(due.date(), ahead_days=0)

    assert await home_of(database, run) == "betimes.runs_20260601"


async def test_old_days_are_dropped_by_the_rule_of_their_table(database: Database) -> None:
    partitions = Partitions(database)
    await partitions.ensure(TODAY, ahead_days=0)
    later = TODAY + timedelta(days=10)
    await partitions.ensure(later, ahead_days=0)

    dropped = await partitions.aged(later, keep_days={"runs": 5, "decisions": 90})
    for partition in dropped:
        assert await partitions.scan(partition) == (2, True), "watched first, and then looked at"
        assert await partitions.drop(partition) == 0

    assert {(one.parent, one.day) for one in dropped} == {
        ("runs", TODAY),
        ("runs", TODAY - timedelta(days=1)),
    }
    assert not await partitions.aged(later, keep_days={"runs": 5})
    left = [one for one in await partitions.present() if one.parent == "attempts"]
    assert len(left) == 4


async def test_a_new_partition_keeps_room_for_the_update_of_a_run(database: Database) -> None:
    await Partitions(database).ensure(TODAY, ahead_days=0)
    async with database.connection(Lane.ENGINE) as connection:
        options = await connection.fetchval(
            "SELECT reloptions FROM pg_class WHERE relname = 'runs_20260301'"
        )
        indexes = await connection.fetch(
            "SELECT indexname FROM pg_indexes WHERE tablename = 'runs_20260301'"
        )
    assert "fillfactor=40" in options
    # The key, the job, the tenant; deadlines and references, of which most runs have none.
    assert len(indexes) == 5
