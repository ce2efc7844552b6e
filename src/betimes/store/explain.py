"""Why something did or did not run, as far as it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from betimes.domain.ids import JobId, TenantId, shard_of
from betimes.store.ask import many, maybe, one
from betimes.store.jobs import from_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("explain")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """A fire, or a range of them, that did not become a run."""

    fire_at: datetime
    until_at: datetime | None
    fires: int
    decided_at: datetime
    code: str
    detail: Mapping[str, Any]


async def read_decision(connection: Connection, job: JobId, at: datetime) -> DecisionRow | None:
    """The decision about one fire."""
    row = await maybe(connection, SQL["read_decision"], shard=shard_of(job), job=job, at=at)
    return None if row is None else _decision(row)


async def list_decisions(connection: Connection, job: JobId, *, most: int) -> list[DecisionRow]:
    """The latest decisions about a job."""
    rows = await many(connection, SQL["list_decisions"], shard=shard_of(job), job=job, most=most)
    return [_decision(row) for row in rows]


async def count_workers(
    connection: Connection, tenant: TenantId, queue: str, *, since: datetime
) -> int:
    """How many workers serve a queue."""
    row = await one(connection, SQL["count_workers"], tenant=tenant, queue=queue, since=since)
    return int(row["remote"] + row["own"])


def _decision(row: asyncpg.Record) -> DecisionRow:
    return DecisionRow(**{**dict(row), "detail": from_json(row["detail"])})
