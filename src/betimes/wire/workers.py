"""The worker protocol: what workers say and hear."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from betimes.wire.base import Asked, Duration, DurationText, Instant, Json, Members, Shown, Text
from betimes.wire.jobs import Handler, Queue, Reason

BlobId = Annotated[str, msgspec.Meta(pattern="^blob_[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$")]
LeaseId = Annotated[str, msgspec.Meta(min_length=5, max_length=300)]
MetricName = Annotated[str, msgspec.Meta(pattern="^[A-Za-z_][A-Za-z0-9_.:-]{0,99}$")]
Metrics = Annotated[
    dict[MetricName, float],
    msgspec.Meta(max_length=32, description="Numbers by name that belong to the run."),
]
Queues = Annotated[list[Queue], msgspec.Meta(min_length=1, max_length=100)]


class DeclaredHandler(Asked):
    """A handler that a worker has; `schema` says which payloads it takes."""

    name: Handler
    schema: (
        Annotated[
            Members, msgspec.Meta(description="JSON Schema of the payload, standing for itself.")
        ]
        | None
    ) = None


class NewWorker(Asked):
    """A worker that registers itself."""

    name: Text
    queues: Queues = msgspec.field(default_factory=lambda: ["default"])
    handlers: Annotated[list[DeclaredHandler | Handler], msgspec.Meta(max_length=1000)] = []
    slots: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    version: Annotated[str, msgspec.Meta(max_length=100)] = ""
    host: Annotated[str, msgspec.Meta(max_length=255)] = ""
    pid: Annotated[int, msgspec.Meta(ge=0, le=4_294_967_295)] | None = None
    sdk: Members = {}
    labels: Annotated[dict[str, str], msgspec.Meta(max_length=32)] = {}


WAIT_SECONDS_MAX = 30
LEASES_MAX = 100
REPORTS_MAX = 500
LOG_LINES_MAX = 1_000
PARCEL_RUNS_MAX = 1_000


class WorkerConfig(Shown):
    """What the service takes from a worker; it is told, so that nobody has to write it down."""

    wait_max: DurationText
    """How long a lease may wait for work."""
    leases_max: int
    """Runs in one lease call."""
    reports_max: int
    """Reports in one batch."""
    extend_max: DurationText
    """How much longer a lease may be held at once."""
    result_bytes_max: int
    checkpoint_bytes_max: int
    log_lines_max: int
    """Lines in one call."""
    parcel_runs_max: int
    """Runs in one call that leases or reports parcels."""


class Registered(Shown):
    """What a worker must know to begin."""

    worker_id: str
    heartbeat_interval: str
    lease_duration: str
    server_time: Instant
    config: WorkerConfig | None = None
    """None where a worker speaks with the database itself."""


class Worker(Shown):
    """A worker."""

    id: str
    name: str
    version: str
    state: str
    queues: list[str]
    handlers: list[str]
    slots: int
    busy: int
    started_at: Instant
    heartbeat_at: Instant
    labels: dict[str, Any]
    details: Members


class ListWorkers(Asked):
    """Where a page begins."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None


class Progress(Asked):
    """How far a run has come."""

    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    message: Annotated[str, msgspec.Meta(max_length=1000)] | None = None


class RunningLease(Asked):
    """A lease the worker still works on; `by` prolongs it by more or less than usual."""

    lease_id: LeaseId
    by: Duration | None = None
    progress: Progress | None = None


class RunningParcel(Asked):
    """A parcel the worker still works on; `runs` are those under way that could be stopped."""

    lease_id: LeaseId
    by: Duration | None = None
    runs: Annotated[list[UUID], msgspec.Meta(max_length=1000)] = []


class Heartbeat(Asked):
    """A sign of life that renews every lease it names."""

    running: Annotated[list[RunningLease], msgspec.Meta(max_length=1000)] = []
    parcels: Annotated[list[RunningParcel], msgspec.Meta(max_length=1000)] = []
    busy: Annotated[int, msgspec.Meta(ge=0, le=100_000)] | None = None
    free_slots: Annotated[int, msgspec.Meta(ge=0, le=100_000)] | None = None
    state: Literal["ok", "draining"] = "ok"
    rss: (
        Annotated[int, msgspec.Meta(ge=0, le=1 << 62, description="Bytes of memory in use.")] | None
    ) = None
    cpu: (
        Annotated[
            float,
            msgspec.Meta(ge=0, le=100_000, description="Processors in use: 1.5 is one and a half."),
        ]
        | None
    ) = None


class Extended(Shown):
    """A lease that goes on."""

    lease_id: str
    expires_at: Instant


class Command(Shown, omit_defaults=True):
    """Something a worker is to do: `cancel` a lease or a run of a parcel, or `drain`."""

    type: str
    lease_id: str | None = None
    run: UUID | None = None


class HeartbeatAnswer(Shown):
    """What a worker hears."""

    commands: list[Command]
    extended: list[Extended]
    lost: list[str]
    server_time: Instant


