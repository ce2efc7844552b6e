"""A fixed rate: anchor + k x period on a stopwatch, k from zero.

The anchor is part of the schedule, so a late run moves nothing after it.
"""

from betimes.domain.errors import BadSchedule
from betimes.schedule.bounds import PERIOD_MIN, SECOND
from betimes.schedule.budget import Budget
from betimes.schedule.placement import LATEST
from betimes.schedule.series import Dropped
from betimes.schedule.year_days import ANY_DATE

HORIZON = LATEST * SECOND


class Rate:
    """An arithmetic series of instants, for ever or `count` of them."""

    __slots__ = ("_anchor", "_last", "_period")

    counts_exactly = True

    def __init__(self, anchor: int, period: int, count: int | None = None) -> None:
        if period < PERIOD_MIN:
            raise BadSchedule(
                f"expected a period of at least {PERIOD_MIN // SECOND} s, "
                f"got {period / SECOND:g} s",
                code="schedule_too_frequent",
                pointer="/every",
            )
        self._anchor = anchor
        self._period = period
        last = (HORIZON - 1 - anchor) // period
        self._last = last if count is None else min(last, count - 1)

    def _index_after(self, instant: int) -> int:
        return max((instant - self._anchor) // self._period + 1, 0)

    def dates(self, year: int, budget: Budget) -> int:  # noqa: ARG002 -- any date
        """Any date."""
        return ANY_DATE

    def next(self, after: int, budget: Budget) -> int | None:  # noqa: ARG002 -- one division
        """The least one later than `after`."""
        index = self._index_after(after)
        return self._anchor + index * self._period if index <= self._last else None

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]."""
        first = self._index_after(after)
        end = min(self._index_after(until), self._last + 1, first + limit)
        budget.spend_on(max(end - first, 0))
        return [self._anchor + index * self._period for index in range(first, end)]

    def count(self, after: int, until: int, budget: Budget) -> int:  # noqa: ARG002 -- as above
        """How many lie in (after, until]."""
        end = min(self._index_after(until), self._last + 1)
        return max(end - self._index_after(after), 0)

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:  # noqa: ARG002 -- a stopwatch knows no zone
        """Nothing special ever happens to a stopwatch."""
        return ()

    def intended(self, instant: int, budget: Budget) -> int | None:  # noqa: ARG002 -- as above
        """Nothing is moved."""
        return None

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:  # noqa: ARG002
        """Nothing is denied."""
        return []
