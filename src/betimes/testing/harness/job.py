"""Tasks with schedules, as the Harness keeps them."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from betimes.schedule import Schedule, Skipped
from betimes.sdk.task import AnyTask
from betimes.testing.harness.run import HarnessRun, Terms


@dataclass(slots=True, eq=False)
class Job:
    """A task with a schedule, and where it has come to."""

    task: AnyTask
    schedule: Schedule
    terms: Terms
    since: datetime
    fires: list[datetime] = field(default_factory=list)
    missed: list[Skipped] = field(default_factory=list)
    ahead: deque[int] = field(default_factory=deque)
    begun: list[HarnessRun] = field(default_factory=list)
    """Runs that have started and have not ended; also while they wait for a retry."""
    waiting: deque[HarnessRun] = field(default_factory=deque)
    failures: int = 0
    paused: bool = False
    planned_through: int = 0
    starts_workflow: bool = False
    """Whether `task` is none but a workflow, which has a name and options as well."""
