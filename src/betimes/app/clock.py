"""The one class that asks the machine the time."""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Real time; states none to the database, so that the database's own clock rules."""

    def now(self) -> datetime:
        """The wall clock."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

    def stated(self) -> datetime | None:
        """Nothing: the database knows better."""
        return None

    async def sleep(self, seconds: float) -> None:
        """Really wait."""
        await asyncio.sleep(seconds)
