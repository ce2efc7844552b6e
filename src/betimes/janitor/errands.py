"""Verbs that are due by time: pauses that have ended, jobs that go when they are done."""

from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.ids import ShardId
from betimes.ops.catchups import carry_out
from betimes.ops.desk import Desk
from betimes.ops.end import delete_spent
from betimes.ops.pause import resume_elapsed
from betimes.ops.telling import tell_untold
from betimes.rhythm import Stopping, attend, beat
from betimes.store.errands import find_errands
from betimes.telemetry import Outage, Telemetry

EVERY = timedelta(seconds=2)


class Errands:
    """Runs the verbs nobody is there to ask for; any number of janitors may."""

    def __init__(self, *, desk: Desk, clock: Clock, telemetry: Telemetry) -> None:
        self._desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._outage = Outage(duty="janitor.errands", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Run errands until asked to stop."""
        beats = beat(self._clock, every=EVERY, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> tuple[int, int]:
        """One pass; returns how many jobs were resumed and deleted. One look finds where.

        What was decided about catching up is carried out as well, and ends are told that nobody
        else tells; before jobs are deleted for them.
        """
        with self._telemetry.span("errands.tick") as span:
            span.expect_errors()
            resumed = deleted = caught_up = told = 0
            shards = [ShardId(number) for number in range(self._desk.shards)]
            for errand in await find_errands(
                self._desk.database, shards, now=self._desk.clock.stated()
            ):
                if errand.resumes:
                    resumed += len(await resume_elapsed(self._desk, errand.shard))
                if errand.tells:
                    told += await tell_untold(self._desk, errand.shard)
                if errand.deletes:
                    deleted += len(await delete_spent(self._desk, errand.shard))
                if errand.decided:
                    caught_up += await carry_out(self._desk, errand.shard)
            span.add(resumed=resumed, deleted=deleted, caught_up=caught_up, told=told)
        return resumed, deleted
