"""Forget what has aged, and watch how well the tables keep."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from betimes.config.settings import JanitorSettings
from betimes.domain.clock import Clock
from betimes.domain.ids import ShardId
from betimes.rhythm import Stopping, attend, beat
from betimes.store.prune import Pruning
from betimes.store.repair import Repairing
from betimes.store.retention import FIRST, Retaining, Retention
from betimes.store.server import read_bloat, read_clock
from betimes.telemetry import Items, Outage, Telemetry

SILENT_AFTER = timedelta(hours=1)
OLDEST_SNAPSHOT_SECONDS_MAX = 300.0
PASSES_MAX = 50
WALK_ANEW_AFTER = timedelta(days=1)


@dataclass(slots=True)
class _Walk:
    """How far a shard was looked through for one length of time."""

    began: datetime
    after: UUID = FIRST


class Pruner:
    """Deletes in small batches, shard by shard; any number of them may run at once."""

    def __init__(
        self,
        *,
        pruning: Pruning,
        repairing: Repairing,
        retaining: Retaining,
        shards: int,
        clock: Clock,
        telemetry: Telemetry,
        settings: JanitorSettings,
    ) -> None:
        self._pruning = pruning
        self._repairing = repairing
        self._retaining = retaining
        self._walks: dict[tuple[ShardId, timedelta], _Walk] = {}
        self._jobs: dict[ShardId, UUID] = {}
        self._shards = [ShardId(number) for number in range(shards)]
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._oldest = telemetry.gauge("betimes_oldest_snapshot_seconds")
        self._hot = telemetry.gauge("betimes_hot_update_ratio")
        self._dead = telemetry.gauge("betimes_dead_rows")
        self._outage = Outage(duty="janitor.pruner", telemetry=telemetry)
        # One for each kind of pass: a shard that cannot be pruned may still be walked through.
        self._rows = Items(duty="janitor.pruner", telemetry=telemetry)
        self._queue_runs = Items(duty="janitor.pruner", telemetry=telemetry)
        self._job_runs = Items(duty="janitor.pruner", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Prune until asked to stop."""
        beats = beat(self._clock, every=self._settings.prune_every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> int:
        """One pass; returns how many rows went."""
        with self._telemetry.span("pruner.tick") as span:
            span.expect_errors()
            rows = await self._pruning.silent(after=SILENT_AFTER, now=self._clock.stated())
            now = self._clock.stated() or await read_clock(self._pruning.database)
            rows += await self._repairing.forget(now=now)
            rows += await self._pruning.visits(now=now)
            rows += sum(await self._rows.each(self._shards, self._prune))
            retentions = {one.kept: one for one in await self._retaining.retentions()}
            walks = [(shard, kept) for kept in retentions for shard in self._shards]
            rows += sum(
                await self._queue_runs.each(
                    walks, lambda walk: self._retain(walk[0], retentions[walk[1]], now)
                )
            )
            rows += sum(
                await self._job_runs.each(
                    self._shards, lambda shard: self._retain_of_jobs(shard, now)
                )
            )
            await self._watch()
            span.add(rows=rows)
        return rows

    async def _prune(self, shard: ShardId) -> int:
        now = self._clock.stated() or await read_clock(self._pruning.database)
        letters = now - timedelta(days=self._settings.retain_dead_letters_days)
        runs = now - timedelta(days=self._settings.retain_runs_days)
        sent = now - timedelta(days=self._settings.retain_deliveries_days)
        total = 0
        for _ in range(PASSES_MAX):
            rows = await self._pruning.dead_letters(shard, before=letters)
            rows += await self._pruning.default_runs(shard, before=runs)
            rows += await self._pruning.catchups(shard, before=runs)
            rows += await self._pruning.workflow_runs(shard, before=runs)
            rows += await self._pruning.words(shard, before=runs)
            rows += await self._pruning.alerts(shard, before=runs)
            rows += await self._pruning.callbacks(shard, before=sent)
            rows += await self._pruning.keys(shard, now=now)
            rows += await self._pruning.expired(shard, now=self._clock.stated())
            total += rows
            if rows < self._pruning.most:
                break
        return total

    async def _retain(self, shard: ShardId, retention: Retention, now: datetime) -> int:
        """Go on with the walk over one shard; a new one begins where the last one ended.

        Once a day it begins anew, for the sake of what had not ended when it was passed.
        """
        walk = self._walks.get((shard, retention.kept))
        if walk is None or now - walk.began > WALK_ANEW_AFTER:
            walk = self._walks[shard, retention.kept] = _Walk(now)
        total = 0
        for _ in range(PASSES_MAX):
            rows, last = await self._retaining.prune(shard, retention, after=walk.after, now=now)
            total += rows
            if last is None:
                break
            walk.after = last
        return total

    async def _retain_of_jobs(self, shard: ShardId, now: datetime) -> int:
        """Go on where the last pass has stopped, and at the end from the beginning."""
        total = 0
        for _ in range(PASSES_MAX):
            after = self._jobs.pop(shard, FIRST)
            rows, last = await self._retaining.prune_of_jobs(shard, after=after, now=now)
            total += rows
            if last is None:
                break
            self._jobs[shard] = last
        return total

    async def _watch(self) -> None:
        """Say how well vacuum can work: a forgotten snapshot slows every lease down."""
        bloat = await read_bloat(self._pruning.database)
        self._oldest.set(bloat.oldest_snapshot_seconds)
        for table in bloat.tables:
            self._hot.set(table.hot_share, table=table.table)
            self._dead.set(table.dead, table=table.table)
        if bloat.oldest_snapshot_seconds > OLDEST_SNAPSHOT_SECONDS_MAX:
            self._telemetry.event(
                "snapshot.old",
                level="warning",
                measurements={"seconds": bloat.oldest_snapshot_seconds},
            )
