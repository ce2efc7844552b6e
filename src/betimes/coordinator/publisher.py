"""Runs that are nearly due become parcels.

What is authoritative: `published_through` of a shard. It moves in the transaction that inserts the
parcels, under the epoch, so after any crash the next owner knows exactly what is left to do.

    read ──▶ wheel ──▶ due - lead ──▶ one transaction: parcels + cursor ──▶ hint

Reading ahead is safe for `margin - transaction bound`: a run inserted without a parcel by a
transaction that began at T is due later than T + margin and visible by T + bound, so what a read at
R has not seen is due after R + (margin - bound). Publishing ahead is bounded by `lead`.

What may go wrong: a transaction fails or its reply is lost. Then the shard is rewound to the cursor
and read again; the statement inserts nothing when the cursor has already moved.
"""

from collections.abc import Collection, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.elector import TRUST_MARGIN
from betimes.coordinator.hint import Hint
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.recovery import Recovery
from betimes.coordinator.referee import Referee
from betimes.coordinator.wheel import Wheel
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, Unavailable
from betimes.domain.ids import ShardId, floor_of, time_ms_of, to_ms
from betimes.domain.parcel import Waiting
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.store.publish import Batch, Placed, Publishing
from betimes.store.shards import Claim, Shards
from betimes.telemetry import Outage, Telemetry

