"""A calendar period: anchor + k x (months, days) on the wall clock, then k x elapsed.

Multiplied, never iterated: 31 January plus two months is 31 March, not 28 March by way of
28 February. A day that a month lacks is its last day (`clamp`) or no
occurrence at all (`skip`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from betimes.domain.errors import BadSchedule
from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.budget import Budget
from betimes.schedule.civil import MONTH_END, MONTH_STARTS, month_length, month_of
from betimes.schedule.dst import COMPATIBLE, Dst
from betimes.schedule.dst import SKIP as GAP_SKIP
from betimes.schedule.duration import Duration
from betimes.schedule.moment import resolve
from betimes.schedule.placement import (
    EARLIEST,
    GAP_SHIFTED,
    LATEST,
    OVERLAP_FIRST,
    OVERLAP_SECOND,
)
from betimes.schedule.series import Dropped
from betimes.schedule.year_days import ANY_DATE
from betimes.schedule.zone import REACH, Zone

CLAMP, SKIP = "clamp", "skip"
MONTH_ENDS = (CLAMP, SKIP)
THROUGH_STEPS = 25
"""What finding the occurrences through an instant costs."""

JUMP_STEPS = 10
"""What a change of the zone costs."""

MONTH_SECONDS = 146_097 * DAY_SECONDS / 4_800


def read_month_end(source: object) -> str:
    """The policy for days that a month lacks."""
    if source is None:
        return CLAMP
    if source in MONTH_ENDS:
        return str(source)
    raise BadSchedule(f"expected month_end clamp|skip, got {source!r}", pointer="/month_end")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence: its wall clock before elapsed time is added, and its instants."""

    local: int
    instants: tuple[int, ...]


