"""Laying a clock of local times onto a zone: one set of instants, whatever one asks.

The set is defined segment by segment, so it cannot depend on where a search begins:

* a local time inside a segment is that time minus the segment's offset;
* of a local time that lies in two segments (an overlap), the policy keeps one pass or both: each
  segment gets a *floor* and a *ceiling* within which its matches count;
* matches inside the gap before a segment become the segment's first instant (`next`), or keep the
  offset of the segment before (`shift`), or are dropped (`skip`).

Cron catches up over a gap shorter than a day only: a date that does not exist has no occurrence.

Searches are bounded: by the table of the civil calendar, and by one pass over the segments.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.budget import Budget
from betimes.schedule.civil import MONTH_STARTS, month_number
from betimes.schedule.dst import BOTH, FIRST_PASS, NEXT, SECOND_PASS, SHIFT, SKIP, Dst
from betimes.schedule.series import Dropped
from betimes.schedule.year_days import block, year_start
from betimes.schedule.zone import REACH, Zone

NEVER = 1 << 60
EARLIEST = MONTH_STARTS[month_number(1801, 1)] * DAY_SECONDS
LATEST = MONTH_STARTS[month_number(2200, 1)] * DAY_SECONDS
"""Asking before the one or after the other finds what lies between."""

GAP_SHIFTED = "dst_gap_shifted"
OVERLAP_FIRST = "dst_overlap_first"
OVERLAP_SECOND = "dst_overlap_second"


class Clock(Protocol):
    """Naive local seconds in order."""

    def dates(self, year: int, budget: Budget) -> int:
        """The dates of a year, as bits from 1 January on."""
        ...

    def after(self, local: int, budget: Budget) -> int:
        """The least one later than `local`, or `NEVER`."""
        ...

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until], at most `limit`."""
        ...

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]."""
        ...


@dataclass(frozen=True, slots=True)
class Track:
    """The segments of a zone with floors and ceilings for one overlap policy, in local seconds.

    Matches of segment i count when floors[i] < match < ceilings[i].
    """

    floors: tuple[int, ...]
    ceilings: tuple[int, ...]


@lru_cache(maxsize=2048)
def track(zone: Zone, overlap: str) -> Track:
    """Floors and ceilings of all segments."""
    floors, ceilings = [], []
    for i, (start, end, offset) in enumerate(
        zip(zone.starts, zone.ends, zone.offsets, strict=True)
    ):
        before = zone.offsets[i - 1] if i else offset
        after = zone.offsets[i + 1] if i + 1 < len(zone.offsets) else offset
        floors.append(start + (max(offset, before) if overlap == FIRST_PASS else offset) - 1)
        shown = min(offset, after) if overlap == SECOND_PASS else offset
        ceilings.append(min(end, LATEST) + shown)
    return Track(tuple(floors), tuple(ceilings))


class Placement:
    """The instants of a local clock in a zone under a DST policy.

    The faces towards the room (`next`, `between`, `count`) speak microseconds, the inside seconds.
    """

    __slots__ = (
        "_ceilings",
        "_clock",
        "_ends",
        "_floors",
        "_gap",
        "_gap_max",
        "_offsets",
        "_overlap",
        "_records",
        "_shifts",
        "_starts",
        "_zone",
    )

    counts_exactly = True

    def __init__(
        self, clock: Clock, zone: Zone, dst: Dst, *, gap_max: int = NEVER, records: bool = True
    ) -> None:
        laid = track(zone, dst.overlap or BOTH)
        self._clock = clock
        self._zone = zone
        self._gap = dst.gap or SKIP
        self._overlap = dst.overlap or BOTH
        self._gap_max = gap_max
        self._records = records
        self._shifts = self._gap == SHIFT
        self._starts = zone.starts
        self._ends = zone.ends
        self._offsets = zone.offsets
        self._floors = laid.floors
        self._ceilings = laid.ceilings

    def dates(self, year: int, budget: Budget) -> int:
        """Those of the clock, and those to which a gap may move a fire."""
        bits = self._clock.dates(year, budget)
        begin, after = year_start(year), year_start(year + 1)
        for index in self._zone.changes(begin * DAY_SECONDS - REACH, after * DAY_SECONDS + REACH):
            jump = self._offsets[index] - self._offsets[index - 1]
            if jump > 0:
                first = (self._starts[index] + self._offsets[index - 1]) // DAY_SECONDS
                last = (self._starts[index] + self._offsets[index] + jump) // DAY_SECONDS
                if first != last:
                    bits |= block(first - begin, last + 1 - begin)
        return bits

    def next(self, after: int, budget: Budget) -> int | None:
        """The least fire later than `after`, or None."""
        after //= SECOND
        if not EARLIEST <= after < LATEST:
            if after >= LATEST:
                return None
            after = EARLIEST
        index = bisect_right(self._starts, after) - 1
        offset = self._offsets[index]
        local = after + offset
        floor = self._floors[index]
        if local < floor:  # noqa: PLR1730 -- max() costs a call, and this is asked a million times
            local = floor
        found = self._clock.after(local, budget)
        if found >= self._ceilings[index] or self._shifts:
            found = self._cross(after, index, local, found, budget)
            return None if found >= NEVER else found * SECOND
        return (found - offset) * SECOND

    def _cross(self, after: int, index: int, searched: int, found: int, budget: Budget) -> int:
        """Look segment by segment; `found` is the first match after the local time `searched`."""
        first = index
        while index < len(self._starts):
            local = max(after + self._offsets[index], self._floors[index])
            budget.spend(2)
            if not searched <= local < found:
                searched, found = local, self._clock.after(local, budget)
            best = found - self._offsets[index] if found < self._ceilings[index] else NEVER
            best = min(best, self._from_gap(index, after, budget))
            if best < NEVER:
                return best
            index += 1
            if found >= NEVER and index > first + 1:
                return NEVER
            if index > first + 1:
                index = max(index, bisect_right(self._starts, found - REACH) - 1)
        return NEVER

    def _from_gap(self, index: int, after: int, budget: Budget) -> int:
        """The first instant later than `after` that the gap before a segment gives rise to."""
        bounds = self._gap_before(index)
        if bounds is None or self._gap == SKIP:
            return NEVER
        low, high = bounds
        start = self._starts[index]
        if self._gap == NEXT:
            caught = start > after and self._clock.after(low - 1, budget) < high
            return start if caught else NEVER
        offset = self._offsets[index - 1]
        found = self._clock.after(max(low - 1, after + offset), budget)
        return found - offset if found < high else NEVER

    def _gap_before(self, index: int) -> tuple[int, int] | None:
        """The local times [low, high) that the jump into a segment leaves out."""
        if index == 0:
            return None
        jump = self._offsets[index] - self._offsets[index - 1]
        if not 0 < jump < self._gap_max:
            return None
        low = self._starts[index] + self._offsets[index - 1]
        return low, low + jump

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """The fires in (after, until], at most `limit` of them."""
        found: list[int] = []
        first, last = after // SECOND, until // SECOND
        empty, passed = 0, None
        for index, low, high in self._spans(first, last):
            if passed is not None:
                # Nothing in the segment before: go on where the next match can lie.
                empty, passed = self._segment_after(passed, budget), None
            if index < empty:
                continue
            budget.spend(2)
            offset = self._offsets[index]
            merged = [local - offset for local in self._clock.between(low, high, limit, budget)]
            extra = self._gap_instants(index, first, last, limit, budget)
            if extra:
                merged = sorted({*merged, *extra})
            found += [instant * SECOND for instant in merged]
            if len(found) >= limit:
                break
            if not merged:
                passed = high
        return found[:limit]

    def _segment_after(self, local: int, budget: Budget) -> int:
        """The first segment that can have a match later than a local time."""
        return bisect_right(self._starts, self._clock.after(local, budget) - REACH) - 1

    def _spans(self, after: int, until: int) -> Iterator[tuple[int, int, int]]:
        """The segments that (after, until] touches, with the local span to look at in each."""
        after, until = max(after, EARLIEST), min(until, LATEST - 1)
        if until <= after:
            return
        for index in range(self._zone.segment(after), self._zone.segment(until) + 1):
            offset = self._offsets[index]
            low = max(after + offset, self._floors[index])
            yield index, low, min(until + offset, self._ceilings[index] - 1)

    def _gap_instants(
        self, index: int, after: int, until: int, limit: int, budget: Budget
    ) -> list[int]:
        """The instants in (after, until] that the gap before a segment gives rise to."""
        bounds = self._gap_before(index)
        if bounds is None or self._gap == SKIP:
            return []
        if not self._shifts:
            caught = self._from_gap(index, after, budget)
            return [caught] if caught <= until else []
        (low, high), offset = bounds, self._offsets[index - 1]
        low, high = max(low - 1, after + offset), min(high - 1, until + offset)
        return [local - offset for local in self._clock.between(low, high, limit, budget)]

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many fires lie in (after, until]."""
        total, empty, passed = 0, 0, None
        first, last = after // SECOND, until // SECOND
        for index, low, high in self._spans(first, last):
            if passed is not None:
                empty, passed = self._segment_after(passed, budget), None
            if index < empty:
                continue
            budget.spend(4)
            size = self._clock.count(low, high, budget)
            extra = self._gap_instants(index, first, last, DAY_SECONDS, budget)
            if extra:
                size += len(extra) - self._count_natural(extra, index, budget)
            if not size:
                passed = high
            total += size
        return total

    def _count_natural(self, instants: list[int], index: int, budget: Budget) -> int:
        """How many of some instants a segment has by itself."""
        offset = self._offsets[index]
        low = max(instants[0] + offset - 1, self._floors[index])
        high = min(instants[-1] + offset, self._ceilings[index] - 1)
        own = self._clock.between(low, high, DAY_SECONDS, budget) if high > low else []
        return len({local - offset for local in own}.intersection(instants))

    def _is_natural(self, local: int, index: int, budget: Budget) -> bool:
        within = self._floors[index] < local < self._ceilings[index]
        return within and self._clock.after(local - 1, budget) == local

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:
        """What the zone did to a fire."""
        second = instant // SECOND
        index = bisect_right(self._starts, second) - 1
        begins, ends = self._starts[index], self._ends[index]
        if begins + REACH < second < ends - REACH:
            return ()
        local = second + self._offsets[index]
        if not self._is_natural(local, index, budget):
            return (GAP_SHIFTED,)
        if index and local < begins + self._offsets[index - 1]:
            return (OVERLAP_SECOND,)
        if index + 1 < len(self._offsets) and local >= ends + self._offsets[index + 1]:
            return (OVERLAP_FIRST,)
        return ()

    def intended(self, instant: int, budget: Budget) -> int | None:
        """For a fire moved out of a gap: the local second that the schedule named."""
        if GAP_SHIFTED not in self.flags(instant, budget):
            return None
        second = instant // SECOND
        index = self._zone.segment(second)
        low = self._starts[index] + self._offsets[index - 1]
        if self._shifts:
            return second + self._offsets[index - 1]
        return self._clock.after(low - 1, budget)

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:
        """The local times in (after, until] that the schedule names and the zone or policy denied.

        Each carries the instant it would have had under the offset before the jump. A wild cron
        job has none: what its clock does not show was never promised.
        """
        found: list[Dropped] = []
        if not self._records:
            return found
        first, last = after // SECOND, until // SECOND
        for index in self._zone.changes(first - REACH, last + REACH):
            budget.spend(2)
            lost = self._lost_in_gap(index, limit, budget)
            lost += self._lost_in_overlap(index, limit, budget)
            found += [drop for drop in lost if after < drop.instant <= until]
            if len(found) >= limit:
                break
        return sorted(found, key=lambda drop: drop.instant)[:limit]

    def _lost_in_gap(self, index: int, limit: int, budget: Budget) -> list[Dropped]:
        before, offset = self._offsets[index - 1], self._offsets[index]
        if offset <= before or (self._gap != SKIP and self._gap_before(index)):
            return []
        low = self._starts[index] + before
        end = self._starts[index] + offset - 1
        lost = self._clock.between(low - 1, end, limit, budget)
        budget.spend(len(lost))
        return [Dropped((local - before) * SECOND, local, "DST_GAP_SKIPPED") for local in lost]

    def _lost_in_overlap(self, index: int, limit: int, budget: Budget) -> list[Dropped]:
        before, offset = self._offsets[index - 1], self._offsets[index]
        if offset >= before or self._overlap == BOTH:
            return []
        low = self._starts[index] + offset
        end = self._starts[index] + before - 1
        repeated = self._clock.between(low - 1, end, limit, budget)
        budget.spend(len(repeated))
        lost = offset if self._overlap == FIRST_PASS else before
        return [Dropped((local - lost) * SECOND, local, "DST_OVERLAP_MERGED") for local in repeated]
