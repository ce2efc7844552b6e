"""What was said about runs, long work that ended, and visits go when their time is up."""

from datetime import timedelta
from uuid import UUID

from betimes.config.settings import JanitorSettings
from betimes.janitor.prune import Pruner
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.prune import Pruning
from betimes.store.repair import Repairing
from betimes.store.retention import Retaining
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from ops_kit import SHARDS, TENANT, fetch

DAY = timedelta(days=1)
TABLES = ("run_logs", "run_notes", "operations", "sessions", "device_grants")


def pruner(database: Database, clock: ManualClock, *, page: int = 1_000) -> Pruner:
    return Pruner(
        pruning=Pruning(database),
        repairing=Repairing(database),
        retaining=Retaining(database, page),
        shards=SHARDS,
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=JanitorSettings(retain_runs_days=30),
    )


async def fill(database: Database, clock: ManualClock) -> None:
    """One old and one fresh row of each."""
    now = clock.now()
    async with database.connection(Lane.ENGINE) as connection:
        for number, age in enumerate((31 * DAY, DAY), start=1):
            at, run = now - age, UUID(int=number)
            await connection.execute(
                "INSERT INTO betimes.run_logs (shard, run_id, seq, tenant_id, attempt, at, level,"
                " message) VALUES (1, $1, 1, $2, 1, $3, 'info', 'x')",
                run,
                TENANT,
                at,
            )
            await connection.execute(
                "INSERT INTO betimes.run_notes (shard, run_id, tenant_id, fence, updated_at)"
                " VALUES (1, $1, $2, 1, $3)",
                run,
                TENANT,
                at,
            )
            await connection.execute(
                "INSERT INTO betimes.operations (shard, tenant_id, id, kind, state, request,"
                " created_at, expires_at) VALUES (1, $2, $1, 'x', 2, '{}', $3, $4)",
                run,
                TENANT,
                at,
                at + 7 * DAY,
            )
            await connection.execute(
                "INSERT INTO betimes.sessions (digest, tenant_id, key_id, created_at, seen_at,"
                " expires_at) VALUES ($1, $2, 'k', $3, $3, $4)",
                run.bytes,
                TENANT,
                at,
                at + 7 * DAY,
            )
            await connection.execute(
                "INSERT INTO betimes.device_grants (digest, user_code, name, created_at,"
                " expires_at) VALUES ($1, $2, 'n', $3, $4)",
                run.bytes,
                str(number),
                at,
                at + 7 * DAY,
            )


async def counts(database: Database) -> dict[str, int]:
    return {
        table: (await fetch(database, f"SELECT count(*) FROM betimes.{table}"))[0]["count"]
        for table in TABLES
    }


async def test_only_what_has_aged_goes(database: Database, clock: ManualClock) -> None:
    await fill(database, clock)
    await pruner(database, clock).tick()
    assert await counts(database) == dict.fromkeys(TABLES, 1)
    await pruner(database, clock).tick()
    assert await counts(database) == dict.fromkeys(TABLES, 1)


async def test_work_that_has_not_ended_stays(database: Database, clock: ManualClock) -> None:
    await fill(database, clock)
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute("UPDATE betimes.operations SET state = 1")
    await pruner(database, clock).tick()
    assert (await counts(database))["operations"] == 2
