"""What a group leaves behind: all of it or nothing, however many keys are there already."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from betimes.domain.ids import ShardId, random_ids, to_ms
from betimes.store import audit
from betimes.store.audit import Act, Telling
from betimes.store.database import Database
from betimes.store.groups import keep_group
from betimes.store.idempotency import Answer, Claim, insert_answered
from betimes.store.pool import Connection, Lane
from ops_kit import TENANT, fetch
from store_kit import opened

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SHARD = ShardId(1)
MANY = 3_000
NUMBERS = count(1)
READ = """
SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
  FROM pg_stat_xact_user_tables WHERE relname LIKE 'idempotency%'
"""
FILL = f"""
INSERT INTO betimes.idempotency
       (shard, tenant_id, key, day, fingerprint, status, created_at, expires_at)
SELECT 1, '{TENANT}', 'old-' || n, '2026-01-01', '', 201, '{NOW}', '{NOW + timedelta(days=1)}'
  FROM generate_series(1, {MANY}) AS n RETURNING 1
"""


def claim(key: str) -> Claim:
    return Claim(
        shard=SHARD,
        tenant=TENANT,
        key=key,
        fingerprint=b"f",
        now=NOW,
        expires_at=NOW + timedelta(days=1),
    )


def telling(resource: str) -> Telling:
    (event_id,) = random_ids(to_ms(NOW), SHARD, next(NUMBERS).to_bytes(8, "big"))
    act = Act(tenant=TENANT, at=NOW, actor={"id": "a"}, action="jobs.create", resource=resource)
    return Telling(act, "job.created", event_id, {"job_id": resource})


async def kept(database: Database, *keys: str) -> tuple[bool, int]:
    """Keep a group; whether all of it was new, and how many rows of keys were looked at."""

    async def work(connection: Connection) -> tuple[bool, int]:
        before = await connection.fetchval(READ) or 0
        done = await keep_group(
            connection,
            TENANT,
            SHARD,
            [claim(key) for key in keys],
            [Answer(status=201, body=key.encode()) for key in keys],
            [telling(key) for key in keys],
        )
        return done, (await connection.fetchval(READ) or 0) - before

    return await database.transact(
        work, lane=Lane.API, repeatable=False, tenant=TENANT, row_by_row=True
    )


async def test_acts_of_groups_are_one_chain(database: Database) -> None:
    assert (await kept(database, "a", "b"))[0]
    assert (await kept(database, "c", "d", "e"))[0]

    async def read(connection: Connection) -> list[audit.Entry]:
        return await audit.chain(connection, TENANT, SHARD, after=0)

    entries = await database.transact(read, lane=Lane.API, repeatable=True, tenant=TENANT)
    assert [entry.number for entry in entries] == [1, 2, 3, 4, 5]
    assert [entry.act.resource for entry in entries] == ["a", "b", "c", "d", "e"]
    previous = b""
    for entry in entries:
        assert audit.linked(previous, entry)
        previous = entry.digest
    (head,) = await fetch(database, "SELECT number, digest FROM betimes.audit_heads")
    assert (head["number"], head["digest"]) == (5, previous)
    events = await fetch(database, "SELECT subject FROM betimes.outbox ORDER BY subject")
    assert [row["subject"] for row in events] == ["a", "b", "c", "d", "e"]
    rows = await fetch(database, "SELECT key, body, status FROM betimes.idempotency ORDER BY key")
    assert [(row["key"], row["body"], row["status"]) for row in rows] == [
        (key, key.encode(), 201) for key in "abcde"
    ]


async def test_a_chain_that_many_begin_at_once_is_one(dsn: str) -> None:
    """Where there is no head to wait for, all but one begin anew."""
    async with opened(dsn) as database:
        done = await asyncio.gather(*(kept(database, key) for key in "abcd"))
        acts = await fetch(database, "SELECT number FROM betimes.audit ORDER BY number")
    assert all(new for new, _ in done)
    assert [row["number"] for row in acts] == [1, 2, 3, 4]


async def test_a_key_that_is_taken_is_told(database: Database) -> None:
    assert (await kept(database, "a"))[0]
    assert not (await kept(database, "b", "a"))[0]


@pytest.mark.parametrize("with_acts", [True, False])
async def test_a_group_does_not_walk_through_the_keys_of_the_day(
    database: Database, with_acts: bool
) -> None:
    """Not even by a plan that was made while there were none."""

    async def answered(key: str) -> tuple[bool, int]:
        async def work(connection: Connection) -> tuple[bool, int]:
            before = await connection.fetchval(READ) or 0
            done = await insert_answered(connection, [claim(key)], [Answer(status=201)])
            return done, (await connection.fetchval(READ) or 0) - before

        return await database.transact(
            work, lane=Lane.API, repeatable=False, tenant=TENANT, row_by_row=True
        )

    async def once(key: str) -> tuple[bool, int]:
        return await kept(database, key) if with_acts else await answered(key)

    assert (await once("first"))[0]
    assert len(await fetch(database, FILL)) == MANY
    done, looked_at = await once("second")
    assert done
    assert looked_at < 10
    assert not (await once("old-7"))[0]
