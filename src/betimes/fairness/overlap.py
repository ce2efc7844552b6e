"""What to do with a fire while an earlier run of the same job has not ended. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import assert_never
from uuid import UUID

OVERLAP_SKIPPED = "OVERLAP_SKIPPED"
OVERLAP_BUFFERED = "OVERLAP_BUFFERED"


@unique
class OverlapPolicy(StrEnum):
    """The six answers to a fire that comes too soon; their places in this list are stored."""

    ALLOW = "allow"
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_RUNNING = "cancel_running"
    REPLACE = "replace"

    @property
    def number(self) -> int:
        """As it is stored."""
        return _NUMBERS[self]

    @property
    def waits(self) -> bool:
        """Whether its runs go one after the other, in a line."""
        return self.number > _NUMBERS[OverlapPolicy.SKIP]


POLICIES = tuple(OverlapPolicy)
_NUMBERS = {policy: number for number, policy in enumerate(POLICIES)}


@unique
class Verdict(StrEnum):
    """What becomes of the new run."""

    GO = "go"
    SKIP = "skip"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Unended:
    """What is known of the earlier runs of a job: those that began, and those that wait."""

    running: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict about the new run, and what it does to the earlier ones."""

    verdict: Verdict
    reason: str = ""
    cancel_running: bool = False
    drop_waiting: bool = False


GO = Answer(Verdict.GO)


def answer(policy: OverlapPolicy, earlier: Unended) -> Answer:
    """Decide about one fire."""
    if policy is OverlapPolicy.ALLOW or not (earlier.running or earlier.waiting):
        return GO
    match policy:
        case OverlapPolicy.SKIP:
            return Answer(Verdict.SKIP, OVERLAP_SKIPPED)
        case OverlapPolicy.BUFFER_ONE if earlier.waiting:
            return Answer(Verdict.SKIP, OVERLAP_SKIPPED)
        case OverlapPolicy.BUFFER_ONE | OverlapPolicy.BUFFER_ALL:
            return Answer(Verdict.WAIT, OVERLAP_BUFFERED)
        case OverlapPolicy.CANCEL_RUNNING:
            # What waits was wanted too; only what runs is in the way.
            return Answer(Verdict.WAIT, OVERLAP_BUFFERED, cancel_running=earlier.running > 0)
        case OverlapPolicy.REPLACE:
            return Answer(
                Verdict.WAIT if earlier.running else Verdict.GO,
                OVERLAP_BUFFERED if earlier.running else "",
                cancel_running=earlier.running > 0,
                drop_waiting=earlier.waiting > 0,
            )
        case _:
            assert_never(policy)


def policy_of(said: str, *, planned_late: bool = False, fixed_delay: bool = False) -> OverlapPolicy:
    """The policy a run is given, from what its schedule says.

    Fires that are caught up with are wanted, all of them: they go one after the other instead of
    skipping or replacing each other. The one fire of a fixed delay writes the next one when it
    ends, so it is never dropped: it waits.
    """
    policy = OverlapPolicy(said)
    if policy is OverlapPolicy.ALLOW or not (planned_late or fixed_delay):
        return policy
    if policy is OverlapPolicy.CANCEL_RUNNING and not planned_late:
        return policy
    return OverlapPolicy.BUFFER_ALL


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run of the same job, as far as the rule cares."""

    id: UUID
    policy: OverlapPolicy
    ended: bool
    started: bool
    undecided: bool = False
    """It waits for a verdict of its own."""
    later: bool = False
    """It has no say yet: its time has not come, or somebody has to approve it first."""
    moved: bool = False
    """It ran at another time than its id says."""
    blocked_by: UUID | None = None

    @property
    def vouches(self) -> bool:
        """Whether it was let through under the rule and is over: all before it had ended then."""
        started = self.ended and self.started and not self.moved
        return started and self.policy is not OverlapPolicy.ALLOW


def obstacle(
    run: UUID,
    policy: OverlapPolicy,
    earlier: Iterable[Earlier],
    blockers: Mapping[UUID, Earlier],
) -> UUID | None:
    """The run that stands in the way, looking back from the newest; None when nothing does.

    `blockers` are the runs for whose sake some of the earlier ones were skipped. Runs of a line do
    not stand in each other's way: the line keeps them apart. Whoever has a later id and waits for
    its verdict gives way to us, and so does whoever has no say yet.
    """
    for one in earlier:
        for seen in (one, blockers.get(one.blocked_by) if one.blocked_by else None):
            if seen is None or seen.id == run or seen.ended:
                continue  # who gave way to us is not in our way
            if policy.waits and seen.policy.waits:
                continue
            if not seen.later and not (seen.undecided and seen.id > run):
                return seen.id
        if one.vouches:
            return None
    return None
