"""Fires become runs, some minutes ahead.

What is authoritative: `next_fire_at` of a job. It moves in the transaction that inserts the runs up
to it, under the shard's epoch and the job's revision, so every fire becomes exactly one run or one
recorded decision, whoever dies in between.

A job is planned when its next fire is nearer than half the horizon, and then through the whole of
it: frequent jobs advance their row once per half horizon, not once per fire.
"""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.hint import Hint
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.plan import Pass
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, Refused
from betimes.domain.ids import ShardId
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.schedule import ScheduleCache
from betimes.store.plan import DueJob, Planning, Step
from betimes.telemetry import Outage, Telemetry

JOBS_PER_PAGE = 250
SHARDS_AT_ONCE = 2
RUNS_PER_TRANSACTION = 2_000
"""Few enough that sending them does not keep the publisher waiting: it shares our event loop."""
TURN_SECONDS = 0.002
"""How long computing may keep the event loop."""
PAGES_PER_SHARD_MAX = 8
SCHEDULES_MAX = 50_000
BEGINNING = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


class Planner:
    """Plans every shard this node holds."""

    def __init__(
        self,
        *,
        planning: Planning,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
        tzdata: str,
        hint: Hint = lambda *_: None,
    ) -> None:
        self._planning = planning
        self._holdings = holdings
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._tzdata = tzdata
        self._hint = hint
        self._schedules = ScheduleCache(SCHEDULES_MAX)
        self._turns: dict[ShardId, float] = {}
        self.nudge = asyncio.Event()
        self._missed = telemetry.counter("betimes_fires_missed_total")
        self._lost = telemetry.counter("betimes_lease_lost_total")
        self._outage = Outage(duty="coordinator.planner", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Plan until asked to stop; while the database is away, keep trying."""
        every = self._settings.plan_every
        beats = beat(self._clock, every=every, stopping=stopping, nudge=self.nudge)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> int:
        """One pass over every shard we may trust; returns how many runs were planned."""
        if not self._time.known:
            return 0
        with self._telemetry.span("planner.tick") as span:
            span.expect_errors()
            now = self._time.now()
            current = Pass(self._schedules, now=now, until=now + self._settings.horizon)
            before = now + self._settings.horizon / 2
            held = self._holdings.trusted(self._clock.monotonic())
            due = set(
                await self._planning.shards_to_plan(
                    [one.claim.shard for one in held], before=before
                )
            )
            self._passed(held)
            wanted = sorted((one for one in held if one.claim.shard in due), key=self._last_turn)
            runs = await self._plan_shards(wanted, held, current, before)
            span.add(runs=runs)
        return runs

    async def _plan_shards(
        self, wanted: list[Held], held: list[Held], current: Pass, before: datetime
    ) -> int:
        """A few shards at a time: one is computed while another one is written."""
        turns = iter(wanted)
        runs = 0

        async def take_turns() -> None:
            nonlocal runs
            for one in turns:
                self._turns[one.claim.shard] = self._clock.monotonic()
                runs += await self._plan_shard(one, current, before)
                self._passed(held)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(SHARDS_AT_ONCE, len(wanted))):
                    group.create_task(take_turns(), name="planner.shard")
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return runs

    def _last_turn(self, held: Held) -> float:
        return self._turns.get(held.claim.shard, float("-inf"))

    def _passed(self, held: list[Held]) -> None:
        """Note for all of them that the planner works, which is what their leases ask.

        Under overload a shard may wait for its turn longer than a lease lasts; to lose it then
        would help nobody.
        """
        now = self._clock.monotonic()
        for one in held:
            one.planned_at = now

    async def _plan_shard(self, held: Held, current: Pass, before: datetime) -> int:
        """Page through the due jobs; a bound on pages lets the other shards have their turn."""
        after, runs = BEGINNING, 0
        for _ in range(PAGES_PER_SHARD_MAX):
            if not held.term.is_trusted(self._clock.monotonic()):
                break
            jobs = await self._planning.due_jobs(
                held.claim.shard, before=before, after=after, most=JOBS_PER_PAGE
            )
            try:
                runs += await self._plan_page(held, current, jobs)
            except FencedOut:
                self._step_down(held)
                break
            if len(jobs) < JOBS_PER_PAGE:
                break
            after = (jobs[-1].next_fire_at, jobs[-1].id)
        return runs

    async def _plan_page(self, held: Held, current: Pass, jobs: list[DueJob]) -> int:
        steps: list[Step] = []
        broken: list[tuple[DueJob, str]] = []
        runs = size = 0
        turn = self._clock.monotonic()
        for job in jobs:
            if self._clock.monotonic() - turn > TURN_SECONDS:
                await self._clock.sleep(0)
                turn = self._clock.monotonic()
            try:
                step = current.step(job)
            except Refused as error:
                broken.append((job, error.sentence))
                continue
            steps.append(step)
            size += len(step.ids)
            if size >= RUNS_PER_TRANSACTION:
                runs += await self._commit(held, steps)
                steps, size = [], 0
        if steps:
            runs += await self._commit(held, steps)
        if broken:
            await self._planning.set_aside(held.claim.shard, broken, now=self._clock.stated())
        return runs

    async def _commit(self, held: Held, steps: list[Step]) -> int:
        async with held.writing:
            done = await self._planning.commit(
                held.claim, steps, tzdata=self._tzdata, now=self._clock.stated()
            )
        for step in steps:
            for dropped in step.dropped:
                self._missed.add(dropped.fires, reason=dropped.code)
        if done.skipped:
            self._missed.add(done.skipped, reason=OVERLAP_SKIPPED)
        for parcel in done.parcels:
            self._hint(*parcel.hint)
        return done.runs

    def _step_down(self, held: Held) -> None:
        if self._holdings.lose_claim(held.claim) is not None:
            self._lost.add(kind="shard")
            why = "fenced out"
            self._telemetry.event("shard.lost", level="warning", shard=held.claim.shard, why=why)
