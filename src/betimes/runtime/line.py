"""The seam: what a worker needs of the service, however it is reached.

Errors mean the same on every line: `Unavailable` (nobody knows what happened, ask again),
`FencedOut` (the lease is somebody else's now), `NotFound` (the service does not know this worker),
`Conflict` (the worker is to take nothing new). Anything else ends the worker with a sentence.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

import msgspec

from betimes.wire.workers import (
    Heartbeat,
    HeartbeatAnswer,
    LeaseRuns,
    LogLine,
    NewWorker,
    Progress,
    Registered,
    Reported,
    ReportOne,
)

NOTHING = msgspec.Raw(b"null")


class Grant(msgspec.Struct, kw_only=True):
    """A run that the worker holds now; the payload is as it was stored."""

    run_id: str
    lease_id: str
    fence: int
    attempt: int
    max_attempts: int
    due_at: datetime
    queue: str
    priority: int
    idempotency_key: str
    traceparent: str
    handler: str | None = None
    job_id: str | None = None
    scheduled_for: datetime | None = None
    payload: msgspec.Raw = NOTHING
    payload_ref: str | None = None
    """Where the payload lies, when it is not here."""
    payload_path: str | None = None
    """Where the service gives it out, when it lies there."""
    timeout: str | None = None
    checkpoint: Any = None
    tags: dict[str, str] = {}


class Line(Protocol):
    """A way to the service, used on one event loop."""

    async def register(self, worker: NewWorker) -> Registered:
        """Make the worker known."""
        ...

    async def lease(self, worker: str, wanted: LeaseRuns) -> list[Grant]:
        """Runs to do, as soon as there are some or patience ends."""
        ...

    async def fetch(self, grant: Grant) -> bytes:
        """The payload that the grant refers to; `NotFound` when nobody has it."""
        ...

    async def beat(self, worker: str, told: Heartbeat) -> HeartbeatAnswer:
        """A sign of life; renews every lease it names."""
        ...

    async def report(self, reports: Sequence[ReportOne]) -> list[Reported]:
        """What became of attempts, each answered for itself; safe to repeat."""
        ...

    async def progress(self, lease: str, told: Progress) -> None:
        """How far a run has come."""
        ...

    async def checkpoint(self, lease: str, data: bytes) -> None:
        """Where its next attempt may begin."""
        ...

    async def log(self, lease: str, lines: Sequence[LogLine]) -> None:
        """Lines for its log."""
        ...

    async def leave(self, worker: str) -> None:
        """The worker goes."""
        ...


OpenLine = Callable[[], AbstractAsyncContextManager[Line]]
"""Makes a line on the event loop it is called on: the heartbeat has one of its own."""
