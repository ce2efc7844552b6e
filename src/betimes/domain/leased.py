"""What a worker holds: parcels, the runs in them, and successes on their way back.

The same values on every transport: a worker on the database reads them from rows, one that speaks
HTTP from answers of the API.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from betimes.domain.ids import Fence, JobId, ParcelId, RunId, ShardId, TenantId, WorkerId
from betimes.domain.parcel import Lane
from betimes.domain.spec import RunSpec
from betimes.domain.terms import BARE, Terms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Lease = tuple[ParcelId, Fence]
"""What whoever reports about a run says to hold: the parcel alone says nothing, it may be leased
anew."""


class Source(NamedTuple):
    """Where parcels wait: one queue of one tenant in one shard, and one bucket of fairness keys."""

    shard: ShardId
    queue: str
    tenant: TenantId
    fair: int = 0


class Applicant(NamedTuple):
    """A leased parcel in front of its doors, and how many its run allows through its gate."""

    shard: ShardId
    id: ParcelId
    fence: Fence
    tenant: TenantId
    queue: str
    terms: Terms
    most: int | None


@dataclass(slots=True, kw_only=True)
class LeasedParcel:
    """A parcel that is ours until somebody else's fence is higher."""

    shard: ShardId
    id: ParcelId
    tenant: TenantId
    queue: str
    priority: int
    fence: Fence
    deliveries: int
    runs: list[RunId] = field(repr=False)
    lane: Lane = Lane.ON_TIME
    visible_at: datetime = EPOCH
    lease_until: datetime = EPOCH
    terms: Terms = BARE
    counted: bool = False
    """Whether its runs stand under a ceiling or a rate of their tenant or queue."""
    admitted: bool = False
    """Whether it was let in through its gate, its line and its rate."""

    @property
    def source(self) -> Source:
        """Where it came from."""
        return Source(self.shard, self.queue, self.tenant, self.terms.fair)

    def applicant(self, most: int | None) -> Applicant:
        """It in front of its doors; `most` is how many its run allows through its gate."""
        return Applicant(self.shard, self.id, self.fence, self.tenant, self.queue, self.terms, most)


class WantedRun(NamedTuple):
    """A run of a leased parcel as it is stored; a tuple because there are very many of them.

    Tenant, queue and priority are the parcel's. `attempt` counts those that were used up before.
    """

    id: RunId
    job: JobId | None
    revision: int | None
    due_at: datetime
    fire_at: datetime | None
    first_started_at: datetime | None
    cancel_at: datetime | None
    attempt: int
    trigger: int
    handler: str | None
    payload: bytes | None
    options: str | None
    reason: str | None = None
    """Why it waited, when it comes again."""


class Renewed(NamedTuple):
    """A lease that was prolonged, as the service knows it."""

    shard: ShardId
    id: ParcelId
    fence: Fence


@dataclass(slots=True)
class Streak:
    """Runs in a row that ended well and have everything in common but their results."""

    parcel: ParcelId
    fence: Fence
    attempt: int
    started_at: datetime
    finished_at: datetime
    runs: list[RunId]
    results: list[bytes | None] | None = None
    """In the order of the runs; None when none of them has one."""

    @property
    def lease(self) -> Lease:
        """Under which it is written."""
        return self.parcel, self.fence


class ParcelLease(NamedTuple):
    """What a lease token stands for: runs of one parcel, all of them in the same attempt."""

    parcel: ParcelId
    worker: WorkerId
    fence: Fence
    attempt: int
    started_us: int
    plain: bool
    """Whether a success of any of its runs has no consequences beyond the run itself."""
    shard: ShardId

    def of(self, run: RunId) -> "HeldLease":
        """It as far as one of its runs is concerned."""
        return HeldLease(run, *self)


class HeldLease(NamedTuple):
    """A lease as far as one of its runs is concerned."""

    run: RunId
    parcel: ParcelId
    worker: WorkerId
    fence: Fence
    attempt: int
    started_us: int
    plain: bool
    shard: ShardId
    """Where the parcel is: whoever reports names the run, and may name one of another shard."""

    @property
    def held(self) -> ParcelLease:
        """The lease itself."""
        return ParcelLease(*self[1:])


class Home(Protocol):
    """As much of a leased parcel as the ends of its runs need to know."""

    @property
    def id(self) -> ParcelId:
        """Its name."""

    @property
    def fence(self) -> Fence:
        """Under which it is held."""

    @property
    def tenant(self) -> TenantId:
        """Whose runs it holds."""

    @property
    def queue(self) -> str:
        """Where they wait."""

    @property
    def priority(self) -> int:
        """How urgent they are."""


class Assignment(NamedTuple):
    """A run, where it is held and how it is to be done."""

    run: WantedRun
    home: Home
    spec: RunSpec
    handler: str | None
    needs: str | None = None
    """What its worker must have, if that is known."""
