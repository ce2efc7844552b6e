"""Verbs that are due by time: pauses that have ended, jobs that go when they are done."""

from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.ids import ShardId
from betimes.ops.catchups import EPISODES_MAX, carry_out
from betimes.ops.desk import Desk
from betimes.ops.end import delete_spent
from betimes.ops.pause import resume_elapsed
from betimes.ops.telling import tell_untold
from betimes.rhythm import Stopping, attend, beat
from betimes.store.errands import Errand, find_errands
from betimes.telemetry import Items, Outage, Telemetry

EVERY = timedelta(seconds=2)
ITEMS_MAX = 100
"""So many jobs of a shard in one pass, of each kind."""


class Errands:
    """Runs the verbs nobody is there to ask for; any number of janitors may."""

    def __init__(self, *, desk: Desk, clock: Clock, telemetry: Telemetry) -> None:
        self._desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._outage = Outage(duty="janitor.errands", telemetry=telemetry)
        self._items = Items(duty="janitor.errands", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Run errands until asked to stop."""
        beats = beat(self._clock, every=EVERY, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

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
                done = await self._errands_of(errand)
                resumed, told = resumed + done[0], told + done[1]
                deleted, caught_up = deleted + done[2], caught_up + done[3]
            span.add(resumed=resumed, deleted=deleted, caught_up=caught_up, told=told)
        return resumed, deleted

    async def _errands_of(self, errand: Errand) -> tuple[int, int, int, int]:
        desk, each, shard = self._desk, self._items.each, errand.shard
        # What is postponed is found again, and must not take the place of others.
        more = len(self._items.postponed)
        resumed = told = deleted = caught_up = 0
        if errand.resumes:
            resumed = len(await resume_elapsed(desk, shard, most=ITEMS_MAX + more, each=each))
        if errand.tells:
            (told,) = await each([f"told:{shard}"], lambda _: tell_untold(desk, shard)) or (0,)
        if errand.deletes:
            deleted = len(await delete_spent(desk, shard, most=ITEMS_MAX + more, each=each))
        if errand.decided:
            caught_up = await carry_out(desk, shard, most=EPISODES_MAX + more, each=each)
        return resumed, told, deleted, caught_up
