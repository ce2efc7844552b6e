"""States of runs and jobs, and THE transition table.

What is stored and what is shown differ a little. A run row says `SCHEDULED` until something
happened to it: that it waits in the queue or is being executed right now is written in the parcel
that holds it, never in the row, so that a run costs one insert and one update in its whole life.
"""

from enum import IntEnum, StrEnum, unique

from betimes.domain.errors import IllegalTransition


@unique
class RunState(IntEnum):
    """The life of a run; the numbers are stored and never reused."""

    SCHEDULED = 0
    """Planned; the publisher makes its parcel when it is nearly due."""
    QUEUED = 1
    """A parcel was made in the transaction that inserted the run."""
    RUNNING = 2
    """Held by a leased parcel. Shown, never stored."""
    RETRY_WAIT = 3
    """The last attempt failed; a parcel with the backoff holds the run."""
    SUCCEEDED = 4
    DEAD = 5
    """Out of attempts, or given up on: in the dead letters."""
    CANCELLED = 6
    SKIPPED = 7
    """Dropped before it started, by a policy or by a person."""
    EXPIRED = 8
    """Its start deadline passed while it waited."""
    MISSED = 9
    """Its time passed while nobody could run it, and catch-up did not want it."""


@unique
class JobState(IntEnum):
    """The life of a job; the numbers are stored and never reused."""

    ACTIVE = 0
    PAUSED = 1
    AUTO_PAUSED = 2
    """Paused by a rule, not by a person."""
    COMPLETED = 3
    """Has no fire time left."""
    CANCELLED = 4


@unique
class Trigger(IntEnum):
    """What made a run; the numbers are stored and never reused."""

    SCHEDULE = 0
    MANUAL = 1
    API = 2
    BACKFILL = 3
    RETRY = 4
    REDRIVE = 5
    WORKFLOW = 6
    COMPAT = 7


class Shown(StrEnum):
    """Names of run states in every interface."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    MISSED = "missed"


FINAL = frozenset(
    {
        RunState.SUCCEEDED,
        RunState.DEAD,
        RunState.CANCELLED,
        RunState.SKIPPED,
        RunState.EXPIRED,
        RunState.MISSED,
    }
)

_WAITING_ENDS = {RunState.CANCELLED, RunState.SKIPPED, RunState.EXPIRED, RunState.MISSED}
_ATTEMPT_ENDS = {
    RunState.RETRY_WAIT,
    RunState.SUCCEEDED,
    RunState.DEAD,
    RunState.CANCELLED,
    RunState.EXPIRED,
}

TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.SCHEDULED: frozenset({RunState.QUEUED, RunState.RUNNING} | _WAITING_ENDS),
    RunState.QUEUED: frozenset({RunState.RUNNING} | _WAITING_ENDS),
    # Given back by a draining worker, or found again after its worker died: queued once more.
    RunState.RUNNING: frozenset({RunState.QUEUED, RunState.SKIPPED} | _ATTEMPT_ENDS),
    RunState.RETRY_WAIT: frozenset(
        {RunState.RUNNING, RunState.QUEUED, RunState.CANCELLED, RunState.EXPIRED, RunState.DEAD}
    ),
    RunState.SUCCEEDED: frozenset(),
    # An operator may ask for one more try; nothing else leaves a final state.
    RunState.DEAD: frozenset({RunState.QUEUED}),
    RunState.CANCELLED: frozenset({RunState.QUEUED}),
    RunState.SKIPPED: frozenset(),
    RunState.EXPIRED: frozenset({RunState.QUEUED}),
    RunState.MISSED: frozenset(),
}

JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.ACTIVE: frozenset(
        {JobState.PAUSED, JobState.AUTO_PAUSED, JobState.COMPLETED, JobState.CANCELLED}
    ),
    JobState.PAUSED: frozenset({JobState.ACTIVE, JobState.CANCELLED, JobState.COMPLETED}),
    JobState.AUTO_PAUSED: frozenset({JobState.ACTIVE, JobState.PAUSED, JobState.CANCELLED}),
    # An edit may give a completed job new fire times.
    JobState.COMPLETED: frozenset({JobState.ACTIVE}),
    JobState.CANCELLED: frozenset(),
}


def shown(state: RunState) -> Shown:
    """The public name of a run state."""
    return Shown[state.name]


def check_run(before: RunState, after: RunState) -> None:
    """Refuse an edge the table does not have, naming what would be allowed."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(_sentence("run", before.name, after.name, TRANSITIONS[before]))


def check_job(before: JobState, after: JobState) -> None:
    """Refuse an edge the table does not have, naming what would be allowed."""
    if after not in JOB_TRANSITIONS[before]:
        raise IllegalTransition(_sentence("job", before.name, after.name, JOB_TRANSITIONS[before]))


def _sentence(noun: str, before: str, after: str, allowed: frozenset[IntEnum]) -> str:
    names = ", ".join(sorted(state.name.lower() for state in allowed)) or "nothing"
    return (
        f"a {noun} that is {before.lower()} cannot become {after.lower()}; "
        f"from there it can become {names}"
    )
