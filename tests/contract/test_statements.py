"""Every statement runs on the schema as it is, returns what it says, by the index it claims."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from betimes.store.pool import SYSTEM_ROLE, Session
from betimes.store.queries import Query, load, nouns, parse
from rows_kit import sample
from store_kit import owner

STATEMENTS = [(noun, query) for noun in nouns() for query in load(noun).values()]
EVERY = pytest.mark.parametrize(
    ("noun", "query"), STATEMENTS, ids=[f"{noun}.{query.name}" for noun, query in STATEMENTS]
)
# Where any value of the type will not do, by the name of the parameter.
MEANINGFUL: dict[str, Any] = {
    "parent": "runs",
    "kind": "expand",
    "number": 9_999,
    "milliseconds": "100",
    "networks": ["10.0.0.0/8"],
    "channel": "betimes_probe",
    "ttl": timedelta(seconds=10),
    "low": UUID("019b76da-a800-8000-8000-000000000000"),
    "high": UUID("019b76e3-0000-8000-8000-000000000000"),
    "job": UUID("019b76da-abe8-8c4c-8a42-38a0b923820d"),
    "worker": UUID("00000000-0000-8000-8000-000000000002"),
    # Equal bounds would exclude each other, and no index would be asked.
    "fire_after": datetime(2025, 1, 1, tzinfo=UTC),
    "fire_before": datetime(2199, 1, 1, tzinfo=UTC),
    "finished_after": datetime(2025, 1, 1, tzinfo=UTC),
    "finished_before": datetime(2199, 1, 1, tzinfo=UTC),
    "fresh_jobs": json.dumps(
        [
            {
                "id": "019b76da-abe8-8c4c-8a42-38a0b9238299",
                "tenant_id": "00000000-0000-8000-8000-000000000001",
                "job_group": "default",
                "created_at": "2026-01-01T00:00:00Z",
                "fires": 0,
                "state": 0,
                "priority": 5,
                "after_completion": 0,
                "queue": "q",
                "schedule": {},
                "target": {},
            }
        ]
    ),
    "fresh_acts": json.dumps(
        [
            {
                "number": 9_999,
                "actor": {},
                "action": "a",
                "resource": "r",
                "digest": "00",
                "event_id": "019b76da-abe8-8c4c-8a42-38a0b9238299",
                "event": "e",
                "body": {},
            }
        ]
    ),
    "grouped_acts": json.dumps(
        [
            {
                "actor": {},
                "action": "a",
                "resource": "r",
                "event_id": "019b76da-abe8-8c4c-8a42-38a0b9238299",
                "event": "e",
                "body": {},
            }
        ]
    ),
    "fresh_claims": json.dumps(
        [
            {
                "shard": 1,
                "key": "k",
                "fingerprint": "00",
                "status": 200,
                "expires_at": "2026-01-02T00:00:00Z",
            }
        ]
    ),
}
# The migrator is the owner; everybody else acts as the system.
OWNERS_NOUNS = {"migrations", "logins"}
LONG_NAMES = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "timestamptz": "timestamp with time zone",
}


def long_name(short: str) -> str:
    """The name of a type as the catalogue writes it; arrays come as `_uuid` and as `uuid[]`."""
    base = short.removeprefix("_").removesuffix("[]")
    return LONG_NAMES.get(base, base) + ("[]" if base != short else "")


def sample_of(type_name: str) -> Any:
    """A value of a type; a text may be on its way to a json column, so it is one."""
    if type_name.startswith("text"):
        return ["{}"] if type_name.endswith("[]") else "{}"
    return sample(type_name)


def arguments_for(query: Query, prepared: Any) -> list[Any]:
    return [
        MEANINGFUL[name] if name in MEANINGFUL else sample_of(long_name(kind.name))
        for name, kind in zip(query.parameters, prepared.get_parameters(), strict=True)
    ]


async def shape_complaints(connection: Session, query: Query) -> list[str]:
    """How the columns of the answer differ from the `-- Returns:` line."""
    if query.kind == "exec":
        return []
    prepared = await connection.prepare(query.text)
    found = [(one.name, long_name(one.type.name)) for one in prepared.get_attributes()]
    said = [(name, long_name(kind)) for name, kind in query.returns]
    return [] if found == said else [f"{query.name} returns {found}, its header says {said}"]


async def row_complaints(connection: Session, query: Query) -> list[str]:
    """Run it with samples and undo it; how many rows came back against what its kind allows."""
    prepared = await connection.prepare(query.text)
    undone = connection.transaction()
    await undone.start()
    try:
        rows = await prepared.fetch(*arguments_for(query, prepared))
    except asyncpg.IntegrityConstraintViolationError:
        return []  # planned, allowed and run; samples need not make sense together
    finally:
        await undone.rollback()
    wrong = (query.kind == "one" and len(rows) != 1) or (query.kind == "maybe" and len(rows) > 1)
    return [f"{query.name} is :{query.kind} and returned {len(rows)} rows"] if wrong else []


async def index_complaints(connection: Session, query: Query) -> list[str]:
    """Which of the indexes it claims its plan does not use."""
    if not query.indexes:
        return []
    prepared = await connection.prepare(query.text)
    undone = connection.transaction()
    await undone.start()
    try:
        # The tables are still small enough to be read whole; the question is what serves best.
        await connection.execute("SET LOCAL enable_seqscan = off")
        plan = await connection.fetchval(
            f"EXPLAIN (FORMAT JSON) {query.text}", *arguments_for(query, prepared)
        )
    finally:
        await undone.rollback()
    used = {await parent_index(connection, name) for name in names_in(json.loads(plan))}
    missing = set(query.indexes) - used
    return [f"{query.name} claims {sorted(missing)}, uses {sorted(used)}"] if missing else []


def names_in(plan: Any) -> Iterator[str]:
    """Every index a plan names; an upsert names the one that decides conflicts."""
    if isinstance(plan, list):
        for part in plan:
            yield from names_in(part)
    elif isinstance(plan, dict):
        if name := plan.get("Index Name"):
            yield name
        yield from plan.get("Conflict Arbiter Indexes", [])
        for part in plan.values():
            if isinstance(part, list | dict):
                yield from names_in(part)


async def parent_index(connection: Session, name: str) -> str:
    """The index of the table a partition's index belongs to."""
    parent = await connection.fetchval(
        "SELECT inhparent::regclass::text FROM pg_inherits"
        " WHERE inhrelid = to_regclass('betimes.' || quote_ident($1::text))",
        name,
    )
    return str(parent).removeprefix("betimes.") if parent else name


