"""When the zone rules change, future fires are computed anew.

A shard remembers with which release of the rules its next fires were computed. An owner with
another release walks once through the jobs of the shard whose next fire is not planned yet, and
moves those whose next fire is another one now. What is planned already stays, also ahead of a clock
that was set back.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.plan import instant
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut
from betimes.domain.ids import ShardId, to_us
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.schedule import Budget, ScheduleCache
from betimes.store.shards import Shards
from betimes.store.zones import FarJob, Zones
from betimes.telemetry import Outage, Telemetry

PAGE = 1_000
SHARDS_TOGETHER = 64
ROWS_TOGETHER = 16_000
STEPS_PER_JOB = 10
TURN_STEPS = 2_000
"""How many steps of evaluation may keep the event loop; a job takes its own budget at most."""
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
        others = [
            held
            for held in self._holdings.trusted(self._clock.monotonic())
            if held.tzdata != self._tzdata
        ]
        for start in range(0, len(others), SHARDS_TOGETHER):
            moved += await self._bring(others[start : start + SHARDS_TOGETHER])
        return moved

    async def _bring(self, some: Sequence[Held]) -> int:
        """Page through the jobs of several shards at once."""
        beyond = self._time.now() + self._horizon
        after = {held.claim.shard: UUID(int=0) for held in some}
        moved: Counter[ShardId] = Counter()
        left, done = list(some), []
        while left := [one for one in left if one.term.is_trusted(self._clock.monotonic())]:
            most = min(PAGE, ROWS_TOGETHER // len(left))
            pages = await self._zones.far_jobs(
                {one.claim.shard: after[one.claim.shard] for one in left},
                beyond=beyond,
                most=most,
            )
            for one in list(left):
                shard, jobs = one.claim.shard, pages[one.claim.shard]
                try:
                    moved[shard] += await self._move(one, jobs, beyond)
                except FencedOut:
                    left.remove(one)  # the publisher notices by itself
                    continue
                if len(jobs) < most:
                    left.remove(one)
                    done.append(one)
                else:
                    after[shard] = jobs[-1].id
        if done:
            await self._note(done, moved)
        return moved.total()

    async def _move(self, held: Held, jobs: list[FarJob], beyond: datetime) -> int:
        fires: list[tuple[FarJob, datetime | None]] = []
        taken = 0
        for job in jobs:
            budget = Budget()
            # What lay before the last verb was that verb's, also where its time comes again.
            fires.append((job, self._next(job, max(beyond, job.updated_at), budget)))
            taken += STEPS_PER_JOB + budget.spent
            if taken > TURN_STEPS:
                await self._clock.sleep(0)
                taken = 0
        other = [
            (job, fire) for job, fire in fires if fire is not None and fire != job.next_fire_at
        ]
        if not other:
            return 0
        return await self._zones.refresh(
            held.claim,
            other,
            following=lambda job, instant: self._next(job, instant, Budget()),
            tzdata=self._tzdata,
            now=self._clock.stated(),
        )

    def _next(self, job: FarJob, after: datetime, budget: Budget) -> datetime | None:
        try:
            schedule = self._schedules.get(job.schedule, str(job.id), budget=budget)
            if schedule.is_fixed_delay:
                return None
            found = schedule.next_instant(to_us(after), budget=budget)
        except Exception:  # noqa: BLE001 -- one job must not stop its shard
            return None  # the planner sets it aside when its time comes, with the reason
        return None if found is None else instant(found)

    async def _note(self, done: Sequence[Held], moved: Mapping[ShardId, int]) -> None:
        ours = await self._shards.record_tzdata([held.claim for held in done], self._tzdata)
        for held in done:
            if held.claim.shard not in ours:
                continue
            before, held.tzdata = held.tzdata, self._tzdata
            if before is not None:
                self._telemetry.event(
                    "zones.changed",
                    shard=held.claim.shard,
                    before=before,
                    after=self._tzdata,
                    measurements={"moved": moved[held.claim.shard]},
                )
