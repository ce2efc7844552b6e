"""The load ahead, as it is asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, DurationText, Instant, Members, Shown
from betimes.wire.jobs import Handler, Queue, Schedule

GroupBy = Literal["all", "queue", "handler", "tenant"]


class ForecastQuery(Asked):
    """Which span, in which steps; without a beginning from now, without an end for a day."""

    from_: Instant | None = msgspec.field(default=None, name="from")
    to: Instant | None = None
    step: Duration = "PT1M"
    group_by: GroupBy = "all"


class NewLoad(Asked):
    """A job that might be created, `count` times."""

    schedule: Schedule
    queue: Queue = "default"
    handler: Handler | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1


class ChangedLoad(Asked):
    """A job that might get another schedule."""

    job: str
    schedule: Schedule


class WhatIf(Asked):
    """Changes to try in thought."""

    add: Annotated[list[NewLoad], msgspec.Meta(max_length=1000)] = []
    remove: Annotated[list[str], msgspec.Meta(max_length=1000)] = []
    change: Annotated[list[ChangedLoad], msgspec.Meta(max_length=1000)] = []
    slots: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    from_: Instant | None = msgspec.field(default=None, name="from")
    to: Instant | None = None
    step: Duration = "PT1M"
    group_by: Literal["all", "queue", "handler"] = "all"


class Bucket(Shown):
    """One step of one group; steps without a fire are left out."""

    at: Instant
    group: str
    fires: float
    expected_run_seconds: float | None
    expected_slots: float | None
    capacity_slots: int | None
    utilisation: float | None


class TopJobs(Shown):
    """Jobs with one schedule that fire in a hot step."""

    job_id: str | None
    jobs: float
    fires: float
    schedule: Members


class HotSpot(Shown):
    """A step far above the others."""

    at: Instant
    fires: float
    top_jobs: list[TopJobs]


class Advice(Shown):
    """What would flatten a hot step."""

    job_id: str | None
    jobs: float
    suggestion: str
    jitter: DurationText
    at: Instant
    fires_before: float
    fires_after: float


class Forecast(Shown):
    """Fires ahead. Not exact where jobs were sampled or fires were too many to count each."""

    from_: Instant = msgspec.field(name="from")
    to: Instant
    step: DurationText
    group_by: str
    exact: bool
    sampled: float | None
    fires: float
    buckets: list[Bucket]
    hot_spots: list[HotSpot]
    advice: list[Advice]


class Difference(Shown):
    """What a change would do."""

    fires: float
    peak_before: float
    peak_after: float


class Compared(Shown):
    """The load as it is, as it would be, and the difference."""

    before: Forecast
    after: Forecast
    diff: Difference
