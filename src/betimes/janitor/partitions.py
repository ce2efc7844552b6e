"""Days of partitions exist ahead of time, and go when they have aged."""

from collections.abc import Mapping

from betimes.config.settings import JanitorSettings
from betimes.domain.clock import Clock
from betimes.rhythm import Stopping, attend, beat
from betimes.store.partitions import Partitions
from betimes.store.server import read_clock
from betimes.telemetry import Outage, Telemetry


class PartitionKeeper:
    """Creates and drops partitions by the database's calendar, in UTC."""

    def __init__(
        self,
        *,
        partitions: Partitions,
        clock: Clock,
        telemetry: Telemetry,
        settings: JanitorSettings,
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._outage = Outage(duty="janitor.partitions", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Keep the days until asked to stop."""
        beats = beat(self._clock, every=self._settings.partitions_every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> tuple[int, int]:
        """One pass; returns how many partitions were made and dropped."""
        with self._telemetry.span("partitions.tick") as span:
            span.expect_errors()
            now = self._clock.stated() or await read_clock(self._partitions.database)
            today = now.date()
            made = await self._partitions.ensure(
                today, ahead_days=self._settings.partitions_ahead_days
            )
            dropped = await self._partitions.drop(today, keep_days=keep_days(self._settings))
            span.add(made=made, dropped=len(dropped))
        return made, len(dropped)


def keep_days(settings: JanitorSettings) -> Mapping[str, int]:
    """How long each table keeps its days."""
    return {
        "runs": settings.retain_runs_days,
        "attempts": settings.retain_attempts_days,
        "decisions": settings.retain_decisions_days,
        "idempotency": settings.retain_idempotency_days,
        "outbox": settings.retain_outbox_days,
        "deliveries": settings.retain_deliveries_days,
    }
