"""Idempotency keys in the store, exact across midnight although the table is cut by days.

The primary key contains the day, so it cannot see a key of the day before. Two things make up for
it. A claim first looks for the key in every day that is kept. And for ten seconds after midnight it
takes the key for both days: a transaction that began before midnight and still holds the key of the
old day (it may live five seconds) then meets us in the index of that day.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg
import msgspec

from betimes.domain.errors import Bug, Conflict
from betimes.domain.ids import ShardId, TenantId
from betimes.store.ask import execute, many
from betimes.store.jobs import from_json, to_optional_json, to_rows
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("idempotency")
BOTH_DAYS_FOR = timedelta(seconds=10)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a request was answered, as it is kept."""

    status: int
    body: bytes | None = None
    headers: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A key that was taken before, and what came of it."""

    fingerprint: bytes
    answer: Answer


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A key on its way into the store."""

    shard: ShardId
    tenant: TenantId
    key: str
    fingerprint: bytes
    now: datetime
    expires_at: datetime

    @property
    def days(self) -> list[date]:
        """The days under which it is stored, older first: everybody locks in this order."""
        now = self.now.astimezone(UTC)
        earlier = (now - BOTH_DAYS_FOR).date()
        return [now.date()] if earlier == now.date() else [earlier, now.date()]


async def claim_key(connection: Connection, claim: Claim) -> KeyRow | None:
    """Take the key for this transaction, or return who took it.

    Raises:
        Conflict: somebody is using the key right now and takes longer than a lock may.

    """
    # Once more when the index says no: whoever had it has committed by then, and is seen.
    for _ in range(2):
        rows = await _claim(connection, claim)
        taken = [row for row in rows if not row["fresh"]]
        if taken:
            return _row(taken[0])
        if len(rows) == len(claim.days):
            return None
        if rows and not await _release(connection, claim):
            return None  # what stands in the other day has run out: no one can claim it there
    raise Conflict(
        "the key was taken and given back at the same moment", code="idempotency_in_progress"
    )


async def read_key(connection: Connection, claim: Claim) -> KeyRow | None:
    """Who has taken the key, if somebody has and is done."""
    rows = await many(
        connection,
        SQL["read_answer"],
        shard=claim.shard,
        tenant=claim.tenant,
        key=claim.key,
        now=claim.now,
    )
    return _row(rows[0]) if rows else None


async def answer_key(connection: Connection, claim: Claim, answer: Answer) -> None:
    """Keep the answer with the key."""
    await execute(
        connection,
        SQL["answer_key"],
        shard=claim.shard,
        tenant=claim.tenant,
        key=claim.key,
        days=claim.days,
        status=answer.status,
        headers=to_optional_json(answer.headers or {}),
        body=answer.body,
    )


async def _release(connection: Connection, claim: Claim) -> bool:
    """Give our part back when the key was free on one day and answered on the other."""
    rows = await many(
        connection,
        SQL["release_key"],
        shard=claim.shard,
        tenant=claim.tenant,
        key=claim.key,
        days=claim.days,
        now=claim.now,
    )
    return bool(rows)


async def insert_answered(
    connection: Connection, claims: Sequence[Claim], answers: Sequence[Answer]
) -> bool:
    """Keep keys of one tenant and one moment with their answers; False when any was taken."""
    first = claims[0]
    rows = await many(
        connection,
        SQL["insert_answered_keys"],
        tenant=first.tenant,
        now=first.now,
        days=first.days,
        fresh_claims=to_rows([claim_row(*one) for one in zip(claims, answers, strict=True)]),
        bodies=[answer.body for answer in answers],
    )
    return len(rows) == len(claims) * len(first.days)


def claim_row(claim: Claim, answer: Answer) -> dict[str, Any]:
    """A key with its answer by the names statements give them, without what is not JSON."""
    return {
        "shard": claim.shard,
        "key": claim.key,
        "fingerprint": claim.fingerprint.hex(),
        "status": answer.status,
        "headers": answer.headers or None,
        "expires_at": claim.expires_at,
    }


async def _claim(connection: Connection, claim: Claim) -> list[asyncpg.Record]:
    try:
        return await many(
            connection,
            SQL["claim_key"],
            shard=claim.shard,
            tenant=claim.tenant,
            key=claim.key,
            fingerprint=claim.fingerprint,
            now=claim.now,
            expires_at=claim.expires_at,
            days=claim.days,
        )
    except asyncpg.LockNotAvailableError as fault:
        raise Conflict(
            "the first request with this idempotency key is still running; ask again in a second",
            code="idempotency_in_progress",
        ) from fault


def _row(row: asyncpg.Record) -> KeyRow:
    if row["status"] is None:
        raise Bug("an idempotency key was stored without its answer")
    return KeyRow(
        fingerprint=row["fingerprint"],
        answer=Answer(
            status=row["status"], body=row["body"], headers=from_json(row["headers"]) or None
        ),
    )
