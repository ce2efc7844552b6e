"""When the zone rules change, future fires are computed anew.

A shard remembers with which release of the rules its next fires were computed. An owner with
another release walks once through the jobs of the shard whose next fire is not planned yet, and
moves those whose next fire is another one now. What is planned already stays.
"""

from datetime import datetime, timedelta
from uuid import UUID

from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.plan import instant
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut
from betimes.domain.ids import to_us
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.schedule import ScheduleCache
from betimes.store.shards import Shards
from betimes.store.zones import FarJob, Zones
from betimes.telemetry import Outage, Telemetry

PAGE = 1_000
LOOK_EVERY = timedelta(seconds=5)


class ZoneKeeper:
    """Brings the next fires of newly held shards to this node's zone rules."""

    def __init__(
        self,
        *,
        zones: Zones,
        shards: Shards,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        horizon: timedelta,
        tzdata: str,
    ) -> None:
        self._zones = zones
        self._shards = shards
        self._holdings = holdings
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._horizon = horizon
        self._tzdata = tzdata
        self._schedules = ScheduleCache()
        self._outage = Outage(duty="coordinator.zones", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Look for shards to bring along until asked to stop."""
        beats = beat(self._clock, every=LOOK_EVERY, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> int:
        """One pass over shards that carry another release; returns how many jobs were moved."""
        moved = 0
        for held in self._holdings.trusted(self._clock.monotonic()):
            if held.tzdata != self._tzdata:
                moved += await self._bring(held)
        return moved

    async def _bring(self, held: Held) -> int:
        beyond = self._time.now() + self._horizon
        after, moved = UUID(int=0), 0
        try:
            while held.term.is_trusted(self._clock.monotonic()):
                jobs = await self._zones.far_jobs(
                    held.claim.shard, after=after, beyond=beyond, most=PAGE
                )
                moved += await self._move(held, jobs, beyond)
                if len(jobs) < PAGE:
                    await self._note(held, moved)
                    break
                after = jobs[-1].id
        except FencedOut:
            self._holdings.lose(held.claim.shard)
        return moved

    async def _move(self, held: Held, jobs: list[FarJob], beyond: datetime) -> int:
        fires = [(job, self._next(job, beyond)) for job in jobs]
        other = [
            (job, fire) for job, fire in fires if fire is not None and fire != job.next_fire_at
        ]
        if not other:
            return 0
        return await self._zones.refresh(
            held.claim, other, tzdata=self._tzdata, now=self._clock.stated()
        )

    def _next(self, job: FarJob, beyond: datetime) -> datetime | None:
        try:
            schedule = self._schedules.get(job.schedule, str(job.id))
            if schedule.is_fixed_delay:
                return None
            found = schedule.next_instant(to_us(beyond))
        except Exception:  # noqa: BLE001 -- one job must not stop its shard
            return None  # the planner sets it aside when its time comes, with the reason
        return None if found is None else instant(found)

    async def _note(self, held: Held, moved: int) -> None:
        if await self._shards.record_tzdata(held.claim, self._tzdata):
            before, held.tzdata = held.tzdata, self._tzdata
            if before is not None:
                self._telemetry.event(
                    "zones.changed",
                    shard=held.claim.shard,
                    before=before,
                    after=self._tzdata,
                    measurements={"moved": moved},
                )
