"""Tables that outgrow their statistics are counted anew; others are left alone."""

from typing import Any

from betimes.janitor.survey import Surveyor
from betimes.store.database import Database
from betimes.store.partitions import Partitions
from betimes.store.pool import Lane
from betimes.store.queries import load
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from ops_kit import TENANT, fetch

FINISH = load("finish")["finish_succeeded"]


async def fill(database: Database, count: int, *, first: int = 0) -> None:
    await fetch(
        database,
        "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, state, queue, handler)"
        " SELECT n % 4, gen_random_uuid(), $1, now(), 1, 'default', 'noop'"
        " FROM generate_series($2::integer, $3::integer) AS n",
        TENANT,
        first,
        first + count,
    )


async def known(database: Database) -> float:
    query = "SELECT reltuples FROM pg_class WHERE relname = 'runs_default'"
    return float((await fetch(database, query))[0]["reltuples"])


async def plan(database: Database) -> str:
    """How a worker's connection would end runs, as a prepared statement is planned."""
    kinds: dict[str, Any] = {"shard": "1", "low": "'00000000-0000-0000-0000-000000000000'"}
    given = ", ".join(kinds.get(name, "NULL") for name in FINISH.parameters)
    async with database.connection(Lane.COMPLETE) as connection:
        await connection.execute(f"PREPARE ends AS {FINISH.text}")
        try:
            rows = await connection.fetch(f"EXPLAIN EXECUTE ends({given})")
        finally:
            await connection.execute("DEALLOCATE ends")
    return "\n".join(row[0] for row in rows)


async def test_what_has_grown_is_counted_and_runs_are_found_one_by_one(
    database: Database, clock: ManualClock
) -> None:
    surveyor = Surveyor(
        partitions=Partitions(database), clock=clock, telemetry=Telemetry(clock=clock)
    )
    assert await surveyor.tick() == 0, "what is small is left alone"
    await fill(database, 20_000)
    assert await known(database) == -1
    assert await surveyor.tick() == 1
    assert await known(database) > 10_000
    assert "done.id" in "".join(
        line for line in (await plan(database)).splitlines() if "Index Cond" in line
    )
    await fill(database, 1_000, first=30_000)
    assert await surveyor.tick() == 0, "it has hardly grown"
