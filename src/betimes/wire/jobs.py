"""Jobs as they are asked for and shown."""

from typing import Annotated, Any, Literal

import msgspec

from betimes.wire.auth import Auth, Redact, SecretRef
from betimes.wire.base import (
    Asked,
    Duration,
    DurationText,
    Instant,
    Json,
    Members,
    Search,
    Shown,
)
from betimes.wire.callbacks import Callbacks
from betimes.wire.insights import JobStats
from betimes.wire.workflow_target import WorkflowTarget

Name = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=200, description="Unique per tenant and group."),
]
Handler = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Queue = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=128,
        pattern="^[^:]+$",
        description="1 to 128 printable characters without a colon.",
    ),
]
Priority = Annotated[int, msgspec.Meta(ge=0, le=9, description="9 is the most urgent.")]
Attempts = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Reason = Annotated[str, msgspec.Meta(max_length=1000)]
Tags = Annotated[dict[str, str], msgspec.Meta(max_length=32)]
Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
FairnessKey = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=255,
        description="Runs with different keys take turns inside a queue with fairness `key`.",
    ),
]
OperationId = Annotated[str, msgspec.Meta(pattern="^op_[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$")]
RateLimitKey = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=255,
        description="Runs with the same key start no faster than the rate that is set for it.",
    ),
]
AfterCompletion = Literal["keep", "delete"]
DedupeKey = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Schedule = Annotated[
    str | dict[str, Any],
    msgspec.Meta(
        description="An object with a `type`, or a line such as `every 10m` or `0 9 * * mon-fri`.",
        examples=["every 10m", "0 9 * * mon-fri"],
    ),
]


class Retry(Asked):
    """When to try again and when to stop."""

    max_attempts: Attempts = 5
    backoff: Literal["exponential", "linear", "fixed", "list"] = "exponential"
    initial: Duration = "PT5S"
    factor: Annotated[float, msgspec.Meta(ge=1, le=100)] = 2.0
    max: Duration = "PT1H"
    delays: Annotated[list[Duration], msgspec.Meta(max_length=100)] = []
    jitter: Literal["full", "equal", "none"] = "full"
    max_elapsed: Duration | None = None
    retry_on: Annotated[list[str], msgspec.Meta(max_length=100)] = []
    give_up_on: Annotated[list[str], msgspec.Meta(max_length=100)] = []


class Concurrency(Asked):
    """How many runs with the same key may be in flight at once, over all queues of the tenant."""

    key: Key
    limit: (
        Annotated[
            int,
            msgspec.Meta(
                ge=1, le=1_000_000, description="Without one the queue decides, else it is one."
            ),
        ]
        | None
    ) = None
    on_limit: Literal["wait", "skip"] = "wait"


class Dedupe(Asked):
    """A business key: within its window, or while it is active, a second one is the first one."""

    key: DedupeKey
    window: Duration | None = None
    form: Literal["unique", "throttle", "debounce"] = "unique"


class TaskTarget(Asked, tag="task", tag_field="type"):
    """A handler of a worker."""

    handler: Handler


