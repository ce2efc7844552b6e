"""Offer held parcels whose gate or line has room, or whose rate has a token by now.

Whatever was forgotten waits a second at most. Tokens come by themselves and nobody tells, so rates
are looked at more often: a bucket holds one second's worth, so nothing of a rate is lost by that.

One look finds whether there is anything to walk over. Where nothing is held, looks follow each
other more slowly, up to `REST`: so late is the first one found at most that is held then.
"""

from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.rhythm import Stopping, attend, beat
from betimes.store.admit import Offered
from betimes.store.hints import Hinter
from betimes.store.repair import FIRST_GATE, FIRST_LINE, Repairing
from betimes.telemetry import Outage, Telemetry

EVERY = timedelta(milliseconds=250)
REST = timedelta(milliseconds=500)
KEYS_EVERY_SECONDS = 1.0
"""How often gates and lines are looked at."""
PAGES_MAX = 5


class Offerer:
    """Walks over everything that is held; any number of them may run at once."""

    def __init__(
        self, *, repairing: Repairing, hints: Hinter, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._repairing = repairing
        self._hints = hints
        self._clock = clock
        self._telemetry = telemetry
        self._gate = FIRST_GATE
        self._line = FIRST_LINE
        self._rate = FIRST_GATE
        self._keys_at = float("-inf")
        self._is_held = False
        self._outage = Outage(duty="janitor.offerer", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Offer until asked to stop."""
        beats = beat(self._clock, every=EVERY, stopping=stopping, rest=REST)
        await attend(self._turn, beats=beats, troubles=self._outage, survives=True)

    async def _turn(self) -> bool:
        """One pass; whether anything is held."""
        await self.tick()
        return self._is_held

    async def tick(self) -> int:
        """One bounded pass; how many parcels were offered."""
        with self._telemetry.span("offerer.tick") as span:
            span.expect_errors()
            now = self._clock.monotonic()
            keys = now - self._keys_at >= KEYS_EVERY_SECONDS
            if keys:
                self._keys_at = now
            held = await self._repairing.held(keys=keys)
            self._is_held = any(held)
            offered = await self._pass_rates() if held.rates else 0
            offered += await self._pass_gates() if held.gates else 0
            offered += await self._pass_lines() if held.lines else 0
            span.add(offered=offered)
        return offered

    async def _pass_gates(self) -> int:
        count = 0
        for _ in range(PAGES_MAX):
            offered, place = await self._repairing.gates(self._gate, now=self._clock.stated())
            count += self._tell(offered)
            self._gate = place or FIRST_GATE
            if place is None:
                break
        return count

    async def _pass_lines(self) -> int:
        count = 0
        for _ in range(PAGES_MAX):
            offered, place = await self._repairing.lines(self._line, now=self._clock.stated())
            count += self._tell(offered)
            self._line = place or FIRST_LINE
            if place is None:
                break
        return count

    async def _pass_rates(self) -> int:
        count = 0
        for _ in range(PAGES_MAX):
            offered, place = await self._repairing.rates(self._rate, now=self._clock.stated())
            count += self._tell(offered)
            self._rate = place or FIRST_GATE
            if place is None:
                break
        return count

    def _tell(self, offered: list[Offered]) -> int:
        for one in offered:
            self._hints.hint(*one.hint)
        return len(offered)
