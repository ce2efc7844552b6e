"""Reading what became of runs: a job's statistics, a queue's series, a tenant's usage."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from betimes.domain.errors import Invalid
from betimes.domain.ids import JobId, RunId, TenantId
from betimes.ops.checks import check_queue
from betimes.ops.desk import Desk
from betimes.store import insights as rows
from betimes.store.insights import Flow, JobStats, KeyRow, Point, Spread, UsageRow
from betimes.store.pool import Connection

__all__ = [
    "FLOW_SPAN",
    "Flow",
    "JobStats",
    "KeyRow",
    "Point",
    "Spread",
    "UsageRow",
    "read_flow",
    "read_keys",
    "read_series",
    "read_stats",
    "read_usage",
    "read_waiting",
]

SPAN_MAX = timedelta(days=31)
POINTS_MAX = 1_000
ROWS_MAX = 1_000
STEP_MIN = timedelta(seconds=1)
FLOW_SPAN = timedelta(minutes=5)
BACKLOG_SPAN = timedelta(hours=1)
"""What is done now may have been due so long ago, and is still counted."""
ALIVE = timedelta(minutes=1)


async def read_flow(
    desk: Desk, tenant: TenantId, queue: str, *, now: datetime, oldest: datetime | None
) -> Flow:
    """What came into a queue and was done within the last minutes."""
    since = now - FLOW_SPAN
    first = max(min(oldest or since, since), now - BACKLOG_SPAN)

    async def work(connection: Connection) -> Flow:
        return await rows.queue_flow(
            connection,
            tenant,
            queue,
            since=since,
            oldest=first,
            alive=now - ALIVE,
            until=now,
        )

    return await desk.transact(work, tenant=tenant)


async def read_stats(desk: Desk, tenant: TenantId, job: JobId, *, window: timedelta) -> JobStats:
    """What became of the runs of a job within a window that ends now."""
    if not timedelta(0) < window <= SPAN_MAX:
        raise Invalid(f"expected a window of at most {SPAN_MAX.days} days", pointer="/window")

    async def work(connection: Connection) -> JobStats:
        now = await desk.now(connection)
        return await rows.job_stats(connection, job, since=now - window, until=now)

    return await desk.transact(work, tenant=tenant)


async def read_usage(
    desk: Desk, tenant: TenantId, *, by: str, since: datetime, until: datetime
) -> list[UsageRow]:
    """What a tenant has used, by day, queue or job."""
    _check_span(since, until)

    async def work(connection: Connection) -> list[UsageRow]:
        return await rows.usage_rows(
            connection, tenant, by=by, since=since, until=until, most=ROWS_MAX
        )

    return await desk.transact(work, tenant=tenant)


async def read_series(
    desk: Desk,
    tenant: TenantId,
    queue: str,
    *,
    since: datetime,
    until: datetime,
    step: timedelta,
) -> list[Point]:
    """What was due in a queue, by steps of time; steps without anything are left out."""
    check_queue(queue)
    _check_span(since, until)
    if step < STEP_MIN or (until - since) / step > POINTS_MAX:
        raise Invalid(
            f"expected a step of at least a second that makes at most {POINTS_MAX} points",
            pointer="/step",
        )

    async def work(connection: Connection) -> list[Point]:
        return await rows.queue_series(
            connection, tenant, queue, since=since, until=until, step=step, most=POINTS_MAX + 1
        )

    return await desk.transact(work, tenant=tenant)


async def read_keys(desk: Desk, tenant: TenantId, queue: str, *, most: int) -> list[KeyRow]:
    """The busiest concurrency keys of a queue."""
    check_queue(queue)

    async def work(connection: Connection) -> list[KeyRow]:
        return await rows.queue_keys(connection, tenant, queue, most=most)

    return await desk.transact(work, tenant=tenant)


async def read_waiting(
    desk: Desk, tenant: TenantId, queue: str, *, places: Sequence[str], most: int
) -> list[RunId]:
    """The runs that wait in a queue, in the order of their dueness."""
    check_queue(queue)

    async def work(connection: Connection) -> list[tuple[RunId, str]]:
        now = await desk.now(connection)
        return await rows.queue_waiting(connection, tenant, queue, now=now, most=most)

    found = await desk.transact(work, tenant=tenant)
    return sorted(run for run, place in found if not places or place in places)


def _check_span(since: datetime, until: datetime) -> None:
    if until <= since:
        raise Invalid("expected an end later than the beginning", pointer="/to")
    if until - since > SPAN_MAX:
        raise Invalid(f"expected a span of at most {SPAN_MAX.days} days", pointer="/from")