PAGE = 2_000
RUNS_PER_TRANSACTION = 10_000
SHARDS_PER_TRANSACTION = 16
LOAD_SLACK_MS = 500
PASSES_MISSED_MAX = 3
FAILED_MAX = 2
"""So often a shard, or a few together, may fail in a pass without ending it."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Publisher:
    """Publishes every shard this node holds, and renews their leases by doing so."""

    def __init__(
        self,
        *,
        publishing: Publishing,
        recovery: Recovery,
        shards: Shards,
        holdings: Holdings,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
        transaction_timeout: timedelta,
        referee: Referee,
        hint: Hint = lambda *_: None,
    ) -> None:
        self._publishing = publishing
        self._recovery = recovery
        self._referee = referee
        self._shards = shards
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
        # What makes no progress for so long is not renewed, and gone a lease later at the latest.
        patience = PASSES_MISSED_MAX * max(settings.plan_every, settings.publish_every)
        self._patience = min(patience, settings.lease_ttl).total_seconds()
        self._renewed_at = float("-inf")
        self._failed: dict[ShardId, Unavailable] = {}
        self._apart: set[ShardId] = set()
        self._lag = telemetry.histogram("betimes_schedule_lag_seconds")
        self._lost = telemetry.counter("betimes_lease_lost_total")
        self._missed = telemetry.counter("betimes_fires_missed_total")
        self._outage = Outage(duty="coordinator.publisher", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Publish until asked to stop; while the database is away, keep trying."""
        every = self._settings.publish_every
        beats = beat(self._clock, every=every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> int:
        """One pass over every shard we may trust; returns how many runs were published."""
        if not self._time.known:
            return 0
        with self._telemetry.span("publisher.tick") as span:
            span.expect_errors()
            held = self._holdings.trusted(self._clock.monotonic())
            self._failed.clear()
            for one in held:
                with self._excused([one.claim.shard]):
                    await self._load(one)
            published = await self._publish()
            # A shard that failed has not passed: it is left to run out if that goes on.
            self._note_idle([one for one in held if one.claim.shard not in self._failed])
            await self._referee.pass_over(held)
            await self._renew()
            span.add(runs=published, waiting=len(self._wheel))
            for error in self._failed.values():
                raise error
        return published

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
                self._apart.add(shard)

    async def _load(self, held: Held) -> None:
        """Read what is due soon into the wheel, a page at a time, as far as is safe."""
        now_ms = to_ms(self._time.now())
        until_ms = now_ms + self._ahead_ms
        enough_ms = min(until_ms, now_ms + self._lead_ms + LOAD_SLACK_MS)
        shard = held.claim.shard
        if self._read_under.get(shard) != held.claim:
            # What was read under an earlier epoch is somebody else's by now, or will be read again.
            self._wheel.drop(shard)
            try:
                await self._recovery.recover(held)
            except FencedOut:
                self._lose(held.claim)
                return
            self._read_under[shard] = held.claim
        if held.in_doubt and not await self._learn_cursor(held):
            return
        while (
            held.loaded_through_ms < enough_ms
            and self._wheel.count(shard) < self._settings.wheel_max
        ):
            page = await self._page(held, until_ms)
            if self._holdings.get(shard) is not held:
                return
            for run in page:
                self._wheel.put(shard, time_ms_of(run.id), run)

    async def _learn_cursor(self, held: Held) -> bool:
        """After a commit of unknown fate: what it published must not be read again."""
        found = await self._publishing.cursor(held.claim, now=self._clock.stated())
        if found is None:
            self._lose(held.claim)
            return False
        held.learn_cursor(found.through)
        return True

    async def _page(self, held: Held, until_ms: int) -> list[Waiting]:
        """The next rows; a millisecond is read whole, because the cursor counts in them."""
        shard, most = held.claim.shard, PAGE
        while True:
            rows = await self._publishing.near_due(
                shard, low=held.next_low, until_ms=until_ms, most=most
            )
            if len(rows) < most:
                held.loaded_through_ms, held.next_low = until_ms, floor_of(until_ms + 1)
                return rows
            last_ms = time_ms_of(rows[-1].id)
            if time_ms_of(rows[0].id) < last_ms:
                held.loaded_through_ms, held.next_low = last_ms - 1, floor_of(last_ms)
                return [run for run in rows if time_ms_of(run.id) < last_ms]
            most *= 2  # one millisecond fills the page: read it with a larger one

    async def _publish(self) -> int:
        """Empty the wheel up to `lead` from now, in transactions of bounded size.

        Not before something is due within half of that: what is published in larger batches costs
        a statement per shard and second instead of one per shard and pass.
        """
        bound_ms = to_ms(self._time.now()) + self._lead_ms
        next_due = self._wheel.next_due()
        if next_due is None or next_due > bound_ms - self._lead_ms // 2:
            return 0
        ripe: dict[int, list[Waiting]] = {}
        for shard, run in self._wheel.take(bound_ms):
            ripe.setdefault(shard, []).append(run)
        try:
            return await self._publish_ripe(ripe, bound_ms)
        except BaseException:
            # All of it left the wheel, tried or not; the cursors in the database are the truth.
            for shard in ripe:
                self._rewind(ShardId(shard))
            raise

    async def _publish_ripe(self, ripe: dict[int, list[Waiting]], bound_ms: int) -> int:
        left = [ShardId(shard) for shard in ripe]
        published = 0
        while left:
            chosen = self._next_shards(left, ripe)
            left = [shard for shard in left if shard not in chosen]
            batches = [
                Batch(held.claim, self._through(held, bound_ms), ripe[shard])
                for shard in chosen
                # Others were lost meanwhile; their next owner reads them again.
                if (held := self._holdings.get(shard)) is not None
                and self._read_under.get(shard) == held.claim
            ]
            with self._excused(chosen):
                try:
                    published += await self._commit(batches)
                except BaseException:
                    for shard in chosen:
                        self._rewind(shard)
                    raise
                self._apart.difference_update(chosen)
        return published

    def _next_shards(self, left: list[ShardId], ripe: dict[int, list[Waiting]]) -> list[ShardId]:
        """What the next transaction writes: few shards, for which nobody else writes right now."""
        chosen: list[ShardId] = []
        runs = 0
        for shard in left:
            held = self._holdings.get(shard)
            if held is not None and held.writing.locked():
                continue
            if shard in self._apart and chosen:
                continue
            chosen.append(shard)
            if shard in self._apart:
                break
            runs += len(ripe[shard])
            if runs >= RUNS_PER_TRANSACTION or len(chosen) == SHARDS_PER_TRANSACTION:
                break
        return chosen or left[:1]

    def _through(self, held: Held, bound_ms: int) -> datetime:
        return _instant(min(bound_ms, held.loaded_through_ms))

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
                self._lose(batch.claim)
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

    def _note_idle(self, held: list[Held]) -> None:
        """Remember that we have passed; where nothing waits, the cursor may follow the clock."""
        bound_ms = to_ms(self._time.now()) + self._lead_ms
        passed_at = self._clock.monotonic()
        next_due = self._wheel.next_due()
        # Anything still in the wheel that is due by now came in during this pass: leave it.
        safe_ms = bound_ms if next_due is None else min(bound_ms, next_due - 1)
        for one in held:
            one.published_at = passed_at
            through_ms = min(safe_ms, one.loaded_through_ms)
            one.published_through_ms = max(one.published_through_ms, through_ms)

    async def _renew(self) -> None:
        """Prolong the leases of shards that make progress; the others are left to run out."""
        asked_at = self._clock.monotonic()
        if asked_at - self._renewed_at < self._settings.renew_every.total_seconds():
            return
        ttl = self._settings.lease_ttl
        held = [
            one
            for one in self._holdings.trusted(asked_at)
            if asked_at - min(one.planned_at, one.published_at) < self._patience
        ]
        if not held:
            return
        still, now = await self._shards.renew(
            [(one.claim, _instant(one.published_through_ms)) for one in held],
            ttl=ttl,
            now=self._clock.stated(),
        )
        self._renewed_at = asked_at
        if now is not None:
            self._time.observe(now)
        seconds = ttl.total_seconds()
        for one in held:
            if one.claim.shard in still:
                one.term = one.term.renewed(
                    asked_at=asked_at, ttl=seconds, margin=seconds * TRUST_MARGIN
                )
            else:
                self._lose(one.claim)

    def _rewind(self, shard: ShardId) -> None:
        self._wheel.drop(shard)
        held = self._holdings.get(shard)
        if held is not None:
            held.rewind()
            held.in_doubt = True

    def _lose(self, claim: Claim) -> None:
        if self._holdings.lose_claim(claim) is not None:
            self._wheel.drop(claim.shard)
            self._lost.add(kind="shard")
            why = "fenced out"
            self._telemetry.event("shard.lost", level="warning", shard=claim.shard, why=why)


def _instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
