"""The one class that asks the machine the time."""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """The clock of this machine; the database's own clock rules what it stores."""

    def now(self) -> datetime:
        """The wall clock, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

    def stated(self) -> None:
        """Nothing: the database's clock rules."""
        return

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
