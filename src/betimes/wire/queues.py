"""Queues and blobs as they are asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, DurationText, Instant, Members, Shown
from betimes.wire.insights import Percentiles
from betimes.wire.jobs import Handler, Reason, Retry
from betimes.wire.jobs import Queue as QueueName


class RateLimit(Asked):
    """So many starts in so long a time, evenly; one second's worth at once."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=2147483647)]
    per: Duration = "PT1S"


class QueueSettings(Asked):
    """How a queue is served, and what it is for; all of it may change while it is served."""

    max_concurrency: (
        Annotated[
            int,
            msgspec.Meta(ge=0, le=2147483647, description="With 0 nothing of the queue starts."),
        ]
        | None
    ) = None
    per_key_concurrency: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    rate: RateLimit | None = None
    per_key_rate: RateLimit | None = None
    weight: Annotated[float, msgspec.Meta(ge=0.001, le=1000)] = 1.0
    fairness: Literal["tenant", "key", "none"] = "tenant"
    default_retry: Retry | None = None
    retention: Duration | None = None
    dead_letter: Annotated[
        bool,
        msgspec.Meta(
            description="Whether runs that are out of attempts are laid aside as dead letters; "
            "without, they only end as dead."
        ),
    ] = True
    paused: (
        Annotated[
            bool,
            msgspec.Meta(description="Pause or resume it as well; left out, that stays as it is."),
        ]
        | None
    ) = None
    description: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    labels: Annotated[dict[str, str], msgspec.Meta(max_length=32)] = {}


class KeyRate(Shown):
    """The rate of one rate limit key."""

    key: str
    limit: int
    per: DurationText


class PauseQueue(Asked):
    """Why and for how long."""

    reason: Reason = ""
    until: Instant | None = None


class DrainQueue(Asked):
    """Why, and when it accepts new work again by itself."""

    reason: Reason = ""
    until: Instant | None = None


class Queue(Shown):
    """A queue. `settings` can be put back as they are."""

    name: str
    paused: bool
    paused_at: Instant | None
    paused_until: Instant | None
    reason: str | None
    draining: bool
    draining_until: Instant | None
    draining_reason: str | None
    settings: Members
    updated_at: Instant | None


class QueueStats(Shown):
    """What is in a queue; rates are of the last five minutes, in runs per second.

    `drain_seconds` is how long what waits would take at the pace at which it shrinks, null when it
    does not. Slots are those of the tenant's own workers that were heard of within a minute.
    """

    waiting: int
    running: int
    scheduled: int
    oldest_age_seconds: float | None
    paused: bool
    draining: bool
    arrival_rate: float
    service_rate: float
    drain_seconds: float | None
    slots: int
    busy_slots: int
    lag_ms: Percentiles


class NewBlob(Asked):
    """How long to keep it: a class (a day, a week, 90 days, ten years), or a time of its own."""

    ttl: Duration | None = None
    retention: Literal["brief", "standard", "long", "archive"] = "standard"


class Blob(Shown):
    """Something large, by reference."""

    id: str
    size: int
    media_type: str
    retention: str
    created_at: Instant
    expires_at: Instant | None


class NewGrant(Asked):
    """How long a link can be used."""

    expires_in: Duration = "PT15M"


class Grant(Shown):
    """A link that reads one blob without a key."""

    grant: str
    path: str
    expires_at: Instant


class Found(Shown):
    """Something a search has found."""

    kind: str
    id: str
    name: str | None
    state: str | None


class Search(Asked):
    """What to look for: an id, part of a name or of an error, or a tag as `name:value`."""

    q: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    limit: Annotated[int, msgspec.Meta(ge=1)] = 20


class FoundList(Shown):
    """What was found, best first."""

    items: list[Found]


class CalendarText(Asked):
    """A calendar that jobs of an export name."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    dates: Annotated[list[str], msgspec.Meta(max_length=2000)] = []
    weekdays: Annotated[list[str], msgspec.Meta(max_length=7)] = []
    description: Annotated[str, msgspec.Meta(max_length=2000)] = ""


class LeftOut(Shown):
    """A job that means nothing, or something else, in the format asked for."""

    name: str
    reason: str


class Exported(Shown):
    """Definitions of jobs, and the calendars they name, in our own format.

    As a crontab they are in `text`; as CronJobs in `manifests`, which `kubectl apply` takes. What
    would not fire there as it does here is `left_out`, with the reason.
    """

    format: str
    exported_at: Instant
    calendars: list[CalendarText]
    jobs: list[Members]
    text: str | msgspec.UnsetType = msgspec.UNSET
    manifests: Members | msgspec.UnsetType = msgspec.UNSET
    left_out: list[LeftOut] | msgspec.UnsetType = msgspec.UNSET
    next_cursor: str | None = None


class Export(Asked):
    """Which jobs, and how they are written; other formats than ours come in smaller pages."""

    format: Literal["betimes", "crontab", "kubernetes"] = "betimes"
    group: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    tag: list[str] = []
    cursor: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] = 1000


class Import(Asked):
    """Definitions of jobs in our own format."""

    format: str
    jobs: Annotated[list[Members], msgspec.Meta(max_length=1000)]
    calendars: Annotated[list[CalendarText], msgspec.Meta(max_length=1000)] = []
    exported_at: Instant | None = None
    next_cursor: str | None = None


class ImportOptions(Asked):
    """Whether only to look."""

    dry_run: bool = False


class ImportCrontab(Asked):
    """What a crontab does not say itself, and whether only to look."""

    dry_run: bool = False
    timezone: str | None = None
    system: Annotated[bool, msgspec.Meta(description="Whether it has a column of users.")] = False
    user: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    flavour: Literal["debian", "cronie"] | None = None
    handler: Handler = "shell"
    queue: QueueName | None = None
    prefix: Annotated[str, msgspec.Meta(pattern="^[a-z0-9-]{1,40}$")] = "cron"


class ImportManifests(Asked):
    """What manifests do not say themselves, and whether only to look."""

    dry_run: bool = False
    timezone: str | None = None
    handler: Handler = "container"
    queue: QueueName | None = None


class Manifests(Asked):
    """CronJobs as `kubectl get cronjobs -o json` writes them."""

    items: Annotated[list[Members], msgspec.Meta(max_length=1000)]
    kind: str = "List"
    api_version: str = msgspec.field(default="v1", name="apiVersion")
    metadata: Members = {}


class Imported(Shown):
    """What became of an import: what was not taken over is told with its place and reason."""

    created: list[str]
    skipped: list[Members]
    dry_run: bool
    calendars: list[str]
    warnings: list[Members] = []
