"""The wish to end, as a value that services are given."""

import asyncio


class Stopping:
    """Asked for once and never taken back; it has two degrees.

    `request` asks everyone to finish what they hold and return. `hasten` says that there is no
    time even for that: whoever runs the services cancels them.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._requested = asyncio.Event()
        self._hastened = asyncio.Event()

    @property
    def requested(self) -> bool:
        """Whether it is time to finish."""
        return self._requested.is_set()

    @property
    def hastened(self) -> bool:
        """Whether there is no time left."""
        return self._hastened.is_set()

    def request(self, reason: str) -> None:
        """Ask everyone to finish; the first reason is kept."""
        if not self.requested:
            self.reason = reason
            self._requested.set()

    def hasten(self, reason: str) -> None:
        """Ask everyone to end at once."""
        self.request(reason)
        self._hastened.set()

    async def wait(self) -> None:
        """Return when the end is asked for."""
        await self._requested.wait()

    async def wait_hastened(self) -> None:
        """Return when there is no time left."""
        await self._hastened.wait()
