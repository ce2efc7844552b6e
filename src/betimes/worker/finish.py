"""Outcomes on their way into the database, together.

Outcomes gather in one box per shard. A box is sent when it holds enough, when it is heavy, or when
it is old; at most one box of a shard is on its way at a time, because the second one may delete a
parcel that the first one still has to find. Sending is repeated until the database answers: every
statement is guarded by the fences and recognises its own earlier commit, so a repeat is safe.
A parcel that turns out to be lost is counted and forgotten, never tried again.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from betimes.config.settings import WorkerSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import ParcelId, RunId, ShardId
from betimes.domain.leased import Source, Streak, WantedRun
from betimes.domain.outcome import Outcome, Succeeded
from betimes.domain.states import FINAL, RunState
from betimes.engine.resolve import (
    NO_WORKER_FOR_HANDLER,
    refusal_of,
    resolve,
    unhandled,
    unstarted,
)
from betimes.ops.sayings import seal_ending
from betimes.rhythm import full_jitter
from betimes.store.admit import Offered
from betimes.store.ending import Ending
from betimes.store.finish import Finishing, Page
from betimes.telemetry import Outage, Telemetry
from betimes.worker.box import Box
from betimes.worker.held import HeldParcel, HeldParcels
from betimes.worker.plan import Plan
from betimes.worker.signals import NO_SIGNALS, WorkerSignals

BOX_BYTES_MAX = 1 << 20
BOXES_TOGETHER_MAX = 16
"""Most shards that are finished in one transaction."""
PAUSE, PAUSE_MAX = timedelta(milliseconds=50), timedelta(seconds=2)


class Reporter:
    """Takes outcomes and writes them."""

    def __init__(
        self,
        *,
        finishing: Finishing,
        held: HeldParcels,
        clock: Clock,
        settings: WorkerSettings,
        telemetry: Telemetry,
        roll: Callable[[], float],
        new_parcel_id: Callable[[HeldParcel], ParcelId],
        queued_again: Callable[[Source, datetime], None] = lambda _, __: None,
        left_to_others: Callable[[Source, datetime], None] = lambda _, __: None,
        died: Callable[[Ending], None] = lambda _: None,
        signals: WorkerSignals = NO_SIGNALS,
    ) -> None:
        self._finishing = finishing
        self._new_parcel_id = new_parcel_id
        self._queued_again = queued_again
        self._left_to_others = left_to_others
        self._died = died
        self._held = held
        self._clock = clock
        self._count = settings.flush_count
        self._age_seconds = settings.flush_age.total_seconds()
        self._telemetry = telemetry
        self._roll = roll
        self._signals = signals
        self._boxes: dict[ShardId, Box] = {}
        self._sending: set[ShardId] = set()
        self._fresh = asyncio.Event()
        self._ready = asyncio.Event()
        self._idle = asyncio.Event()
        self._outage = Outage(duty="worker.finish", telemetry=telemetry)
        self._runs = telemetry.counter("betimes_runs_total")
        self._lost = telemetry.counter("betimes_lease_lost_total")
        self.unwritten = 0

    def succeeded(self, parcel: HeldParcel, streak: Streak) -> None:
        """Take successes without consequences."""
        if parcel.lost:
            return
        box = self._box(parcel)
        box.streaks.append(streak)
        if streak.results is not None:
            box.bytes += sum(len(result) for result in streak.results if result is not None)
        self._took(parcel, box, len(streak.runs))

    def ended(self, parcel: HeldParcel, ending: Ending) -> None:
        """Take any other end of an attempt."""
        if parcel.lost:
            return
        box = self._box(parcel)
        box.endings.append(ending)
        box.bytes += len(ending.result or b"") + len(ending.error or "")
        self._took(parcel, box, 1)

    def attempted(
        self,
        run: WantedRun,
        parcel: HeldParcel,
        plan: Plan,
        outcome: Outcome | None,
        started_at: datetime,
        now: datetime,
    ) -> None:
        """Take the end of an attempt: a plain success the fast way, any other is decided upon."""
        home, attempt = parcel.leased, run.attempt + 1
        if parcel.keys is not None and isinstance(outcome, Succeeded):
            outcome = Succeeded(parcel.keys.seal(outcome.result))
        if plan.plain and isinstance(outcome, Succeeded):
            results: list[bytes | None] | None = None
            if outcome.result is not None:
                results = [outcome.result]
            streak = Streak(home.id, home.fence, attempt, started_at, now, [run.id], results)
            self.succeeded(parcel, streak)
            return
        given, again = plan.given(run, home), self._new_parcel_id(parcel)
        if outcome is None:
            self.ended(parcel, unhandled(given, now=now, parcel_id=again))
            return
        ending = resolve(
            outcome,
            given,
            attempt=attempt,
            started_at=started_at,
            now=now,
            roll=self._roll(),
            parcel_id=again,
        )
        self.ended(parcel, ending if parcel.keys is None else seal_ending(parcel.keys, ending))

    def refuses(self, run: WantedRun, parcel: HeldParcel, plan: Plan, now: datetime) -> bool:
        """Whether a run is over before it began: somebody wants its end, or it is too late."""
        why = refusal_of(run, plan.start_deadline, now)
        if why is None:
            return False
        self.ended(parcel, unstarted(plan.given(run, parcel.leased), why, now=now))
        return True

    def lose(self, parcel: HeldParcel, *, found: str) -> None:
        """Stop believing in a lease: nothing of it is reported any more.

        Should it be ours still, the heartbeat finds it among the strays and gives it back; a run
        that was left out would wait for ever in a parcel that is renewed for the sake of others.
        """
        if not parcel.lost:
            self._held.lose(parcel)
            self._lost.add(kind="parcel")
            self._telemetry.event(
                "worker.lease_lost", level="warning", parcel=str(parcel.leased.id), found=found
            )

    def unwanted(self, parcel: HeldParcel) -> None:
        """Take a parcel without anything left to do; it is only to be deleted."""
        if parcel.lost:
            return
        box = self._box(parcel)
        box.emptied.append(parcel.leased.id)

    async def run(self, *, senders: int) -> None:
        """Send boxes until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ripen(), name="worker.ripen")
            for number in range(senders):
                group.create_task(self._send_ripe(), name=f"worker.send {number}")

    async def flush(self) -> int:
        """Send everything now; how many outcomes were written. Tests and the drain call this."""
        written = 0
        for shard in [shard for shard in self._boxes if shard not in self._sending]:
            written += await self._send(shard, self._boxes.pop(shard))
        return written

    async def settle(self) -> None:
        """Return when every outcome that was taken is written, whoever writes it."""
        while self._boxes or self._sending:
            await self.flush()
            if self._sending:
                self._idle.clear()
                await self._idle.wait()

    def _box(self, parcel: HeldParcel) -> Box:
        shard = parcel.leased.shard
        box = self._boxes.get(shard)
        if box is None:
            box = self._boxes[shard] = Box()
            self._fresh.set()
        if box.parcels.setdefault(parcel.leased.id, parcel) is not parcel:
            self.unwritten -= box.evict(parcel.leased.id)
            box.parcels[parcel.leased.id] = parcel
        return box

    def _took(self, parcel: HeldParcel, box: Box, count: int) -> None:
        self.unwritten += count
        box.count += count
        parcel.left -= count
        if not parcel.left:
            box.emptied.append(parcel.leased.id)
        if not box.ripe and (box.count >= self._count or box.bytes >= BOX_BYTES_MAX):
            box.ripe = True
            self._ready.set()

    async def _ripen(self) -> None:
        """Boxes that wait for company do not wait for long: once or twice the age at most."""
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            await self._clock.sleep(self._age_seconds)
            for box in self._boxes.values():
                box.ripe = True
            self._ready.set()

    async def _send_ripe(self) -> None:
        while True:
            boxes = self._take_ripe()
            if not boxes:
                self._ready.clear()
                await self._ready.wait()
            elif len(boxes) == 1:
                ((shard, box),) = boxes.items()
                await self._send(shard, box)
            else:
                await self._send_together(boxes)

    def _take_ripe(self) -> dict[ShardId, Box]:
        """The oldest ripe box, and if it is small and light, others like it from other shards."""
        taken: dict[ShardId, Box] = {}
        room = self._count
        for shard, box in self._boxes.items():
            if not box.ripe or shard in self._sending:
                continue
            light = box.is_light
            if taken and (not light or box.count > room):
                continue
            taken[shard] = box
            room -= box.count
            if not light or room <= 0 or len(taken) == BOXES_TOGETHER_MAX:
                break
        for shard in taken:
            del self._boxes[shard]
        return taken

    async def _send_together(self, boxes: dict[ShardId, Box]) -> None:
        """Several shards in one transaction: where each has little, the commit is what costs.

        A box of which not everything was written is sent once more, alone: that way recognises
        what an unanswered try has committed, and what is lost.
        """
        self._sending.update(boxes)
        written: dict[ShardId, int] = {}
        offered: list[Offered] = []
        pages = [
            Page(shard, box.fast(), box.streaks, box.slow(), box.endings)
            for shard, box in boxes.items()
        ]
        try:
            with self._telemetry.span("worker.finish", shards=len(boxes)) as span:
                span.expect_errors()
                written, offered = await self._finishing.together(pages)
        except Unavailable as error:
            self._outage.failed(error)
        except BaseException:
            for shard, box in boxes.items():
                self._sent(shard, box)
            raise
        self._tell_offered(offered)
        for page in pages:
            boxes[page.shard].found = dict.fromkeys(page.slow.given_up, RunState.CANCELLED)
        for shard, box in boxes.items():
            if written.get(shard) == box.count:
                self._sent(shard, box)
                self._conclude(box, set())
                self._signals.flushed(box.count)
            else:
                await self._send(shard, box)

    async def _send(self, shard: ShardId, box: Box) -> int:
        self._sending.add(shard)
        try:
            refused = await self._until_answered(shard, box)
        finally:
            self._sent(shard, box)
        self._conclude(box, refused)
        self._signals.flushed(box.count - len(refused))
        return box.count - len(refused)

    def _sent(self, shard: ShardId, box: Box) -> None:
        self._sending.discard(shard)
        self._idle.set()
        self.unwritten -= box.count
        self._ready.set()

    async def _until_answered(self, shard: ShardId, box: Box) -> set[RunId]:
        while True:
            try:
                with self._telemetry.span("worker.finish", shard=shard) as span:
                    span.expect_errors()  # the outage tells them, once
                    refused = await self._write(shard, box)
                    span.add(runs=box.count, refused=len(refused))
            except Unavailable as error:
                self._outage.failed(error)
                pause = full_jitter(
                    self._outage.failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll()
                )
                await self._clock.sleep(pause.total_seconds())
            else:
                self._outage.ended()
                return refused

    async def _write(self, shard: ShardId, box: Box) -> set[RunId]:
        """Write a box; returns the runs whose outcome was refused."""
        written = 0
        fast, slow = box.fast(), box.slow()
        if fast.leases:
            written = await self._finishing.succeeded(shard, fast, box.streaks)
            self._tell_offered(fast.offered)
        if box.endings:
            written += len(await self._finishing.otherwise(shard, slow, box.endings))
            box.found = dict.fromkeys(slow.given_up, RunState.CANCELLED)
            self._tell_offered(slow.offered)
            for one in slow.paused:
                self._telemetry.event(
                    "job.auto_paused", level="warning", job=str(one.job), failures=one.failures
                )
        if written == box.count:
            return set()
        # Either somebody else has them, or an earlier try of ours was committed unheard.
        outcomes = box.outcomes()
        claims = [(run, box.fence(parcel)) for run, parcel in outcomes.items()]
        ours = await self._finishing.ours(shard, claims)
        box.found |= ours
        return outcomes.keys() - ours.keys()

    def _tell_offered(self, offered: list[Offered]) -> None:
        """Whom our ends have made room for, we look for ourselves; others find it by polls."""
        for one in offered:
            source = Source(one.shard, one.queue, one.tenant, one.fair)
            self._queued_again(source, one.visible_at)

    def _conclude(self, box: Box, refused: set[RunId]) -> None:
        for parcel in box.emptied:
            self._held.remove(box.parcels[parcel])
        if refused:
            self._note_losses(box, refused)
        succeeded = sum(len(one.runs) for one in box.streaks)
        if refused:
            succeeded -= sum(run in refused for one in box.streaks for run in one.runs)
        if succeeded:
            self._runs.add(succeeded, outcome="succeeded")
        for one in box.endings:
            if one.run in refused:
                continue
            # A target may have reported what we waited for: its word counts, not our ending.
            state = box.found.get(one.run, one.state)
            if state in FINAL:
                self._runs.add(1, outcome=state.name.lower())
            if state is RunState.DEAD:
                self._died(one)
            if one.again is not None and state not in FINAL:
                source = box.parcels[one.parcel].leased.source
                foreign = one.reason == NO_WORKER_FOR_HANDLER
                tell = self._left_to_others if foreign else self._queued_again
                tell(source, one.again.visible_at)

    def _note_losses(self, box: Box, refused: set[RunId]) -> None:
        """Parcels of which nothing could be written: their lease ended under us."""
        outcomes = box.outcomes()
        alive = {parcel for run, parcel in outcomes.items() if run not in refused}
        for identifier in set(outcomes.values()) - alive:
            self.lose(box.parcels[identifier], found="finish")
