"""Series made of series: clipped, amended, merged."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.budget import Budget
from betimes.schedule.dst import COMPATIBLE
from betimes.schedule.moment import resolve
from betimes.schedule.placement import EARLIEST
from betimes.schedule.series import Dropped, Series
from betimes.schedule.year_days import ANY_DATE
from betimes.schedule.zone import Zone

COUNT_WALK_MAX = 20_000
"""Instants that counting a union may visit before it adds up its members instead."""

AMENDED_STEPS = 10
"""What a date that is taken away costs."""

BEGINNING = -(1 << 62)
END = 1 << 62


class Bounded:
    """The instants of a series within [first, last]."""

    __slots__ = ("_first", "_last", "_series")

    def __init__(self, series: Series, first: int = BEGINNING, last: int = END) -> None:
        self._series = series
        self._first = first
        self._last = last

    @property
    def counts_exactly(self) -> bool:
        """As the series inside does."""
        return self._series.counts_exactly

    def dates(self, year: int, budget: Budget) -> int:
        """As the series inside says."""
        return self._series.dates(year, budget)

    def next(self, after: int, budget: Budget) -> int | None:
        """The least one later than `after`."""
        if after >= self._last:
            return None
        found = self._series.next(max(after, self._first - 1), budget)
        return found if found is not None and found <= self._last else None

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]."""
        after, until = self._clip(after, until)
        return self._series.between(after, until, limit, budget) if until > after else []

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]."""
        after, until = self._clip(after, until)
        return self._series.count(after, until, budget) if until > after else 0

    def _clip(self, after: int, until: int) -> tuple[int, int]:
        return max(after, self._first - 1), min(until, self._last)

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:
        """As the series inside says."""
        return self._series.flags(instant, budget)

    def intended(self, instant: int, budget: Budget) -> int | None:
        """As the series inside says."""
        return self._series.intended(instant, budget)

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:
        """As the series inside says, within the bounds."""
        after, until = self._clip(after, until)
        return self._series.dropped(after, until, limit, budget) if until > after else []


class Amended:
    """A series with instants added (RDATE) and taken away (EXDATE)."""

    __slots__ = ("_added", "_dates", "_gone", "_removed", "_series", "_zone")

    def __init__(
        self,
        series: Series,
        zone: Zone,
        *,
        added: Iterable[int] = (),
        removed: Iterable[int] = (),
        dates: Iterable[int] = (),
    ) -> None:
        """`dates` are days of the zone's wall clock on which nothing is kept."""
        self._series = series
        self._zone = zone
        self._removed = frozenset(removed)
        self._dates = frozenset(dates)
        self._gone = _runs(sorted(self._dates))
        self._added = tuple(sorted({i for i in added if not self._is_removed(i)}))

    @property
    def counts_exactly(self) -> bool:
        """As the series inside does."""
        return self._series.counts_exactly

    def _day(self, instant: int) -> int:
        return self._zone.local(instant // SECOND) // DAY_SECONDS

    def _is_removed(self, instant: int) -> bool:
        if instant in self._removed:
            return True
        return bool(self._dates) and self._day(instant) in self._dates

    def dates(self, year: int, budget: Budget) -> int:
        """As the series inside says; any date where some are added."""
        return ANY_DATE if self._added else self._series.dates(year, budget)

    def next(self, after: int, budget: Budget) -> int | None:
        """The least one later than `after`."""
        place = bisect_right(self._added, after)
        extra = self._added[place] if place < len(self._added) else None
        found = self._next_kept(after, budget)
        if found is None or extra is None:
            return extra if found is None else found
        return min(found, extra)

    def _next_kept(self, after: int, budget: Budget) -> int | None:
        """The least one of the series inside that is not taken away."""
        found = self._series.next(after, budget)
        while found is not None and self._is_removed(found):
            budget.spend(AMENDED_STEPS)
            if found not in self._removed:
                run = bisect_right(self._gone, self._day(found), key=lambda run: run[0]) - 1
                found = max(found, self._end_of(self._gone[run][1]))
            found = self._series.next(found, budget)
        return found

    def _end_of(self, day: int) -> int:
        """The last microsecond before the next local date begins."""
        return resolve(self._zone, (day + 1) * DAY_SECONDS, COMPATIBLE)[0] * SECOND - 1

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]: in blocks, each up to the next date that is taken away."""
        kept: list[int] = []
        cursor = after
        while len(kept) < limit and cursor < until:
            budget.spend(AMENDED_STEPS)
            first = self._next_kept(cursor, budget)
            if first is None or first > until:
                break
            edge = until
            run = bisect_right(self._gone, self._day(first), key=lambda run: run[0])
            if run < len(self._gone):
                edge = max(min(until, self._end_of(self._gone[run][0] - 1)), first)
            wanted = limit - len(kept)
            found = self._series.between(first - 1, edge, wanted, budget)
            kept += [instant for instant in found if not self._is_removed(instant)]
            cursor = found[-1] if len(found) == wanted else edge
        low, high = bisect_right(self._added, after), bisect_right(self._added, until)
        return sorted({*kept, *self._added[low:high]})[:limit] if low < high else kept

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]."""
        series = self._series
        budget.spend_on(len(self._removed))
        gone = [i for i in self._removed if after < i <= until and self._has(i, budget)]
        total = series.count(after, until, budget) - len(gone)
        begin = self._day(max(after, EARLIEST * SECOND))
        for run in range(bisect_left(self._gone, begin, key=lambda run: run[1]), len(self._gone)):
            budget.spend(AMENDED_STEPS)
            first, last = (
                self._end_of(day) for day in (self._gone[run][0] - 1, self._gone[run][1])
            )
            if first >= until:
                break
            total -= series.count(max(first, after), min(last, until), budget)
        if self._dates:
            total += sum(self._day(instant) in self._dates for instant in gone)
        low, high = bisect_right(self._added, after), bisect_right(self._added, until)
        return total + sum(not self._has(instant, budget) for instant in self._added[low:high])

    def _has(self, instant: int, budget: Budget) -> bool:
        """Whether the series inside has an instant."""
        budget.spend(3)
        return self._series.next(instant - 1, budget) == instant

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:
        """As the series inside says, unless it was added here."""
        return () if instant in self._added else self._series.flags(instant, budget)

    def intended(self, instant: int, budget: Budget) -> int | None:
        """As the series inside says, unless it was added here."""
        return None if instant in self._added else self._series.intended(instant, budget)

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:
        """As the series inside says; what the text itself removes is no surprise to anybody."""
        return [
            drop
            for drop in self._series.dropped(after, until, limit, budget)
            if not self._is_removed(drop.instant)
        ]


