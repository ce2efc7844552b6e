"""Notices: whom an event concerns, and what becomes of a delivery after an attempt. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, unique
from hashlib import blake2b
from typing import Any
from uuid import UUID

from betimes.domain.event import FAILED, SUCCEEDED, TEST, Severity, fits, severity_of
from betimes.domain.ids import TAIL_BYTES, compose, shard_of, time_ms_of

DELAYS = tuple(
    timedelta(seconds=seconds)
    for seconds in (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
"""How long to wait before each attempt, as Standard Webhooks suggests."""
ATTEMPTS_MAX = len(DELAYS)
JITTER = 0.1
HOLD_AFTER = 3
"""After so many failures in a row nobody is asked but one delivery at a time."""
HOLD_FIRST, HOLD_MAX = timedelta(seconds=5), timedelta(hours=1)
THROTTLE = timedelta(minutes=1)
RETRY_AFTER_MAX = timedelta(days=1)
DISABLE_FAILURES_MIN = 5
SHORTEST = timedelta(microseconds=1)


@unique
class DeliveryState(IntEnum):
    """The life of a delivery; the numbers are stored."""

    WAITING = 0
    DELIVERED = 1
    FAILED = 2
    """Given up after its last attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which events of the wanted types; what is empty restricts nothing."""

    queues: frozenset[str] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict)
    jobs: frozenset[str] = frozenset()
    severity: Severity = Severity.INFO

    @property
    def needs_tags(self) -> bool:
        """Whether more must be known than an event says itself."""
        return bool(self.tags)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        told: dict[str, Any] = {
            "queues": sorted(self.queues),
            "tags": dict(self.tags),
            "jobs": sorted(self.jobs),
            "severity": self.severity.name.lower(),
        }
        return {name: value for name, value in told.items() if value and value != "info"}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Filter":
        """What `to_json` wrote."""
        return cls(
            queues=frozenset(stored.get("queues") or ()),
            tags=dict(stored.get("tags") or {}),
            jobs=frozenset(stored.get("jobs") or ()),
            severity=Severity[str(stored.get("severity", "info")).upper()],
        )


def wants(
    types: Sequence[str],
    chosen: Filter,
    kind: str,
    body: Mapping[str, Any],
    tags: Mapping[str, str],
) -> bool:
    """Whether somebody with these wishes is to be told of an event."""
    if kind == TEST or not fits(types, kind) or severity_of(kind, body) < chosen.severity:
        return False
    if chosen.queues and body.get("queue") not in chosen.queues:
        return False
    if chosen.jobs and body.get("job_id") not in chosen.jobs:
        return False
    return all(tags.get(name) == value for name, value in chosen.tags.items())


def wants_successes(types: Sequence[str], chosen: Filter) -> bool:
    """Whether successes must be written down for somebody with these wishes."""
    return fits(types, SUCCEEDED) and chosen.severity == Severity.INFO


def wants_failures(types: Sequence[str], chosen: Filter) -> bool:
    """The same for attempts that failed."""
    return fits(types, FAILED) and chosen.severity <= Severity.WARNING


def delivery_id(event: UUID, endpoint: UUID) -> UUID:
    """The same for the same event and endpoint, in the shard of the endpoint."""
    digest = blake2b(event.bytes + endpoint.bytes, digest_size=TAIL_BYTES).digest()
    return compose(time_ms_of(event), shard_of(endpoint), int.from_bytes(digest, "big"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came of sending one message."""

    ok: bool
    detail: str = ""
    status: int | None = None
    gone: bool = False
    """The receiver wants nothing more, ever."""
    throttled: bool = False
    pause: timedelta | None = None
    """How long the receiver asked us to wait."""
    response: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast an endpoint may be asked; None as fast as it answers."""

    each: timedelta | None = None
    """How much time one request takes up."""

    @classmethod
    def of(cls, rate: Mapping[str, int] | None) -> "Pace":
        """From how it is stored: so many in so many milliseconds."""
        if rate is None:
            return cls()
        return cls(timedelta(milliseconds=rate["per_ms"]) / rate["limit"])

    def wave(self, concurrency: int) -> int:
        """How many may be sent together: no more than a second's worth, and one at least."""
        if self.each is None:
            return concurrency
        return max(1, min(concurrency, timedelta(seconds=1) // max(self.each, SHORTEST)))

    def pause(self, sent: int) -> timedelta:
        """How long so many keep the next ones waiting."""
        return timedelta(0) if self.each is None else self.each * sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What becomes of a delivery."""

    state: DeliveryState
    attempt: int
    due_at: datetime | None


def next_step(sent: Sent, *, attempt: int, now: datetime, roll: float, is_test: bool) -> Step:
    """After the attempt with this number: over, or when to try again."""
    if sent.ok:
        return Step(state=DeliveryState.DELIVERED, attempt=attempt, due_at=None)
    if attempt >= ATTEMPTS_MAX or is_test:
        return Step(state=DeliveryState.FAILED, attempt=attempt, due_at=None)
    wait = DELAYS[attempt] * (1 + JITTER * (2 * roll - 1))
    if sent.pause is not None:
        wait = max(wait, min(sent.pause, RETRY_AFTER_MAX))
    return Step(state=DeliveryState.WAITING, attempt=attempt, due_at=now + wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How an endpoint fares: failures in a row, since when, and until when it is left alone."""

    failures: int = 0
    failing_since: datetime | None = None
    held_until: datetime | None = None

    @property
    def is_doubtful(self) -> bool:
        """Whether to send one thing and wait what comes of it."""
        return self.failures >= HOLD_AFTER

    def after(self, sent: Sent, *, now: datetime, roll: float) -> "Health":
        """The same endpoint after one more attempt."""
        if sent.ok:
            return Health()
        failures = self.failures + 1
        wait = timedelta(0)
        if failures >= HOLD_AFTER:
            doublings = min(failures - HOLD_AFTER, 20)
            wait = min(HOLD_FIRST * 2**doublings, HOLD_MAX) * (0.5 + roll / 2)
        if sent.throttled:
            wait = max(wait, THROTTLE if sent.pause is None else min(sent.pause, RETRY_AFTER_MAX))
        elif sent.pause is not None:
            wait = max(wait, min(sent.pause, RETRY_AFTER_MAX))
        return Health(
            failures=failures,
            failing_since=self.failing_since or now,
            held_until=now + wait if wait else None,
        )

    def is_persistent(self, *, now: datetime, after: timedelta) -> bool:
        """Whether it has failed long and often enough to be given up."""
        since = self.failing_since
        return since is not None and self.failures >= DISABLE_FAILURES_MIN and now - since >= after
