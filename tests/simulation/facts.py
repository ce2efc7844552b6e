"""What checks are given, and what they say."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from simulation.history import Asked, Change, Executed, History
from simulation.oracle import SECOND
from simulation.plan import JobPlan

DRAIN = 18 * SECOND
"""How long before the end the last fire is that must have been accounted for."""
ENDS = {3, 4, 5}
"""States in which the end of an attempt leaves a run: to be retried, succeeded, dead."""


@dataclass(frozen=True)
class Violation:
    """A promise that was broken, and where."""

    invariant: str
    sentence: str


@dataclass(eq=False)
class Verdict:
    """What came of one seed."""

    violations: list[Violation] = field(default_factory=list)
    evidence: Counter[str] = field(default_factory=Counter)

    def saw(self, invariant: str, many: int = 1) -> None:
        """Count what was looked at."""
        self.evidence[invariant] += many

    def broken(self, invariant: str, sentence: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(invariant, sentence))

    @property
    def invariants(self) -> set[str]:
        """Which were broken."""
        return {one.invariant for one in self.violations}


class Facts:
    """The history, put in the order in which the checks ask."""

    def __init__(self, history: History) -> None:
        assert history.ended is not None
        assert history.healed is not None
        self.history = history
        self.ended: datetime = history.ended
        self.healed: datetime = history.healed
        self.until = self.ended - DRAIN
        self.created = {
            one.job: one
            for one in history.asked
            if one.verb == "create" and one.ok and one.job is not None
        }
        self.plans: dict[UUID, JobPlan] = {
            job: history.plan.jobs[int(one.detail)] for job, one in self.created.items()
        }
        self.alone: dict[UUID, JobPlan] = {
            UUID(one.answer): history.plan.jobs[int(one.detail)]
            for one in history.asked
            if one.verb in {"enqueue", "enqueue_later"} and one.ok
        }
        """Runs without a job, and the job whose task they are."""
        self.executed: dict[UUID, list[Executed]] = defaultdict(list)
        for done in history.executed:
            self.executed[done.run].append(done)
        self.leases: dict[UUID, list[Change]] = defaultdict(list)
        self.turns: dict[UUID, list[Change]] = defaultdict(list)
        self.shards: dict[int, list[Change]] = defaultdict(list)
        for change in history.changes:
            if change.kind == "parcel":
                for run in change.fact["runs"]:
                    self.leases[UUID(run)].append(change)
            elif change.kind == "run" and change.id is not None:
                self.turns[change.id].append(change)
            elif change.kind == "shard":
                self.shards[change.shard].append(change)

    def lost(self, run: UUID) -> int:
        """How often somebody leased a run and nobody told its end."""
        turns, leases = self.turns.get(run, []), self.leases.get(run, [])
        ends = {turn.fact["fence"] for turn in turns if turn.fact["after"] in ENDS}
        return len({lease.fact["fence"] for lease in leases} - ends)

    def asked(self, verb: str) -> Iterator[Asked]:
        """What clients wanted of one kind."""
        return (one for one in self.history.asked if one.verb == verb)


Check = Callable[[Facts, Verdict], None]
