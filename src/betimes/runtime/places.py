"""How many attempts may be under way at once."""

import asyncio

from betimes.domain.errors import Bug


class Places:
    """Counts free places; whoever waits for one is woken when one comes free."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._freed = asyncio.Event()

    @property
    def busy(self) -> int:
        """How many are taken."""
        return self.total - self.free

    def reserve(self, most: int) -> int:
        """Take up to `most` places; 0 when there is none."""
        taken = min(self.free, most)
        self.free -= taken
        return taken

    def release(self, places: int) -> None:
        """Give places back."""
        self.free += places
        if self.free > self.total:
            raise Bug(f"{self.free} of {self.total} places are free")
        self._freed.set()

    async def wait(self) -> None:
        """Return when one is free."""
        while self.free == 0:
            self._freed.clear()
            await self._freed.wait()
