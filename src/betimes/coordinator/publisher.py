"""Runs that are nearly due become parcels.

What is authoritative: `published_through` of a shard. It moves in the transaction that inserts the
parcels, under the epoch, so after any crash the next owner knows exactly what is left to do.

    read ──▶ wheel ──▶ due - lead ──▶ one transaction: parcels + cursor ──▶ hint

Reading ahead is safe for `margin - transaction bound`: a run inserted without a parcel by a
transaction that began at T is due later than T + margin and visible by T + bound, so what a read at
R has not seen is due after R + (margin - bound). Publishing ahead is bounded by `lead`.

What may go wrong: a transaction fails or its reply is lost. Then the shard is rewound to the cursor
and read again; the statement inserts nothing when the cursor has already moved.

What lies in memory is bounded by `wheel_max` and a page per shard. A millisecond with more runs
than a page goes into parcels as it is read; those runs say so themselves, and the cursor follows.

Long because all steps from reading to hinting share the wheel and the cursor.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime, timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.hint import Hint
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.pace import Pace
from betimes.coordinator.recovery import Recovery
from betimes.coordinator.referee import Referee
from betimes.coordinator.relived import SLACK_MS, Relived
from betimes.coordinator.renewal import FENCED_OUT, Renewal, instant
from betimes.coordinator.wheel import Wheel
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, Unavailable
from betimes.domain.ids import ShardId, floor_of, time_ms_of, to_ms
from betimes.domain.parcel import Waiting
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.store.publish import Batch, Placed, Publishing
from betimes.store.shards import Claim
from betimes.telemetry import Outage, Telemetry

REST = timedelta(milliseconds=500)
"""The period while nothing is published; what is in the wheel or waits for a verdict calls sooner.
Far below what leases are renewed by, and below half of the lead, by which runs are published before
they are due."""
PAGE = 2_000
ROWS_TOGETHER = 16_000
"""About so many rows come back from one question about many shards."""
RUNS_PER_TRANSACTION = 10_000
LOAD_SLACK_MS = 500
FAILED_MAX = 2
"""So often a shard, or a few together, may fail in a pass without ending it."""
FEW = 8
"""Shards that failed in a larger transaction are tried so many at a time, and then one by one."""


class Publisher:
    """Publishes every shard this node holds, and renews their leases by doing so.

    A pass is bounded in time and in what it asks: about many shards at once. Between its steps the
    leases are renewed, so that a pass that lasts long because the database is far costs nothing.
    """

    def __init__(
        self,
        *,
        publishing: Publishing,
        recovery: Recovery,
        renewal: Renewal,
        pace: Pace,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
        transaction_timeout: timedelta,
        referee: Referee,
        relived: Relived,
        hint: Hint = lambda *_: None,
    ) -> None:
        self._publishing = publishing
        self._recovery = recovery
        self._referee = referee
        self._relived = relived
        self._renewal = renewal
        self._pace = pace
        self._holdings = holdings
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._hint = hint
        self._wheel: Wheel[Waiting] = Wheel()
        self._read_under: dict[ShardId, Claim] = {}
        self._lead_ms = _milliseconds(settings.lead)
        self._ahead_ms = _milliseconds(settings.margin - transaction_timeout)
        self._failed: dict[ShardId, Unavailable] = {}
        self._crowds = 0
        """How many runs of crowded milliseconds this pass has published."""
        self._apart: dict[ShardId, int] = {}
        """With how many others at most shards are published, after they have failed together."""
        self._lag = telemetry.histogram("betimes_schedule_lag_seconds")
        self._missed = telemetry.counter("betimes_fires_missed_total")
        self._outage = Outage(duty="coordinator.publisher", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Publish until asked to stop; while the database is away, keep trying."""
        every = self._settings.publish_every
        beats = beat(self._clock, every=every, stopping=stopping, rest=REST, due_in=self._due_in)
        await attend(self.tick, beats=beats, troubles=self._outage)

    def _due_in(self) -> float | None:
        """Seconds until something in the wheel has to be published, or a verdict is due."""
        now_ms = to_ms(self._time.now())
        dues = [due for due in (self._publish_at(), self._referee.next_due_ms()) if due is not None]
        return (min(dues) - now_ms) / 1000 if dues else None

    def _publish_at(self) -> int | None:
        """The millisecond at which the wheel is emptied next.

        Not before something is due within half of the lead: what is published in larger batches
        costs a statement per shard and second instead of one per shard and pass.
        """
        next_due = self._wheel.next_due()
        return None if next_due is None else next_due - (self._lead_ms - self._lead_ms // 2)

    async def tick(self) -> int:
        """One pass over every shard we may trust; returns how many runs were published."""
        if not self._time.known:
            return 0
        with self._telemetry.span("publisher.tick") as span:
            span.expect_errors()
            began = self._clock.monotonic()
            until = began + self._pace.budget
            held = self._holdings.trusted(began)
            self._failed.clear()
            self._crowds = 0
            self._drop_strange(held)
            await self._recover(held, until)
            await self._load_all([one for one in held if one.recovered], held)
            published = self._crowds + await self._publish(held, until)
            published += await self._relived.pass_over(held)
            # A shard that failed has not passed: it is left to run out if that goes on.
            self._note_passed(held)
            await self._referee.pass_over(
                held,
                together=self._pace.policy.together,
                until=until,
                between=self._between(held),
            )
            await self._renewal.keep()
            if held:
                self._pace.passed(self._clock.monotonic() - began)
            span.add(runs=published, waiting=len(self._wheel))
            for error in self._failed.values():
                raise error
        return published

    def _drop_strange(self, held: Sequence[Held]) -> None:
        """What was read under an earlier epoch is somebody else's by now, or will be read again."""
        ours = {one.claim.shard: one.claim for one in held}
        for shard, claim in list(self._read_under.items()):
            if ours.get(shard) != claim:
                self._wheel.drop(shard)
                del self._read_under[shard]

    async def _recover(self, held: Sequence[Held], until: float) -> None:
        """Nothing is read of a shard before what was missed in it has been taken back."""
        between = self._between(held)
        for one in await self._recovery.look(held):
            with self._excused([one.claim.shard]):
                try:
                    await self._recovery.recover(one)
                except FencedOut:
                    self._holdings.lose(one.claim, why=FENCED_OUT)
            await between()
            if self._clock.monotonic() >= until:
                break

    def _between(self, held: Sequence[Held]) -> Callable[[], Awaitable[None]]:
        """What to do between two steps of a pass: say that it goes on, and keep the leases."""

        async def between() -> None:
            self._note_at_work(held)
            await self._renewal.between()

        return between

    def _note_at_work(self, held: Sequence[Held]) -> None:
        """Shards that wait for their turn are not to blame for how long others take.

        One that has failed has to get through a whole pass: what hangs there, or fails there every
        time, is not made up for by the others.
        """
        now = self._clock.monotonic()
        for one in held:
            if one.claim.shard not in self._failed and not self._is_alone(one.claim.shard):
                one.published_at = now

    @contextmanager
    def _excused(self, shards: Collection[ShardId]) -> Iterator[None]:
        """Let shards fail without the others; more failures, and it is the database's trouble."""
        try:
            yield
        except Unavailable as error:
            if len(self._failed) >= FAILED_MAX:
                raise
            for shard in shards:
                self._failed[shard] = error
                self._apart[shard] = FEW if len(shards) > FEW else 1

    async def _load_all(self, ready: Sequence[Held], held: Sequence[Held]) -> None:
        """Read what is due soon into the wheel, many shards at a time, as far as is safe."""
        now_ms = to_ms(self._time.now())
        until_ms = now_ms + self._ahead_ms
        for one in ready:
            shard = one.claim.shard
            # Also when the clock was set back: what was read ahead may have grown since.
            stale = one.loaded_through_ms > max(until_ms + SLACK_MS, one.published_through_ms)
            if self._read_under.get(shard) != one.claim or stale:
                self._wheel.drop(shard)
                one.rewind()
                self._read_under[shard] = one.claim
        await self._learn_cursors([one for one in ready if one.in_doubt])
        enough_ms = min(until_ms, now_ms + self._lead_ms + LOAD_SLACK_MS)
        between = self._between(held)
        while wanted := [one for one in ready if self._wants_more(one, enough_ms)]:
            alone = [one for one in wanted if self._is_alone(one.claim.shard)]
            others = [one for one in wanted if not self._is_alone(one.claim.shard)]
            most = self._pace.policy.together
            chunks = [others[at : at + most] for at in range(0, len(others), most)]
            for chunk in [*chunks, *([one] for one in alone)]:
                await self._load(chunk, until_ms)
                await between()

    def _wants_more(self, held: Held, enough_ms: int) -> bool:
        shard = held.claim.shard
        return (
            held.loaded_through_ms < enough_ms
            and not held.in_doubt
            and shard not in self._failed
            and self._holdings.get(shard) is held
            and self._wheel.count(shard) < self._settings.wheel_max
        )

    async def _load(self, some: Sequence[Held], until_ms: int) -> None:
        """One page of each of these; where that fails, of ever fewer, until it is known whose."""
        try:
            await self._page(some, until_ms)
        except Unavailable:
            if len(some) > 1:
                middle = len(some) // 2
                await self._load(some[:middle], until_ms)
                await self._load(some[middle:], until_ms)
                return
            with self._excused([some[0].claim.shard]):
                raise

    async def _learn_cursors(self, doubtful: Sequence[Held]) -> None:
        """After a commit of unknown fate: what it published must not be read again."""
        if not doubtful:
            return
        claims = [one.claim for one in doubtful]
        found = await self._publishing.cursors(claims, now=self._clock.stated())
        for one in doubtful:
            if one.claim.shard in found:
                one.learn_cursor(found[one.claim.shard])
            else:
                self._holdings.lose(one.claim, why=FENCED_OUT)

    def _is_alone(self, shard: ShardId) -> bool:
        return self._apart.get(shard) == 1

    async def _page(self, some: Sequence[Held], until_ms: int) -> None:
        """The next rows; a millisecond is read whole, because the cursor counts in them.

        One that fills a page is published as it is read, page by page, and never lies in memory.
        """
        most = min(PAGE, ROWS_TOGETHER // len(some))
        lows = {one.claim.shard: one.next_low for one in some}
        found = await self._publishing.near_due(lows, until_ms=until_ms, most=most)
        for one in some:
            shard = one.claim.shard
            rows = found[shard]
            if len(rows) >= most and time_ms_of(rows[0].id) == time_ms_of(rows[-1].id):
                await self._publish_crowd(one, rows)
            else:
                self._put(one, rows, until_ms=until_ms, more=len(rows) >= most)

    async def _publish_crowd(self, held: Held, runs: Sequence[Waiting]) -> None:
        """Publish a page of one millisecond; the rest of it is read next, from the same place."""
        try:
            async with held.writing:
                placed = await self._publishing.publish_part(
                    held.claim, runs, now=self._clock.stated()
                )
        except FencedOut:
            self._holdings.lose(held.claim, why=FENCED_OUT)
        else:
            self._crowds += self._tell(held.claim.shard, placed)

    def _put(self, held: Held, rows: list[Waiting], *, until_ms: int, more: bool) -> None:
        shard = held.claim.shard
        if self._holdings.get(shard) is not held:
            return
        if more:
            last_ms = time_ms_of(rows[-1].id)
            held.loaded_through_ms, held.next_low = last_ms - 1, floor_of(last_ms)
            rows = [run for run in rows if time_ms_of(run.id) < last_ms]
        else:
            held.loaded_through_ms, held.next_low = until_ms, floor_of(until_ms + 1)
        for run in rows:
            self._wheel.put(shard, time_ms_of(run.id), run)

    async def _publish(self, held: Sequence[Held], until: float) -> int:
        """Empty the wheel up to `lead` from now, in transactions of bounded size."""
        now_ms = to_ms(self._time.now())
        bound_ms, publish_at = now_ms + self._lead_ms, self._publish_at()
        if publish_at is None or publish_at > now_ms:
            return 0
        ripe: dict[int, list[Waiting]] = {}
        for shard, run in self._wheel.take(bound_ms):
            ripe.setdefault(shard, []).append(run)
        try:
            return await self._publish_ripe(ripe, bound_ms, held, until)
        except BaseException:
            # All of it left the wheel, tried or not; the cursors in the database are the truth.
            for shard in ripe:
                self._rewind(ShardId(shard))
            raise

    async def _publish_ripe(
        self, ripe: dict[int, list[Waiting]], bound_ms: int, held: Sequence[Held], until: float
    ) -> int:
        left = [ShardId(shard) for shard in ripe]
        published = 0
        while left:
            chosen = self._next_shards(left, ripe)
            left = [shard for shard in left if shard not in chosen]
            batches = [
                Batch(one.claim, self._through(one, bound_ms), ripe[shard])
                for shard in chosen
                # Others were lost meanwhile; their next owner reads them again.
                if (one := self._holdings.get(shard)) is not None
                and self._read_under.get(shard) == one.claim
            ]
            with self._excused(chosen):
                try:
                    published += await self._commit(batches)
                except BaseException:
                    for shard in chosen:
                        self._rewind(shard)
                    raise
                for shard in chosen:
                    self._apart.pop(shard, None)
            self._note_at_work(held)
            await self._renewal.between()
            if left and self._clock.monotonic() >= until:
                # They are the first ones of the next pass: what is taken out comes by its dueness.
                for shard in left:
                    for run in ripe[shard]:
                        self._wheel.put(shard, time_ms_of(run.id), run)
                break
        return published

    def _next_shards(self, left: list[ShardId], ripe: dict[int, list[Waiting]]) -> list[ShardId]:
        """What the next transaction writes: few shards, for which nobody else writes right now."""
        chosen: list[ShardId] = []
        runs, together = 0, self._pace.policy.together
        for shard in left:
            held = self._holdings.get(shard)
            if held is not None and held.writing.locked():
                continue
            most = self._apart.get(shard, self._pace.policy.together)
            if len(chosen) >= most:
                continue
            together = min(together, most)
            chosen.append(shard)
            runs += len(ripe[shard])
            if runs >= RUNS_PER_TRANSACTION or len(chosen) >= together:
                break
        return chosen or left[:1]

    def _through(self, held: Held, bound_ms: int) -> datetime:
        return instant(min(bound_ms, held.loaded_through_ms))

    async def _commit(self, batches: list[Batch]) -> int:
        """Write one transaction."""
        if not batches:
            return 0
        async with AsyncExitStack() as locks:
            for batch in batches:
                if (held := self._holdings.get(batch.claim.shard)) is not None:
                    await locks.enter_async_context(held.writing)
            done = await self._publishing.publish(batches, now=self._clock.stated())
        for batch in batches:
            held = self._holdings.get(batch.claim.shard)
            if batch.claim.shard in done.lost:
                self._holdings.lose(batch.claim, why=FENCED_OUT)
            elif held is not None and held.claim == batch.claim:
                held.published_through_ms = to_ms(batch.through)
        return sum(self._tell(shard, placed) for shard, placed in done.placed.items())

    def _tell(self, shard: ShardId, placed: Placed) -> int:
        now = self._time.now()
        for parcel in placed.parcels:
            if parcel.held:
                self._referee.expect(shard, parcel.visible_at)
            else:
                self._hint(*parcel.hint)
                self._lag.observe(max(0.0, (now - parcel.visible_at).total_seconds()))
        if placed.skipped:
            self._missed.add(len(placed.skipped), reason=OVERLAP_SKIPPED)
        return sum(len(parcel.runs) for parcel in placed.parcels) + len(placed.skipped)

    def _note_passed(self, held: Sequence[Held]) -> None:
        """Remember that we have passed; where nothing waits, the cursor may follow the clock."""
        bound_ms = to_ms(self._time.now()) + self._lead_ms
        next_due = self._wheel.next_due()
        # Anything still in the wheel that is due by now came in during this pass: leave it.
        safe_ms = bound_ms if next_due is None else min(bound_ms, next_due - 1)
        passed_at = self._clock.monotonic()
        for one in held:
            if one.claim.shard not in self._failed:
                one.served, one.published_at = True, passed_at
                through_ms = min(safe_ms, one.loaded_through_ms)
                one.published_through_ms = max(one.published_through_ms, through_ms)

    def _rewind(self, shard: ShardId) -> None:
        self._wheel.drop(shard)
        held = self._holdings.get(shard)
        if held is not None:
            held.rewind()
            held.in_doubt = True


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
