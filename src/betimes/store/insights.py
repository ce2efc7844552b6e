"""Counts of what became of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.ids import JobId, RunId, TenantId, floor_of, shard_of, to_ms
from betimes.store.ask import many, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("insights")
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The middle, and the ends that hurt, in seconds; None where nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None

    @classmethod
    def of(cls, values: Sequence[float] | None) -> "Spread":
        """Three percentiles as the database gives them."""
        found = list(values or (None, None, None))
        return cls(p50=found[0], p95=found[1], p99=found[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStats:
    """What became of the runs of a job."""

    counts: dict[str, int]
    run_seconds: float
    lag: Spread
    run_time: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What runs have used."""

    label: str | None
    runs: int
    succeeded: int
    dead: int
    run_seconds: float
    bytes: int
    lag: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What was due in one step of time."""

    at: datetime
    due: int
    succeeded: int
    dead: int
    run_seconds: float
    lag: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What came and went in a span, and who serves it."""

    arrived: int
    finished: int
    lag: Spread
    slots: int
    busy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A concurrency key and what waits for it."""

    gate: str
    running: int
    waiting: int


STATES = ("succeeded", "dead", "cancelled", "skipped", "expired", "missed", "open")


async def job_stats(
    connection: Connection, job: JobId, *, since: datetime, until: datetime
) -> JobStats:
    """The runs of a job that were due in a span."""
    row = await one(
        connection, SQL["job_stats"], shard=shard_of(job), job=job, **_span(since, until)
    )
    return JobStats(
        counts={state: row[state] for state in STATES},
        run_seconds=row["run_seconds"],
        lag=Spread.of(row["lag"]),
        run_time=Spread.of(row["run_time"]),
    )


async def usage_rows(
    connection: Connection,
    tenant: TenantId,
    *,
    by: str,
    since: datetime,
    until: datetime,
    most: int,
) -> list[UsageRow]:
    """What a tenant has used in a span."""
    rows = await many(
        connection, SQL["usage_rows"], tenant=tenant, by=by, most=most, **_span(since, until)
    )
    return [UsageRow(**{**dict(row), "lag": Spread.of(row["lag"])}) for row in rows]


async def queue_flow(
    connection: Connection,
    tenant: TenantId,
    queue: str,
    *,
    since: datetime,
    oldest: datetime,
    alive: datetime,
    until: datetime,
) -> Flow:
    """What came into a queue since an instant and was done; looked for from the oldest on."""
    row = await one(
        connection,
        SQL["queue_flow"],
        tenant=tenant,
        queue=queue,
        since=since,
        alive=alive,
        **_span(oldest, until),
    )
    return Flow(**{**dict(row), "lag": Spread.of(row["lag"])})


async def queue_series(
    connection: Connection,
    tenant: TenantId,
    queue: str,
    *,
    since: datetime,
    until: datetime,
    step: timedelta,
    most: int,
) -> list[Point]:
    """What was due in a queue, by steps of time."""
    rows = await many(
        connection,
        SQL["queue_series"],
        tenant=tenant,
        queue=queue,
        begin=since,
        step=step,
        most=most,
        **_span(since, until),
    )
    return [Point(**dict(row)) for row in rows]


async def queue_keys(
    connection: Connection, tenant: TenantId, queue: str, *, most: int
) -> list[KeyRow]:
    """The busiest concurrency keys of a queue."""
    rows = await many(connection, SQL["queue_keys"], tenant=tenant, queue=queue, most=most)
    return [KeyRow(**dict(row)) for row in rows]


async def queue_waiting(
    connection: Connection, tenant: TenantId, queue: str, *, now: datetime, most: int
) -> list[tuple[RunId, str]]:
    """Every run that waits in a queue, and how."""
    rows = await many(
        connection,
        SQL["queue_waiting"],
        tenant=tenant,
        queue=queue,
        now=now,
        low=floor_of(to_ms(now - DAY)),
        most=most,
    )
    return [(row["id"], row["place"]) for row in rows]


def _span(since: datetime, until: datetime) -> dict[str, Any]:
    """Ids carry the time their runs were first due."""
    return {"low": floor_of(to_ms(since)), "high": floor_of(to_ms(until))}