class HttpTarget(Asked, tag="http", tag_field="type"):
    """A request. Without a body of its own it carries the payload of the run."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=8192)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "POST"
    headers: Annotated[dict[str, str], msgspec.Meta(max_length=100)] = {}
    body: Json = None
    body_base64: Annotated[str, msgspec.Meta(max_length=400000)] | None = None
    timeout: Duration | None = None
    success_codes: Annotated[list[int | str], msgspec.Meta(max_length=100)] = []
    follow_redirects: Annotated[int, msgspec.Meta(ge=0, le=5)] = 0
    ca_certificates: Annotated[str, msgspec.Meta(max_length=65536)] | None = None
    client_certificate: SecretRef | None = None
    auth: Auth | None = None
    secret_ref: SecretRef | None = None
    redact: Redact | None = None


NodeTarget = TaskTarget | HttpTarget
Target = TaskTarget | HttpTarget | WorkflowTarget


class NewJob(Asked):
    """A job as a caller asks for it."""

    schedule: Schedule | None = None
    name: Name | None = None
    group: Name = "default"
    description: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    target: Target | None = None
    handler: Handler | None = None
    payload: Json = None
    payload_ref: Reference | None = None
    payload_schema: (
        Annotated[
            Members,
            msgspec.Meta(
                description="JSON Schema, standing for itself, that the payload and every "
                "`payload_override` have to fit."
            ),
        ]
        | None
    ) = None
    queue: Queue = "default"
    priority: Priority = 5
    concurrency: Concurrency | None = None
    fairness_key: FairnessKey | None = None
    rate_limit_key: RateLimitKey | None = None
    retry: Retry | None = None
    timeout: Duration | None = None
    start_deadline: Duration | None = None
    retention: Duration | None = None
    tags: Tags = {}
    metadata: Members = {}
    action_after_completion: AfterCompletion = "keep"
    notify: Callbacks = []
    paused: Annotated[bool, msgspec.Meta(description="Begin paused; says nothing later.")] = False
    pause_reason: Reason = ""
    dedupe: Dedupe | None = None
    dedupe_key: DedupeKey | None = None
    run_at: Instant | None = msgspec.field(default=None, name="runAt")
    cron: str | None = None
    payload_reference: Reference | None = msgspec.field(default=None, name="payloadRef")
    idempotency_key: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = (
        msgspec.field(default=None, name="idempotencyKey")
    )


class Pause(Shown):
    """Why a job does not fire."""

    reason: str | None = None
    by: str | None = None
    until: Instant | None = None


class LastRun(Shown):
    """The latest run of a job that was due."""

    id: str
    state: str
    finished_at: Instant | None


class JobStatus(Shown):
    """What changes by itself; nothing here moves the revision."""

    state: str
    next_fire_at: Instant | None = None
    fires: str = "0"
    code: str | None = None
    pause: Pause | None = None
    last_run: LastRun | msgspec.UnsetType | None = msgspec.UNSET
    """Only with `include=last_run`."""
    stats_24h: JobStats | msgspec.UnsetType = msgspec.UNSET
    """Only with `include=stats_24h`."""


Include = list[Literal["last_run"]]


class Job(Shown, omit_defaults=True):
    """A job."""

    id: str
    tenant_id: str
    group: str
    schedule: Members
    schedule_text: str
    queue: str
    priority: int
    revision: int
    etag: str
    created_at: Instant
    updated_at: Instant
    status: JobStatus
    name: str | None = None
    description: str | None = None
    handler: str | None = None
    target: Members | None = None
    payload: Json = msgspec.UNSET
    payload_ref: str | None = None
    payload_schema: Members | None = None
    concurrency: Members | None = None
    fairness_key: str | None = None
    rate_limit_key: str | None = None
    retry: Members | None = None
    timeout: DurationText | None = None
    start_deadline: DurationText | None = None
    retention: DurationText | None = None
    tags: dict[str, str] = {}
    metadata: Members = {}
    notify: list[Members] = []
    action_after_completion: str = "keep"
    created_by: str | None = None
    next_fires: list[Instant] | None = None
    next_fires_omitted: (
        Annotated[
            Literal["schedule_too_expensive"],
            msgspec.Meta(
                description="Why an active job shows no next fires: they take too many steps to "
                "compute in passing; `GET /v1/jobs/{id}/next` computes them."
            ),
        ]
        | None
    ) = None
    will_fire: list[Instant] | None = None
    validated: bool = False
    dedupe_key: str | None = None
    deduplicated: bool = False
    job_id: str | None = msgspec.field(default=None, name="jobId")


class JobView(Asked):
    """How much of a job is shown."""

    view: Literal["definition", "basic", "full"] = "basic"
    fields: list[str] = []
    include: list[Literal["last_run", "stats_24h"]] = []


class CreateOptions(Asked):
    """How a creation is meant."""

    validate_only: bool = False


class PatchOptions(Asked):
    """How an edit is meant, and whether runs that wait already are done as it says."""

    validate_only: bool = False
    apply_to: Literal["future", "pending"] = "future"


class ReplaceOptions(Asked):
    """How a replacement is meant."""

    validate_only: bool = False
    force: bool = False


class DeleteOptions(Asked):
    """What becomes of the runs."""

    runs: Literal["keep", "cancel"] = "keep"


class ListJobs(Asked):
    """Which jobs."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None
    fields: list[str] = []
    view: Literal["definition", "basic", "full"] = "basic"
    state: list[Literal["active", "paused", "auto_paused", "completed", "cancelled"]] = []
    queue: list[str] = []
    handler: list[str] = []
    group: str | None = None
    name_prefix: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    schedule_type: list[str] = []
    target_type: list[Literal["task", "http"]] = []
    tag: list[str] = []
    next_fire_after: Instant | None = None
    next_fire_before: Instant | None = None
    include: Include = []
    sort: Literal["created_at", "-created_at", "name", "next_fire_at", "-updated_at"] = "created_at"
    q: Search | None = None
    count: Literal["estimate"] | None = None


class PauseJob(Asked):
    """Why and for how long."""

    reason: Reason = ""
    until: Instant | None = None
    running: Literal["leave", "cancel"] = "leave"


class ResumeJob(Asked):
    """What to do with what was missed."""

    missed: Literal["skip", "run_latest", "run_all"] = "skip"


class CancelJob(Asked):
    """Why, and what becomes of attempts under way."""

    reason: Reason = ""
    running: Literal["leave", "cancel"] = "leave"


class RunJob(Asked):
    """A run beside the schedule."""

    payload_override: Json = msgspec.UNSET
    priority: Priority | None = None
    at: Instant | None = None
    scheduled_for: Instant | None = None
    overlap: Literal["inherit", "allow"] = "inherit"


class SkipNext(Asked):
    """How many fires; with `until` all up to then, at most a hundred."""

    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    until: Instant | None = None


class Skipped(Shown):
    """The fires that will not run."""

    skipped: list[Instant]


class NewJobs(Asked):
    """Many jobs."""

    items: Annotated[list[NewJob], msgspec.Meta(min_length=1, max_length=1000)]
    mode: Literal["atomic", "independent"] = "atomic"


class BatchItem(Shown, omit_defaults=True):
    """What became of one item of a batch."""

    status: int
    id: str | None = None
    deduplicated: bool = False
    error: Members | None = None


class MadeJobs(Shown, omit_defaults=True):
    """What became of a batch, in the order given."""

    items: list[BatchItem]
    validated: bool = False
