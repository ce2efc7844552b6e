"""The statements and the schema would also run on a distributed PostgreSQL."""

import asyncio

import pytest

from betimes.store.migrate import known
from betimes.store.pool import Session
from betimes.store.queries import Query, load, nouns, parse
from betimes.testing.postgres import TEMPLATE, PostgresKit
from distribution_kit import (
    REFERENCE_TABLES,
    Catalogue,
    complaints_of,
    complaints_of_migration,
)
from store_kit import owner

STATEMENTS = [(noun, query) for noun in nouns() for query in load(noun).values()]
COLUMNS = """
    SELECT c.relname, a.attname, format_type(a.atttypid, NULL) AS type
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'betimes'::regnamespace AND c.relkind IN ('r', 'p')
       AND a.attnum > 0 AND NOT a.attisdropped
"""
UNIQUE_KEYS = """
    SELECT c.relname, i.indexrelid::regclass::text AS key,
           array_agg(a.attname::text) AS columns
      FROM pg_index i
      JOIN pg_class c ON c.oid = i.indrelid
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey[:i.indnkeyatts - 1])
     WHERE c.relnamespace = 'betimes'::regnamespace AND i.indisunique AND NOT c.relispartition
     GROUP BY 1, 2
"""


async def read_catalogue(connection: Session) -> Catalogue:
    columns: dict[str, dict[str, str]] = {}
    for table, column, kind in await connection.fetch(COLUMNS):
        columns.setdefault(table, {})[column] = kind
    return Catalogue(columns)


async def key_complaints(connection: Session) -> list[str]:
    """Unique keys that a distributed table cannot have, and tables that are of neither kind."""
    catalogue = await read_catalogue(connection)
    complaints = [
        f"{key} of {table} lacks the shard"
        for table, key, columns in await connection.fetch(UNIQUE_KEYS)
        if table not in REFERENCE_TABLES and "shard" not in columns
    ]
    return complaints + [
        f"{table} has a shard: {catalogue.is_sharded(table)}, but it should not"
        for table in catalogue.columns
        if catalogue.is_sharded(table) == (table in REFERENCE_TABLES)
    ]


@pytest.fixture(scope="session")
def catalogue(postgres: PostgresKit) -> Catalogue:
    async def read() -> Catalogue:
        name = await postgres.create(template=TEMPLATE)
        async with owner(postgres.dsn(name)) as connection:
            found = await read_catalogue(connection)
        await postgres.drop(name)
        return found

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("noun", "query"), STATEMENTS, ids=[f"{noun}.{query.name}" for noun, query in STATEMENTS]
)
def test_a_statement_is_clean(catalogue: Catalogue, noun: str, query: Query) -> None:
    assert complaints_of(query, catalogue, noun=noun) == []


@pytest.mark.parametrize("step", known(), ids=lambda step: step.name)
def test_a_migration_is_clean(step: object) -> None:
    text, name = getattr(step, "text", ""), getattr(step, "name", "")
    assert complaints_of_migration(text, name) == []


async def test_every_unique_key_of_a_sharded_table_has_the_shard(dsn: str) -> None:
    async with owner(dsn) as connection:
        assert await key_complaints(connection) == []


@pytest.mark.parametrize(
    "sabotage",
    [
        "CREATE UNIQUE INDEX probe ON betimes.jobs (tenant_id, id)",
        "CREATE UNIQUE INDEX probe ON betimes.jobs (tenant_id) INCLUDE (shard)",
        "CREATE TABLE betimes.probe (id uuid PRIMARY KEY)",
        "ALTER TABLE betimes.queues ADD COLUMN shard smallint",
    ],
)
async def test_a_key_without_the_shard_is_noticed(dsn: str, sabotage: str) -> None:
    async with owner(dsn) as connection:
        await connection.execute(sabotage)
        assert await key_complaints(connection)


def one(body: str) -> Query:
    return parse(f"-- name: probe :exec\n-- Probe.\n{body}")["probe"]


GOOD = [
    "SELECT id FROM betimes.jobs WHERE shard = :s::smallint AND id = :id::uuid",
    "SELECT id FROM betimes.tenants",
    "SELECT r.id FROM betimes.jobs AS j JOIN betimes.runs AS r USING (shard) WHERE j.shard = :s",
    "SELECT r.id FROM betimes.jobs j JOIN betimes.runs r ON r.shard = j.shard WHERE r.shard = :s",
    "-- Scatter: few\nSELECT id FROM betimes.jobs WHERE shard = ANY (:shards::smallint[])",
    "-- Scatter: a list\nSELECT id FROM betimes.jobs WHERE tenant_id = :t::uuid",
    "-- Guard: it\n-- Scatter: why\nUPDATE betimes.parcels SET fence = 1 WHERE worker_id = :w",
    "INSERT INTO betimes.dedupe (shard, key) VALUES (:s, :k) ON CONFLICT (shard, key) DO NOTHING",
    "INSERT INTO betimes.queues (name) VALUES (:n)",
    (
        "WITH c AS MATERIALIZED (SELECT id FROM betimes.parcels WHERE shard = :s::smallint LIMIT 1"
        " FOR UPDATE SKIP LOCKED) DELETE FROM betimes.parcels USING c"
        " WHERE parcels.shard = :s::smallint AND parcels.id = c.id"
    ),
    "UPDATE betimes.jobs SET next_fire_at = now() + :d::interval WHERE shard = :s",
    "UPDATE betimes.shards SET swept_through = greatest(swept_through, :t) WHERE shard = :s",
]


