"""The ends of runs are told as events, in the transaction that writes them."""

from betimes.domain.ids import shard_of, to_text
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.testing import ManualClock
from worker_kit import SHARD, TENANT, a_worker, enqueue, rows


async def events(database: Database) -> list[tuple[str, str, str]]:
    told = await rows(
        database,
        "SELECT id, type, subject, body ->> 'state' AS state FROM betimes.outbox ORDER BY 2, 3",
    )
    assert all(shard_of(row["id"]) == SHARD for row in told)
    return [(row["type"], row["subject"], row["state"]) for row in told]


async def test_failures_are_told_and_successes_only_on_request(
    database: Database, clock: ManualClock
) -> None:
    once = {"retry": {"max_attempts": 1}}
    (died,) = await enqueue(database, clock.now(), ["fail"], options=once)
    (again,) = await enqueue(database, clock.now(), ["fail"])
    await enqueue(database, clock.now(), ["noop"])
    async with a_worker(database, clock) as bench:
        assert await bench.poll_once() == 3
    assert await events(database) == [
        ("run.dead", to_text("run", died), "dead"),
        ("run.retrying", to_text("run", again), "retry_wait"),
    ]


async def test_whoever_asks_for_it_is_told_of_successes(
    database: Database, clock: ManualClock
) -> None:
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.tenants (id, slug, name, settings)"
            " VALUES ($1, 'curious', 'Curious', '{\"run_events\": \"all\"}')",
            TENANT,
        )
    runs = await enqueue(database, clock.now(), ["noop", "noop"])
    async with a_worker(database, clock) as bench:
        await bench.poll_once()
    told = sorted(("run.succeeded", to_text("run", run), "succeeded") for run in runs)
    assert await events(database) == told
