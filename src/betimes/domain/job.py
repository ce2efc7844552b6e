"""Jobs: what to do and when, as a value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, unique
from typing import Any

from betimes.domain.ids import JobId, ShardId, TenantId, shard_of
from betimes.domain.parcel import PRIORITY_DEFAULT
from betimes.domain.states import JobState

GROUP_DEFAULT = "default"
QUEUE_DEFAULT = "default"


SCHEDULE_UNREADABLE = "SCHEDULE_UNREADABLE"
"""Why fires are recorded that nobody can count: the schedule cannot be read any more."""
GAP_FROM = "gap_from_us"
"""In the reason of a pause, whoever paused: the first fire that nobody has accounted for."""
PAUSED_AT = "paused_at_us"
"""In the reason of a pause: since when; without it, since the job was last written."""

Recount = Callable[[datetime, Any], Mapping[str, Any]]
"""A schedule counted from a time, on a budget for evaluating it."""

FIRES_AT_MOST_ONCE = frozenset({"once", "delay", "manual"})


@unique
class AfterCompletion(IntEnum):
    """What becomes of a job that has no fire left; the numbers are stored."""

    KEEP = 0
    DELETE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Everything a revision covers: what a user may edit."""

    schedule: Mapping[str, Any]
    target: Mapping[str, Any] = field(default_factory=dict)
    handler: str | None = None
    payload: bytes | None = None
    queue: str = QUEUE_DEFAULT
    priority: int = PRIORITY_DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    after_completion: AfterCompletion = AfterCompletion.KEEP
    recount: Recount | None = field(default=None, compare=False, repr=False)
    """How a new schedule that counts from when it is written, such as a delay, is counted by the
    clock of the transaction that writes it; never stored."""

    @property
    def has_fixed_delay(self) -> bool:
        """Whether the next fire is known only when the run of the last one has ended."""
        return self.schedule.get("mode") == "fixed_delay"

    @property
    def overlap(self) -> str:
        """What becomes of a fire while an earlier run has not ended, by the name of its policy."""
        return overlap_of(self.schedule)

    @property
    def is_manual(self) -> bool:
        """Whether it never fires by itself."""
        return self.schedule.get("type") == "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it is stored."""

    id: JobId
    tenant: TenantId
    group: str
    name: str | None
    definition: Definition
    state: JobState
    revision: int
    fires: int
    next_fire_at: datetime | None
    paused_until: datetime | None
    created_at: datetime
    updated_at: datetime
    tzdata: str
    state_reason: Mapping[str, Any] = field(default_factory=dict)
    created_by: str | None = None
    coming_fire_at: datetime | None = field(default=None, compare=False)
    """The next fire that will happen, if somebody has looked; `next_fire_at` is the planner's."""

    @property
    def shard(self) -> ShardId:
        """Its id says where it lives."""
        return shard_of(self.id)


def overlap_default(kind: str | None) -> str:
    """The policy of a schedule that names none: recurring ones skip, the others run beside."""
    return "allow" if kind in FIRES_AT_MOST_ONCE else "skip"


def overlap_of(schedule: Mapping[str, Any]) -> str:
    """The policy that a stored schedule names, or the one of its kind."""
    given: str | None = schedule.get("overlap")
    return given or overlap_default(schedule.get("type"))
