"""A database with enough in it that the planner has something to choose."""

import asyncio
from collections.abc import Iterator

import pytest

from betimes.testing.postgres import PostgresKit
from store_kit import owner

# One day of one cell: many jobs and runs, parcels of which half are leased, by few workers.
CROWD = """
SELECT betimes.ensure_partition(parent, '2026-01-01')
  FROM unnest(ARRAY['runs', 'attempts', 'decisions', 'idempotency', 'outbox']) AS parent;

CREATE FUNCTION pg_temp.a_uuid(n integer) RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex(1767225600000 + n * 1000::bigint), 12, '0') || '8'
            || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid
$$;
CREATE FUNCTION pg_temp.few(n integer, most integer) RETURNS uuid LANGUAGE sql AS $$
    SELECT ('00000000-0000-8000-8000-' || lpad((n % most)::text, 12, '0'))::uuid
$$;

INSERT INTO betimes.jobs (
    shard, id, tenant_id, next_fire_at, created_at, updated_at, name, tzdata, schedule, target)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.few(n, 50),
       '2026-01-01 00:00+00'::timestamptz + n * interval '1 s', now(), now(), 'job' || n,
       '2026a', '{}', '{}'
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.job_revisions (shard, job_id, revision, tenant_id, replaced_at, definition)
SELECT n % 4, pg_temp.a_uuid(n), 1, pg_temp.few(n, 50), now(), '{}'
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.runs (shard, id, tenant_id, job_id, due_at, queue)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.few(n, 50), pg_temp.a_uuid(n % 500),
       '2026-01-01 00:00+00'::timestamptz + n * interval '1 s', 'default'
  FROM generate_series(1, 20000) AS n;

INSERT INTO betimes.parcels (
    shard, id, tenant_id, worker_id, lease_until, rank, visible_at, queue, run_ids)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.few(n, 50),
       CASE WHEN n % 2 = 0 THEN pg_temp.few(n, 20) END, CASE WHEN n % 2 = 0 THEN now() END,
       now() + n * interval '1 s', now() + n * interval '1 s', 'default', ARRAY[pg_temp.a_uuid(n)]
  FROM generate_series(1, 8000) AS n;

INSERT INTO betimes.parcels (
    shard, id, tenant_id, worker_id, lease_until, rank, visible_at, queue, run_ids, gate, line,
    held, held_at, slot)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.few(n, 50),
       CASE WHEN n % 10 = 0 THEN pg_temp.few(n, 20) END, CASE WHEN n % 10 = 0 THEN now() END,
       now() + n * interval '1 s', now() + n * interval '1 s', 'default', ARRAY[pg_temp.a_uuid(n)],
       'key' || n % 500, pg_temp.a_uuid(n % 400), CASE WHEN n % 10 < 2 THEN 0 ELSE 1 END,
       CASE WHEN n % 10 < 2 THEN NULL ELSE now() END, n % 10 = 0
  FROM generate_series(60001, 68000) AS n;

INSERT INTO betimes.dead_letters (
    shard, run_id, tenant_id, dead_at, attempts, queue, fingerprint, reason)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.few(n, 50), now(), 1, 'default',
       md5((n % 9)::text), 'exhausted'
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.attempts (shard, run_id, number, tenant_id, fence, finished_at, outcome)
SELECT n % 4, pg_temp.a_uuid(n), 1, pg_temp.few(n, 50), 1, now(), 1
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.parcels (
    shard, id, tenant_id, rank, visible_at, queue, run_ids, lane, held, held_at, episode)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.few(n, 50), now(), now(), 'default',
       ARRAY[pg_temp.a_uuid(n)], 2, 3, now(), pg_temp.few(n, 100)
  FROM generate_series(40001, 44000) AS n;

INSERT INTO betimes.gaps (
    shard, job_id, from_at, until_at, tenant_id, revision, priority, queue, schedule)
SELECT n % 4, pg_temp.a_uuid(n), now(), now(), pg_temp.few(n, 50), 1, 5, 'default', '{}'
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.catchups (
    shard, id, tenant_id, opened_at, found_at, paced_through, first_fire_at, last_fire_at,
    per_second, state)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.a_uuid(n / 2), now(), now(), now(), now(), now(), 1,
       CASE WHEN n % 2 = 0 THEN 0 WHEN n % 100 = 1 THEN 2 ELSE 4 END
  FROM generate_series(1, 8000) AS n;

INSERT INTO betimes.dedupe (shard, tenant_id, key, holder, created_at, expires_at, prune_at)
SELECT n % 4, pg_temp.few(n, 50), 'run:' || n, pg_temp.a_uuid(n), now(), now(),
       now() + n * interval '1 s'
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.workflows (
    shard, tenant_id, name, version, id, definition, digest, created_at)
SELECT n % 4, pg_temp.few(n, 50), 'flow' || n / 5, n % 5 + 1, pg_temp.a_uuid(n), '{}', '', now()
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.workflow_runs (
    shard, id, tenant_id, workflow, version, definition, digest, started_at)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.few(n, 50), 'flow', 1, '{}', '', now()
  FROM generate_series(1, 4000) AS n;

INSERT INTO betimes.workflow_nodes (shard, workflow_run_id, node, tenant_id, run_id, state)
SELECT n % 4, pg_temp.a_uuid(n), 'node' || part, pg_temp.few(n, 50),
       pg_temp.a_uuid(n * 5 + part), part
  FROM generate_series(1, 4000) AS n, generate_series(1, 4) AS part;

INSERT INTO betimes.workflow_items (shard, workflow_run_id, node, place, tenant_id, run_id, state)
SELECT n % 4, pg_temp.a_uuid(n), 'node1', part, pg_temp.few(n, 50),
       pg_temp.a_uuid(n * 5 + part), part % 4
  FROM generate_series(1, 1000) AS n, generate_series(1, 20) AS part;

INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)
SELECT n % 4, pg_temp.a_uuid(n), pg_temp.a_uuid(n), pg_temp.few(n, 50), now() + n * interval '1 s'
  FROM generate_series(1, 4000) AS n;
"""


@pytest.fixture(scope="session")
def crowded(postgres: PostgresKit) -> Iterator[str]:
    """The address of a filled database; tests undo what they do in it."""
    name = asyncio.run(postgres.create())
    asyncio.run(_fill(postgres.dsn(name)))
    yield postgres.dsn(name)
    asyncio.run(postgres.drop(name))


async def _fill(dsn: str) -> None:
    async with owner(dsn) as connection:
        await connection.execute(CROWD)
        await connection.execute("VACUUM ANALYZE")
