"""Dead letters in the store: rows in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum, unique
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.ids import Fence, JobId, RunId, ShardId, TenantId, WorkerId, shard_of
from betimes.store.ask import estimate, many, maybe
from betimes.store.jobs import from_json, to_optional_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("dead_letters")
GROUPS_MAX = 1_000
ATTEMPTS_MAX = 10_000
BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


@unique
class LetterState(IntEnum):
    """What became of a dead letter; the numbers are stored."""

    OPEN = 0
    REDRIVEN = 1
    DISCARDED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A run that is out of attempts."""

    shard: ShardId
    run: RunId
    tenant: TenantId
    job: JobId | None
    dead_at: datetime
    resolved_at: datetime | None
    attempts: int
    state: LetterState
    queue: str
    handler: str | None
    fingerprint: str
    reason: str
    error: Mapping[str, Any]
    note: str | None
    assignee: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterGroup:
    """Letters that died of the same cause."""

    fingerprint: str
    handler: str | None
    count: int
    first_at: datetime
    last_at: datetime
    sample: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that did not succeed."""

    number: int
    worker: WorkerId | None
    fence: Fence
    started_at: datetime | None
    finished_at: datetime
    next_retry_at: datetime | None
    outcome: int
    error: Mapping[str, Any]
    http: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Which letters are meant; what is None does not matter."""

    fingerprint: str | None = None
    queue: str | None = None
    handler: str | None = None
    job: JobId | None = None
    state: LetterState = LetterState.OPEN
    tags: "dict[str, str] | None" = None
    text: str | None = None
    """Part of the error, whatever its case."""
    finished_after: datetime | None = None
    finished_before: datetime | None = None


async def list_letters(
    connection: Connection,
    tenant: TenantId,
    chosen: LetterFilter,
    *,
    after: tuple[datetime, UUID],
    most: int,
) -> list[DeadLetter]:
    """A page of letters, oldest death first."""
    told = _about(tenant, chosen, after=after, most=most)
    return [letter_of(row) for row in await many(connection, SQL["list_dead_letters"], **told)]


async def estimate_letters(connection: Connection, tenant: TenantId, chosen: LetterFilter) -> int:
    """About how many letters there are, by what the planner knows."""
    told = _about(tenant, chosen, after=BEGINNING, most=1)
    return await estimate(connection, SQL["list_dead_letters"], **told)


def _about(
    tenant: TenantId, chosen: LetterFilter, *, after: tuple[datetime, UUID], most: int
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "state": int(chosen.state),
        "after_at": after[0],
        "after_run": after[1],
        "fingerprint": chosen.fingerprint,
        "queue": chosen.queue,
        "handler": chosen.handler,
        "job": chosen.job,
        "tags": to_optional_json(chosen.tags or {}),
        "text": chosen.text,
        "finished_after": chosen.finished_after,
        "finished_before": chosen.finished_before,
        "most": most,
    }


async def group_letters(connection: Connection, tenant: TenantId) -> list[LetterGroup]:
    """Open letters by cause."""
    rows = await many(connection, SQL["group_dead_letters"], tenant=tenant, most=GROUPS_MAX)
    return [
        LetterGroup(
            fingerprint=row["fingerprint"],
            handler=row["handler"],
            count=row["letters"],
            first_at=row["first_at"],
            last_at=row["last_at"],
            sample=from_json(row["sample"]),
        )
        for row in rows
    ]


async def read_letter(connection: Connection, run: RunId) -> DeadLetter | None:
    """One letter."""
    row = await maybe(connection, SQL["read_dead_letter"], shard=shard_of(run), run=run)
    return None if row is None else letter_of(row)


async def read_attempts(connection: Connection, run: RunId) -> list[Attempt]:
    """Every attempt of a run that did not succeed."""
    rows = await many(
        connection, SQL["read_attempts"], shard=shard_of(run), run=run, most=ATTEMPTS_MAX
    )
    return [
        Attempt(
            number=row["number"],
            worker=row["worker_id"],
            fence=row["fence"],
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            next_retry_at=row["next_retry_at"],
            outcome=row["outcome"],
            error=from_json(row["error"]),
            http=from_json(row["http"]),
        )
        for row in rows
    ]


async def resolve(
    connection: Connection,
    shard: ShardId,
    runs: Sequence[RunId],
    *,
    state: LetterState,
    now: datetime,
    note: str | None = None,
) -> set[RunId]:
    """Close open letters of one shard; returns those that were open."""
    rows = await many(
        connection,
        SQL["resolve_dead_letters"],
        shard=shard,
        runs=list(runs),
        state=int(state),
        now=now,
        note=note,
    )
    return {row["run_id"] for row in rows}


async def annotate(
    connection: Connection, run: RunId, *, note: str | None, assignee: str | None
) -> bool:
    """Write note and assignee; False when there is no such letter."""
    row = await maybe(
        connection,
        SQL["annotate_dead_letter"],
        shard=shard_of(run),
        run=run,
        note=note,
        assignee=assignee,
    )
    return row is not None


def letter_of(row: asyncpg.Record) -> DeadLetter:
    """A row as a letter."""
    return DeadLetter(
        shard=row["shard"],
        run=row["run_id"],
        tenant=row["tenant_id"],
        job=row["job_id"],
        dead_at=row["dead_at"],
        resolved_at=row["resolved_at"],
        attempts=row["attempts"],
        state=LetterState(row["state"]),
        queue=row["queue"],
        handler=row["handler"],
        fingerprint=row["fingerprint"],
        reason=row["reason"],
        error=from_json(row["error"]),
        note=row["note"],
        assignee=row["assignee"],
    )
