"""How much of what waits may start now: ceilings over what is in flight. Pure.

In flight is what leased parcels hold, counted when it is asked for; there is no counter that a
crash could leave too high.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from betimes.domain.verdict import CONCURRENCY_KEY_FULL

Kind = Literal["tenant", "queue", "key", "origin"]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """At most `most` in flight for one tenant, queue, concurrency key or origin."""

    kind: Kind
    name: str
    most: int
    in_flight: int

    @property
    def room(self) -> int:
        """How many more may start; never negative, also after a ceiling was lowered."""
        return max(0, self.most - self.in_flight)

    @property
    def reason(self) -> str:
        """The code of the reason to wait."""
        return CONCURRENCY_KEY_FULL if self.kind == "key" else "QUOTA_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Room:
    """How many may start, and which ceilings stand in the way of the rest."""

    granted: int
    blocking: tuple[Ceiling, ...]


def room_for(wanted: int, ceilings: Sequence[Ceiling]) -> Room:
    """All ceilings at once: the lowest decides, and every one that is too low is told."""
    granted = min([wanted, *(ceiling.room for ceiling in ceilings)])
    blocking = tuple(ceiling for ceiling in ceilings if ceiling.room < wanted)
    return Room(granted, blocking)
