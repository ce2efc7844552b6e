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


async def attend(
    tick: Callable[[], Awaitable[object]],
    *,
    beats: Beat,
    troubles: Troubles,
    survives: bool = False,
) -> None:
    """Call `tick` with every beat. What is unavailable is tried again; any other error is ours.

    A duty that keeps nothing in memory survives those, too: the next pass begins from what is
    stored, and its neighbours in the same role go on. The others end and are started afresh.

    What a `tick` returns says whether it found something to do, for beats that rest when there is
    nothing; a pass that failed is no reason to rest.
    """
    async for _ in beats:
        try:
            beats.passed(found=bool(await tick()))
            troubles.ended()
        except Unavailable as error:
            beats.passed(found=True)
            troubles.failed(error)
        except Exception as error:
            if not survives:
                raise
            beats.passed(found=True)
            troubles.failed(error)