@pytest.mark.parametrize("body", GOOD)
def test_good_examples_pass(catalogue: Catalogue, body: str) -> None:
    assert complaints_of(one(body), catalogue) == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("SELECT id FROM betimes.jobs WHERE id = :id", "touches all shards of jobs"),
        ("SELECT id FROM betimes.jobs WHERE shard > :s", "touches all shards of jobs"),
        ("SELECT id FROM betimes.jobs WHERE shard = :s OR id = :id", "touches all shards"),
        ("SELECT id FROM betimes.jobs WHERE shard = ANY (:s::smallint[])", "touches several"),
        (
            (
                "SELECT j.id FROM betimes.jobs AS j JOIN betimes.runs AS r ON r.job_id = j.id"
                " WHERE j.shard = :s"
            ),
            "touches all shards of runs",
        ),
        (
            "SELECT j.id FROM betimes.jobs AS j JOIN betimes.runs AS r ON r.shard = j.shard",
            "touches all shards of jobs",
        ),
        (
            (
                "SELECT id FROM betimes.runs WHERE shard = :s AND EXISTS"
                " (SELECT FROM betimes.parcels AS p WHERE p.id = runs.id)"
            ),
            "touches all shards of parcels",
        ),
        ("UPDATE betimes.jobs SET fires = 0 WHERE id = :id", "touches all shards of jobs"),
        ("DELETE FROM betimes.jobs WHERE id = :id", "touches all shards of jobs"),
        ("-- Scatter: why\nDELETE FROM betimes.jobs WHERE id = :id", "without a guard"),
        ("-- Scatter: why\nSELECT id FROM betimes.jobs WHERE shard = :s", "one shard only"),
        ("INSERT INTO betimes.dedupe (key) VALUES (:k)", "without a shard"),
        (
            "INSERT INTO betimes.dedupe (shard, key) VALUES (:s, :k) ON CONFLICT (key) DO NOTHING",
            "without the shard",
        ),
        (
            (
                "MERGE INTO betimes.dedupe USING betimes.queues ON dedupe.key = queues.name"
                " WHEN MATCHED THEN DELETE"
            ),
            "MERGE",
        ),
        ("SELECT pg_advisory_xact_lock(:key)", "advisory lock"),
        ("SELECT pg_try_advisory_lock(:key)", "advisory lock"),
        (
            "UPDATE betimes.jobs SET next_fire_at = next_fire_at + :d::interval WHERE shard = :s",
            "computes next_fire_at from next_fire_at",
        ),
        (
            "UPDATE betimes.jobs SET updated_at = date_trunc('day', updated_at) WHERE shard = :s",
            "computes updated_at from updated_at",
        ),
        (
            (
                "INSERT INTO betimes.dedupe (shard, key) VALUES (:s, :k) ON CONFLICT (shard, key)"
                " DO UPDATE SET expires_at = dedupe.expires_at + interval '1 day'"
            ),
            "computes expires_at from expires_at",
        ),
        (
            (
                "WITH c AS MATERIALIZED (SELECT id FROM betimes.parcels WHERE shard = ANY (:s)"
                " FOR UPDATE SKIP LOCKED) SELECT id FROM c"
            ),
            "SKIP LOCKED over more than one shard",
        ),
        (
            "SELECT id FROM betimes.parcels WHERE shard = :s LIMIT 1 FOR UPDATE SKIP LOCKED",
            "AS MATERIALIZED",
        ),
        (
            (
                "WITH c AS (SELECT id FROM betimes.parcels WHERE shard = :s FOR UPDATE SKIP LOCKED)"
                " SELECT id FROM c"
            ),
            "AS MATERIALIZED",
        ),
    ],
)
def test_bad_examples_are_caught(catalogue: Catalogue, body: str, complaint: str) -> None:
    assert any(complaint in line for line in complaints_of(one(body), catalogue))


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRIGGER probe AFTER INSERT ON betimes.jobs EXECUTE FUNCTION f();",
        "create or replace constraint trigger probe AFTER INSERT ON betimes.jobs;",
        "MERGE INTO betimes.jobs USING x ON true;",
        "SELECT pg_advisory_lock(1);",
        "CREATE RULE probe AS ON INSERT TO betimes.jobs DO NOTHING;",
    ],
)
def test_bad_migrations_are_caught(text: str) -> None:
    assert complaints_of_migration(text)
