"""Wait for something inside a running service instead of sleeping."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")
PATIENCE_SECONDS = 10.0


class Signal(Generic[T]):
    """Collects what a service reports; a test awaits the next report.

    Reports queue up, so a test that looks late misses nothing.
    """

    def __init__(self) -> None:
        self._reports: asyncio.Queue[T] = asyncio.Queue()

    def send(self, report: T) -> None:
        """Called by the service under test."""
        self._reports.put_nowait(report)

    async def wait(self, *, patience: float = PATIENCE_SECONDS) -> T:
        """The next report; fails the test with a name instead of hanging it."""
        async with asyncio.timeout(patience):
            return await self._reports.get()
