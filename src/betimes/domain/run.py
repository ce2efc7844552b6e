"""Runs: one occurrence of a job, or one piece of ad-hoc work, as values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.domain.dedupe import Dedupe
from betimes.domain.ids import Fence, JobId, RunId, ShardId, TenantId, WorkerId, shard_of
from betimes.domain.parcel import PRIORITY_DEFAULT, Waiting
from betimes.domain.states import RunState, Shown, Trigger, shown
from betimes.domain.terms import BARE, Terms

QUEUE_DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """Ad-hoc work as a caller asks for it: due now, after a delay, or at an instant."""

    handler: str | None = None
    target: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes | None = None
    queue: str = QUEUE_DEFAULT
    priority: int = PRIORITY_DEFAULT
    due_at: datetime | None = None
    delay: timedelta | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    dedupe: Dedupe | None = None

    def due(self, now: datetime) -> datetime:
        """When it is due; a time that has passed means now: nothing is due before it exists."""
        if self.due_at is not None:
            return max(self.due_at, now)
        return now if self.delay is None else now + self.delay


CANCEL_REASON = "cancel_reason"


def without_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run without what was said when it was cancelled."""
    return {name: value for name, value in options.items() if name != CANCEL_REASON}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it is stored."""

    id: RunId
    tenant: TenantId
    job: JobId | None
    revision: int | None
    state: RunState
    trigger: Trigger
    priority: int
    attempt: int
    fence: Fence
    queue: str
    handler: str | None
    due_at: datetime
    fire_at: datetime | None
    created_at: datetime | None
    first_started_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    cancel_at: datetime | None
    worker: WorkerId | None
    reason: str | None
    payload: bytes | None
    options: Mapping[str, Any]
    result: bytes | None
    error: Mapping[str, Any] | None
    terms: Terms = BARE
    overlap: int = 0
    """The number of its overlap policy."""
    start_by: datetime | None = None
    workflow_run: UUID | None = None
    """What it belongs to, or has started if no node is named."""
    node: str | None = None
    """The node of its workflow run whose work it is, with the place of the item if it is one."""

    @property
    def shard(self) -> ShardId:
        """Its id says where it lives."""
        return shard_of(self.id)

    @property
    def words(self) -> str | None:
        """What somebody said when cancelling it."""
        if self.state is not RunState.CANCELLED and self.cancel_at is None:
            return None
        return self.options.get(CANCEL_REASON)

    def waiting(self) -> Waiting:
        """It on its way into a parcel, visible when it is due."""
        return Waiting(
            self.id,
            self.tenant,
            self.due_at,
            self.priority,
            self.queue,
            *self.terms,
            self.job,
            self.overlap,
            self.handler,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The parcel that holds a run, as far as its public state depends on it."""

    parcel: Any
    worker: WorkerId | None
    fence: Fence
    lease_until: datetime | None
    visible_at: datetime
    deliveries: int = 0
    """How often it was handed out since an attempt of it last ended."""
    leased_at: datetime | None = None
    """Since when its worker has it."""


def shown_state(state: RunState, holding: Holding | None, now: datetime) -> Shown:
    """The public state: the row knows beginnings and ends, the parcel what happens between."""
    if state >= RunState.SUCCEEDED or holding is None:
        return shown(state)
    if holding.worker is not None:
        return Shown.RUNNING
    if state is RunState.RETRY_WAIT:
        return Shown.RETRY_WAIT
    return Shown.QUEUED if holding.visible_at <= now else Shown.SCHEDULED


def spread(count: int, start: datetime, rate_per_second: float | None) -> Iterator[datetime]:
    """Instants for `count` runs so that no second gets more than the rate; all at once without."""
    for place in range(count):
        wait = 0.0 if rate_per_second is None else place / rate_per_second
        yield start + timedelta(seconds=wait)


def bounds(runs: Sequence[RunId]) -> tuple[RunId, RunId]:
    """The smallest and the largest id, which let the planner of the database prune partitions."""
    return min(runs), max(runs)
