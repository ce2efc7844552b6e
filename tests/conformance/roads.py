"""The roads by which runs are executed, as the rules see them.

A rule is a test that takes a `road`. It says what a task does (`road.task`), asks for runs, lets
time pass, and looks at what became of them. Whoever executes is a `Hand`, turned by hand: nothing
happens on any road unless the test says so, and nobody sleeps. A task that takes time says
`await road.spend(seconds)`, and waits for the clock of the test.

What a road cannot have is declared in `LACKS`, with the reason.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol, TypeVar

from betimes import Context

Body = Callable[[Context, Any], Awaitable[Any]]
"""What a task does: its context and what it was given."""
TTL = 30
"""Seconds of a lease on every road."""
SERVER, DIRECT, HTTP, HARNESS = "server", "direct", "http", "harness"
ROADS = (SERVER, DIRECT, HTTP, HARNESS)


class Can(Enum):
    """What not every road has."""

    ATTEMPTS = "the history of attempts can be read"
    DRAIN = "a worker can be asked to go"
    EVENTS = "events are told"
    FREE_HANDS = "runs may wait because nobody works"
    INTERRUPT = "a task can be spoken to while it takes time"
    LOSE_LEASE = "a worker can lose its lease and live on"
    NOTES = "a task can keep progress and checkpoints"
    QUEUES = "queues have settings"
    REFERENCES = "payloads can lie elsewhere"
    UNKNOWN = "a run can be asked for whose task nobody here has"


NO_TIME = "its handlers take no time: what they `spend` passes after they have returned"
NO_SERVICE = "it has tasks and a clock, and no service: "
LACKS: Mapping[str, Mapping[Can, str]] = {
    SERVER: {Can.NOTES: "handlers of the server role are given no voice"},
    DIRECT: {},
    HTTP: {},
    HARNESS: {
        Can.ATTEMPTS: "it keeps the last attempt of a run only",
        Can.DRAIN: "its worker never goes",
        Can.EVENTS: f"{NO_SERVICE}nobody is told anything but `on_dead`",
        Can.FREE_HANDS: "its worker is always there",
        Can.INTERRUPT: NO_TIME,
        Can.LOSE_LEASE: "its worker dies, or is heard: there is no second one beside it",
        Can.QUEUES: f"{NO_SERVICE}queues are names there",
        Can.REFERENCES: f"{NO_SERVICE}nothing is kept elsewhere",
        Can.UNKNOWN: "it refuses to take a run of a task that it does not have",
    },
}


@dataclass(frozen=True, slots=True)
class Began:
    """One attempt, as its task saw it."""

    run: str
    attempt: int
    fence: int
    at: datetime
    checkpoint: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run as everybody can see it."""

    state: str
    attempt: int
    reason: str | None = None
    result: Any = None
    result_ref: str | None = None
    error: tuple[str | None, str | None] | None = None
    attempts: tuple[tuple[int, str], ...] = ()
    """Number and outcome, in order; empty where no history is kept."""
    percent: float | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    """A run among the dead letters."""

    run: str
    attempts: int
    reason: str
    fingerprint: str


class Hand(Protocol):
    """A worker, turned by hand."""

    silent: bool
    """Whether its heartbeats are lost: it looks at the clock and hears nothing."""
    frozen: bool
    """Whether it does nothing at all while time passes."""

    async def work(self) -> None:
        """Take what can be taken, go as far as it goes without time passing, report."""
        ...

    async def take(self) -> None:
        """The same without reporting."""
        ...

    async def report(self) -> None:
        """Tell what has ended."""
        ...

    async def beat(self) -> None:
        """One heartbeat, what it brings, and a look at what is believed to be held."""
        ...

    async def go(self) -> None:
        """Drain without patience: give back what is held, and leave."""
        ...

    def kill(self) -> None:
        """End at once; nobody is told."""
        ...

    def reply_lost(self) -> AbstractContextManager[None]:
        """Inside, the answer to the first report gets lost after it was written."""
        ...

    @property
    def idle(self) -> bool:
        """Whether it holds nothing and all its places are free."""
        ...


class Road(Protocol):
    """A world with tasks, runs, workers and a clock."""

    name: str

    @property
    def began(self) -> list[Began]:
        """Every attempt that has called its task, in order."""
        ...

    @property
    def most_at_once(self) -> int:
        """Most tasks that were inside `spend` at one time."""
        ...

    def task(self, name: str, body: Body, **options: Any) -> None:
        """Make a task known; before anything else happens."""
        ...

    async def spend(self, seconds: float) -> None:
        """Called by a task: it takes this long."""
        ...

    async def enqueue(self, name: str, given: Any = None, **options: Any) -> str:
        """Ask for a run, with the options of the API; its id."""
        ...

    async def enqueue_together(self, name: str, *several: Mapping[str, Any]) -> list[str]:
        """Ask for runs in one request, each with options of its own."""
        ...

    async def cancel(self, run: str) -> bool:
        """Ask for the end of a run; False when it is over already."""
        ...

    async def advance(self, seconds: float) -> None:
        """Let time pass; workers beat and the janitor reaps meanwhile, nobody takes new runs."""
        ...

    async def live(self, seconds: float) -> None:
        """Let time pass second by second with everybody at work, schedules included."""
        ...

    async def hire(self, *, knows: Sequence[str] | None = None) -> Hand:
        """One more worker, for all tasks or for some."""
        ...

    async def expire(self, run: str) -> None:
        """Let the lease of one run end, as if its worker had been silent about it."""
        ...

    async def limit(self, queue: str, **settings: Any) -> None:
        """Give a queue settings."""
        ...

    async def keep(self, content: bytes) -> str:
        """Keep a payload elsewhere; its reference."""
        ...

    async def kept(self, reference: str) -> bytes:
        """What lies there."""
        ...

    async def look(self, run: str) -> Seen:
        """A run as it is now."""
        ...

    async def fires(self, name: str) -> dict[int, str]:
        """What became of the fires of a schedule, by their second."""
        ...

    async def letters(self) -> list[Letter]:
        """The dead letters."""
        ...

    async def events(self, run: str) -> list[str]:
        """What was told about a run, sorted; that it waits or begins is left out."""
        ...

    async def at_rest(self) -> bool:
        """Whether nothing waits and nothing is held by anybody."""
        ...


@dataclass(slots=True)
class Bodies:
    """Tasks under way on a road: who began, and who waits for time to pass."""

    now: Callable[[], datetime]
    began: list[Began] = field(default_factory=list)
    resting: set[tuple[str, int]] = field(default_factory=set)
    most_at_once: int = 0

    def noted(self, body: Body) -> Body:
        """The same body, seen when it begins."""

        async def seen(ctx: Context, given: Any) -> Any:
            self.began.append(
                Began(ctx.run_id, ctx.attempt, ctx.fence, self.now(), ctx.checkpoint_value)
            )
            return await body(ctx, given)

        return seen

    @asynccontextmanager
    async def rest(self, ctx: Context) -> AsyncIterator[None]:
        """It waits for time, and for nothing else."""
        who = (ctx.run_id, ctx.fence)
        self.resting.add(who)
        self.most_at_once = max(self.most_at_once, len(self.resting))
        try:
            yield
        finally:
            self.resting.discard(who)


F = TypeVar("F", bound=Callable[..., Any])


def needs(*abilities: Can) -> Callable[[F], F]:
    """Say what a rule needs of a road; where a road lacks it, there is nothing to see."""

    def marked(rule: F) -> F:
        rule.needs = abilities  # type: ignore[attr-defined]
        return rule

    return marked
