"""What every kind of schedule can answer about itself.

Instants are whole microseconds since 1970-01-01T00:00:00Z. A series is one fixed set of instants:
`next`, `between` and `count` only look at it from different sides. Whoever asks gives the
budget that the answer may cost; see `budget`.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Protocol

from betimes.schedule.budget import Budget
from betimes.schedule.year_days import ANY_DATE


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

    @property
    def counts_exactly(self) -> bool:
        """Whether `count` never estimates, however many there are."""
        ...

    def dates(self, year: int, budget: Budget) -> int:
        """The local dates of a year on which it may fire, or more, as bits from 1 January on."""
        ...

    def next(self, after: int, budget: Budget) -> int | None:
        """The least one later than `after`."""
        ...

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until], the first `limit` of them."""
        ...

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]."""
        ...

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:
        """What is special about one of them."""
        ...

    def intended(self, instant: int, budget: Budget) -> int | None:
        """The local second that was named, when a gap moved the fire elsewhere."""
        ...

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:
        """What was named in (after, until] and denied."""
        ...


class Listed:
    """A series of a few known instants."""

    __slots__ = ("_instants",)

    counts_exactly = True

    def __init__(self, instants: tuple[int, ...]) -> None:
        self._instants = tuple(sorted(set(instants)))

    def dates(self, year: int, budget: Budget) -> int:  # noqa: ARG002 -- any date
        """Any date."""
        return ANY_DATE

    def next(self, after: int, budget: Budget) -> int | None:  # noqa: ARG002 -- one bisection
        """The least one later than `after`."""
        place = bisect_right(self._instants, after)
        return self._instants[place] if place < len(self._instants) else None

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:  # noqa: ARG002
        """Those in (after, until]."""
        place = bisect_right(self._instants, after)
        return list(self._instants[place : bisect_right(self._instants, until, place)][:limit])

    def count(self, after: int, until: int, budget: Budget) -> int:  # noqa: ARG002 -- as above
        """How many lie in (after, until]."""
        return max(bisect_right(self._instants, until) - bisect_right(self._instants, after), 0)

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:  # noqa: ARG002 -- a given instant is what it is
        """Nothing special."""
        return ()

    def intended(self, instant: int, budget: Budget) -> int | None:  # noqa: ARG002 -- nothing was moved
        """Nothing was moved."""
        return None

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:  # noqa: ARG002
        """Nothing was denied."""
        return []
