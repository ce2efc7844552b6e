"""What was seen while real processes were killed, frozen and cut: the input of the checker.

Five recorders, independent of one another: the client (what was acknowledged), the witness (what
handlers really did), the state (which commits happened, in their order), the nemesis (which faults
were made) and the final read. Times are seconds since 1970 on one clock that nobody fakes.
"""

from dataclasses import dataclass, field
from uuid import UUID

FINAL_STATES = frozenset({4, 5, 6, 7, 8, 9})
SUCCEEDED, DEAD, SKIPPED = 4, 5, 7
OVERLAP_SKIPPED = "OVERLAP_SKIPPED"


@dataclass(frozen=True, slots=True)
class JobFact:
    """A job that fires at whole multiples of a period since 1970."""

    id: UUID
    every: int
    created_at: float
    one_at_a_time: bool = True
    """Its overlap policy keeps its runs apart."""


@dataclass(frozen=True, slots=True)
class RunFact:
    """A run as the final read found it."""

    id: UUID
    job: UUID | None
    fire_at: float | None
    due_at: float
    state: int
    attempt: int = 1
    max_attempts: int = 5
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SkipFact:
    """Fires that were dropped on purpose, from and including, to and including."""

    job: UUID
    fire_at: float
    until_at: float
    reason: str


@dataclass(frozen=True, slots=True)
class StartFact:
    """A handler was called."""

    run: UUID
    attempt: int
    fence: int
    process: int
    at: float
    job: UUID | None = None
    fire_at: float | None = None


@dataclass(frozen=True, slots=True)
class EndFact:
    """A handler was about to return."""

    run: UUID
    fence: int
    at: float


@dataclass(frozen=True, slots=True)
class ShardFact:
    """One committed change of a shard's row, in the order of commits."""

    order: int
    shard: int
    owner: UUID | None
    epoch: int
    published_through: float | None
    at: float


@dataclass(frozen=True, slots=True)
class LeaseFact:
    """One run of a parcel that was handed out, in the order of commits."""

    order: int
    run: UUID
    fence: int
    visible_at: float
    at: float


@dataclass(frozen=True, slots=True)
class CompletionFact:
    """A run changed its state, in the order of commits."""

    order: int
    run: UUID
    before: int
    after: int
    fence: int
    at: float


@dataclass(frozen=True, slots=True)
class PlanFact:
    """In one snapshot: where a job goes on, and the latest fire that had become a run."""

    job: UUID
    next_fire_at: float
    latest_fire_at: float
    missing: int = 0
    """Fires between the first run and the next fire that the same snapshot did not account for."""


@dataclass(frozen=True, slots=True)
class FaultFact:
    """A fault; `shards` are those that the target owned when it began."""

    kind: str
    target: str
    began_at: float
    ended_at: float
    shards: tuple[int, ...] = ()
    owner: UUID | None = None


@dataclass(frozen=True, slots=True)
class DeathFact:
    """A process died of what it executed."""

    run: UUID
    at: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """How late is too late, in seconds."""

    lateness: float
    takeover: float
    until: float
    """Fires up to here are judged: the load ended."""
    early: float = 0.005
    """What two readings of one clock may differ by."""


@dataclass(slots=True)
class History:
    """Everything that was recorded."""

    bounds: Bounds
    acknowledged: set[UUID] = field(default_factory=set)
    unknown: set[UUID] = field(default_factory=set)
    jobs: list[JobFact] = field(default_factory=list)
    runs: list[RunFact] = field(default_factory=list)
    skips: list[SkipFact] = field(default_factory=list)
    starts: list[StartFact] = field(default_factory=list)
    ends: list[EndFact] = field(default_factory=list)
    shards: list[ShardFact] = field(default_factory=list)
    leases: list[LeaseFact] = field(default_factory=list)
    completions: list[CompletionFact] = field(default_factory=list)
    plans: list[PlanFact] = field(default_factory=list)
    faults: list[FaultFact] = field(default_factory=list)
    deaths: list[DeathFact] = field(default_factory=list)
    dead_letters: set[UUID] = field(default_factory=set)
    cancelled: dict[UUID, float] = field(default_factory=dict)
    """Runs, with when their cancellation was acknowledged."""
    paused: list[tuple[UUID, float, float]] = field(default_factory=list)
    """Jobs, with when the pause was acknowledged and when the resumption was asked for."""
    stale_accepted: list[str] = field(default_factory=list)
    """Writes of an old epoch that were sent again after a takeover and went through."""
    coordinator_refusals: int = 0
    worker_refusals: int = 0
