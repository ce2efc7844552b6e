"""The gates of all origins in one process, and how they agree with those of other processes.

A gate is local: it knows what this process has sent. That a breaker is open is shared through the
store, and whoever wants to probe asks there first: many workers make one probe, and not many.
Without the store every process decides for itself, which is safe and a little less polite.

Long because asking, standing in line and agreeing with others share what is known of one origin.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, Protocol
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.rhythm import beat
from betimes.target.gate import BreakerState, Gate, Go, Health, Hold, Rules, Wait
from betimes.telemetry import Outage, Telemetry

GATES_MAX = 20_000
FORGET_SHARE = 4
"""A quarter of them is forgotten at once, and however few could be, the next look for more comes
after so many new ones: so that looking for them costs each new one little. What cannot be forgotten
is in use, and there are no more of those than this process has requests under way or waiting."""
SYNC_EVERY = timedelta(seconds=1)
TELL_SECONDS, TELL_PLAIN_SECONDS = 5.0, 60.0
TICK_SECONDS = 0.001
PROBE_SECONDS = 35.0
"""How long a probe of another process is waited for."""
WAITERS_SHARE = 4
LINE_SECONDS = 2.0
"""Whose turn at an origin with a rate or a ramp comes within so long waits for it in memory, in a
line that is served at its pace."""
STEP_SECONDS = 1.0
"""The others come back in company: they are leased and put off many at a time, and not each in
transactions of its own that everybody else stands behind. What comes together fits into the line
that has been served meanwhile."""
BUSY_SECONDS = 0.05
"""For an origin that is busy, at most a quarter of the ceiling waits in memory, or as many as it
serves in so short a time that coming back would take longer; the others hold no slot."""
SPREAD_MAX = 6.0
"""Appointments are moved back at random, by so many seconds at most: the pace of those that are far
away stays what it was meant to be."""

WAITS_SECONDS, WAITS_SPREAD = 300.0, 60.0
"""Behind an open breaker one comes at the time of its probe; the others wait until it closes, which
brings them forward, and ask again after so long at the latest, should nobody have done that."""
OVERDUE_SECONDS = 3.0
"""So long after the time of a probe another one is called to it."""

Key = tuple[UUID, str]
Ask = Callable[[float], Go | Wait]
"""Ask the gate for one request at a time of the monotonic clock."""
Stay = Callable[[], Awaitable[bool]]
"""Whether one may wait here for seconds, in nobody's way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A breaker as processes share it. `facts` is what the last one to write knew of the origin."""

    tenant: UUID
    origin: str
    state: BreakerState
    failures: int
    opened_at: datetime | None
    probe_at: datetime | None
    facts: dict[str, Any] = field(default_factory=dict)
    changed: bool = True
    """Whether this is news; otherwise it is told for the sake of the facts, and closes nothing."""


class Breakers(Protocol):
    """Where breakers are shared."""

    async def tell(self, breakers: Sequence[Breaker]) -> None:
        """Write what is known here."""
        ...

    async def call_probers(self, probes: Mapping[Key, float]) -> None:
        """Have one of those who wait for each origin come in so many seconds, to probe it."""
        ...

    async def wake(self, closed: Collection[Key]) -> None:
        """Bring forward what waits for origins that are well again."""
        ...

    async def broken(self) -> tuple[datetime, list[Breaker]]:
        """The time there, and every breaker that is not closed."""
        ...

    async def claim(self, tenant: UUID, origin: str, *, seconds: float) -> bool:
        """Ask to be the one who probes, for so long."""
        ...


@dataclass(slots=True)
class _Entry:
    gate: Gate
    used_at: float = 0.0
    told_at: float = -1e9
    changed: bool = False
    """Whether its breaker has opened or closed since it was told."""
    waiting: deque["asyncio.Future[None]"] = field(default_factory=deque)
    """Who waits for another one to end."""
    line: deque["asyncio.Future[None]"] = field(default_factory=deque)
    """Who waits for time to pass, each for the one before."""
    sent: int = 0
    bad: int = 0
    probe_given: bool = False
    """Whether somebody was called to the first probe since it opened; the store calls to others."""
    called_at: float = -1e9