@EVERY
async def test_it_runs_and_returns_what_it_says(crowded: str, noun: str, query: Query) -> None:
    async with owner(crowded) as connection:
        if noun not in OWNERS_NOUNS:
            await connection.execute(f"SET ROLE {SYSTEM_ROLE}")
        assert await shape_complaints(connection, query) == []
        assert await row_complaints(connection, query) == []


@EVERY
async def test_its_plan_uses_the_indexes_it_claims(crowded: str, noun: str, query: Query) -> None:
    if not query.indexes:
        return
    async with owner(crowded) as connection:
        assert await index_complaints(connection, query) == [], noun


@EVERY
def test_who_makes_parcels_says_why_no_publisher_does(noun: str, query: Query) -> None:
    """What is in a parcel is published; otherwise it would be executed twice, or taken back."""
    makes = "INTO betimes.parcels" in query.text
    assert makes == bool(query.published), "a `-- Published:` line stands where parcels are made"


def one(body: str, kind: str = "many") -> Query:
    return parse(f"-- name: probe :{kind}\n-- Probe.\n{body}")["probe"]


@pytest.mark.parametrize(
    "body",
    [
        "-- Returns: id uuid\nSELECT id, queue FROM betimes.jobs",
        "-- Returns: name uuid\nSELECT id FROM betimes.jobs",
        "-- Returns: id text\nSELECT id FROM betimes.jobs",
        "-- Returns: ids uuid\nSELECT ARRAY[id] AS ids FROM betimes.jobs",
    ],
)
async def test_a_wrong_shape_is_noticed(crowded: str, body: str) -> None:
    async with owner(crowded) as connection:
        assert await shape_complaints(connection, one(body))


async def test_a_wrong_number_of_rows_is_noticed(crowded: str) -> None:
    async with owner(crowded) as connection:
        none = one("-- Returns: shard int2\nSELECT shard FROM betimes.shards WHERE false", "one")
        many = one("-- Returns: shard int2\nSELECT shard FROM betimes.shards", "maybe")
        assert await row_complaints(connection, none)
        assert await row_complaints(connection, many)


async def test_a_claim_that_does_not_hold_is_noticed(crowded: str) -> None:
    body = "-- Index: {}\n-- Returns: id uuid\nSELECT id FROM betimes.{} WHERE shard = :s::smallint"
    async with owner(crowded) as connection:
        wrong = one(body.format("jobs_name_idx", "jobs") + " AND id = :id::uuid")
        assert await index_complaints(connection, wrong)
        right = one(body.format("runs_pkey", "runs") + " AND id = :id::uuid")
        assert await index_complaints(connection, right) == []
