"""Runs that are handed to workers that speak HTTP, and runs that end instead."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from betimes.domain.ids import WorkerId, to_us
from betimes.domain.spec import RunSpec
from betimes.domain.states import RunState
from betimes.store.admit import CONCURRENCY_KEY_FULL
from betimes.store.deadlines import START_DEADLINE_PASSED
from betimes.store.ending import Ending
from betimes.store.parcels import LeasedParcel, WantedRun
from betimes.store.remote import HeldLease
from betimes.store.run_notes import Note


class Why(NamedTuple):
    """Why a run ends instead of being handed out."""

    state: RunState
    reason: str


CANCELLED = Why(RunState.CANCELLED, "RUN_CANCELLED")
UNABLE = Why(RunState.QUEUED, "NO_WORKER_FOR_HANDLER")
FULL = Why(RunState.SKIPPED, CONCURRENCY_KEY_FULL)
EXPIRED = Why(RunState.EXPIRED, START_DEADLINE_PASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A run that a remote worker holds now."""

    lease: HeldLease
    run: WantedRun
    spec: RunSpec
    parcel: LeasedParcel
    note: Note | None

    @property
    def queue(self) -> str:
        """Where it waited."""
        return self.parcel.queue

    @property
    def priority(self) -> int:
        """How urgent it is."""
        return self.parcel.priority

    @property
    def expires_at(self) -> datetime:
        """Until when the worker holds it."""
        return self.parcel.lease_until


def is_late(run: WantedRun, parcel: LeasedParcel, spec: RunSpec, now: datetime) -> bool:
    """Whether its start comes too late to be wanted."""
    deadline = spec.start_deadline
    return deadline is not None and run.is_overdue(deadline, now, deliveries=parcel.deliveries)


def over(parcel: LeasedParcel, run: WantedRun, why: Why, now: datetime) -> Ending:
    """A run that ends, or goes back, instead of being handed out."""
    return Ending(
        run=run.id,
        parcel=parcel.id,
        fence=parcel.fence,
        tenant=parcel.tenant,
        queue=parcel.queue,
        priority=parcel.priority,
        job=run.job,
        handler=run.handler,
        state=why.state,
        attempt=run.attempt,
        started_at=None,
        ended_at=now,
        reason=why.reason,
    )


def as_leased(
    worker: WorkerId,
    parcel: LeasedParcel,
    run: WantedRun,
    spec: RunSpec,
    note: Note | None,
    now: datetime,
) -> Leased:
    """A run in the hands of a worker, from `now` on."""
    return Leased(
        lease=HeldLease(
            run=run.id,
            parcel=parcel.id,
            worker=worker,
            fence=parcel.fence,
            attempt=run.attempt + parcel.deliveries,
            started_us=to_us(now),
            plain=spec.is_plain,
        ),
        run=run,
        spec=spec,
        parcel=parcel,
        note=note,
    )
