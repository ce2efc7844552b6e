"""What became of runs: statistics of a job, usage of a tenant, series and keys of a queue."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.api.call import Call, Reply
from betimes.api.finding import find_job
from betimes.api.route import Load, Route
from betimes.api.shaping import maybe_instant, read_span
from betimes.domain.ids import JobId, to_text
from betimes.domain.scopes import Scope
from betimes.ops import insights as ops
from betimes.wire import insights as wire
from betimes.wire.base import shown_duration, shown_instant

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def shown_percentiles(spread: ops.Spread) -> wire.Percentiles:
    """Percentiles in milliseconds."""
    return wire.Percentiles(p50=_ms(spread.p50), p95=_ms(spread.p95), p99=_ms(spread.p99))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 3)


async def stats(call: Call[wire.Window, None]) -> Reply:
    """What became of the runs of a job."""
    job = await find_job(call)
    window = read_span(call.query.window, pointer="/window")
    return Reply(value=await stats_of(call, job.id, window))


async def stats_of(call: Call[Any, Any], job: JobId, window: timedelta) -> wire.JobStats:
    """What became of the runs of a job within a window that ends now."""
    found = await ops.read_stats(call.service.desk, call.tenant, job, window=window)
    good, bad = found.counts["succeeded"], found.counts["dead"]
    return wire.JobStats(
        window=shown_duration(window),
        counts=found.counts,
        success_rate=good / (good + bad) if good + bad else None,
        run_seconds=found.run_seconds,
        lag_ms=shown_percentiles(found.lag),
        run_ms=shown_percentiles(found.run_time),
    )


def _span(call: Call[Any, None], default: timedelta) -> tuple[datetime, datetime]:
    until = maybe_instant(call.query.to, pointer="/to") or call.service.now()
    since = maybe_instant(call.query.from_, pointer="/from") or until - default
    return since, until


async def usage(call: Call[wire.AskUsage, None]) -> Reply:
    """What the tenant has used."""
    since, until = _span(call, DAY)
    by = call.query.group_by
    found = await ops.read_usage(call.service.desk, call.tenant, by=by, since=since, until=until)
    items = [
        wire.UsageRow(
            group=_label(row.label, by),
            runs=row.runs,
            succeeded=row.succeeded,
            dead=row.dead,
            run_seconds=row.run_seconds,
            bytes=str(row.bytes),
            lag_ms=shown_percentiles(row.lag),
        )
        for row in found
    ]
    return Reply(
        value=wire.Usage(
            from_=shown_instant(since), to=shown_instant(until), group_by=by, items=items
        )
    )


def _label(label: str | None, by: str) -> str | None:
    return to_text("job", UUID(label)) if by == "job" and label is not None else label


async def series(call: Call[wire.AskSeries, None]) -> Reply:
    """Numbers of a queue over time."""
    since, until = _span(call, HOUR)
    step = read_span(call.query.step, pointer="/step")
    found = await ops.read_series(
        call.service.desk, call.tenant, call.path["queue"], since=since, until=until, step=step
    )
    metric = call.query.metric
    points = [
        wire.SeriesPoint(at=shown_instant(point.at), value=_value(point, metric)) for point in found
    ]
    return Reply(value=wire.Series(metric=metric, step=shown_duration(step), points=points))


def _value(point: ops.Point, metric: str) -> float | None:
    if metric == "lag_p95_ms":
        return _ms(point.lag)
    value: float = getattr(point, metric)
    return value


async def keys(call: Call[wire.AskKeys, None]) -> Reply:
    """The busiest concurrency keys of a queue."""
    found = await ops.read_keys(
        call.service.desk, call.tenant, call.path["queue"], most=call.query.limit
    )
    items = [wire.QueueKey(key=row.gate, running=row.running, waiting=row.waiting) for row in found]
    return Reply(value=wire.QueueKeys(items=items))


ROUTES = (
    Route(
        method="GET",
        path="/v1/jobs/{job}/stats",
        name="jobs.stats",
        says="What became of the runs of a job, and how long they waited and took.",
        handler=stats,
        scope=Scope.JOBS_READ,
        query=wire.Window,
        load=Load.AGGREGATE,
        answers={200: wire.JobStats},
    ),
    Route(
        method="GET",
        path="/v1/usage",
        name="usage.read",
        says="What the tenant has used in a span, by day, queue or job.",
        handler=usage,
        scope=Scope.USAGE_READ,
        query=wire.AskUsage,
        load=Load.AGGREGATE,
        answers={200: wire.Usage},
    ),
    Route(
        method="GET",
        path="/v1/queues/{queue}/series",
        name="queues.series",
        says="Numbers of a queue over time.",
        handler=series,
        scope=Scope.QUEUES_READ,
        query=wire.AskSeries,
        load=Load.AGGREGATE,
        answers={200: wire.Series},
    ),
    Route(
        method="GET",
        path="/v1/queues/{queue}/keys",
        name="queues.keys",
        says="The busiest concurrency keys of a queue.",
        handler=keys,
        scope=Scope.QUEUES_READ,
        query=wire.AskKeys,
        load=Load.AGGREGATE,
        answers={200: wire.QueueKeys},
    ),
)
