"""Fires of schedules in the world in memory: they become runs, also after an outage."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from betimes.schedule import plan_catchup
from betimes.schedule.moment import to_datetime, to_instant
from betimes.testing.harness.job import Job
from betimes.testing.harness.run import HarnessRun

FIRES_AHEAD = 512

Make = Callable[[Job, datetime, datetime], HarnessRun]
"""Makes the run of a fire: due then, for that fire time."""
Push = Callable[[datetime, Any], None]


class Fires:
    """When schedules fire next."""

    def __init__(self, make: Make, push: Push) -> None:
        self._make = make
        self._push = push

    def plan(self, job: Job, now: datetime) -> None:
        """Take a schedule up; its fires begin after now."""
        job.planned_through = to_instant(now)
        self.next(job, now)

    def next(self, job: Job, now: datetime, last_end: datetime | None = None) -> None:
        """Expect the next fire of a job."""
        if job.paused:
            return
        if job.schedule.is_fixed_delay:
            fire = job.schedule.next(now, last_end=last_end)
            if fire is not None:
                self._push(fire.nominal, (job, to_instant(fire.nominal), fire.nominal))
            return
        if not job.ahead:
            following = job.schedule.instants(job.planned_through, 1 << 62, FIRES_AHEAD)
            job.ahead.extend(following)
        if job.ahead:
            instant = job.planned_through = job.ahead.popleft()
            nominal = to_datetime(instant)
            self._push(nominal, (job, instant, nominal))

    def fire(self, job: Job, instant: int, nominal: datetime) -> None:
        """A fire time has come."""
        if job.paused:
            return
        job.fires.append(nominal)
        effective = nominal
        if job.schedule.moves_starts:
            effective = to_datetime(job.schedule.effective(instant))
        self._make(job, effective, nominal)
        if not job.schedule.is_fixed_delay:
            self.next(job, nominal)

    def catch_up(self, job: Job, before: datetime, until: datetime) -> None:
        """The service was down: catch-up decides about the fires in between."""
        plan = plan_catchup(job.schedule, before, until)
        job.missed += plan.skipped
        for fire in plan.runs:
            job.fires.append(fire.nominal)
            self._make(job, until, fire.nominal)
        job.ahead.clear()
        job.planned_through = to_instant(until)
        self.next(job, until)
