"""The clock, as a thing one is given.

Two clocks, never mixed: `now()` states facts in aware UTC, `monotonic()` measures patience.
The database clock decides dueness and lease expiry; `stated()` is None in production, so that
`coalesce(:now, now())` lets the database rule, while a test's clock states its own time.
"""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """What services may know about time."""

    def now(self) -> datetime:
        """The wall clock of this machine, aware, UTC. For facts and labels, never for decisions."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards. For deadlines, patience and trust."""
        ...

    def stated(self) -> datetime | None:
        """The time to tell the database, or None to let its own clock rule."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a test's clock returns when it is advanced past the deadline."""
        ...
