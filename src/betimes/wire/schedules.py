"""Schedules looked at, what is due soon, and fires of the past, as asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, Instant, Members, Shown
from betimes.wire.jobs import Queue, Schedule

Limit = Annotated[int, msgspec.Meta(ge=1)]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class PreviewSchedule(Asked):
    """A schedule to look at before it is used."""

    schedule: Schedule
    timezone: str | None = None
    from_: Instant | None = msgspec.field(default=None, name="from")
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    until: Instant | None = None
    horizon: Duration | None = None


class ParseSchedule(Asked):
    """Words to be understood."""

    text: Line
    timezone: str | None = None
    locale: Annotated[
        str,
        msgspec.Meta(
            pattern="^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$",
            description="The language of the words: only English is read (`en`, `en-GB`).",
        ),
    ] = "en"


class Reading(Shown):
    """Another meaning that the words may have."""

    schedule: Members
    canonical: str
    description: str


class Parsed(Shown):
    """What the words mean: one reading has a confidence of 1, one of several a part of it.

    `alternatives` are the other readings; a schedule of plain words is taken only with one.
    """

    schedule: Members
    canonical: str
    description: str
    next_fires: list[Instant]
    confidence: float
    alternatives: list[Reading]


class NextFires(Asked):
    """How far to look."""

    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    from_: Instant | None = msgspec.field(default=None, name="from")
    to: Instant | None = None
    excluded: Annotated[
        bool,
        msgspec.Meta(description="List what a gap or a calendar takes away, too, up to `count`."),
    ] = False


class Upcoming(Asked):
    """What is due soon."""

    within: Duration = "PT5M"
    queue: Queue | None = None
    job: str | None = None
    include: list[Literal["fires", "runs", "retries"]] = []
    limit: Limit = 50
    cursor: str | None = None


class Soon(Shown):
    """One thing that is due soon."""

    kind: str
    run_id: str
    due_at: Instant
    scheduled_for: Instant | None
    job_id: str | None
    job_group: str | None
    job_name: str | None
    handler: str | None
    queue: str
    priority: int
    predicted_start: (
        Annotated[
            Instant,
            msgspec.Meta(
                description="When it probably starts, by how long runs of its queue have waited "
                "lately and how many wait now; null where nobody can say."
            ),
        ]
        | None
    )
    will_run: bool
    reason_code: str | None


class Backfill(Asked):
    """A span whose fires are to run after all."""

    from_: Instant = msgspec.field(name="from")
    to: Instant
    max_runs: Annotated[int, msgspec.Meta(ge=1, le=10000)] = 1000
    order: Literal["oldest", "newest"] = "oldest"
    only_missing: bool = True
    rate_per_second: Annotated[float, msgspec.Meta(gt=0, le=100000)] = 10.0
    overlap: Literal["inherit", "allow"] = "inherit"
    max_concurrency: (
        Annotated[
            int,
            msgspec.Meta(
                ge=1,
                le=1_000_000,
                description="How many of them may be under way at once; runs of a job that may not "
                "overlap go one after the other all the same.",
            ),
        ]
        | None
    ) = None
    dry_run: bool = False


class Backfilled(Shown):
    """The fires of the span, and the runs made for them."""

    count: int
    times: list[Instant]
    runs: list[str]
    dry_run: bool


class Preview(Shown):
    """What a schedule will do."""

    canonical: str
    dialect: str | None
    description: str
    occurrences: list[Members]
    excluded: Annotated[
        int,
        msgspec.Meta(description="Times among them that a gap or a calendar takes away; to 1000."),
    ]
    warnings: list[Members]
    per_day: float
    min_gap: float | None
    never: bool
