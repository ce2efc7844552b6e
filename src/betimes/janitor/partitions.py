"""Days of partitions exist ahead of time, and go when they have aged.

What has not ended moves on before its day goes; see `store.partitions`.
"""

from collections.abc import Mapping
from datetime import date

from betimes.config.settings import JanitorSettings
from betimes.domain.clock import Clock
from betimes.rhythm import Stopping, attend, beat
from betimes.store.partitions import SLICES_MAX, Partition, Partitions
from betimes.store.server import read_clock
from betimes.telemetry import Items, Outage, Telemetry


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
        self._days = Items(duty="janitor.partitions", telemetry=telemetry)
        self._moved = telemetry.counter("betimes_rows_kept_total")

    async def run(self, stopping: Stopping) -> None:
        """Keep the days until asked to stop."""
        beats = beat(self._clock, every=self._settings.partitions_every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> tuple[int, int]:
        """One pass; returns how many partitions were made and dropped."""
        with self._telemetry.span("partitions.tick") as span:
            span.expect_errors()
            now = self._clock.stated() or await read_clock(self._partitions.database)
            today = now.date()
            made = await self._partitions.ensure(
                today, ahead_days=self._settings.partitions_ahead_days
            )
            dropped, moved = await self._drop(today)
            span.add(made=made, dropped=dropped, moved=moved)
        return made, dropped

    async def _drop(self, today: date) -> tuple[int, int]:
        """Drop what has aged: how many days, and how many rows of them moved on."""
        slices = SLICES_MAX

        async def drop(partition: Partition) -> int | None:
            nonlocal slices
            taken, scanned = await self._partitions.scan(partition, slices=slices)
            slices -= taken
            if not scanned:
                return None  # goes on with the next pass
            moved = await self._partitions.drop(partition)
            if moved is None:
                self._telemetry.event(
                    "partition.kept",
                    level="warning",
                    table=partition.parent,
                    day=partition.day.isoformat(),
                )
            return moved

        aged = await self._partitions.aged(today, keep_days=keep_days(self._settings))
        gone = [moved for moved in await self._days.each(aged, drop) if moved is not None]
        self._moved.add(sum(gone))
        return len(gone), sum(gone)


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
