"""Long work that somebody asked for goes on, whoever began it.

One question finds how soon something is due. Where nothing is, the next look is called by whoever
asks for work (a hint), by the clock, and otherwise after `REST`: so late is work found at most
whose hint was lost.
"""

import asyncio
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.ops.desk import Desk
from betimes.ops.kinds import KINDS
from betimes.ops.operating import next_due_in, work_once
from betimes.rhythm import Stopping, attend, beat
from betimes.telemetry import Outage, Telemetry

EVERY = timedelta(milliseconds=500)
REST = timedelta(seconds=2)
PER_TICK_MAX = 20


class Operator:
    """Brings operations forward; any number of janitors may, a claim keeps them apart."""

    def __init__(
        self,
        *,
        desk: Desk,
        clock: Clock,
        telemetry: Telemetry,
        rest: timedelta | None = REST,
    ) -> None:
        self._desk = desk
        self._rest = rest
        self._due_at: float | None = None
        self.nudge = asyncio.Event()
        self._clock = clock
        self._telemetry = telemetry
        self._outage = Outage(duty="janitor.operator", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop."""
        beats = beat(
            self._clock,
            every=EVERY,
            stopping=stopping,
            nudge=self.nudge,
            rest=self._rest,
            due_in=self._due_in,
        )
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> int:
        """One bounded pass; returns how often some operation was brought forward."""
        with self._telemetry.span("operator.tick") as span:
            span.expect_errors()
            worked = 0
            due_in = await next_due_in(self._desk)
            self._due_at = None if due_in is None else self._clock.monotonic() + due_in
            is_due = due_in is not None and due_in <= 0
            while is_due and worked < PER_TICK_MAX and await work_once(self._desk, KINDS):
                worked += 1
            span.add(worked=worked)
        return worked

    def _due_in(self) -> float | None:
        return None if self._due_at is None else self._due_at - self._clock.monotonic()
