"""A fire: one occurrence of a schedule.

The *nominal* time identifies it (with the job it is the identity of the run); the *effective* time
is when to start, moved by jitter and window, never the other way round.
"""

from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from betimes.schedule.zone import fixed_offset

MILLISECOND = 1_000
JITTERED = "jittered"


class Fire(NamedTuple):
    """When, when really, how far the wall clock is from UTC (seconds), and what is special."""

    nominal: datetime
    effective: datetime
    offset: int
    flags: tuple[str, ...] = ()

    @property
    def local(self) -> datetime:
        """The nominal time as the wall clock of the schedule's zone shows it."""
        return self.nominal.astimezone(fixed_offset(self.offset))


class Drop(NamedTuple):
    """An occurrence that will not be: the instant it would have had, the wall clock it named."""

    nominal: datetime
    local: str
    code: str


def spread(seed: str, salt: str, width: int) -> int:
    """A stable pick in [0, width) microseconds, in whole milliseconds, from two texts."""
    if width < MILLISECOND:
        return 0
    digest = blake2b(f"{seed}\0{salt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (width // MILLISECOND) * MILLISECOND
