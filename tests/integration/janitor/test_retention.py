"""A queue or a job may keep what has ended for a shorter time than runs are kept at all."""

from datetime import datetime, timedelta
from json import dumps
from unittest.mock import patch
from uuid import UUID

from betimes.domain.ids import compose, to_ms
from betimes.store import retention
from betimes.store.database import Database
from betimes.testing import ManualClock
from integration.janitor.test_prune_words import pruner
from ops_kit import TENANT, fetch

HOUR = timedelta(hours=1)
SHARD = 1


async def a_queue(database: Database, name: str, kept: timedelta) -> None:
    await fetch(
        database,
        "INSERT INTO betimes.queues (tenant_id, name, retain_ms) VALUES ($1, $2, $3)",
        TENANT,
        name,
        kept // timedelta(milliseconds=1),
    )


async def a_run(
    database: Database,
    number: int,
    queue: str,
    due: datetime,
    *,
    state: int = 4,
    job: UUID | None = None,
) -> UUID:
    run = compose(to_ms(due), SHARD, number)
    await fetch(
        database,
        "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, state, queue, finished_at, job_id)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        SHARD,
        run,
        TENANT,
        due,
        state,
        queue,
        due if state >= 4 else None,
        job,
    )
    await fetch(
        database,
        "INSERT INTO betimes.attempts"
        " (shard, run_id, number, tenant_id, outcome, fence, finished_at)"
        " VALUES ($1, $2, 1, $3, 2, 1, now())",
        SHARD,
        run,
        TENANT,
    )
    return run


async def a_job(database: Database, number: int, kept: timedelta | None) -> UUID:
    job = compose(number, SHARD, number)
    options = {} if kept is None else {"retain_ms": kept // timedelta(milliseconds=1)}
    await fetch(
        database,
        "INSERT INTO betimes.jobs (shard, id, tenant_id, created_at, updated_at, state, tzdata,"
        " schedule, target, options) VALUES ($1, $2, $3, now(), now(), 3, '', '{}', '{}', $4)",
        SHARD,
        job,
        TENANT,
        dumps(options),
    )
    return job


async def left(database: Database) -> set[UUID]:
    runs = {row["id"] for row in await fetch(database, "SELECT id FROM betimes.runs")}
    tried = {row["run_id"] for row in await fetch(database, "SELECT run_id FROM betimes.attempts")}
    assert tried == runs, "what is said about a run goes with it"
    return runs


async def test_each_queue_keeps_its_runs_as_long_as_it_says(
    database: Database, clock: ManualClock
) -> None:
    now = clock.now()
    await a_queue(database, "short", HOUR)
    await a_queue(database, "long", 24 * HOUR)
    gone = [await a_run(database, 1, "short", now - 2 * HOUR)]
    kept = {
        await a_run(database, 2, "short", now - HOUR / 2),
        await a_run(database, 3, "long", now - 2 * HOUR),
        await a_run(database, 4, "default", now - 2 * HOUR),
        await a_run(database, 5, "short", now - 2 * HOUR, state=1),
    }
    dead = await a_run(database, 6, "short", now - 2 * HOUR, state=5)
    await fetch(
        database,
        "INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, dead_at, attempts, queue,"
        " fingerprint, reason) VALUES ($1, $2, $3, $4, 1, 'short', 'f', 'r')",
        SHARD,
        dead,
        TENANT,
        now,
    )
    keeper = pruner(database, clock)
    await keeper.tick()
    assert await left(database) == {*kept, dead}, gone
    clock.advance(23 * HOUR)
    await keeper.tick()
    names = await fetch(database, "SELECT queue, state FROM betimes.runs ORDER BY id")
    assert sorted((row["queue"], row["state"]) for row in names) == [
        ("default", 4),
        ("short", 1),
        ("short", 5),
    ]


async def test_what_ended_after_it_was_passed_goes_a_day_later(
    database: Database, clock: ManualClock
) -> None:
    now = clock.now()
    await a_queue(database, "short", HOUR)
    slow = await a_run(database, 1, "short", now - 2 * HOUR, state=1)
    keeper = pruner(database, clock)
    await keeper.tick()
    await fetch(database, "UPDATE betimes.runs SET state = 4, finished_at = $1", now)
    clock.advance(2 * HOUR)
    await keeper.tick()
    clock.advance(23 * HOUR)
    await keeper.tick()
    assert slow not in await left(database)


async def test_many_runs_go_page_by_page(database: Database, clock: ManualClock) -> None:
    now = clock.now()
    await a_queue(database, "short", HOUR)
    for number in range(1, 8):
        queue = "short" if number % 2 else "default"
        await a_run(database, number, queue, now - 2 * HOUR - number * timedelta(seconds=1))
    keeper = pruner(database, clock, page=2)
    await keeper.tick()
    assert len(await left(database)) == 3


async def test_each_job_keeps_its_runs_as_long_as_it_says(
    database: Database, clock: ManualClock
) -> None:
    now = clock.now()
    short = await a_job(database, 1, HOUR)
    long = await a_job(database, 2, 24 * HOUR)
    plain = await a_job(database, 3, None)
    await a_run(database, 1, "q", now - 2 * HOUR, job=short)
    kept = {
        await a_run(database, 2, "q", now - HOUR / 2, job=short),
        await a_run(database, 3, "q", now - 2 * HOUR, job=long),
        await a_run(database, 4, "q", now - 2 * HOUR, job=plain),
        await a_run(database, 5, "q", now - 2 * HOUR, job=short, state=1),
        await a_run(database, 6, "q", now - 2 * HOUR, job=short, state=5),
    }
    await fetch(
        database,
        "INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, dead_at, attempts, queue,"
        " fingerprint, reason) VALUES ($1, $2, $3, $4, 1, 'q', 'f', 'r')",
        SHARD,
        compose(to_ms(now - 2 * HOUR), SHARD, 6),
        TENANT,
        now,
    )
    keeper = pruner(database, clock)
    await keeper.tick()
    assert await left(database) == kept
    clock.advance(23 * HOUR)
    await keeper.tick()
    numbers = await fetch(database, "SELECT job_id, state FROM betimes.runs")
    assert sorted((row["job_id"], row["state"]) for row in numbers) == [
        (short, 1),
        (short, 5),
        (plain, 4),
    ]


async def test_what_ended_late_goes_with_the_next_pass(
    database: Database, clock: ManualClock
) -> None:
    """Runs of jobs are found by their job, so nothing that was passed has to wait a day."""
    job = await a_job(database, 1, HOUR)
    now = clock.now()
    slow = await a_run(database, 1, "q", now - 2 * HOUR, state=1, job=job)
    keeper = pruner(database, clock)
    await keeper.tick()
    assert await left(database) == {slow}
    await fetch(database, "UPDATE betimes.runs SET state = 4, finished_at = $1", now)
    clock.advance(HOUR / 2)
    await keeper.tick()
    assert await left(database) == {slow}, "an hour since it ended, not since it was due"
    clock.advance(HOUR)
    await keeper.tick()
    assert await left(database) == set()


async def test_many_runs_of_many_jobs_go_page_by_page(
    database: Database, clock: ManualClock
) -> None:
    now = clock.now()
    jobs = [await a_job(database, number, HOUR) for number in range(1, 6)]
    for number in range(1, 16):
        due = now - 2 * HOUR - number * timedelta(seconds=1)
        await a_run(database, number, "q", due, job=jobs[number % 5])
    kept = await a_run(database, 16, "q", now, job=jobs[0])
    with patch.object(retention, "JOBS_MAX", 2):
        await pruner(database, clock, page=2).tick()
    assert await left(database) == {kept}