class Period:
    """The instants of a calendar period in a zone."""

    __slots__ = (
        "_anchor",
        "_dst",
        "_duration",
        "_kept",
        "_micro",
        "_size",
        "_skips",
        "_zone",
    )

    counts_exactly = True

    def __init__(
        self,
        anchor: int,
        duration: Duration,
        zone: Zone,
        dst: Dst,
        *,
        count: int | None = None,
        month_end: str = CLAMP,
    ) -> None:
        """`anchor` is a local time in microseconds."""
        self._anchor, self._micro = divmod(anchor, SECOND)
        self._duration = duration
        self._zone = zone
        self._dst = dst
        self._skips = month_end == SKIP and duration.months > 0
        self._kept = self._kept_indexes() if self._skips else ()
        size = len(self._kept) if self._skips else self._guess(LATEST + 4 * REACH) + 1
        self._size = size if count is None else min(size, count)

    def _kept_indexes(self) -> tuple[int, ...]:
        """With `skip`: which multiples fall on a day that their month has."""
        first = self._anchor // DAY_SECONDS
        month = month_of(first)
        day = first - MONTH_STARTS[month]
        last = (MONTH_END - 1 - month) // self._duration.months
        return tuple(
            k for k in range(last + 1) if day < month_length(month + k * self._duration.months)
        )

    def _multiple(self, index: int) -> int:
        """The multiplier of the index-th occurrence."""
        return self._kept[index] if self._skips else index

    def _local(self, k: int) -> int:
        """The wall clock of anchor + k x calendar part, the day clamped to its month."""
        day, second = divmod(self._anchor, DAY_SECONDS)
        if self._duration.months:
            month = month_of(day)
            of_month = day - MONTH_STARTS[month]
            month = min(month + k * self._duration.months, MONTH_END - 1)
            day = MONTH_STARTS[month] + min(of_month, month_length(month) - 1)
        return (day + k * self._duration.days) * DAY_SECONDS + second

    def _guess(self, local: int) -> int:
        """An index at or before the first occurrence that could be later than a local time."""
        duration = self._duration
        each = (
            duration.months * MONTH_SECONDS + duration.days * DAY_SECONDS + duration.micros / SECOND
        )
        k = max(int((local - REACH - 4 * DAY_SECONDS - self._anchor) / each), 0)
        return max(bisect_right(self._kept, k) - 1, 0) if self._skips else k

    def _at(self, index: int) -> Occurrence | None:
        """The index-th occurrence, or None when there is none."""
        if index >= self._size:
            return None
        k = self._multiple(index)
        local = self._local(k)
        extra = k * self._duration.micros
        if local + extra // SECOND >= LATEST + REACH:
            return None
        instants = resolve(self._zone, local, self._dst)
        return Occurrence(
            local, tuple(second * SECOND + self._micro + extra for second in instants)
        )

    def dates(self, year: int, budget: Budget) -> int:  # noqa: ARG002 -- any date
        """Any date."""
        return ANY_DATE

    def next(self, after: int, budget: Budget) -> int | None:
        """The least one later than `after`."""
        found = self.between(after, LATEST * SECOND - 1, 1, budget)
        return found[0] if found else None

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]."""
        found: list[int] = []
        for occurrence in self._walk(after, until, budget):
            for instant in occurrence.instants:
                if after < instant <= until and instant not in found[-2:]:
                    found.append(instant)
            if len(found) >= limit:
                break
        return found[:limit]

    def _walk(self, after: int, until: int, budget: Budget) -> Iterator[Occurrence]:
        """The occurrences that may fall into (after, until], in order."""
        index = self._guess(self._zone.local(max(after // SECOND, EARLIEST)))
        while (occurrence := self._at(index)) is not None:
            budget.spend(4)
            yield occurrence
            if occurrence.instants and occurrence.instants[0] > until:
                return
            index += 1

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]: one for each multiple, but for those near a jump."""
        after, until = max(after, EARLIEST * SECOND), min(until, LATEST * SECOND - 1)
        if until <= after:
            return 0
        budget.spend(2 * THROUGH_STEPS)
        first, last = self._through(after), self._through(until)
        total = last - first
        for index in self._jumps(first, last):
            budget.spend(JUMP_STEPS)
            near = self._near(index)
            instants: set[int] = set()
            for place in near:
                total -= after < self._plain(place) <= until
                occurrence = self._at(place)
                if occurrence is not None:
                    instants.update(occurrence.instants)
            total += sum(after < instant <= until for instant in instants)
        return total

    def _plain(self, index: int) -> int:
        """The instant of an occurrence if gaps shift and overlaps count once; never decreasing."""
        k = self._multiple(index)
        second = resolve(self._zone, self._local(k), COMPATIBLE)[0]
        return second * SECOND + self._micro + k * self._duration.micros

    def _through(self, instant: int) -> int:
        """How many occurrences are not later than an instant, jumps aside."""
        return bisect_right(range(self._size), instant, key=self._plain)

    def _jumps(self, first: int, last: int) -> range:
        """The changes of the zone near the wall clocks of the occurrences [first, last)."""
        if not self._size:
            return range(0)
        ends = (max(first - 1, 0), min(last, self._size - 1))
        low, high = (self._local(self._multiple(index)) for index in ends)
        return self._zone.changes(low - 2 * REACH, high + 2 * REACH)

    def _near(self, change: int) -> range:
        """The occurrences whose wall clock lies in a gap or an overlap, or where a gap ends."""
        zone = self._zone
        start, before, after = zone.starts[change], zone.offsets[change - 1], zone.offsets[change]
        low, high = start + min(before, after), start + max(before, after)
        return range(self._index_from(low), self._index_from(2 * high - low + 1))

    def _index_from(self, local: int) -> int:
        """The first occurrence whose wall clock is not before a local time."""
        each = self._duration
        if not (each.months or self._skips):
            index = -((self._anchor - local) // (each.days * DAY_SECONDS))
            return min(max(index, 0), self._size)
        return bisect_left(
            range(self._size), local, key=lambda index: self._local(self._multiple(index))
        )

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:
        """What the zone did to a fire."""
        if self._duration.micros:
            return ()
        second = instant // SECOND
        passes = self._zone.instants(self._zone.local(second))
        if len(passes) > 1:
            return (OVERLAP_FIRST if second == passes[0] else OVERLAP_SECOND,)
        return (GAP_SHIFTED,) if self.intended(instant, budget) is not None else ()

    def intended(self, instant: int, budget: Budget) -> int | None:
        """The wall clock reading that a gap moved elsewhere."""
        second = instant // SECOND
        if not (self._duration.micros or self._zone.changes(second - REACH, second)):
            return None
        for occurrence in self._walk(instant - 1, instant, budget):
            if instant in occurrence.instants and not self._zone.instants(occurrence.local):
                return occurrence.local
        return None

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:
        """Occurrences in a gap, under `skip`."""
        lost: list[Dropped] = []
        if self._dst.gap != GAP_SKIP:
            return lost
        after, until = max(after, EARLIEST * SECOND), min(until, LATEST * SECOND - 1)
        budget.spend(2 * THROUGH_STEPS)
        for index in self._jumps(self._through(after), self._through(until)):
            budget.spend(JUMP_STEPS)
            before, offset = self._zone.offsets[index - 1], self._zone.offsets[index]
            low, high = self._zone.starts[index] + before, self._zone.starts[index] + offset
            for place in range(self._index_from(low), self._index_from(high)):
                k = self._multiple(place)
                local = self._local(k)
                instant = (local - before) * SECOND + self._micro + k * self._duration.micros
                if after < instant <= until:
                    lost.append(Dropped(instant, local, "DST_GAP_SKIPPED"))
        return lost[:limit]
