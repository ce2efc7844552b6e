"""What the worker of an app says and hears over HTTP, and how it is read.

Errors mean the same on every line: `Unavailable` (nobody knows what happened, ask again),
`FencedOut` (the lease is somebody else's now), `NotFound` (the service does not know this worker),
`Conflict` (the worker is to take nothing new). Anything else ends the worker with a sentence.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import msgspec

from betimes.wire.parcels import LeaseParcels, ParcelReport, ParcelReported
from betimes.wire.workers import (
    Heartbeat,
    HeartbeatAnswer,
    LogLine,
    NewWorker,
    Progress,
    Registered,
)

NOTHING = msgspec.Raw(b"null")


class Definition(msgspec.Struct):
    """What runs have in common; the payload is as it was stored."""

    max_attempts: int
    handler: str | None = None
    payload: msgspec.Raw = NOTHING
    payload_ref: str | None = None
    """Where the payload lies, when it is not here."""
    payload_path: str | None = None
    """Where the service gives it out, when it lies there."""
    timeout: str | None = None
    tracestate: str | None = None
    tags: dict[str, str] = {}


class GrantedRun(msgspec.Struct, array_like=True):
    """A run that the worker holds now."""

    id: UUID
    definition: int
    due_at: datetime
    job: UUID | None = None
    scheduled_for: datetime | None = None
    payload: msgspec.Raw = NOTHING
    checkpoint: msgspec.Raw = NOTHING


class Grant(msgspec.Struct):
    """Runs under one lease, all in the same attempt."""

    lease_id: str
    fence: int
    attempt: int
    queue: str
    priority: int
    runs: list[GrantedRun]


class Grants(msgspec.Struct):
    """An answer to the wish for work; definitions are read when they are new."""

    parcels: list[Grant]
    definitions: list[msgspec.Raw]
    server_time: datetime


class Notes(Protocol):
    """Takes what tasks say while they work; a lease is whatever names it here."""

    async def progress(self, lease: Any, told: Progress) -> None:
        """How far a run has come."""
        ...

    async def checkpoint(self, lease: Any, data: bytes) -> None:
        """Where its next attempt may begin."""
        ...

    async def log(self, lease: Any, lines: Sequence[LogLine]) -> None:
        """Lines for its log."""
        ...


class Line(Notes, Protocol):
    """A way to the service, used on one event loop."""

    async def register(self, worker: NewWorker) -> Registered:
        """Make the worker known."""
        ...

    async def lease(self, worker: str, wanted: LeaseParcels) -> Grants:
        """Parcels to do, as soon as there are some or patience ends."""
        ...

    async def fetch(self, path: str) -> bytes:
        """The payload that lies at a path; `NotFound` when nobody has it."""
        ...

    async def keep(self, content: bytes) -> str | None:
        """Keep a large result; what it is referred to by, None if the service does not take it."""
        ...

    async def beat(self, worker: str, told: Heartbeat) -> HeartbeatAnswer:
        """A sign of life; renews every lease it names."""
        ...

    async def report(self, reports: Sequence[ParcelReport]) -> list[ParcelReported]:
        """What became of runs, parcel by parcel; safe to repeat."""
        ...

    async def leave(self, worker: str) -> None:
        """The worker goes."""
        ...


OpenLine = Callable[[], AbstractAsyncContextManager[Line]]
"""Makes a line on the event loop it is called on: the heartbeat has one of its own."""
