"""A clock that a test moves by hand."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """Time stands still until `advance` is called; sleepers wake in the order of their deadlines.

    It states its time to the database too, so one `advance` moves the whole world.
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._now = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        """The time the test has set."""
        return self._now

    def monotonic(self) -> float:
        """Seconds advanced since the clock was made."""
        return self._elapsed

    def stated(self) -> datetime | None:
        """Tell the database the time of the test."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until somebody advances the clock that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), wake))
        await wake

    def advance(self, by: timedelta | float) -> None:
        """Move time forward and wake everyone whose deadline has come."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        if seconds < 0:
            msg = f"time moves forward only, got {seconds} s"
            raise ValueError(msg)
        self._elapsed += seconds
        self._now += timedelta(seconds=seconds)
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, wake = heapq.heappop(self._sleepers)
            if not wake.done():
                wake.set_result(None)

    @property
    def sleepers(self) -> int:
        """How many tasks are waiting for time to pass."""
        return sum(not wake.done() for _, _, wake in self._sleepers)
