"""Long work that somebody asked for goes on, whoever began it."""

from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.ops.desk import Desk
from betimes.ops.kinds import KINDS
from betimes.ops.operating import work_once
from betimes.rhythm import Stopping, attend, beat
from betimes.telemetry import Outage, Telemetry

EVERY = timedelta(milliseconds=500)
PER_TICK_MAX = 20


class Operator:
    """Brings operations forward; any number of janitors may, a claim keeps them apart."""

    def __init__(self, *, desk: Desk, clock: Clock, telemetry: Telemetry) -> None:
        self._desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._outage = Outage(duty="janitor.operator", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop."""
        beats = beat(self._clock, every=EVERY, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> int:
        """One bounded pass; returns how often some operation was brought forward."""
        with self._telemetry.span("operator.tick") as span:
            span.expect_errors()
            worked = 0
            while worked < PER_TICK_MAX and await work_once(self._desk, KINDS):
                worked += 1
            span.add(worked=worked)
        return worked