class LeaseRuns(Asked):
    """How much work a worker wants, and how long it waits for it."""

    max: Annotated[int, msgspec.Meta(ge=1, le=LEASES_MAX)] = 1
    wait: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)] = 20.0
    queues: Queues | None = None
    handlers: Annotated[list[Handler], msgspec.Meta(max_length=1000)] = []


class LeasedRun(Shown, omit_defaults=True):
    """A run that the worker holds now."""

    run_id: str
    lease_id: str
    fence: int
    lease_expires_at: Instant
    attempt: int
    max_attempts: int
    due_at: Instant
    queue: str
    priority: int
    idempotency_key: str
    traceparent: str
    tracestate: str | None = None
    handler: str | None = None
    job_id: str | None = None
    scheduled_for: Instant | None = None
    payload: Json = None
    payload_ref: str | None = None
    payload_path: str | None = None
    timeout: str | None = None
    checkpoint: Json = None
    tags: dict[str, str] = {}


class LeasedRuns(Shown):
    """What the worker got; an empty list means that nothing came."""

    runs: list[LeasedRun]


class Complete(Asked):
    """The run ended well; a large result may be kept as a blob and told by its id."""

    result: Json = None
    result_ref: BlobId | None = None
    metrics: Metrics = {}


class ErrorTold(Asked):
    """What went wrong."""

    type: Annotated[str, msgspec.Meta(max_length=200)] = "Error"
    message: Annotated[str, msgspec.Meta(max_length=20_000)] = ""
    stack: Annotated[str, msgspec.Meta(max_length=100_000)] = ""


class RetryAfter(Asked):
    """A wish for the pause."""

    after: Duration


class Fail(Asked):
    """The attempt failed."""

    error: ErrorTold = msgspec.field(default_factory=ErrorTold)
    retry: Literal["auto", "never"] | RetryAfter = "auto"
    result: Annotated[
        Json, msgspec.Meta(description="What it came to all the same, kept as its result.")
    ] = None


class Release(Asked):
    """Given back unfinished, at once or for after a while; no attempt is counted."""

    reason: Reason = ""
    after: Duration | None = None


class Snooze(Asked):
    """Called again later; no attempt is counted."""

    until: Instant | None = None
    for_: Duration | None = msgspec.field(default=None, name="for")


class CancelLease(Asked):
    """The worker ends the run for good, neither well nor badly."""

    reason: Reason = ""


class Extend(Asked):
    """For how long."""

    by: Duration = "PT30S"


class ExtendedTo(Shown):
    """Until when a lease is good."""

    expires_at: Instant


class Checkpoint(Asked):
    """Something for the next attempt to begin from, at most 64 KiB."""

    data: Json


class LogLine(Asked):
    """One line."""

    message: Annotated[str, msgspec.Meta(max_length=10_000)]
    at: Instant | None = None
    level: Literal["debug", "info", "warning", "error"] = "info"
    fields: Members = {}


class LogLines(Asked):
    """Lines for the log of a run."""

    lines: Annotated[list[LogLine], msgspec.Meta(min_length=1, max_length=LOG_LINES_MAX)]


class Accepted(Shown):
    """Noted."""

    accepted: int = 1


class Settled(Shown, omit_defaults=True):
    """What became of the run."""

    run_id: str
    next_state: str
    next_retry_at: Instant | None = None


class End(Asked):
    """How an attempt ended."""

    action: Literal["complete", "fail", "time_out", "release", "snooze", "cancel"]
    result: Json = None
    result_ref: BlobId | None = None
    metrics: Metrics = {}
    error: ErrorTold | None = None
    retry: Literal["auto", "never"] | RetryAfter = "auto"
    until: Instant | None = None
    for_: Duration | None = msgspec.field(default=None, name="for")
    after: Duration | None = None
    reason: Reason = ""


class ReportOne(End, kw_only=True):
    """One of many reports."""

    lease_id: LeaseId


class Reports(Asked):
    """Many reports at once."""

    items: Annotated[list[ReportOne], msgspec.Meta(min_length=1, max_length=REPORTS_MAX)]


class Reported(Shown, omit_defaults=True):
    """What became of one report."""

    status: int
    lease_id: str
    next_state: str | None = None
    next_retry_at: Instant | None = None
    code: str | None = None


class ReportsDone(Shown):
    """What became of many reports, in the order given."""

    items: list[Reported]


class ReadLog(Asked):
    """Which lines."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)] = 0
    attempt: Annotated[int, msgspec.Meta(ge=1, le=32_767)] | None = None
    level: list[Literal["debug", "info", "warning", "error"]] = []
    tail: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] = 200


class FollowLog(Asked):
    """From where on."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)] = 0
    attempt: Annotated[int, msgspec.Meta(ge=1, le=32_767)] | None = None


class LogShown(Shown):
    """A line of a log."""

    seq: int
    attempt: int
    at: Instant
    level: str
    message: str
    fields: Members


class Log(Shown):
    """Lines in order; go on with `next_after`."""

    items: list[LogShown]
    next_after: int
