"""Statistics, usage and series as they are asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, Instant, Shown


class Window(Asked):
    """How far back."""

    window: Duration = "P1D"


class Percentiles(Shown):
    """The middle, and the ends that hurt; null where nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None


class JobStats(Shown):
    """What became of the runs of a job; times in milliseconds."""

    window: str
    counts: dict[str, int]
    success_rate: float | None
    run_seconds: float
    lag_ms: Percentiles
    run_ms: Percentiles


class AskUsage(Asked):
    """Which span, and by what; the last day unless given."""

    from_: Instant | None = msgspec.field(default=None, name="from")
    to: Instant | None = None
    group_by: Literal["day", "queue", "job"] = "day"


class UsageRow(Shown):
    """What runs have used."""

    group: str | None
    runs: int
    succeeded: int
    dead: int
    run_seconds: float
    bytes: str
    lag_ms: Percentiles


class Usage(Shown):
    """What the tenant has used in a span."""

    from_: Instant = msgspec.field(name="from")
    to: Instant
    group_by: str
    items: list[UsageRow]


class AskSeries(Asked):
    """Which numbers of a queue, and when; the last hour unless given."""

    metric: Literal["due", "succeeded", "dead", "run_seconds", "lag_p95_ms"] = "due"
    from_: Instant | None = msgspec.field(default=None, name="from")
    to: Instant | None = None
    step: Duration = "PT1M"


class SeriesPoint(Shown):
    """One step of time."""

    at: Instant
    value: float | None


class Series(Shown):
    """Points in order; steps in which nothing was due are left out."""

    metric: str
    step: str
    points: list[SeriesPoint]


class AskKeys(Asked):
    """How many."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


class QueueKey(Shown):
    """A concurrency key and what waits for it."""

    key: str
    running: int
    waiting: int


class QueueKeys(Shown):
    """The busiest concurrency keys."""

    items: list[QueueKey]
