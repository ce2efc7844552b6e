"""The ends of attempts as values, on their way into the store."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple, Protocol

from betimes.domain.ids import Fence, JobId, ParcelId, RunId, TenantId
from betimes.domain.leased import Lease
from betimes.domain.outcome import OutcomeKind
from betimes.domain.retry import RUN_CANCELLED
from betimes.domain.states import RunState, Trigger

EVENTS: Mapping[RunState, str] = MappingProxyType(
    {
        RunState.RETRY_WAIT: "run.retrying",
        RunState.SUCCEEDED: "run.succeeded",
        RunState.DEAD: "run.dead",
        RunState.CANCELLED: "run.cancelled",
        RunState.SKIPPED: "run.skipped",
        RunState.EXPIRED: "run.expired",
        RunState.MISSED: "run.missed",
    }
)
"""What the ends of runs, and retries, are called in events."""
FAILURES = frozenset({OutcomeKind.FAILED, OutcomeKind.TIMED_OUT})


class Attempted(NamedTuple):
    """An attempt that did not succeed, for the history of its run."""

    outcome: int
    next_retry_at: datetime | None
    http: str | None = None
    """The exchange with an HTTP target, as JSON."""


class DeadLetter(NamedTuple):
    """Why a run was laid aside, and which others it resembles."""

    fingerprint: str
    reason: str


class Again(NamedTuple):
    """A run that goes back into the queue, in a parcel of its own."""

    parcel: ParcelId
    visible_at: datetime
    handler: str | None = None
    """What its worker must have, if that is known."""
    origin: str | None = None
    """The origin whose open breaker it waits for."""


class Follow(NamedTuple):
    """The next fire of a job with a fixed delay, after the end of a run."""

    run: RunId
    job: JobId
    revision: int
    next_fire_at: datetime


class Fired(Protocol):
    """As much of a run as tells whether its job counts from its end."""

    @property
    def id(self) -> RunId:
        """Its name."""

    @property
    def job(self) -> JobId | None:
        """What made it, if a job did."""

    @property
    def revision(self) -> int | None:
        """How its job was defined then."""

    @property
    def trigger(self) -> int:
        """Why it was made."""


def follow_of(run: Fired, delay: timedelta | None, now: datetime) -> Follow | None:
    """The next fire of a job with a fixed delay: the one schedule that counts from the end."""
    if delay is None or run.job is None or run.revision is None or run.trigger != Trigger.SCHEDULE:
        return None
    return Follow(run.id, run.job, run.revision, now + delay)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Any other end of an attempt, or a success with consequences."""

    run: RunId
    parcel: ParcelId
    fence: Fence
    tenant: TenantId
    queue: str
    priority: int
    job: JobId | None
    handler: str | None
    state: RunState
    attempt: int
    started_at: datetime | None
    ended_at: datetime
    result: bytes | None = None
    error: str | None = None
    reason: str | None = None
    attempted: Attempted | None = None
    dead: DeadLetter | None = None
    again: Again | None = None
    follow: Follow | None = None
    """The next fire of its job, unless the run goes back into the queue."""
    is_wanted: bool = False
    """Whether somebody is called back when it ends well."""
    holder_fence: Fence | None = None
    """The fence of the lease it is written under, where that is not its own: an end by force."""

    @property
    def lease(self) -> Lease:
        """Under which it is written."""
        return self.parcel, self.fence if self.holder_fence is None else self.holder_fence

    def given_up(self) -> "Ending":
        """The same when somebody has asked for the end of its run, and it has not ended well.

        However the worker puts it: it failed, wants to go on later or gives it back. Nobody tries
        it again, and it is no dead letter.
        """
        attempted = self.attempted
        return replace(
            self,
            state=RunState.CANCELLED,
            reason=RUN_CANCELLED,
            attempted=None if attempted is None else attempted._replace(next_retry_at=None),
            dead=None,
            again=None,
        )

    @property
    def concerns_job(self) -> bool:
        """Whether something may have to be written about its job, which comes before parcels."""
        return self.follow is not None or (self.dead is not None and self.job is not None)

    @property
    def has_failed(self) -> bool:
        """Whether its attempt went wrong, whatever becomes of the run."""
        return self.attempted is not None and self.attempted.outcome in FAILURES
