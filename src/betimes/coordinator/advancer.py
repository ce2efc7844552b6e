"""Moves workflow runs on when something of them has ended, or their time has come.

No shard needs to be ours for that: a step holds the row of its workflow run, so every coordinator
may look everywhere, and one that somebody else holds is left to them. Word of what ended lies in
the database; once in a while a sweep looks for nodes whose word was lost, and counts them: there
must be none.

No workflow run stands in another one's way. Each look finds all that are due but those in hand, and
each of them gets one bounded step, so that wide and narrow ones take turns. A step that is slow is
left to itself and the next look goes past it. One that fails, for whatever reason, is put off, each
time for longer, and does less the next time; of those that have failed only one is tried at a time.

Looks follow each other with `every` while a run of some workflow is under way: its end may leave
word any time, and whoever ends a run tells nobody. Where none is, a look is called by whoever
starts or changes a workflow run (a hint), by the next one that is due by the clock, and otherwise
after `REST`: so late is word found at most whose hint was lost.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.errors import OutOfTime, Unavailable
from betimes.domain.ids import to_text
from betimes.ops.desk import Desk
from betimes.ops.workflow_advance import (
    advance_workflow,
    due_workflows,
    find_lost_turns,
    postpone_workflow,
)
from betimes.ops.workflow_step import STEP_RUNS_MAX
from betimes.rhythm import Stopping, attend, beat, first_of
from betimes.store.workflow_turns import Ahead
from betimes.telemetry import Outage, Telemetry

REST = timedelta(seconds=1)
BATCH_MAX = 200
AT_ONCE_MAX = 4
"""So many workflow runs of a node are moved side by side."""
SWEEP_EVERY_SECONDS = 60.0
SWEEP_PAGE = 1_000
PAUSE = timedelta(seconds=1)
PAUSE_MAX = timedelta(minutes=1)
"""How soon a workflow run is looked at again whose step failed: doubled with each failure."""
STEP_RUNS_LEAST = 10
DOUBLINGS_MAX = 10
TROUBLES_MAX = 10_000


@dataclass(slots=True)
class Trouble:
    """What is remembered of a workflow run whose last step failed."""

    failures: int = 0
    until: float = 0.0
    """Not before this instant of the monotonic clock."""
    most: int = STEP_RUNS_MAX
    """How many runs its next step may start or stop."""

    def worse(self, now: float, error: BaseException) -> timedelta:
        """One more failure; how long it is put off."""
        pause = min(PAUSE * (1 << min(self.failures, DOUBLINGS_MAX)), PAUSE_MAX)
        self.failures += 1
        self.until = now + pause.total_seconds()
        if isinstance(error, OutOfTime):
            self.most = max(self.most // 2, STEP_RUNS_LEAST)
        return pause

    def better(self) -> bool:
        """A step that fitted: a quarter more the next time; whether it may do all again.

        At once, it would run out of time again after each step, and be put off for longer than
        it works.
        """
        self.failures, self.until = 0, 0.0
        self.most += max(self.most // 4, 1)
        return self.most >= STEP_RUNS_MAX


class Advancer:
    """A look at what is due with every beat; at once again when there was much."""

    def __init__(
        self,
        *,
        desk: Desk,
        clock: Clock,
        telemetry: Telemetry,
        every: timedelta,
        batch_max: int = BATCH_MAX,
        rest: timedelta | None = REST,
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._every = every
        self._rest = rest
        self._ahead = Ahead(due_in=None, under_way=True)
        self._looked_at = float("-inf")
        self._batch_max = batch_max
        self._swept_at = clock.monotonic()
        self._turns = telemetry.counter("betimes_workflow_turns_total")
        self._lost = telemetry.counter("betimes_workflow_turns_lost_total")
        self._outage = Outage(duty="coordinator.advancer", telemetry=telemetry)
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._doubtful = asyncio.Semaphore(1)
        """For those that have failed: they never take all places."""
        self._in_hand: dict[UUID, asyncio.Task[bool]] = {}
        self._troubles: dict[UUID, Trouble] = {}
        self._away: Unavailable | None = None
        self.nudge = asyncio.Event()

    async def run(self, stopping: Stopping) -> None:
        """Move on until asked to stop; steps under way are ended first."""
        beats = beat(
            self._clock,
            every=self._every,
            stopping=stopping,
            nudge=self.nudge,
            rest=self._rest,
            due_in=self._due_in,
        )
        async with asyncio.TaskGroup() as steps:
            await attend(partial(self._pass, steps), beats=beats, troubles=self._outage)

    async def _pass(self, steps: asyncio.TaskGroup) -> bool:
        """One look; whether the next one has to follow soon."""
        moved = await self._look(steps)
        return bool(moved or self._in_hand or self._ahead.under_way)

    def _due_in(self) -> float | None:
        """Seconds until a workflow run is due by the clock, as far as the last look knows."""
        if self._ahead.due_in is None:
            return None
        return self._looked_at + self._ahead.due_in - self._clock.monotonic()

    async def tick(self) -> int:
        """One look at what is due, and a step for each; how many workflow runs were moved."""
        moved, away = 0, None
        async with asyncio.TaskGroup() as steps:
            try:
                moved = await self._look(steps)
            except Unavailable as error:
                away = error  # raised outside of the group, so that it is still itself
        if away is not None:
            raise away
        return moved + self._settled()

    async def _look(self, steps: asyncio.TaskGroup) -> int:
        """Begin a step for each that is due and wait a beat for them; how many were moved.

        A step that lasts longer is left to itself and counts when it has ended.
        """
        with self._telemetry.span("advancer.tick") as span:
            span.expect_errors()
            await self._sweep()
            self._looked_at = self._clock.monotonic()
            due = await due_workflows(
                self._desk, most=self._free(), but=self._passed_over(), ahead=not self._in_hand
            )
            self._ahead = due.ahead or Ahead(due_in=None, under_way=True)
            for one in due.ids:
                self._in_hand[one] = steps.create_task(self._step(one))
            if self._in_hand:
                patience = self._clock.sleep(self._every.total_seconds())
                await first_of(asyncio.wait(self._in_hand.values()), patience)
            moved = self._settled()
            span.add(runs=moved)
            if (away := self._away) is not None:
                self._away = None
                raise away
        return moved

    def _free(self) -> int:
        return max(self._batch_max - len(self._in_hand), 1)

    def _passed_over(self) -> list[UUID]:
        """Those that are moved just now, and those that were put off."""
        now = self._clock.monotonic()
        off = [one for one, trouble in self._troubles.items() if trouble.until > now]
        return [*self._in_hand, *off]

    def _settled(self) -> int:
        """How many of the steps that have ended moved a workflow run."""
        done = {one: task for one, task in self._in_hand.items() if task.done()}
        for one in done:
            del self._in_hand[one]
        moved = sum(task.result() for task in done.values())
        if moved:
            self._turns.add(moved)
            # What has just ended here is often followed by more.
            self.nudge.set()
        return moved

    async def _step(self, identifier: UUID) -> bool:
        trouble = self._troubles.get(identifier)
        if trouble is None or not trouble.failures:
            async with self._places:
                return await self._move(identifier, trouble.most if trouble else STEP_RUNS_MAX)
        async with self._doubtful, self._places:
            return await self._move(identifier, trouble.most)

    async def _move(self, identifier: UUID, most: int) -> bool:
        try:
            moved = await advance_workflow(self._desk, identifier, most=most)
        except Exception as error:  # noqa: BLE001 -- one that cannot go on must not stop the others
            await self._put_off(identifier, error)
            return False
        if moved and (trouble := self._troubles.get(identifier)) is not None and trouble.better():
            del self._troubles[identifier]
        return moved

    async def _put_off(self, identifier: UUID, error: Exception) -> None:
        """Tell of a step that failed, and look at its workflow run later.

        Remembered here as well, since word that comes meanwhile would call for it at once.
        """
        if len(self._troubles) >= TROUBLES_MAX:
            self._troubles.clear()
        trouble = self._troubles.setdefault(identifier, Trouble())
        pause = trouble.worse(self._clock.monotonic(), error)
        try:
            await postpone_workflow(self._desk, identifier, pause=pause)
        except Unavailable as away:
            # The database is what failed, and not this one alone: the look tells of it.
            del self._troubles[identifier]
            self._away = away
            return
        self._telemetry.event(
            "advancer.failed",
            level="error",
            measurements={"failures": trouble.failures, "pause_seconds": pause.total_seconds()},
            workflow_run=to_text("wfr", identifier),
            error=error,
        )

    async def _sweep(self) -> None:
        now = self._clock.monotonic()
        if now - self._swept_at < SWEEP_EVERY_SECONDS:
            return
        self._swept_at = now
        lost = await find_lost_turns(self._desk, page=SWEEP_PAGE)
        if lost:
            self._lost.add(lost)
