"""Series made of series: clipped, amended, merged."""

import heapq
from collections.abc import Iterable

from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.series import Dropped, Series
from betimes.schedule.zone import Zone

COUNT_WALK_MAX = 100_000
"""Instants that counting a union may visit before it adds up its members instead."""

BEGINNING = -(1 << 62)
END = 1 << 62


class Bounded:
    """The instants of a series within [first, last]."""

    __slots__ = ("_first", "_last", "_series")

    def __init__(self, series: Series, first: int = BEGINNING, last: int = END) -> None:
        self._series = series
        self._first = first
        self._last = last

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        found = self._series.next(max(after, self._first - 1))
        return found if found is not None and found <= self._last else None

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        after, until = self._clip(after, until)
        return self._series.between(after, until, limit) if until > after else []

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]."""
        after, until = self._clip(after, until)
        return self._series.count(after, until) if until > after else 0

    def _clip(self, after: int, until: int) -> tuple[int, int]:
        return max(after, self._first - 1), min(until, self._last)

    def flags(self, instant: int) -> tuple[str, ...]:
        """As the series inside says."""
        return self._series.flags(instant)

    def intended(self, instant: int) -> int | None:
        """As the series inside says."""
        return self._series.intended(instant)

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:
        """As the series inside says, within the bounds."""
        after, until = self._clip(after, until)
        return self._series.dropped(after, until, limit) if until > after else []


class Amended:
    """A series with instants added (RDATE) and taken away (EXDATE)."""

    __slots__ = ("_added", "_dates", "_removed", "_series", "_zone")

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
        self._added = tuple(sorted({i for i in added if not self._is_removed(i)}))

    def _is_removed(self, instant: int) -> bool:
        if instant in self._removed:
            return True
        if not self._dates:
            return False
        return self._zone.local(instant // SECOND) // DAY_SECONDS in self._dates

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        extra = next((instant for instant in self._added if instant > after), None)
        found = self._series.next(after)
        while found is not None and self._is_removed(found):
            found = self._series.next(found)
        if found is None or extra is None:
            return extra if found is None else found
        return min(found, extra)

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        found: list[int] = []
        while len(found) < limit:
            instant = self.next(after)
            if instant is None or instant > until:
                break
            found.append(instant)
            after = instant
        return found

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]."""
        series = self._series
        total = series.count(after, until)
        total -= sum(after < i <= until and series.next(i - 1) == i for i in self._removed)
        for day in self._dates:
            total -= len(
                [i for i in self._on(day) if after < i <= until and i not in self._removed]
            )
        return total + sum(after < i <= until and series.next(i - 1) != i for i in self._added)

    def _on(self, day: int) -> list[int]:
        """The instants of the series inside that lie on a removed day."""
        first = (day * DAY_SECONDS - 2 * DAY_SECONDS) * SECOND
        near = self._series.between(first, first + 5 * DAY_SECONDS * SECOND, 5 * DAY_SECONDS)
        return [i for i in near if self._zone.local(i // SECOND) // DAY_SECONDS == day]

    def flags(self, instant: int) -> tuple[str, ...]:
        """As the series inside says, unless it was added here."""
        return () if instant in self._added else self._series.flags(instant)

    def intended(self, instant: int) -> int | None:
        """As the series inside says, unless it was added here."""
        return None if instant in self._added else self._series.intended(instant)

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:
        """As the series inside says; what the text itself removes is no surprise to anybody."""
        return [
            drop
            for drop in self._series.dropped(after, until, limit)
            if not self._is_removed(drop.instant)
        ]


class Union:
    """Several series as one; equal instants merge."""

    __slots__ = ("_members",)

    def __init__(self, members: tuple[Series, ...]) -> None:
        self._members = members

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        found = [member.next(after) for member in self._members]
        return min((instant for instant in found if instant is not None), default=None)

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        lists = [member.between(after, until, limit) for member in self._members]
        found: list[int] = []
        for instant in heapq.merge(*lists):
            if not found or found[-1] != instant:
                found.append(instant)
            if len(found) >= limit:
                break
        return found

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]; beyond a hundred thousand, an upper bound."""
        total = sum(member.count(after, until) for member in self._members)
        if total <= COUNT_WALK_MAX:
            return len(self.between(after, until, total))
        return total

    def flags(self, instant: int) -> tuple[str, ...]:
        """What any member that fires then says."""
        found = [m.flags(instant) for m in self._members if m.next(instant - 1) == instant]
        return found[0] if found else ()

    def intended(self, instant: int) -> int | None:
        """What the first member that fires then says."""
        found = [m.intended(instant) for m in self._members if m.next(instant - 1) == instant]
        return found[0] if found else None

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:
        """What any member was denied and no other member gives."""
        lost = {
            drop
            for member in self._members
            for drop in member.dropped(after, until, limit)
            if self.next(drop.instant - 1) != drop.instant
        }
        return sorted(lost, key=lambda drop: drop.instant)[:limit]
