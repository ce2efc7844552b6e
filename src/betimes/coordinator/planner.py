"""Fires become runs, some minutes ahead.

What is authoritative: `next_fire_at` of a job. It moves in the transaction that inserts the runs up
to it, under the shard's epoch and the job's revision, so every fire becomes exactly one run or one
recorded decision, whoever dies in between.

Every shard has marks of its own, half a horizon apart (`plan_until`), and is planned up to the last
one within the horizon. So frequent jobs advance their row once per half horizon, not once per fire,
and the shards take turns: the jobs of a popular minute are planned a shard at a time, not at once.

What is on time comes first. Then jobs that are behind go on with the fires of now and leave a gap
each. What was missed is settled last, a bounded number of gaps in each pass.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from uuid import UUID

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.hint import Hint
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.pace import Pace as NodePace
from betimes.coordinator.plan import LATE_AFTER, Pass, Settling, plan_until
from betimes.coordinator.recovery import Recovery
from betimes.coordinator.renewal import FENCED_OUT, Renewal
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, Refused, Unavailable
from betimes.domain.ids import ShardId, to_text
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.fairness.pace import share_of
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.schedule import Budget, ScheduleCache
from betimes.store.catchup import Catching, Settled
from betimes.store.joining import Pace
from betimes.store.plan import DueJob, Planning, Step, ToPlan
from betimes.telemetry import Outage, Telemetry

JOBS_PER_PAGE = 250
SHARDS_AT_ONCE = 2
FAILED_MAX = 2
"""So many shards may fail in a pass; more, and it is the database that is in trouble."""
RUNS_PER_TRANSACTION = 2_000
"""Few enough that sending them does not keep the publisher waiting: it shares our event loop."""
TURN_SECONDS = 0.002
"""How long computing may keep the event loop."""
TURN_STEPS = 2_000
"""The same in steps of evaluation; a single job takes no more than its own budget."""
PAGES_PER_SHARD_MAX = 8
LATE_SHARE = 0.7
"""How much of the time settling may take: the rest belongs to what is on time."""
REST_SECONDS_MAX = 0.25
GAPS_PER_PASS = 2_000
SCHEDULES_MAX, SCHEDULES_BYTES_MAX = 50_000, 128 << 20
Place = tuple[datetime, UUID]
"""Where a page begins: after this next fire and this job."""
BEGINNING: Place = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


class Planner:
    """Plans every shard this node holds."""

    def __init__(
        self,
        *,
        planning: Planning,
        catching: Catching,
        recovery: Recovery,
        renewal: Renewal,
        pace: NodePace,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
        tzdata: str,
        hint: Hint = lambda *_: None,
    ) -> None:
        self._planning = planning
        self._catching = catching
        self._recovery = recovery
        self._renewal = renewal
        self._pace = pace
        self._holdings = holdings
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._tzdata = tzdata
        self._hint = hint
        self._schedules = ScheduleCache(SCHEDULES_MAX, bytes_max=SCHEDULES_BYTES_MAX)
        self._turns: dict[ShardId, float] = {}
        self.nudge = asyncio.Event()
        self._missed = telemetry.counter("betimes_fires_missed_total")
        self._late = telemetry.counter("betimes_catchup_runs_total")
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
            edge = now - LATE_AFTER
            held = self._holdings.trusted(self._clock.monotonic())
            found = await self._look(held, now, edge)
            runs = await self._plan_due(held, found.due, now, after=(edge, UUID(int=0)))
            missed = await self._recovery.look(held)
            held = await self._recovered(held, missed)
            if missed:
                found = await self._look(held, now, edge)
            late = found.late
            runs += await self._plan_due(held, late, now, after=BEGINNING, before=edge)
            if late or found.gaps:
                runs += await self._settle(held)
            span.add(runs=runs)
        return runs

    async def _look(self, held: list[Held], now: datetime, edge: datetime) -> ToPlan:
        """What there is to do in these shards: one question for all of them."""
        if not held:
            return ToPlan()
        found = await self._planning.look(self._marks(held, now), edge=edge)
        self._passed(held)
        return found

    def _marks(self, held: list[Held], now: datetime) -> dict[ShardId, datetime]:
        """Up to where each shard is planned now."""
        horizon = self._settings.horizon
        return {one.claim.shard: plan_until(one.claim.shard, now, horizon) for one in held}

    async def _recovered(self, held: list[Held], missed: list[Held]) -> list[Held]:
        """Shards that are still ours, with nothing of the time before that is planned and late."""
        until = self._clock.monotonic() + self._pace.plan_budget
        for one in missed:
            try:
                await self._recovery.recover(one)
            except FencedOut:
                self._holdings.lose(one.claim, why=FENCED_OUT)
            self._passed(held)
            await self._renewal.between()
            if self._clock.monotonic() >= until:
                break
        return [one for one in held if one.recovered and self._holdings.get(one.claim.shard) is one]

    async def _plan_due(
        self,
        held: list[Held],
        shards: Collection[ShardId],
        now: datetime,
        *,
        after: Place,
        before: datetime | None = None,
    ) -> int:
        """The jobs whose next fire lies between two instants, in these shards.

        Where no `before` is given, it is the mark up to which the shard is planned now; where it
        is, they are behind.
        """
        late = before is not None
        marks = self._marks(held, now)
        limits = marks if before is None else dict.fromkeys(marks, before)
        wanted = sorted((one for one in held if one.claim.shard in shards), key=self._last_turn)
        if not wanted:
            return 0

        async def plan(one: Held) -> int:
            shard = one.claim.shard
            self._turns[shard] = self._clock.monotonic()
            current = Pass(self._schedules, now=now, until=marks[shard])
            return await self._plan_shard(one, current, after, limits[shard])

        return await self._take_turns(wanted, held, plan, late=late)

    async def _take_turns(
        self,
        wanted: list[Held],
        held: list[Held],
        work: Callable[[Held], Awaitable[int]],
        *,
        late: bool,
    ) -> int:
        """A few shards at a time: one is computed while another one is written.

        Those that are behind one at a time, so that what is on time has room beside them.
        """
        turns = iter(wanted)
        until = self._clock.monotonic() + self._pace.plan_budget
        runs = 0
        failed: list[Unavailable] = []

        async def take_turns() -> None:
            nonlocal runs
            for one in turns:
                began = self._clock.monotonic()
                if began >= until:
                    self.nudge.set()  # those whose turn was longest ago come first then
                    return
                one.under_way = True
                try:
                    runs += await work(one)
                except Unavailable as error:
                    failed.append(error)
                    if len(failed) >= FAILED_MAX:
                        return
                    continue
                one.under_way = False
                self._pace.turned(self._clock.monotonic() - began)
                self._passed(held)
                await self._renewal.between()

        try:
            async with asyncio.TaskGroup() as group:
                at_once = self._pace.turns(1 if late else SHARDS_AT_ONCE)
                for _ in range(min(at_once, len(wanted))):
                    group.create_task(take_turns(), name="planner.shard")
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        if failed:
            raise failed[0]
        return runs

    def _last_turn(self, held: Held) -> float:
        return self._turns.get(held.claim.shard, float("-inf"))

    def _passed(self, held: list[Held]) -> None:
        """Note for all but those under way that the planner works, which is what leases ask.

        Under overload a shard may wait for its turn longer than a lease lasts; to lose it then
        would help nobody. One whose turn has begun has to end it, or at least a page of it: what
        hangs there, or fails there every time, is not made up for by the others.
        """
        now = self._clock.monotonic()
        for one in held:
            if not one.under_way:
                one.planned_at = now

    async def _rest(self, since: float) -> None:
        """Leave the machine to others, in proportion to what a page of late work has taken."""
        worked = self._clock.monotonic() - since
        await self._clock.sleep(min(worked * (1 / LATE_SHARE - 1), REST_SECONDS_MAX))

    async def _plan_shard(self, held: Held, current: Pass, after: Place, before: datetime) -> int:
        """Page through the due jobs; a bound on pages lets the other shards have their turn."""
        runs = 0
        for _ in range(PAGES_PER_SHARD_MAX):
            if not held.term.is_trusted(self._clock.monotonic()):
                break
            jobs = await self._planning.due_jobs(
                held.claim.shard, before=before, after=after, most=JOBS_PER_PAGE
            )
            try:
                runs += await self._plan_page(held, current, jobs)
            except FencedOut:
                self._holdings.lose(held.claim, why=FENCED_OUT)
                break
            held.planned_at = self._clock.monotonic()
            if len(jobs) < JOBS_PER_PAGE:
                break
            after = (jobs[-1].next_fire_at, jobs[-1].id)
        return runs

    async def _plan_page(self, held: Held, current: Pass, jobs: list[DueJob]) -> int:
        steps: list[Step] = []
        broken: list[tuple[DueJob, str]] = []
        runs = size = taken = 0
        turn = self._clock.monotonic()
        for job in jobs:
            if taken > TURN_STEPS or self._clock.monotonic() - turn > TURN_SECONDS:
                await self._clock.sleep(0)
                turn, taken = self._clock.monotonic(), 0
            budget = Budget()
            try:
                step = current.step(job, budget)
            except Refused as error:
                broken.append((job, error.sentence))
                continue
            except Exception as error:  # noqa: BLE001 -- one job must not stop its shard
                # A mistake of ours, which would come back with every pass.
                broken.append((job, f"it cannot be evaluated: {type(error).__name__}"))
                self._telemetry.event(
                    "item.failed",
                    level="error",
                    error=error,
                    duty="coordinator.planner",
                    item=to_text("job", job.id),
                )
                continue
            finally:
                taken += budget.spent
            steps.append(step)
            size += len(step.ids)
            if size >= RUNS_PER_TRANSACTION:
                runs += await self._commit(held, steps)
                steps, size = [], 0
        if steps:
            runs += await self._commit(held, steps)
        if broken:
            aside = await self._planning.set_aside(
                held.claim.shard, broken, now=self._clock.stated()
            )
            for job, why in aside:
                name = to_text("job", job.id)
                self._telemetry.event("job.set_aside", level="warning", job=name, why=why)
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

    async def _settle(self, held: list[Held]) -> int:
        """What was missed becomes late runs and decisions, a bounded number of gaps at a time."""
        behind = set(await self._catching.shards_behind([one.claim.shard for one in held]))
        wanted = [one for one in held if one.claim.shard in behind]
        if not wanted:
            return 0
        tenants = await self._catching.tenants_behind(now=self._clock.stated())
        pace = Pace(
            per_second=share_of(self._settings.catchup_per_second, tenants),
            unapproved=self._settings.catchup_unapproved,
        )
        settling = Settling(self._schedules)
        most = min(JOBS_PER_PAGE, max(1, GAPS_PER_PASS // len(wanted)))

        async def settle(one: Held) -> int:
            began = self._clock.monotonic()
            settled = await self._settle_page(one, settling, pace, most)
            await self._rest(began)
            return settled

        runs = await self._take_turns(wanted, held, settle, late=True)
        self.nudge.set()  # there may be more, and the next pass begins with what is on time
        return runs

    async def _settle_page(self, held: Held, settling: Settling, pace: Pace, most: int) -> int:
        runs = size = 0
        settled: list[Settled] = []
        turn = self._clock.monotonic()
        try:
            for gap in await self._catching.gaps(held.claim.shard, most=most):
                if self._clock.monotonic() - turn > TURN_SECONDS:
                    await self._clock.sleep(0)
                    turn = self._clock.monotonic()
                settled.append(settling.settle(gap))
                size += len(settled[-1].ids)
                if size >= RUNS_PER_TRANSACTION:
                    runs += await self._commit_settled(held, settled, settling, pace)
                    settled, size = [], 0
            if settled:
                runs += await self._commit_settled(held, settled, settling, pace)
        except FencedOut:
            self._holdings.lose(held.claim, why=FENCED_OUT)
        return runs

    async def _commit_settled(
        self, held: Held, settled: list[Settled], settling: Settling, pace: Pace
    ) -> int:
        if not held.term.is_trusted(self._clock.monotonic()):
            return 0
        async with held.writing:
            done = await self._catching.settle(
                held.claim,
                settled,
                reckon=settling.settle,
                pace=pace,
                now=self._clock.stated(),
            )
        for dropped in done.dropped:
            self._missed.add(dropped.fires, reason=dropped.code)
        self._late.add(done.runs - done.held, held="no")
        self._late.add(done.held, held="yes")
        for parcel in done.parcels:
            self._hint(*parcel.hint)
        return done.runs