def _runs(days: list[int]) -> list[tuple[int, int]]:
    """Sorted days as runs from the first through the last."""
    found: list[tuple[int, int]] = []
    for day in days:
        if found and found[-1][1] + 1 == day:
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found


class Union:
    """Several series as one; equal instants merge."""

    __slots__ = ("_members",)

    counts_exactly = False

    def __init__(self, members: tuple[Series, ...]) -> None:
        self._members = members

    def dates(self, year: int, budget: Budget) -> int:
        """What any member says."""
        bits = 0
        for member in self._members:
            budget.spend(2)
            bits |= member.dates(year, budget)
        return bits

    def next(self, after: int, budget: Budget) -> int | None:
        """The least one later than `after`."""
        budget.spend(2 * len(self._members))
        found = [member.next(after, budget) for member in self._members]
        return min((instant for instant in found if instant is not None), default=None)

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]."""
        budget.spend(2 * len(self._members))
        found: set[int] = set()
        for member in self._members:
            some = member.between(after, until, limit, budget)
            budget.spend_on(len(some))
            found.update(some)
            if len(some) == limit:
                # What comes later than `limit` fires of one member is not asked for.
                until = some[-1]
        return sorted(found)[:limit]

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]; beyond twenty thousand, an upper bound."""
        budget.spend(2 * len(self._members))
        counts = [member.count(after, until, budget) for member in self._members]
        total = sum(counts)
        if total <= COUNT_WALK_MAX and total != max(counts):
            return len(self.between(after, until, total, budget))
        return total

    def _firing(self, instant: int, budget: Budget) -> Series | None:
        """The first member that fires at an instant."""
        for member in self._members:
            budget.spend(3)
            if member.next(instant - 1, budget) == instant:
                return member
        return None

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:
        """What the first member that fires then says."""
        member = self._firing(instant, budget)
        return () if member is None else member.flags(instant, budget)

    def intended(self, instant: int, budget: Budget) -> int | None:
        """What the first member that fires then says."""
        member = self._firing(instant, budget)
        return None if member is None else member.intended(instant, budget)

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:
        """What any member was denied and no other member gives."""
        lost = {
            drop
            for member in self._members
            for drop in member.dropped(after, until, limit, budget)
            if self.next(drop.instant - 1, budget) != drop.instant
        }
        return sorted(lost, key=lambda drop: drop.instant)[:limit]
