"""The ends of runs are told as events, in the transaction that writes them."""

import json

from betimes.domain.ids import random_ids, shard_of, to_ms, to_text
from betimes.domain.outcome import Cancelled, Outcome
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.testing import ManualClock
from betimes.worker.builtin import builtin_handlers
from betimes.worker.context import Context
from worker_kit import SHARD, TENANT, a_worker, enqueue, rows, settle_down


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


async def test_whoever_listens_is_told_of_attempts_that_failed(
    database: Database, clock: ManualClock
) -> None:
    """With the error, beside what becomes of the run; nobody else pays for it."""
    (endpoint,) = random_ids(to_ms(clock.now()), SHARD, bytes(8))
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'one', 'One')", TENANT
        )
        await connection.execute(
            "INSERT INTO betimes.endpoints (tenant_id, id, kind, address, wants_failures)"
            " VALUES ($1, $2, 'webhook', 'https://example.com', true)",
            TENANT,
            endpoint,
        )
    once = {"retry": {"max_attempts": 1}}
    (died,) = await enqueue(database, clock.now(), ["fail"], options=once)
    (again,) = await enqueue(database, clock.now(), ["fail"])
    await enqueue(database, clock.now(), ["noop", "snooze"])
    async with a_worker(database, clock) as bench:
        assert await bench.poll_once() == 4
    assert await events(database) == [
        ("run.dead", to_text("run", died), "dead"),
        *sorted(
            [
                ("run.failed", to_text("run", died), "dead"),
                ("run.failed", to_text("run", again), "retry_wait"),
            ]
        ),
        ("run.retrying", to_text("run", again), "retry_wait"),
    ]
    told = await rows(database, "SELECT body FROM betimes.outbox WHERE type = 'run.failed'")
    errors = [json.loads(row["body"])["error"] for row in told]
    assert all(set(error) == {"type", "message"} for error in errors)
    others = await rows(
        database, "SELECT FROM betimes.outbox WHERE type <> 'run.failed' AND body ? 'error'"
    )
    assert others == []


async def test_whoever_asks_for_it_is_told_of_starts_and_successes(
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
    told = [
        (kind, to_text("run", run), state)
        for kind, state in (("run.started", "running"), ("run.succeeded", "succeeded"))
        for run in sorted(runs)
    ]
    assert await events(database) == told


async def test_what_the_target_has_reported_is_counted_as_it_said(
    database: Database, clock: ManualClock
) -> None:
    """The worker only stopped waiting: the run is not cancelled because of that."""

    async def stopped(_: Context) -> Outcome:
        return Cancelled()

    await enqueue(database, clock.now(), ["stopped"])
    handlers = builtin_handlers(clock).also("stopped", stopped)
    async with a_worker(database, clock, handlers=handlers) as bench:
        assert await bench.parts.lookout.tick() == 1
        await settle_down()
        # What a report to the API does, under the fence the worker holds.
        (parcel,) = await rows(database, "DELETE FROM betimes.parcels RETURNING fence, worker_id")
        finish = (
            "UPDATE betimes.runs SET state = 4, fence = $1, worker_id = $2, finished_at = now()"
            " RETURNING id"
        )
        await rows(database, finish, parcel["fence"], parcel["worker_id"])
        await bench.parts.reporter.flush()
        assert bench.counted("betimes_runs_total", outcome="succeeded") == 1
        assert bench.counted("betimes_runs_total", outcome="cancelled") == 0
