"""What to do with a fire while an earlier run of the same job has not ended. Pure."""

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import assert_never


@unique
class OverlapPolicy(StrEnum):
    """The six answers to a fire that comes too soon."""

    ALLOW = "allow"
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_RUNNING = "cancel_running"
    REPLACE = "replace"


@unique
class Verdict(StrEnum):
    """What becomes of the new run."""

    GO = "go"
    SKIP = "skip"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Unended:
    """What is known of the earlier runs of a job: handed out, and waiting behind those."""

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
            return Answer(Verdict.SKIP, "OVERLAP_SKIPPED")
        case OverlapPolicy.BUFFER_ONE if earlier.waiting:
            return Answer(Verdict.SKIP, "OVERLAP_SKIPPED")
        case OverlapPolicy.BUFFER_ONE | OverlapPolicy.BUFFER_ALL:
            return Answer(Verdict.WAIT, "OVERLAP_BUFFERED")
        case OverlapPolicy.CANCEL_RUNNING:
            # What waits was wanted too; only what runs is in the way.
            return Answer(Verdict.WAIT, "OVERLAP_BUFFERED", cancel_running=earlier.running > 0)
        case OverlapPolicy.REPLACE:
            return Answer(
                Verdict.WAIT if earlier.running else Verdict.GO,
                "OVERLAP_BUFFERED" if earlier.running else "",
                cancel_running=earlier.running > 0,
                drop_waiting=earlier.waiting > 0,
            )
        case _:
            assert_never(policy)
