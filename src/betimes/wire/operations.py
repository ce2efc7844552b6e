"""Long work as it is asked for and shown, and what is done to many runs at once."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Instant, Members, Shown
from betimes.wire.jobs import OperationId, Priority, Queue, Reason
from betimes.wire.runs import State, TriggerName

OperationName = Literal["pending", "running", "succeeded", "failed", "cancelled"]
Rate = Annotated[float, msgspec.Meta(gt=0, le=1000)]
RunText = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Progress(Shown):
    """How far it is; a total that nobody knows is null."""

    done: int
    total: int | None


class Operation(Shown):
    """Long work."""

    id: str
    kind: str
    state: str
    progress: Progress
    result: Members | None
    error: Members | None
    created_at: Instant
    created_by: str | None
    due_at: Instant
    finished_at: Instant | None
    expires_at: Instant


class ListOperations(Asked):
    """Which operations."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None
    state: list[OperationName] = []
    kind: list[str] = []


class RunChoice(Asked):
    """Which runs are meant; what is left out does not matter. The last seven days unless given."""

    job: RunText | None = None
    state: list[State] = []
    queue: list[str] = []
    handler: list[str] = []
    trigger: list[TriggerName] = []
    tags: dict[str, str] = {}
    due_after: Instant | None = None
    due_before: Instant | None = None


class BulkRuns(Asked):
    """What to do with many runs: those of a filter, or those that are named."""

    action: Literal["cancel", "retry", "replay", "set_priority"]
    filter: RunChoice | None = None
    ids: Annotated[list[RunText], msgspec.Meta(min_length=1, max_length=1000)] | None = None
    reason: Reason = ""
    priority: Priority | None = None
    rate_per_second: Rate | None = None
    dry_run: bool = False
    confirm_count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    operation_id: OperationId | None = None


class Matched(Shown):
    """How many it would touch."""

    matched: int
    dry_run: bool


class PatchRun(Asked):
    """What of a waiting run is to be different."""

    due_at: Instant | None = None
    queue: Queue | None = None
    priority: Priority | None = None


class PurgeQueue(Asked):
    """Which runs of a queue go."""

    states: list[Literal["scheduled", "queued", "retry_wait"]] = []
    confirm_count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    dry_run: bool = False
    operation_id: OperationId | None = None
