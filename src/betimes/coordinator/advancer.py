"""Moves workflow runs on when something of them has ended, or their time has come.

No shard needs to be ours for that: a turn holds the row of its workflow run, so every coordinator
may look everywhere, and of two who do the second finds nothing left to do. Word of what ended lies
in the database; once in a while a sweep looks for nodes whose word was lost, and counts them: there
must be none.
"""

import asyncio
from datetime import timedelta
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import to_text
from betimes.ops.desk import Desk
from betimes.ops.workflow_advance import (
    advance_workflow,
    due_workflows,
    find_lost_turns,
    postpone_workflow,
)
from betimes.rhythm import Stopping, attend, beat
from betimes.telemetry import Outage, Telemetry

BATCH_MAX = 200
AT_ONCE_MAX = 4
"""So many workflow runs of a node are moved side by side."""
SWEEP_EVERY_SECONDS = 60.0
SWEEP_PAGE = 1_000
PATIENCE = timedelta(seconds=30)
"""How soon a workflow run is looked at again whose turn failed."""


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
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._every = every
        self._batch_max = batch_max
        self._swept_at = clock.monotonic()
        self._turns = telemetry.counter("betimes_workflow_turns_total")
        self._lost = telemetry.counter("betimes_workflow_turns_lost_total")
        self._outage = Outage(duty="coordinator.advancer", telemetry=telemetry)
        self.nudge = asyncio.Event()

    async def run(self, stopping: Stopping) -> None:
        """Move on until asked to stop."""
        beats = beat(self._clock, every=self._every, stopping=stopping, nudge=self.nudge)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> int:
        """One pass over what is due; how many workflow runs were moved."""
        with self._telemetry.span("advancer.tick") as span:
            span.expect_errors()
            await self._sweep()
            due = await due_workflows(self._desk, most=self._batch_max)
            places = asyncio.Semaphore(AT_ONCE_MAX)
            moved = sum(await asyncio.gather(*(self._move(one, places) for one in due)))
            if moved:
                self._turns.add(moved)
                # What has just ended here is often followed by more.
                self.nudge.set()
            span.add(runs=moved)
        return moved

    async def _move(self, identifier: UUID, places: asyncio.Semaphore) -> bool:
        async with places:
            try:
                return await advance_workflow(self._desk, identifier)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 -- one that cannot go on must not stop the others
                self._telemetry.event(
                    "advancer.failed",
                    level="error",
                    workflow_run=to_text("wfr", identifier),
                    error=error,
                )
                await postpone_workflow(self._desk, identifier, pause=PATIENCE)
                return False

    async def _sweep(self) -> None:
        now = self._clock.monotonic()
        if now - self._swept_at < SWEEP_EVERY_SECONDS:
            return
        self._swept_at = now
        lost = await find_lost_turns(self._desk, page=SWEEP_PAGE)
        if lost:
            self._lost.add(lost)
