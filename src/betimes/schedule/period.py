"""A calendar period: anchor + k x (months, days) on the wall clock, then k x elapsed.

Multiplied, never iterated: 31 January plus two months is 31 March, not 28 March by way of
28 February. A day that a month lacks is its last day (`clamp`) or no
occurrence at all (`skip`).
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from betimes.domain.errors import BadSchedule
from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.civil import MONTH_END, MONTH_STARTS, month_length, month_of
from betimes.schedule.dst import Dst
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
from betimes.schedule.zone import REACH, Zone

CLAMP, SKIP = "clamp", "skip"
MONTH_ENDS = (CLAMP, SKIP)
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
        "_count",
        "_dst",
        "_duration",
        "_kept",
        "_micro",
        "_skips",
        "_zone",
    )

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
        self._count = count
        self._skips = month_end == SKIP and duration.months > 0
        self._kept = self._kept_indexes() if self._skips else ()

    def _kept_indexes(self) -> tuple[int, ...]:
        """With `skip`: which multiples fall on a day that their month has."""
        first = self._anchor // DAY_SECONDS
        month = month_of(first)
        day = first - MONTH_STARTS[month]
        last = (MONTH_END - 1 - month) // self._duration.months
        return tuple(
            k for k in range(last + 1) if day < month_length(month + k * self._duration.months)
        )

    def _multiple(self, index: int) -> int | None:
        """The multiplier of the index-th occurrence, or None when there is none."""
        if self._count is not None and index >= self._count:
            return None
        if not self._skips:
            return index
        return self._kept[index] if index < len(self._kept) else None

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
        k = self._multiple(index)
        if k is None:
            return None
        local = self._local(k)
        extra = k * self._duration.micros
        if local + extra // SECOND >= LATEST + REACH:
            return None
        instants = resolve(self._zone, local, self._dst)
        return Occurrence(
            local, tuple(second * SECOND + self._micro + extra for second in instants)
        )

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        found = self.between(after, LATEST * SECOND - 1, 1)
        return found[0] if found else None

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        found: list[int] = []
        for occurrence in self._walk(after, until):
            for instant in occurrence.instants:
                if after < instant <= until and instant not in found[-2:]:
                    found.append(instant)
            if len(found) >= limit:
                break
        return found[:limit]

    def _walk(self, after: int, until: int) -> Iterator[Occurrence]:
        """The occurrences that may fall into (after, until], in order."""
        index = self._guess(self._zone.local(max(after // SECOND, EARLIEST)))
        while (occurrence := self._at(index)) is not None:
            yield occurrence
            if occurrence.instants and occurrence.instants[0] > until:
                return
            index += 1

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]: at most one a day, so they can be walked."""
        return len(self.between(after, until, 1 << 30))

    def flags(self, instant: int) -> tuple[str, ...]:
        """What the zone did to a fire."""
        if self._duration.micros:
            return ()
        second = instant // SECOND
        passes = self._zone.instants(self._zone.local(second))
        if len(passes) > 1:
            return (OVERLAP_FIRST if second == passes[0] else OVERLAP_SECOND,)
        return (GAP_SHIFTED,) if self.intended(instant) is not None else ()

    def intended(self, instant: int) -> int | None:
        """The wall clock reading that a gap moved elsewhere."""
        for occurrence in self._walk(instant - 1, instant):
            if instant in occurrence.instants and not self._zone.instants(occurrence.local):
                return occurrence.local
        return None

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:
        """Occurrences in a gap, under `skip`."""
        lost: list[Dropped] = []
        for occurrence in self._walk(after, until):
            if occurrence.instants:
                continue
            before = self._zone.offsets[self._zone.gap_around(occurrence.local) - 1]
            instant = (occurrence.local - before) * SECOND
            if after < instant <= until:
                lost.append(Dropped(instant, occurrence.local, "DST_GAP_SKIPPED"))
        return lost[:limit]
