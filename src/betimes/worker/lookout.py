"""When to claim, and from whom.

Where work may wait is told by hints and, because they may get lost, by a poll. Several claims may
be under way at once, each with places reserved for it: the database leases while we execute.

A parcel whose workers died repeatedly is a suspect. It is leased only when nothing else is held,
and nothing else is leased while it is held: whatever dies then, dies of it. So that a busy worker
does not leave suspects for ever, it now and then stops claiming for a moment to become empty. Where
that is in vain, because what it executes takes long, it takes suspects in beside the others: one,
and twice as many each time that all of them have ended without killing it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from betimes.config.settings import WorkerSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import to_ms
from betimes.domain.leased import Source
from betimes.domain.parcel import RUNS_MAX, SUSPECT_AFTER
from betimes.ops.turns import Turns, best_first
from betimes.rhythm import DatabaseTime, Stopping, first_of, full_jitter
from betimes.store.lease import NO_BOUNDS
from betimes.store.parcels import BEFORE_ALL, Parcels
from betimes.store.rules import ReadingRules
from betimes.telemetry import Outage, Telemetry
from betimes.worker.claim import Claims
from betimes.worker.finish import Reporter
from betimes.worker.held import HeldParcels
from betimes.worker.hints import Board, Hint, read_hints
from betimes.worker.slots import Slots

CLAIM_RUNS_MAX = 4 * RUNS_MAX
"""Most runs of one claim: enough to amortise it, few enough to leave some to others."""
CLAIM_SOURCES_MAX = 16
"""Most places of one claim: where little waits in each, a round trip and a commit are shared."""
RANKED_MAX = 64
"""Most places whose best ranks are compared when not everybody can be served."""
UNWRITTEN_MAX = 32 * RUNS_MAX
"""With so many outcomes waiting to be written, no more work is taken on."""
LINGER_SECONDS = 0.005
"""How long to wait for more free places before claiming for a few."""
SUSPECTS_EVERY_SECONDS = 2.0
EMPTYING_SECONDS, EMPTYING_SECONDS_MAX = 2.0, 8.0
"""How long a worker stops claiming to become empty; longer each time that it was not enough."""
EMPTYING_TRIES = 3
"""So often it tries in vain before it takes suspects in beside the others."""
NO_ROOM_SECONDS = 0.1
"""How soon to look again for a free place, if nobody tells of one."""
BESIDE_MAX = 64
"""Most suspects that are taken in beside the others at a time."""
SERIES_SECONDS = 2.0
"""How long an empty worker goes on with one suspect after the other."""
SOURCES_MAX = 1_000
RULES_EVERY_SECONDS = 2.0
"""How soon a change of weights, ceilings or rates is noticed."""
PAUSE, PAUSE_MAX = timedelta(milliseconds=50), timedelta(seconds=2)


class Lookout:
    """Keeps the places filled."""

    def __init__(
        self,
        *,
        parcels: Parcels,
        claims: Claims,
        held: HeldParcels,
        slots: Slots,
        reporter: Reporter,
        clock: Clock,
        time: DatabaseTime,
        settings: WorkerSettings,
        telemetry: Telemetry,
        roll: Callable[[], float],
        nudge: asyncio.Event,
        turns: Turns,
        rules: ReadingRules,
    ) -> None:
        self._rules = rules
        self._parcels = parcels
        self._claims = claims
        self._held = held
        self._slots = slots
        self._reporter = reporter
        self._clock = clock
        self._time = time
        self._poll_every = settings.poll_every.total_seconds()
        self._telemetry = telemetry
        self._roll = roll
        self._nudge = nudge
        self._queues = None if "*" in settings.queues else settings.queues
        wanted = None if self._queues is None else frozenset(self._queues)
        self._board = Board(wanted, parcels.tenant)
        self._turns = turns
        self._places = dict.fromkeys((False, True), BEFORE_ALL)
        self._rules_at = clock.monotonic()
        self._reading_rules = asyncio.Lock()
        self._outage = Outage(duty="worker.claim", telemetry=telemetry)
        self._hints = telemetry.counter("betimes_hints_total")
        self._poll_at = self._suspects_at = clock.monotonic()
        self._claimed_at = self._emptying_until = float("-inf")
        self._blocked_until = float("-inf")
        self._suspects: list[Source] = []
        self._emptying_seconds = EMPTYING_SECONDS
        self._series_until = float("-inf")
        self._alone = False
        self._tried = 0
        """How often nothing came of becoming empty."""
        self._beside = 0
        """How many suspects may be here beside others."""
        self._scarce = False

    def hear(self, channel: str, payload: str) -> None:
        """Take a hint; an empty one says that some may have been missed."""
        self._hints.add(channel=channel)
        if not payload:
            self._poll_at = self._clock.monotonic()
            self._nudge.set()
        for hint in read_hints(payload):
            self.expect(hint)

    def expect(self, hint: Hint) -> None:
        """Look there then."""
        source = hint.source
        if source.fair and self._turns.rules.queue(source.tenant, source.queue).fairness == "none":
            hint = hint._replace(source=source._replace(fair=0))  # all keys stand in one row
        if self._board.note(hint):
            self._nudge.set()

    async def run(self, stopping: Stopping, *, loops: int) -> None:
        """Claim until stopping is requested; returns when no claim is under way."""
        async with asyncio.TaskGroup() as group:
            for number in range(loops):
                group.create_task(self._loop(stopping), name=f"worker.claim {number}")

    async def tick(self) -> int:
        """One claim, if there is room for it and reason to expect something; runs leased."""
        if self._clock.monotonic() < self._blocked_until:
            return 0  # nobody was asked, so this is no sign that the outage is over
        try:
            leased = await self._tick()
        except Unavailable as error:
            self._outage.failed(error)
            pause = full_jitter(
                self._outage.failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll()
            )
            self._blocked_until = self._clock.monotonic() + pause.total_seconds()
            return 0
        self._outage.ended()
        return leased

    async def _loop(self, stopping: Stopping) -> None:
        while not stopping.requested:
            self._nudge.clear()
            if not await self.tick():
                pause = self._clock.sleep(self._pause())
                await first_of(self._nudge.wait(), stopping.wait(), pause)

    async def _tick(self) -> int:
        now = self._clock.monotonic()
        async with self._reading_rules:  # whoever comes meanwhile waits for the same answer
            if now >= self._rules_at:
                self._turns.rules = await self._rules.read()
                self._rules_at = now + RULES_EVERY_SECONDS
        if now >= self._poll_at:
            await self._poll(now)
        if now >= self._suspects_at:
            await self._look_for_suspects(now)
        if self._stays_quiet(now):
            leased = await self._take_suspect(now)
            if leased or self._stays_quiet(now):
                return leased
        return await self._take() if self._has_room(now) else 0

    async def _take(self) -> int:
        now_ms = to_ms(self._time.now())
        sources = self._turns.pick(self._board.due(now_ms), most=CLAIM_SOURCES_MAX)
        if not sources:
            return 0
        # Before anything is asked: a second claim takes what is free meanwhile, and a claim
        # without a place would find every source empty.
        limited = any(self._turns.rules.limited(one.tenant, one.queue) for one in sources)
        # What is leased counts where there is a limit, so nothing is leased ahead there.
        places = self._slots.reserve(CLAIM_RUNS_MAX, ahead=not limited)
        if not places:
            return 0
        bounds: Mapping[Source, datetime] = NO_BOUNDS
        if self._scarce or limited:
            sources, bounds = await self._ranked(sources, places, now_ms)
            if not sources:
                return 0
        # Charged before it is known, so that a second claim asks somebody else meanwhile.
        expected = dict.fromkeys(sources, places / len(sources))
        self._turns.charge(expected)
        self._claimed_at = self._clock.monotonic()
        # They go to the end of the line at once, so that a second claim asks elsewhere.
        for source in sources:
            self._board.served(source, now_ms=now_ms, drained=False)
        had: Counter[Source] = Counter()
        try:
            taken = await self._claims.take(sources, places, bounds=bounds)
            had = taken.runs
            self._scarce = had.total() >= places
        finally:
            self._turns.charge({one: had[one] - expected[one] for one in sources})
        for source in taken.drained:
            # Hints are cut to the millisecond: with nothing found, this one is not over yet.
            over_ms = now_ms if taken.runs[source] else now_ms - 1
            self._board.served(source, now_ms=over_ms, drained=True)
        for source, at in taken.later.items():
            self._board.put_off(source, now_ms=now_ms, until_ms=to_ms(at) + 1)
        self._board.passed_over(taken.passed_over)
        return taken.runs.total()

    async def _ranked(
        self, sources: list[Source], places: int, now_ms: int
    ) -> tuple[list[Source], Mapping[Source, datetime]]:
        """The best first; without any, the places reserved for them are free again."""
        ranked: list[Source] = []
        try:
            ranked, bounds = await self._best_first(sources, now_ms)
        finally:
            if not ranked:
                self._slots.give_back(places)
        return ranked, bounds

    async def _best_first(
        self, sources: list[Source], now_ms: int
    ) -> tuple[list[Source], Mapping[Source, datetime]]:
        """Not everybody can be served: of each place those with the best rank, whatever shard."""
        every = {one: None for source in sources for one in self._board.beside(source)}
        asked = list(every)[:RANKED_MAX]
        ranks = await self._parcels.best_ranks(asked, now=self._clock.stated())
        for source in asked:
            if source not in ranks:
                # Hints are cut to the millisecond: this one may not be over yet.
                self._board.served(source, now_ms=now_ms - 1, drained=True)
        order, bounds = best_first(asked, ranks)
        return order[:CLAIM_SOURCES_MAX], bounds

    def _has_room(self, now: float) -> bool:
        self._slots.look(now)
        places = self._slots.open
        patient = now - self._claimed_at >= LINGER_SECONDS
        return (
            places >= self._slots.enough or (places > 0 and patient)
        ) and self._reporter.unwritten < UNWRITTEN_MAX

    async def _poll(self, now: float) -> None:
        self._poll_at = now + self._poll_every
        if not self._time.known:
            asked_at = self._clock.monotonic()
            self._time.observe(await self._parcels.read_clock(), asked_at=asked_at)
        self._board.found(await self._find(suspects=False))

    async def _look_for_suspects(self, now: float) -> None:
        if self._tried >= EMPTYING_TRIES and not self._is_empty():
            if self._slots.free > 0:
                await self._look_beside(now)
            return  # without room, the next place that is free is theirs: ordinary work comes after
        self._suspects_at = now + SUSPECTS_EVERY_SECONDS
        self._suspects = await self._find(suspects=True)
        if not self._suspects:
            self._forget_suspects()
            return
        self._tried += 1
        self._emptying_until = now + self._emptying_seconds
        self._series_until = self._emptying_until + SERIES_SECONDS
        # Ordinary work has its turn between two tries, however long they are.
        self._suspects_at += self._emptying_seconds
        self._emptying_seconds = min(2 * self._emptying_seconds, EMPTYING_SECONDS_MAX)

    async def _look_beside(self, now: float) -> None:
        """Whoever waits for ever is not executed at all; this may cost the others their attempt."""
        self._suspects_at = now + SUSPECTS_EVERY_SECONDS
        places = self._slots.reserve(1)  # before we ask: other claims take what is free meanwhile
        try:
            waiting = await self._find(suspects=True)
            if not waiting:
                self._forget_suspects()
                return
            here = sum(one.leased.deliveries > SUSPECT_AFTER for one in self._held)
            if not here:
                self._beside = min(max(1, 2 * self._beside), BESIDE_MAX)
            for number in range(self._beside - here):
                taking, places = places or self._slots.reserve(CLAIM_RUNS_MAX), 0
                if not taking:
                    break
                await self._claims.take([waiting[number % len(waiting)]], taking, suspects=True)
        finally:
            if places:
                self._slots.give_back(places)

    def _forget_suspects(self) -> None:
        self._suspects, self._emptying_seconds = [], EMPTYING_SECONDS
        self._tried = self._beside = 0

    async def _find(self, *, suspects: bool) -> list[Source]:
        """Begins where the last look ended: with very many places, none stays unseen."""
        place = self._places[suspects]
        found = await self._look(place, SOURCES_MAX, suspects=suspects)
        if len(found) == SOURCES_MAX:
            self._places[suspects] = found[-1]
            return found
        self._places[suspects] = BEFORE_ALL
        if place != BEFORE_ALL:
            found += await self._look(BEFORE_ALL, SOURCES_MAX - len(found), suspects=suspects)
        return found

    async def _look(self, after: Source, most: int, *, suspects: bool) -> list[Source]:
        return await self._parcels.find_waiting(
            queues=self._queues,
            suspects=suspects,
            now=self._clock.stated(),
            most=most,
            after=after,
        )

    def _stays_quiet(self, now: float) -> bool:
        """Whether nothing ordinary may be leased: a suspect is here, or about to be."""
        if self._alone and self._is_empty():
            self._alone = False
        return self._alone or (bool(self._suspects) and now < self._emptying_until)

    def _is_empty(self) -> bool:
        return self._slots.idle and not len(self._held)

    async def _take_suspect(self, now: float) -> int:
        if self._alone or not self._is_empty():
            return 0
        source = self._suspects.pop(0)
        self._alone, self._tried = True, 0
        places = self._slots.reserve(CLAIM_RUNS_MAX)
        taken = await self._claims.take([source], places, suspects=True)
        if taken.runs:
            # There may be more where it came from, and being empty was the hard part.
            self._suspects.append(source)
            self._emptying_seconds = max(EMPTYING_SECONDS, self._emptying_seconds / 2)
            self._emptying_until = min(now + EMPTYING_SECONDS, self._series_until)
        return taken.runs.total()

    def _pause(self) -> float:
        """How long there is nothing to do unless somebody nudges."""
        now = self._clock.monotonic()
        full = not self._slots.open
        suspects_at = max(self._suspects_at, now + NO_ROOM_SECONDS) if full else self._suspects_at
        times = [self._poll_at, suspects_at]
        if self._stays_quiet(now):
            times.append(now + LINGER_SECONDS)
        next_ms = self._board.next_ms()
        if next_ms is not None and not full:
            wait = (next_ms - to_ms(self._time.now())) / 1000
            times.append(now + (wait if wait > 0 else LINGER_SECONDS))
        return max(min(times), self._blocked_until, now) - now
