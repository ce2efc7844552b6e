"""What a new owner finds of the time when nobody was there.

Before anything late of a shard is published or settled, fires that were planned and not published
in time are taken back: catch-up decides about them as about those that were never planned. What is
late by no more than a takeover takes is left as it is, and simply runs.
"""

from collections.abc import Sequence
from datetime import timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.holdings import Held
from betimes.coordinator.plan import LATE_AFTER
from betimes.domain.clock import Clock
from betimes.domain.ids import ShardId, to_ms
from betimes.rhythm import DatabaseTime
from betimes.store.missed import Missing
from betimes.telemetry import Telemetry

JOBS_PER_TRANSACTION = 1_000
TAKEOVER = timedelta(seconds=5)
"""What a takeover needs at most when the lease of the last owner has run out, and some."""


class Recovery:
    """Shared by planner and publisher: whoever comes first to a shard recovers it."""

    def __init__(
        self,
        *,
        missing: Missing,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
    ) -> None:
        self._missing = missing
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._missed_after = max(LATE_AFTER, settings.lease_ttl + TAKEOVER)

    async def look(self, held: Sequence[Held]) -> list[Held]:
        """Those of some shards in which something was missed; the others are recovered by this.

        One statement for all. Nothing can be missed after the look that was not before: what is
        planned late is planned for shards that are recovered.
        """
        edge_ms = to_ms(self._time.now() - self._missed_after)
        behind: dict[ShardId, Held] = {}
        for one in held:
            # A shard of which nothing was ever published has missed nothing.
            if not one.recovered and 0 <= one.published_through_ms < edge_ms:
                behind[one.claim.shard] = one
            else:
                one.recovered = True
        if not behind:
            return []
        missed = await self._missing.shards_behind(
            {shard: one.published_through_ms for shard, one in behind.items()}, edge_ms=edge_ms
        )
        for shard, one in behind.items():
            one.recovered = shard not in missed
        return [behind[shard] for shard in sorted(missed)]

    async def recover(self, held: Held) -> None:
        """Take back what was missed before the shard was ours, once.

        Raises:
            FencedOut: the shard has another owner.

        """
        if held.recovered:
            return
        async with held.writing:
            edge = self._time.now() - self._missed_after
            # A shard of which nothing was ever published has missed nothing.
            if 0 <= held.published_through_ms < to_ms(edge) and not held.recovered:
                fires = 0
                while taken := await self._missing.take_back(
                    held.claim, edge=edge, most=JOBS_PER_TRANSACTION, now=self._clock.stated()
                ):
                    fires += taken
                if fires:
                    self._telemetry.event("planned.missed", shard=held.claim.shard, fires=fires)
            held.recovered = True
