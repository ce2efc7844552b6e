"""How many runs may be executed at the same time, and how many may be leased for that.

    total     may be executed at once
    begun     are executed and wait for something; what ends as soon as it begins is never counted
    free      places for leases; below zero when more is leased than may be executed at once
    ahead     so many may be leased beyond `total`: what has been done lately in a moment

A worker that leases only what it may execute at once asks the database for a few short runs at a
time, and waits for it as often. So it leases ahead, as much as it would do within a moment: that
costs nobody who waits elsewhere more than that moment. Long runs leave nothing to lease ahead for.
"""

import asyncio

from betimes.domain.errors import Bug

MOMENT_SECONDS = 0.05
"""What is leased ahead is done within so long."""
AHEAD_MAX = 1_024
STALE_SECONDS = 4 * MOMENT_SECONDS
"""What was done before a pause of so long says nothing about now."""


class Slots:
    """Counts free places.

    Whoever waits for places is not woken for each single one: a claim for one place would cut
    parcels into crumbs. `enough` is how many are worth a claim of their own.
    """

    def __init__(self, total: int, *, enough: int, nudge: asyncio.Event) -> None:
        self.total = total
        self.free = total
        self.ahead = 0
        self.begun = 0
        self.room = asyncio.Event()
        """Set when fewer are begun than may be executed at once, for those who wait for it."""
        self._enough = enough
        self._nudge = nudge
        self._ended = 0
        self._since = float("-inf")

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is being claimed."""
        return self.free == self.total

    @property
    def full(self) -> bool:
        """Whether as many are begun as may be executed at once."""
        return self.begun >= self.total

    @property
    def open(self) -> int:
        """How many may be leased."""
        return max(0, self.free + self.ahead)

    @property
    def enough(self) -> int:
        """So many are worth a claim: of a quarter of what may be leased."""
        return max(self._enough, min(AHEAD_MAX, self.total + self.ahead) // 4)

    def look(self, now: float) -> None:
        """Learn from what has ended since the last look how much to lease ahead."""
        passed = now - self._since
        if passed < MOMENT_SECONDS:
            return
        done = self._ended / passed * MOMENT_SECONDS if passed < STALE_SECONDS else 0
        self.ahead = max(0, min(AHEAD_MAX, int(done)) - self.total)
        self._ended, self._since = 0, now

    def forget(self) -> None:
        """What was leased ahead could not be begun: lease nothing ahead for now."""
        self.ahead = self._ended = 0

    def reserve(self, most: int, *, ahead: bool = False) -> int:
        """Take up to `most` places; 0 when there is none."""
        taken = min(self.open if ahead else max(0, self.free), most)
        self.free -= taken
        return taken

    def release(self, places: int) -> None:
        """Give places back: what was in them has ended."""
        self._ended += places
        self.give_back(places)

    def give_back(self, places: int) -> None:
        """Give places back, of which nothing was made."""
        was = self.open
        self.free += places
        if self.free > self.total:
            raise Bug(f"{self.free} of {self.total} places are free")
        if was == 0 or was < self.enough <= self.open or self.idle:
            self._nudge.set()

    def enter(self) -> None:
        """One more is begun and waits."""
        self.begun += 1

    def leave(self) -> None:
        """One less."""
        self.begun -= 1
        self.room.set()

    def end(self, places: int) -> None:
        """Some that were begun have ended."""
        for _ in range(places):
            self.leave()
        self.release(places)
