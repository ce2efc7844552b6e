"""What every kind of schedule can answer about itself.

Instants are whole microseconds since 1970-01-01T00:00:00Z. A series is one fixed set of instants:
`next`, `between` and `count` only look at it from different sides.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Dropped:
    """A time that a schedule names and that will not be a fire; `code` says why.

    `local` is the wall clock reading in seconds, `instant` the fire it would have been.
    """

    instant: int
    local: int
    code: str


class Series(Protocol):
    """An ordered set of instants."""

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        ...

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until], the first `limit` of them."""
        ...

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]."""
        ...

    def flags(self, instant: int) -> tuple[str, ...]:
        """What is special about one of them."""
        ...

    def intended(self, instant: int) -> int | None:
        """The local second that was named, when a gap moved the fire elsewhere."""
        ...

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:
        """What was named in (after, until] and denied."""
        ...


class Listed:
    """A series of a few known instants."""

    __slots__ = ("_instants",)

    def __init__(self, instants: tuple[int, ...]) -> None:
        self._instants = tuple(sorted(set(instants)))

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        return next((instant for instant in self._instants if instant > after), None)

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        return [instant for instant in self._instants if after < instant <= until][:limit]

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]."""
        return sum(after < instant <= until for instant in self._instants)

    def flags(self, instant: int) -> tuple[str, ...]:  # noqa: ARG002 -- a given instant is what it is
        """Nothing special."""
        return ()

    def intended(self, instant: int) -> int | None:  # noqa: ARG002 -- nothing was moved
        """Nothing was moved."""
        return None

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:  # noqa: ARG002
        """Nothing was denied."""
        return []
