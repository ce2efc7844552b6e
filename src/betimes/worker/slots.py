"""How many runs may be executed at the same time."""

import asyncio

from betimes.domain.errors import Bug


class Slots:
    """Counts free places.

    Whoever waits for places is not woken for each single one: a claim for one place would cut
    parcels into crumbs. `enough` is how many are worth a claim of their own.
    """

    def __init__(self, total: int, *, enough: int, nudge: asyncio.Event) -> None:
        self.total = total
        self.free = total
        self.enough = enough
        self._nudge = nudge

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is being claimed."""
        return self.free == self.total

    def reserve(self, most: int) -> int:
        """Take up to `most` places; 0 when there is none."""
        taken = min(self.free, most)
        self.free -= taken
        return taken

    def release(self, places: int) -> None:
        """Give places back."""
        was = self.free
        self.free += places
        if self.free > self.total:
            raise Bug(f"{self.free} of {self.total} places are free")
        if was == 0 or was < self.enough <= self.free or self.idle:
            self._nudge.set()
