"""The loop of every background duty: a pass per beat, and patience while the database is away."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from betimes.domain.errors import Unavailable
from betimes.rhythm.beat import Beat


class Troubles(Protocol):
    """Whoever tells of an outage, once; `telemetry.Outage` does."""

    def failed(self, error: BaseException) -> None:
        """One more pass failed."""
        ...

    def ended(self) -> None:
        """A pass worked."""
        ...


async def attend(tick: Callable[[], Awaitable[object]], *, beats: Beat, troubles: Troubles) -> None:
    """Call `tick` with every beat. What is unavailable is tried again; any other error is ours."""
    async for _ in beats:
        try:
            await tick()
            troubles.ended()
        except Unavailable as error:
            troubles.failed(error)
