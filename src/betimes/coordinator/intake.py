"""Takes in what was asked for inside transactions of others, as soon as those have committed.

No shard needs to be ours for that: rows are locked while their runs are made, so that every
coordinator may look everywhere, and the run's primary key guards the rest.

The function that asks notifies with its commit, unless its producer is told not to. As long as
there is such a producer, and while there is something to take in, looks follow each other with
`every`. Else a look is made when a notification is heard, and after `REST` at most: so late is a
run taken in whose notification was lost.
"""

import asyncio
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.ops.desk import Desk
from betimes.ops.intake import BATCH_MAX, TakenIn, shards_to_take_in, take_in
from betimes.rhythm import Stopping, attend, beat
from betimes.store.intake import has_silent_producers
from betimes.telemetry import Outage, Telemetry

REST = timedelta(seconds=1)
SILENT_SECONDS = 10.0
"""How often it is asked whether a producer does not notify."""


class Intake:
    """A look into the intake with every beat, or when the function has told that there is work."""

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
        self._is_silent = False
        self._asked_at = float("-inf")
        self._batch_max = batch_max
        self._runs = telemetry.counter("betimes_intake_runs_total")
        self._outage = Outage(duty="coordinator.intake", telemetry=telemetry)
        self.nudge = asyncio.Event()

    async def run(self, stopping: Stopping) -> None:
        """Take in until asked to stop."""
        beats = beat(
            self._clock, every=self._every, stopping=stopping, nudge=self.nudge, rest=self._rest
        )
        await attend(self._turn, beats=beats, troubles=self._outage)

    async def _turn(self) -> bool:
        """One pass; whether the next one has to follow soon."""
        runs = await self.tick()
        now = self._clock.monotonic()
        if self._rest is not None and now - self._asked_at >= SILENT_SECONDS:
            self._is_silent = await has_silent_producers(self._desk.database)
            self._asked_at = now
        return bool(runs or self._is_silent)

    async def tick(self) -> int:
        """One pass over every shard in which something waits; returns how many runs came of it."""
        with self._telemetry.span("intake.tick") as span:
            span.expect_errors()
            runs = 0
            for shard in await shards_to_take_in(self._desk.database):
                taken = await take_in(self._desk, shard, most=self._batch_max)
                self._count(taken)
                runs += taken.total
                if taken.total >= self._batch_max:
                    self.nudge.set()
            span.add(runs=runs)
        return runs

    def _count(self, taken: TakenIn) -> None:
        for outcome, count in (
            ("made", taken.made),
            ("deduplicated", taken.deduplicated),
            ("refused", len(taken.refused)),
        ):
            if count:
                self._runs.add(count, outcome=outcome)
        for run, why in taken.refused:
            self._telemetry.event("intake.refused", level="error", run=str(run), why=why)
