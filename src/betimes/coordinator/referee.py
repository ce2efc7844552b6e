"""Decides about runs that came too soon after the last one of their job, when they are due.

What is authoritative: parcels that are held for a verdict. They are made in the transactions that
publish, and decided upon in one that owns the shard, so a verdict survives any crash or is asked
for again. Where nothing is held, a look at all shards costs one probe of an index each, twice a
second.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from betimes.coordinator.hint import Hint
from betimes.coordinator.holdings import Held, Holdings
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut
from betimes.domain.ids import ShardId
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.rhythm import DatabaseTime
from betimes.store.referee import Refereed, Refereeing
from betimes.telemetry import Telemetry

LOOK_EVERY_SECONDS = 0.5
"""Others hold runs as well: whoever creates a job or runs one by hand."""
AGAIN_AFTER = timedelta(milliseconds=500)
"""How soon runs are looked at again that wait for something outside of their line."""
VERDICTS_MAX = 500
PASSES_MAX = 20


class Referee:
    """A part of the publisher's loop, over the same holdings."""

    def __init__(
        self,
        *,
        refereeing: Refereeing,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        hint: Hint = lambda *_: None,
    ) -> None:
        self._refereeing = refereeing
        self._holdings = holdings
        self._time = time
        self._clock = clock
        self._hint = hint
        self._looked_at = float("-inf")
        self._due: dict[ShardId, datetime] = {}
        self._missed = telemetry.counter("betimes_fires_missed_total")

    def expect(self, shard: ShardId, at: datetime) -> None:
        """Somebody on this node holds a run of a shard until then."""
        known = self._due.get(shard)
        if known is None or at < known:
            self._due[shard] = at

    async def pass_over(
        self,
        held: Sequence[Held],
        *,
        until: float = float("inf"),
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> int:
        """Give every verdict that is due, the oldest first; how many.

        After `until`, on the monotonic clock, none is begun but the first; `between` two shards
        leases are kept.
        """
        await self._look(held)
        now = self._time.now()
        verdicts = 0
        waiting = [
            (due, one)
            for one in held
            if (due := self._due.get(one.claim.shard)) is not None and due <= now
        ]
        for _, one in sorted(waiting, key=lambda pair: pair[0]):
            if self._holdings.get(one.claim.shard) is one:
                verdicts += await self._judge(one)
                if between is not None:
                    await between()
            if self._clock.monotonic() >= until:
                break
        return verdicts

    async def _look(self, held: Sequence[Held]) -> None:
        """Learn what others hold."""
        at = self._clock.monotonic()
        if not held or at - self._looked_at < LOOK_EVERY_SECONDS:
            return
        found = await self._refereeing.next_due([one.claim.shard for one in held])
        self._looked_at = at
        for shard, due in found.items():
            self.expect(shard, due)

    async def _judge(self, held: Held) -> int:
        shard = held.claim.shard
        verdicts = 0
        for _ in range(PASSES_MAX):
            self._due.pop(shard, None)
            try:
                async with held.writing:
                    done = await self._refereeing.judge(
                        held.claim, most=VERDICTS_MAX, now=self._clock.stated()
                    )
            except FencedOut:
                return verdicts  # the publisher notices by itself
            self._tell(shard, done)
            self._looked_at = float("-inf")  # the next one may be due very soon
            verdicts += len(done.offered) + done.skipped
            if not done.more or not (done.offered or done.skipped):
                break
        return verdicts

    def _tell(self, shard: ShardId, done: Refereed) -> None:
        if done.stayed or done.more:
            self.expect(shard, self._time.now() + AGAIN_AFTER)
        if done.skipped:
            self._missed.add(done.skipped, reason=OVERLAP_SKIPPED)
        for one in done.offered:
            self._hint(shard, *one)
