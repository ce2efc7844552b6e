"""Runs of the Harness, and what a test can ask about them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, overload

import msgspec

from betimes.domain.dedupe import Dedupe
from betimes.domain.ids import compose, to_ms, to_text
from betimes.domain.outcome import ErrorFacts
from betimes.domain.retry import RetryPolicy
from betimes.domain.states import FINAL, RunState, Shown, Trigger, shown
from betimes.sdk.task import AnyTask

if TYPE_CHECKING:
    from betimes.testing.harness.job import Job

SHOWN = {state: shown(state) for state in RunState}
FIRST_FINAL = min(FINAL)
"""All states from here on are final; asked so often that it must cost nothing."""
NOT_FINAL = {Shown.RUNNING, *(SHOWN[state] for state in RunState if state not in FINAL)}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a run's log."""

    level: str
    message: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a workflow run a run belongs."""

    workflow_run: int
    node: str
    item: int | None = None
    """Which element it is about, where the node is mapped."""
    round: int = 0
    """Of retries of the workflow run."""
    id: str = ""
    """Of the workflow run, as the service would write it."""

    @property
    def name(self) -> str:
        """The node, and which of its elements."""
        return self.node if self.item is None else f"{self.node}[{self.item}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What was asked for beside handler and payload, read as the service reads it."""

    queue: str = "default"
    priority: int = 5
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta | None = None
    start_deadline: timedelta | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    gate: str | None = None
    gate_most: int = 1
    skips_when_full: bool = False
    dedupe: Dedupe | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class HarnessRun:
    """One run, as far as it has come."""

    number: int
    task: AnyTask
    payload: bytes | None
    created_at: datetime
    due_at: datetime
    terms: Terms
    trigger: Trigger = Trigger.API
    fire_at: datetime | None = None
    """The fire of its schedule; None for what was enqueued."""
    job: "Job | None" = None
    """Whose fire that is."""
    stored: RunState = RunState.SCHEDULED
    running: bool = False
    attempt: int = 0
    fence: int = 0
    started_at: datetime | None = None
    first_started_at: datetime | None = None
    finished_at: datetime | None = None
    cancel_wanted: bool = False
    reason: str = ""
    result_data: bytes | None = None
    error: ErrorFacts | None = None
    lines: list[Line] | None = None
    progress: tuple[float, str | None] | None = None
    checkpoint: Any = None
    held_until: datetime | None = None
    """While a worker that died still has its lease."""
    place: Place | None = None
    """Where it belongs in a workflow run."""
    carries: bool = False
    """Whether it only stands for a workflow run that its schedule has begun."""

    @property
    def id(self) -> str:
        """As the service would write it."""
        return to_text("run", compose(to_ms(self.created_at), 0, self.number))

    @property
    def log(self) -> list[Line]:
        """What it has logged."""
        if self.lines is None:
            self.lines = []
        return self.lines

    @property
    def name(self) -> str:
        """The name of its task."""
        return self.task.name

    @property
    def state(self) -> Shown:
        """As every interface shows it."""
        if self.running or self.held_until is not None:
            return Shown.RUNNING
        return SHOWN[self.stored]

    @property
    def is_final(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.stored >= FIRST_FINAL

    @property
    def arguments(self) -> dict[str, Any]:
        """What its handler is called with."""
        return self.task.arguments.decode(self.payload)

    @property
    def sent(self) -> dict[str, Any]:
        """The same as it travels: plain JSON, by the names of the parameters."""
        found: dict[str, Any] = msgspec.json.decode(self.payload) if self.payload else {}
        return found

    @property
    def result(self) -> Any:
        """What its handler returned, as it would come back from the service."""
        return None if self.result_data is None else msgspec.json.decode(self.result_data)

    @property
    def tags(self) -> Mapping[str, str]:
        """What it was tagged with."""
        return self.terms.tags

    @property
    def queue(self) -> str:
        """Where it waits for workers."""
        return self.terms.queue

    def __repr__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"<run {self.number} of {self.name!r}: {self.state}{why}, attempt {self.attempt}>"


class Runs(Sequence[HarnessRun]):
    """Some runs, in the order in which they came to be."""

    def __init__(self, runs: Iterable[HarnessRun]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[HarnessRun]:
        return iter(self._runs)

    @overload
    def __getitem__(self, place: int) -> HarnessRun: ...
    @overload
    def __getitem__(self, place: slice) -> "Runs": ...
    def __getitem__(self, place: int | slice) -> "HarnessRun | Runs":
        return Runs(self._runs[place]) if isinstance(place, slice) else self._runs[place]

    def __repr__(self) -> str:
        return f"Runs({self._runs!r})"

    def count(self, state: Any) -> int:
        """How many are in a state: `runs.count("retry_wait")`."""
        wanted = Shown(state)
        if wanted in NOT_FINAL:
            return sum(run.state is wanted for run in self._runs)
        stored = RunState[wanted.name]
        return sum(run.stored is stored for run in self._runs)

    @property
    def succeeded(self) -> int:
        """How many have succeeded."""
        return self.count(Shown.SUCCEEDED)

    @property
    def dead(self) -> int:
        """How many are out of attempts, or were given up."""
        return self.count(Shown.DEAD)

    @property
    def cancelled(self) -> int:
        """How many somebody has ended."""
        return self.count(Shown.CANCELLED)

    @property
    def skipped(self) -> int:
        """How many a policy has dropped."""
        return self.count(Shown.SKIPPED)

    @property
    def waiting(self) -> int:
        """How many are still to begin, or to begin again."""
        return sum(not run.is_final and not run.running for run in self._runs)
