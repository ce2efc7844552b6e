"""Runs as they are asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, Instant, Json, Members, Search, Shown
from betimes.wire.callbacks import Callbacks
from betimes.wire.jobs import (
    BatchItem,
    Concurrency,
    Dedupe,
    DedupeKey,
    FairnessKey,
    Handler,
    Priority,
    Queue,
    RateLimitKey,
    Reason,
    Reference,
    Retry,
    Tags,
    Target,
)

State = Literal[
    "scheduled",
    "queued",
    "running",
    "retry_wait",
    "succeeded",
    "dead",
    "cancelled",
    "skipped",
    "expired",
    "missed",
]
TriggerName = Literal[
    "schedule", "manual", "api", "backfill", "retry", "redrive", "workflow", "compat"
]


class RunMade(Shown):
    """A run that was made."""

    id: str
    job_id: str | None = None
    state: str = "queued"
    deduplicated: bool = False
    replaced: str | None = None


class NewRun(Asked):
    """Work without a job."""

    handler: Handler | None = None
    target: Target | None = None
    payload: Json = None
    payload_ref: Reference | None = None
    queue: Queue = "default"
    priority: Priority = 5
    concurrency: Concurrency | None = None
    fairness_key: FairnessKey | None = None
    rate_limit_key: RateLimitKey | None = None
    delay: Duration | None = None
    at: Instant | None = None
    retry: Retry | None = None
    timeout: Duration | None = None
    start_deadline: Duration | None = None
    tags: Tags = {}
    notify: Callbacks = []
    dedupe: Dedupe | None = None
    dedupe_key: DedupeKey | None = None


class NewRuns(Asked):
    """Much work at once."""

    items: Annotated[list[NewRun], msgspec.Meta(min_length=1, max_length=1000)]
    mode: Literal["atomic", "independent"] = "atomic"


class RunsTold(Shown):
    """What became of each, in the order given, when each stood for itself."""

    items: list[BatchItem]


class RunsMade(Shown):
    """The runs that were made, in the order given."""

    items: list[RunMade]


class Lease(Shown):
    """Who holds a run."""

    worker_id: str
    fence: int
    expires_at: Instant | None


class Failure(Shown, omit_defaults=True):
    """What went wrong."""

    type: str | None = None
    message: str | None = None
    stack: str | None = None


class StateReason(Shown):
    """Why a run is what it is; `detail` are the words of whoever cancelled it."""

    code: str
    detail: str | None = None


class Trace(Shown):
    """The trace of a run, and the span of whoever asked for it."""

    trace_id: str
    link: str | None = None
    state: str | None = None


class Run(Shown, omit_defaults=True):
    """A run."""

    id: str
    state: str
    trigger: str
    queue: str
    priority: int
    attempt: Annotated[
        int, msgspec.Meta(description="The attempt under way, else the last one; 0 before any.")
    ]
    due_at: Instant
    job_id: str | None = None
    workflow_run_id: str | None = None
    node: str | None = None
    revision: int | None = None
    handler: str | None = None
    scheduled_for: Instant | None = None
    created_at: Instant | None = None
    started_at: (
        Annotated[
            Instant, msgspec.Meta(description="Of one under way: since when its worker has it.")
        ]
        | None
    ) = None
    finished_at: Instant | None = None
    next_retry_at: Instant | None = None
    cancel_requested_at: Instant | None = None
    state_reason: StateReason | None = None
    lease: Lease | None = None
    worker_id: str | None = None
    error: Failure | None = None
    trace: Trace | None = None
    lag_ms: float | None = None
    run_ms: float | None = None
    tags: dict[str, str] = {}
    payload: Json = msgspec.UNSET
    payload_ref: str | None = None
    result: Json = msgspec.UNSET
    result_ref: str | None = None
    progress: Members | None = None
    metrics: dict[str, float] = {}
    dedupe_key: str | None = None
    deduplicated: bool = False
    attempts: list["Attempt"] | None = None


class Attempt(Shown):
    """One try of a run."""

    number: int
    outcome: str
    fence: int
    worker_id: str | None
    started_at: Instant | None
    finished_at: Instant | None
    next_retry_at: Instant | None
    error: Failure | None
    http: Members | None = None


class RunView(Asked):
    """How much of a run is shown."""

    view: Literal["basic", "full"] = "basic"
    fields: list[str] = []
    include: list[Literal["attempts"]] = []


class WaitRun(Asked):
    """How long to wait for its end."""

    timeout: Annotated[float, msgspec.Meta(ge=0, le=30)] = 20.0


Wanted = Literal[State, "failed"]
"""`failed` means both `retry_wait` and `dead`."""


class ListRunsOfJob(Asked):
    """Which runs; the last seven days unless times are given.

    Those that are due later than now are listed with `state=scheduled` or `due_before`.
    """

    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None
    fields: list[str] = []
    state: list[Wanted] = []
    queue: list[str] = []
    handler: list[str] = []
    trigger: list[TriggerName] = []
    worker: str | None = None
    tag: list[str] = []
    due_after: Instant | None = None
    due_before: Instant | None = None
    scheduled_after: Instant | None = None
    scheduled_before: Instant | None = None
    finished_after: Instant | None = None
    finished_before: Instant | None = None
    min_lag: Duration | None = None
    error_fingerprint: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    q: Search | None = None
    count: Literal["estimate"] | None = None


class ListRuns(ListRunsOfJob):
    """Which runs of which job; the last seven days unless times are given.

    Those that are due later than now are listed with `state=scheduled` or `due_before`.
    """

    job: str | None = None
    workflow_run: str | None = None


class CancelRun(Asked):
    """Why, and how long its worker has to end it; by force it has no time at all."""

    reason: Reason = ""
    grace: Duration | None = None
    force: bool = False


class CancelByKey(Asked):
    """Which run, and why."""

    dedupe_key: DedupeKey
    reason: Reason = ""


class RetryRun(Asked):
    """Whether to begin counting anew."""

    reset_attempts: bool = False


class ReplayRun(Asked):
    """With what."""

    payload_override: Json = msgspec.UNSET


class TimelineEntry(Shown):
    """Something that happened to a run."""

    at: Instant
    state: str
    detail: str | None
    worker_id: str | None
    attempt: int | None


class Timeline(Shown):
    """What happened to a run, in order."""

    items: list[TimelineEntry]
