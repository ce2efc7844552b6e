"""Decides about runs that came too soon after the last one of their job, when they are due.

What is authoritative: parcels that are held for a verdict. They are made in the transactions that
publish, and decided upon in one that owns the shard, so a verdict survives any crash or is asked
for again. Where nothing is held, a look at all shards costs one probe of an index each, once a
second, and twice a second where something is.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

from betimes.coordinator.hint import Hint
from betimes.coordinator.holdings import Held, Holdings
from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import ShardId, to_ms
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.rhythm import DatabaseTime
from betimes.store.referee import Refereed, Refereeing
from betimes.telemetry import Telemetry

LOOK_EVERY_SECONDS = 0.5
"""Others hold runs as well: whoever creates a job or runs one by hand."""
REST_SECONDS = 1.0
"""The same while no run of these shards is held, unless a hint calls (`look_soon`)."""
AGAIN_AFTER = timedelta(milliseconds=500)
"""How soon runs are looked at again that wait for something outside of their line."""
VERDICTS_MAX = 500
PASSES_MAX = 20
SHARDS_TOGETHER = 64
FAILED_MAX = 2
"""So many shards may fail by themselves before it is the database's trouble."""


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
        self._look_every = LOOK_EVERY_SECONDS
        self._due: dict[ShardId, datetime] = {}
        self._missed = telemetry.counter("betimes_fires_missed_total")

    def expect(self, shard: ShardId, at: datetime) -> None:
        """Somebody on this node holds a run of a shard until then."""
        known = self._due.get(shard)
        if known is None or at < known:
            self._due[shard] = at

    def next_due_ms(self) -> int | None:
        """When the next verdict is due, as far as is known here."""
        return to_ms(min(self._due.values())) if self._due else None

    def look_soon(self) -> None:
        """Somebody may hold a run by now: look with the next pass."""
        self._looked_at = float("-inf")

    async def pass_over(
        self,
        held: Sequence[Held],
        *,
        together: int = SHARDS_TOGETHER,
        until: float = float("inf"),
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> int:
        """Give every verdict that is due, the oldest first, for many shards at once; how many.

        After `until`, on the monotonic clock, none is begun but the first; `between` two steps
        leases are kept.
        """
        await self._look(held)
        verdicts = 0
        for _ in range(PASSES_MAX):
            waiting = self._waiting(held)[:together]
            if not waiting:
                break
            verdicts += await self._judge(waiting)
            if between is not None:
                await between()
            if self._clock.monotonic() >= until:
                break
        return verdicts

    def _waiting(self, held: Sequence[Held]) -> list[Held]:
        """Shards with a verdict that is due, the oldest first; of others nothing is kept."""
        now = self._time.now()
        self._due = {shard: due for shard, due in self._due.items() if shard in self._holdings}
        found = [
            (due, one)
            for one in held
            if (due := self._due.get(one.claim.shard)) is not None
            and due <= now
            and self._holdings.get(one.claim.shard) is one
        ]
        return [one for _, one in sorted(found, key=lambda pair: pair[0])]

    async def _look(self, held: Sequence[Held]) -> None:
        """Learn what others hold."""
        at = self._clock.monotonic()
        if not held or at - self._looked_at < self._look_every:
            return
        found = await self._refereeing.next_due([one.claim.shard for one in held])
        self._looked_at = at
        self._look_every = LOOK_EVERY_SECONDS if found else REST_SECONDS
        for shard, due in found.items():
            self.expect(shard, due)

    async def _judge(self, waiting: Sequence[Held]) -> int:
        """Judge these together; where that fails, ever fewer, until it is known whose fault it is.

        Raises:
            Unavailable: one shard alone failed. The others have had their verdicts, unless several
                fail: then it is the database's trouble.

        """
        verdicts = 0
        failed: list[Unavailable] = []
        chunks = [list(waiting)]
        while chunks:
            chunk = chunks.pop()
            try:
                verdicts += await self._judge_together(chunk)
            except Unavailable as error:
                # Nobody knows what was decided: all of them are looked at again.
                for one in chunk:
                    self.expect(one.claim.shard, self._time.now() + AGAIN_AFTER)
                if len(chunk) > 1:
                    middle = len(chunk) // 2
                    chunks += [chunk[middle:], chunk[:middle]]
                    continue
                failed.append(error)
                if len(failed) >= FAILED_MAX:
                    break
        if failed:
            raise failed[0]
        return verdicts

    async def _judge_together(self, waiting: Sequence[Held]) -> int:
        for one in waiting:
            self._due.pop(one.claim.shard, None)
        async with AsyncExitStack() as locks:
            for one in sorted(waiting, key=lambda one: one.claim.shard):
                await locks.enter_async_context(one.writing)
            done = await self._refereeing.judge(
                [one.claim for one in waiting], most=VERDICTS_MAX, now=self._clock.stated()
            )
        self._looked_at = float("-inf")  # the next one may be due very soon
        # Of a shard that has another owner the publisher learns by itself.
        for shard, of_shard in done.items():
            self._tell(shard, of_shard)
        return sum(len(one.offered) + one.skipped for one in done.values())

    def _tell(self, shard: ShardId, done: Refereed) -> None:
        if done.more and (done.offered or done.skipped):
            self.expect(shard, self._time.now())
        elif done.stayed or done.more:
            self.expect(shard, self._time.now() + AGAIN_AFTER)
        if done.skipped:
            self._missed.add(done.skipped, reason=OVERLAP_SKIPPED)
        for one in done.offered:
            self._hint(shard, *one)
