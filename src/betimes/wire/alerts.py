"""Alert rules, alerts and silences, as they are asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, DurationText, Instant, Shown, Text
from betimes.wire.endpoints import Severity
from betimes.wire.jobs import Queue, Reason
from betimes.wire.keys import PageOnly

Condition = Literal[
    "job_failed_n",
    "job_late",
    "job_missed",
    "job_slow",
    "no_success_since",
    "dead_letter_rate",
    "queue_lag",
    "queue_depth",
]
Threshold = Annotated[
    str | int | float,
    msgspec.Meta(description="A duration for what takes time, a number for what is counted."),
]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
State = Literal["pending", "firing", "resolved"]


class PutRule(Asked):
    """What is not as it should be, for how long, and who is told."""

    condition: Condition
    threshold: Threshold
    window: Duration | None = None
    for_: Duration = msgspec.field(default="PT0S", name="for")
    severity: Severity = "error"
    jobs: Annotated[list[Id], msgspec.Meta(max_length=100, description="Ids of jobs.")] = []
    tags: Annotated[
        dict[str, str],
        msgspec.Meta(
            max_length=32, description="Jobs that carry all of these, as many as 200 of them."
        ),
    ] = {}
    queues: Annotated[list[Queue], msgspec.Meta(max_length=20)] = []
    targets: Annotated[
        list[Id],
        msgspec.Meta(
            max_length=20,
            description="Ids of endpoints; without any, whoever takes events `alert.*`.",
        ),
    ] = []
    disabled: bool = False


class Rule(Shown):
    """An alert rule."""

    name: str
    condition: str
    threshold: float | DurationText
    window: DurationText
    for_: DurationText = msgspec.field(name="for")
    severity: str
    jobs: list[str]
    tags: dict[str, str]
    queues: list[str]
    targets: list[str]
    disabled: bool
    checked_at: Instant | None
    revision: int
    etag: str
    created_at: Instant
    created_by: str | None
    updated_at: Instant


class ListAlerts(PageOnly):
    """Which alerts."""

    state: list[State] = []
    rule: Text | None = None


class Alert(Shown):
    """An episode: from when a condition held until it did no longer."""

    id: str
    rule: str
    condition: str
    subject: str
    severity: str
    state: str
    is_told: bool
    """Whether somebody was told; a silence keeps it from that."""
    value: float
    threshold: float
    since: Instant
    fired_at: Instant | None
    resolved_at: Instant | None


class NewSilence(Asked):
    """Tell nobody of a rule, or of a subject such as `job_…` or `queue:mail`, for a while."""

    until: Instant
    reason: Annotated[Reason, msgspec.Meta(min_length=1)]
    rule: Text | None = None
    subject: Text | None = None


class Silence(Shown):
    """A silence."""

    id: str
    rule: str | None
    subject: str | None
    reason: str
    until: Instant
    created_at: Instant
    created_by: str | None
