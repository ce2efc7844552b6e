"""What is known when it is over; instants are seconds of the database's clock unless said."""

from dataclasses import dataclass, field
from uuid import UUID

BASE32 = {symbol: value for value, symbol in enumerate("0123456789abcdefghjkmnpqrstvwxyz")}


def id_of(text: str) -> UUID:
    """The number behind a public id such as `run_…`: 26 symbols of Crockford's base 32."""
    number = 0
    for symbol in text.rpartition("_")[2].lower():
        number = number << 5 | BASE32[symbol]
    return UUID(int=number)


@dataclass
class Pause:
    """A job was paused: somewhere between invoked and acknowledged, and resumed likewise."""

    invoked: float
    acknowledged: float | None = None
    resume_invoked: float | None = None
    resumed: float | None = None
    unclear: bool = False
    """The clock was stepped meanwhile, so that the window says nothing."""


@dataclass
class Job:
    """A recurring job: it fires at phase + k x period, after its creation."""

    id: UUID
    period: int
    phase: int
    invoked: float
    acknowledged: float
    kind: str
    catchup: str
    overlap: str
    pauses: list[Pause] = field(default_factory=list)


@dataclass(frozen=True)
class Single:
    """Work that was asked for once: an ad-hoc run, or a job with one fire."""

    run: UUID | None
    job: UUID | None
    acknowledged: float
    due: float


@dataclass(frozen=True)
class Row:
    """A run as the tables tell it."""

    id: UUID
    job: UUID | None
    fire: float | None
    due: float
    state: str
    fence: int
    finished: float | None
    result_fence: int | None


@dataclass(frozen=True)
class Decision:
    """A recorded reason why fires did not become runs."""

    job: UUID
    first: float
    last: float
    fires: int
    code: str


@dataclass(frozen=True)
class Seen:
    """A request or a call, by whoever got it."""

    run: UUID
    attempt: int
    fence: int
    at: float
    """By the machine's clock."""
    database_at: float
    """The latest that the database's clock can have said then."""
    mode: str
    by: str


@dataclass
class History:
    """Everything."""

    until: float
    jobs: list[Job] = field(default_factory=list)
    singles: list[Single] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    cancelled: dict[UUID, float] = field(default_factory=dict)
    """Run -> when its cancellation was acknowledged, by the machine's clock."""
    keys: dict[str, set[str]] = field(default_factory=dict)
    """Idempotency key -> every id that was answered under it."""
    workflow_runs: dict[UUID, int] = field(default_factory=dict)
    """Workflow run -> how many nodes it has."""
    workflow_rows: dict[UUID, tuple[str, list[UUID]]] = field(default_factory=dict)
    """Workflow run -> its state and the runs of its nodes."""
    unanswered: list[str] = field(default_factory=list)
    """Requests whose fate never became known."""
    cursors: list[tuple[int, int, float | None]] = field(default_factory=list)
    """Shard, epoch, published_through (in the order in which they were seen)."""
    stepped: bool = False
    """Whether the database's clock was stepped."""