class Gates:
    """Asked before each request, told after it."""

    def __init__(
        self,
        *,
        rules: Rules,
        clock: Clock,
        telemetry: Telemetry,
        breakers: Breakers | None = None,
        roll: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self._rules = rules
        self._clock = clock
        self._telemetry = telemetry
        self._breakers = breakers
        self._roll = roll
        self._entries: dict[Key, _Entry] = {}
        self._full_at = GATES_MAX
        self._outage = Outage(duty="target.breakers", telemetry=telemetry)
        self._held = telemetry.counter("betimes_target_held_total")
        self._opened = telemetry.counter("betimes_breaker_opened_total")

    async def ask(
        self,
        tenant: UUID,
        origin: str,
        *,
        retry: bool,
        waited: bool = False,
        stay: Stay | None = None,
    ) -> Wait | None:
        """None when a request may be sent, which `done` or `dropped` must follow.

        `waited` is a retry that has waited for the budget before.
        """
        entry = self._entry((tenant, origin))
        gate = entry.gate
        ask = partial(gate.ask, retry=retry, waited=waited)
        if entry.line or gate.is_paced:
            wait = gate.retry_wait(self._clock.monotonic(), waited=waited) if retry else None
            answer = wait or await self._turn(entry, ask, stay=stay)
        else:
            answer = ask(self._clock.monotonic())
        if isinstance(answer, Wait) and answer.why is Hold.ORIGIN_BUSY:
            answer = await self._queue(entry, answer, ask)
        if isinstance(answer, Go):
            if not answer.probe or await self._claim(tenant, origin):
                return None
            gate.dropped()
            now = self._clock.monotonic()
            gate.open(now, until=now + self._rules.open_seconds)
            gate.openings -= 1
            entry.probe_given = True  # whoever probes instead is waited for
            answer = Wait(self._rules.open_seconds, Hold.BREAKER_OPEN)
        self._held.add(why=answer.why.value)
        if answer.why is Hold.BREAKER_OPEN and self._breakers is not None:
            return self._wait_for_breaker(entry, answer)
        # No two appointments on the same spot, whatever the arithmetic says.
        seconds = answer.seconds + min(0.1 * answer.seconds, SPREAD_MAX) * self._roll()
        if seconds > LINE_SECONDS:
            seconds = _together(self._clock.monotonic(), seconds)
        return Wait(seconds, answer.why)

    def _wait_for_breaker(self, entry: _Entry, answer: Wait) -> Wait:
        """One comes back for the probe, the others when the breaker has closed."""
        if not entry.probe_given and not entry.gate.probing:
            entry.probe_given = True
            seconds = answer.seconds
        else:
            spread = WAITS_SPREAD * self._roll()
            seconds = _together(self._clock.monotonic(), WAITS_SECONDS - spread)
        return Wait(seconds, answer.why, waits_for_breaker=True)

    def done(
        self, tenant: UUID, origin: str, health: Health, *, seconds: float, pause: float | None
    ) -> None:
        """What came of a request."""
        entry = self._entry((tenant, origin))
        entry.sent += 1
        entry.bad += health is Health.BAD
        if entry.gate.done(self._clock.monotonic(), health, seconds=seconds, pause=pause):
            entry.changed = True
            if entry.gate.state is BreakerState.OPEN and entry.gate.openings == 1:
                self._opened.add()
                self._telemetry.event("breaker.opened", level="warning", origin=origin)
            elif entry.gate.state is BreakerState.CLOSED:
                entry.probe_given = False
                self._telemetry.event("breaker.closed", origin=origin)
        self._wake(entry)

    def dropped(self, tenant: UUID, origin: str) -> None:
        """A request was given up before anything came of it."""
        entry = self._entry((tenant, origin))
        entry.gate.dropped()
        self._wake(entry)

    async def run(self) -> None:
        """Agree with other processes, until cancelled."""
        async for _ in beat(self._clock, every=SYNC_EVERY):
            await self.tick()

    async def tick(self) -> None:
        """Tell what has changed here, learn what has changed elsewhere. Tests call this."""
        if self._breakers is None or not self._entries:
            return  # whoever sends nothing has nothing to tell and nothing to learn
        try:
            with self._telemetry.span("gates.tick") as span:
                span.expect_errors()  # the outage tells them, once
                told = await self._tell()
                there, broken = await self._breakers.broken()
                self._learn(there, broken)
                span.add(told=told, broken=len(broken))
        except Unavailable as error:
            self._outage.failed(error)
        else:
            self._outage.ended()

    async def _tell(self) -> int:
        if self._breakers is None:
            return 0
        now, wall = self._clock.monotonic(), self._clock.now()
        due = [
            (key, entry)
            for key, entry in self._entries.items()
            if entry.changed or now - entry.told_at > self._patience(entry, now)
        ]
        await self._breakers.tell([_shared(key, entry, now, wall) for key, entry in due])
        await self._move(now, [(key, entry) for key, entry in due if entry.changed])
        for _, entry in due:
            entry.changed, entry.told_at = False, now
        return len(due)

    async def _move(self, now: float, news: Sequence[tuple[Key, _Entry]]) -> None:
        """Bring those forward who wait behind breakers: one to a probe, all when it is closed."""
        if self._breakers is None:
            return
        closed = [key for key, entry in news if entry.gate.state is BreakerState.CLOSED]
        if closed:
            await self._breakers.wake(closed)
        probes = {
            key: entry.gate.open_until - now
            for key, entry in self._entries.items()
            if entry.gate.state is BreakerState.OPEN
            and (entry.changed or self._is_overdue(entry, now))
        }
        if probes:
            await self._breakers.call_probers(probes)
            for key in probes:
                self._entries[key].called_at = now

    @staticmethod
    def _is_overdue(entry: _Entry, now: float) -> bool:
        """Whether nobody came to probe; whoever was called may have been cancelled since."""
        return now > max(entry.gate.open_until, entry.called_at) + OVERDUE_SECONDS

    def _patience(self, entry: _Entry, now: float) -> float:
        if entry.used_at < entry.told_at:
            return float("inf")  # nothing has happened since
        return TELL_PLAIN_SECONDS if entry.gate.is_plain(now) else TELL_SECONDS

    def _learn(self, there: datetime, broken: Sequence[Breaker]) -> None:
        now = self._clock.monotonic()
        known = {(one.tenant, one.origin): one for one in broken}
        for key, one in known.items():
            entry = self._entries.get(key)
            if entry is None or entry.changed or one.probe_at is None:
                continue
            if entry.gate.state is BreakerState.CLOSED:
                entry.gate.open(now, until=now + (one.probe_at - there).total_seconds())
        for key, entry in self._entries.items():
            gate = entry.gate
            if gate.state is BreakerState.OPEN and not entry.changed and key not in known:
                gate.close(now)  # somebody else has found it well
                entry.probe_given = False
                self._wake(entry)

    async def _claim(self, tenant: UUID, origin: str) -> bool:
        if self._breakers is None:
            return True
        try:
            return await self._breakers.claim(tenant, origin, seconds=PROBE_SECONDS)
        except Unavailable:
            return True

    async def _turn(self, entry: _Entry, ask: Ask, *, stay: Stay | None) -> Go | Wait:
        """Ask, after those who came before; whose turn comes soon waits for it here."""
        gate, now = entry.gate, self._clock.monotonic()
        turn = gate.turn_in(now)
        if turn is None or (not turn and not entry.line):
            return ask(now)
        if stay is None or turn > LINE_SECONDS:
            return gate.put_off(now, turn)
        if len(entry.line) >= gate.pace(now) * LINE_SECONDS:
            return gate.put_off(now, LINE_SECONDS)
        return await self._stand(entry, stay, ask)

    async def _stand(self, entry: _Entry, stay: Stay, ask: Ask) -> Go | Wait:
        """The first in line looks at the clock, the others at the one before them."""
        gate = entry.gate
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry.line.append(place)
        try:
            if not await stay():
                return gate.put_off(self._clock.monotonic(), LINE_SECONDS)
            if entry.line[0] is not place:
                await place
            while turn := gate.turn_in(self._clock.monotonic()):
                if turn > LINE_SECONDS:
                    return gate.put_off(self._clock.monotonic(), turn)
                await self._clock.sleep(max(turn, TICK_SECONDS))
            return ask(self._clock.monotonic())
        finally:
            entry.line.remove(place)
            if entry.line and not entry.line[0].done():
                entry.line[0].set_result(None)

    async def _queue(self, entry: _Entry, refused: Wait, ask: Ask) -> Go | Wait:
        """Stand in line here if the line is short, in people or in time: the others come back."""
        gate = entry.gate
        short = max(gate.rules.ceiling / WAITERS_SHARE, gate.limit * BUSY_SECONDS / gate.latency)
        if len(entry.waiting) >= short:
            return refused
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry.waiting.append(place)
        try:
            async with asyncio.timeout(max(1.0, 2 * gate.latency)):
                await place
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self._wake(entry)
            raise
        finally:
            if place.cancelled():
                with suppress(ValueError):  # whoever woke others may have met it
                    entry.waiting.remove(place)
        return ask(self._clock.monotonic())

    def _wake(self, entry: _Entry) -> None:
        free = int(entry.gate.limit) - entry.gate.in_flight
        while entry.waiting and free > 0:
            place = entry.waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

    def _entry(self, key: Key) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= self._full_at:
                self._forget()
            entry = self._entries[key] = _Entry(Gate(self._rules))
        entry.used_at = self._clock.monotonic()
        return entry

    def _forget(self) -> None:
        """Make room for many: those of whom there is nothing to know first, then the oldest.

        What is forgotten of a broken origin is learned again from the store, or from it; last goes
        what has just changed and could not be told, because the store is away.
        """
        now = self._clock.monotonic()
        idle = [
            (entry.changed, not entry.gate.is_plain(now), entry.used_at, key)
            for key, entry in self._entries.items()
            if not (entry.gate.in_flight or entry.waiting or entry.line)
        ]
        share = GATES_MAX // FORGET_SHARE
        many = max(share, len(self._entries) - GATES_MAX)
        for *_, key in sorted(idle, key=itemgetter(0, 1, 2))[:many]:
            del self._entries[key]
        self._full_at = max(GATES_MAX, len(self._entries) + share)


def _together(now: float, seconds: float) -> float:
    """The same, put off to the next full step."""
    return (now + seconds) // STEP_SECONDS * STEP_SECONDS + STEP_SECONDS - now


def _shared(key: Key, entry: _Entry, now: float, wall: datetime) -> Breaker:
    gate = entry.gate
    broken = gate.state is not BreakerState.CLOSED
    return Breaker(
        tenant=key[0],
        origin=key[1],
        state=gate.state,
        failures=gate.failures,
        opened_at=wall - timedelta(seconds=now - gate.opened_at) if broken else None,
        probe_at=wall + timedelta(seconds=gate.open_until - now) if broken else None,
        facts={
            "ceiling": int(gate.limit),
            "in_flight": gate.in_flight,
            "waiting": len(entry.waiting),
            "per_second_at_most": round(gate.pace(now), 1),
            "latency_ms": round(gate.latency * 1000, 1),
            "sent": entry.sent,
            "failed": entry.bad,
            "ramping": gate.ramp_since is not None,
        },
        changed=entry.changed,
    )
