"""The one class that asks the machine the time."""

import asyncio
import time
from datetime import UTC, datetime

BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """Real time; states none to the database, so that the database's own clock rules."""

    def now(self) -> datetime:
        """The wall clock."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards, and that pass while the machine is suspended.

        Trust in a lease is counted by them: who sleeps through its lease must know when it wakes.
        """
        return time.monotonic() if BOOT_TIME is None else time.clock_gettime(BOOT_TIME)

    def stated(self) -> datetime | None:
        """Nothing: the database knows better."""
        return None

    async def sleep(self, seconds: float) -> None:
        """Really wait."""
        await asyncio.sleep(seconds)
