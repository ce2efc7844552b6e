"""The machine's clock, for tests that run real processes and real servers."""

import asyncio
import time
from datetime import UTC, datetime


class RealClock:
    """What `app.clock.SystemClock` is in production; states nothing, so the database rules."""

    def now(self) -> datetime:
        """The time of this machine."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

    def stated(self) -> datetime | None:
        """Let the database clock rule."""
        return None

    async def sleep(self, seconds: float) -> None:
        """Really wait."""
        await asyncio.sleep(seconds)
