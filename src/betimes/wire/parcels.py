"""The worker protocol by parcels: many runs under one lease, successes as sets."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from betimes.wire.base import Asked, Instant, Json, Shown
from betimes.wire.jobs import Handler
from betimes.wire.workers import PARCEL_RUNS_MAX, WAIT_SECONDS_MAX, End, LeaseId, Queues


class LeaseParcels(Asked):
    """How many runs a worker wants, and how long it waits for them."""

    max: Annotated[int, msgspec.Meta(ge=1, le=PARCEL_RUNS_MAX)] = 1
    wait: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)] = 20.0
    queues: Queues | None = None
    handlers: Annotated[list[Handler], msgspec.Meta(max_length=1000)] = []


class ParcelDefinition(Shown, omit_defaults=True):
    """What runs of a parcel have in common; told once in an answer, whatever refers to it."""

    max_attempts: int
    handler: str | None = None
    payload: Json = None
    payload_ref: str | None = None
    payload_path: str | None = None
    timeout: str | None = None
    tracestate: str | None = None
    tags: dict[str, str] = {}


class ParcelRun(msgspec.Struct, array_like=True):
    """A run of a parcel, as an array.

    In this order: its id and the number of its definition, when it is due, its job, the nominal
    instant of its occurrence, its own payload, and what an earlier attempt has kept for this one.
    Ids are UUIDs: those that `run_…` and `job_…` write in base 32.
    """

    id: UUID
    definition: int
    due_at: datetime
    job: UUID | None = None
    scheduled_for: datetime | None = None
    payload: Json = None
    checkpoint: Json = None


class HeldParcel(Shown):
    """Runs that the worker holds now, under one lease and all in the same attempt."""

    lease_id: str
    fence: int
    attempt: int
    queue: str
    priority: int
    runs: list[ParcelRun]


class LeasedParcels(Shown):
    """What the worker got; an empty list means that nothing came."""

    parcels: list[HeldParcel]
    definitions: list[ParcelDefinition]
    server_time: Instant


class Succeeded(Asked):
    """Runs of a parcel that ended well, with everything in common but their results."""

    runs: Annotated[list[UUID], msgspec.Meta(min_length=1, max_length=PARCEL_RUNS_MAX)]
    results: (
        Annotated[
            list[Json],
            msgspec.Meta(max_length=PARCEL_RUNS_MAX, description="In the order of the runs."),
        ]
        | None
    ) = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


class RunEnd(End, kw_only=True):
    """How an attempt at one run of a parcel ended."""

    run: UUID
    started_at: datetime | None = None
    ended_at: datetime | None = None


class ParcelReport(Asked):
    """What became of runs of one parcel."""

    lease_id: LeaseId
    succeeded: Annotated[list[Succeeded], msgspec.Meta(max_length=PARCEL_RUNS_MAX)] = []
    ended: Annotated[list[RunEnd], msgspec.Meta(max_length=PARCEL_RUNS_MAX)] = []


class ParcelReports(Asked):
    """What became of runs of several parcels; so many of them at most."""

    parcels: Annotated[list[ParcelReport], msgspec.Meta(min_length=1, max_length=PARCEL_RUNS_MAX)]


class ParcelReported(Shown, omit_defaults=True):
    """What was written of one parcel: everything but what is named as lost."""

    lease_id: str
    lost: list[UUID] = []
    """Runs whose lease was gone; somebody else may hold them."""
    dead: list[UUID] = []
    """Runs that nobody tries again."""


class ParcelsReported(Shown):
    """What was written, in the order given."""

    parcels: list[ParcelReported]
