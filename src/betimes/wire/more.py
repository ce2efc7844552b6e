"""Dead letters, audit, events, the cluster, as asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, Instant, Json, Members, Search, Shown
from betimes.wire.jobs import Handler, OperationId, Queue, Reason
from betimes.wire.runs import Attempt, Failure

Limit = Annotated[int, msgspec.Meta(ge=1)]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class DeadLetter(Shown, omit_defaults=True):
    """A run that is out of attempts."""

    id: str
    run_id: str
    state: str
    queue: str
    attempts: int
    fingerprint: str
    reason: str
    dead_at: Instant
    job_id: str | None = None
    handler: str | None = None
    error: Failure | None = None
    note: str | None = None
    assignee: str | None = None
    resolved_at: Instant | None = None
    history: list[Attempt] | None = None


ErrorText = Annotated[
    str, msgspec.Meta(max_length=200, description="Part of the error, whatever its case.")
]


class ListLetters(Asked):
    """Which dead letters."""

    limit: Limit = 50
    cursor: str | None = None
    state: Literal["open", "redriven", "discarded"] = "open"
    fingerprint: str | None = None
    group: Annotated[str, msgspec.Meta(description="Another word for `fingerprint`.")] | None = None
    queue: str | None = None
    handler: str | None = None
    job: str | None = None
    tag: list[str] = []
    finished_after: Instant | None = None
    finished_before: Instant | None = None
    error: ErrorText | None = None
    q: Search | None = None
    count: Literal["estimate"] | None = None


class LetterGroup(Shown):
    """Dead letters of one cause."""

    fingerprint: str
    handler: str | None
    count: int
    first_at: Instant
    last_at: Instant
    sample: Failure | None


class LetterGroups(Shown):
    """Causes, the most frequent first."""

    items: list[LetterGroup]


class AnnotateLetter(Asked):
    """A note, or whose it is."""

    note: Reason | None = None
    assignee: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class Redrive(Asked):
    """One more life."""

    payload_override: Json = msgspec.UNSET
    queue: Queue | None = None
    reset_attempts: bool = True
    delay: Duration | None = None


class Discard(Asked):
    """Why."""

    reason: Reason | None = None


class LetterChoice(Asked):
    """Which open dead letters a bulk action means."""

    fingerprint: str | None = None
    group: Annotated[str, msgspec.Meta(description="Another word for `fingerprint`.")] | None = None
    queue: Queue | None = None
    handler: Handler | None = None
    job: str | None = None
    tag: Annotated[list[str], msgspec.Meta(max_length=20)] = []
    finished_after: Instant | None = None
    finished_before: Instant | None = None
    error: ErrorText | None = None
    q: Search | None = None


class BulkLetters(Asked):
    """An action over a filter; `confirm_count` must be what it would touch."""

    action: Literal["redrive", "discard"]
    filter: LetterChoice
    rate_per_second: Annotated[float, msgspec.Meta(gt=0, le=100000)] | None = None
    reset_attempts: bool = True
    reason: Reason | None = None
    dry_run: bool = False
    confirm_count: Annotated[int, msgspec.Meta(ge=0, le=1000000)] | None = None
    operation_id: OperationId | None = None


class ExportAudit(Asked):
    """Which acts, and how they are written; the last thirty days unless given."""

    since: Instant | None = None
    until: Instant | None = None
    action: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    resource: Annotated[str, msgspec.Meta(max_length=300)] | None = None
    actor: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    format: Literal["jsonl", "csv"] = "jsonl"


class ListAudit(Asked):
    """Which acts."""

    limit: Limit = 50
    cursor: str | None = None
    action: str | None = None
    resource: str | None = None
    actor: str | None = None
    since: Instant | None = None
    until: Instant | None = None


class AuditEntry(Shown):
    """What somebody did."""

    id: str
    at: Instant
    actor: Members
    action: str
    resource: str
    request_id: str | None
    before: Members | None
    after: Members | None
    digest: str


class Chain(Shown):
    """One chain of acts, checked."""

    shard: int
    entries: int
    head: str
    intact: bool
    broken_at: int | None


class Verified(Shown):
    """Whether every chain holds."""

    intact: bool
    chains: list[Chain]


class ListEvents(Asked):
    """Which events."""

    limit: Limit = 50
    after: str | None = None
    types: list[str] = []


class Event(Shown):
    """Something that happened."""

    id: str
    type: str
    subject: str
    at: Instant
    data: Members


class EventPage(Shown):
    """Events in order; go on with `next_after`."""

    items: list[Event]
    next_after: str | None


class TriggerEvent(Asked):
    """An event to make: of which type, about what, and what of its example is to be different."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    data: Members = {}


class StreamEvents(Asked):
    """Which events."""

    types: list[str] = []


class PauseCluster(Asked):
    """Why."""

    reason: Reason = ""


class ClusterShown(Shown):
    """The cell."""

    id: str
    shards: int
    created_at: Instant
    paused_at: Instant | None
    paused_reason: str | None
    now: Instant
    version: str


class ShardShown(Shown):
    """A shard and its owner."""

    shard: int
    owner: str | None
    epoch: str
    lease_until: Instant | None
    published_through: Instant | None


class ShardList(Shown):
    """Every shard."""

    items: list[ShardShown]


class NodeShown(Shown):
    """A process of the service; one that was not heard of for as long as a lease lives is dead."""

    id: str
    name: str
    state: Literal["live", "draining", "dead"]
    version: str
    tzdata: str
    roles: list[str]
    started_at: Instant
    heartbeat_at: Instant
    skew_ms: float | None
    draining: bool


class NodeList(Shown):
    """Every process."""

    items: list[NodeShown]
