"""Recurrence rules by the hour, minute or second: fixed rates with filters.

RFC 5545 leaves open what an hourly rule does when the clock jumps, and implementations differ. Here
a stopwatch counts the periods from DTSTART, and the BY parts ask what the wall clock reads at each
candidate. So an hourly job stays hourly on both nights.

What fires on an allowed day depends only on where midnight falls in the period of the stopwatch,
its *phase*. So a day is a bit set of 86,400 seconds, computed once for each phase, and days are
counted by their phase, not one by one.

Long because searching and counting share the bit sets of days.
"""

from bisect import bisect_left
from collections.abc import Iterator
from math import gcd

from betimes.schedule.bounds import DAY_SECONDS, SECOND, YEAR_LAST
from betimes.schedule.budget import Budget
from betimes.schedule.day_times import picked
from betimes.schedule.placement import EARLIEST, LATEST
from betimes.schedule.rrule import with_defaults
from betimes.schedule.rrule_days import RuleDays
from betimes.schedule.rrule_syntax import Rule
from betimes.schedule.series import Dropped
from betimes.schedule.year_days import (
    YEAR_DAYS_MAX,
    block,
    comb,
    lowest,
    numbers,
    year_of,
    year_start,
)
from betimes.schedule.zone import Zone

UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
PHASE_STEPS = 6
"""What the seconds of one phase cost."""

LISTED_MAX = 512
"""Fires of a day that are kept as a list; of more, bits are looked at."""

LIST_STEPS = 120
"""What reading the bits of a whole day costs."""

PHASES_KEPT_MAX = 4
COUNTS_KEPT_MAX = 4_096
CYCLE_MAX = 32
"""Up to so many phases, the days of a year are looked at phase by phase."""

SPARSE = 12
"""So many bits are read one by one; more at once."""


class DaySeconds:
    """The seconds of a day that fire."""

    __slots__ = ("_bits", "_listed", "size")

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._listed: list[int] | None = None
        self.size = bits.bit_count()

    def within(self, begin: int, end: int, limit: int, budget: Budget) -> list[int]:
        """Those in [begin, end), the first `limit` of them."""
        listed = self._list(budget)
        if listed is not None:
            low = bisect_left(listed, begin)
            return listed[low : min(bisect_left(listed, end, low), low + limit)]
        return [begin + place for place in _some(self._part(begin, end, budget), limit)]

    def count(self, begin: int, end: int, budget: Budget) -> int:
        """How many lie in [begin, end)."""
        listed = self._list(budget)
        if listed is not None:
            return bisect_left(listed, end) - bisect_left(listed, begin)
        return self._part(begin, end, budget).bit_count()

    def numbered(self, begin: int, end: int, number: int, budget: Budget) -> int:
        """The number-th in [begin, end)."""
        return begin + _nth_bit(self._part(begin, end, budget), number)

    def _list(self, budget: Budget) -> list[int] | None:
        if self._listed is None and self.size <= LISTED_MAX:
            budget.spend(min(LIST_STEPS, 8 * self.size))
            self._listed = _some(self._bits, self.size)
        return self._listed

    def _part(self, begin: int, end: int, budget: Budget) -> int:
        budget.spend((end - begin) // 1_000 + 2)
        if end - begin >= DAY_SECONDS:
            return self._bits
        return self._bits >> begin & ((1 << (end - begin)) - 1)


class RuleRate:
    """The instants of an HOURLY, MINUTELY or SECONDLY rule in a zone; `start` is in seconds."""

    __slots__ = (
        "_base",
        "_comb",
        "_counts",
        "_cycle",
        "_days",
        "_last",
        "_passing",
        "_pattern",
        "_phases",
        "_start",
        "_step",
        "_walk",
        "_zone",
    )

    counts_exactly = True

    def __init__(self, rule: Rule, start: int, zone: Zone, budget: Budget) -> None:
        local = zone.local(start)
        full = with_defaults(rule, local)
        unit = UNITS[rule.frequency]
        self._days = RuleDays(full)
        self._zone = zone
        self._start = start
        self._step = unit * rule.interval
        self._cycle = self._step // gcd(self._step, DAY_SECONDS)
        self._base = start - local % unit
        self._passing = passing(full)
        self._counts: dict[int, int] = {}
        self._phases: dict[int, DaySeconds] = {}
        in_period = _expanded(full, local % unit)
        self._walk: PickedRate | None = None
        if full.by_position:
            budget.spend(len(full.by_position))
            if _is_whole(zone, self._base, unit):
                # Every period lies in one hour or minute of the wall clock: it passes as a whole.
                places = picked(full.by_position, len(in_period))
                in_period = tuple(in_period[place] for place in places)
            else:
                self._walk = PickedRate(full, self._base, self._step, in_period, zone, self._days)
        self._pattern = sum(1 << rest for rest in in_period)
        self._comb = comb(self._pattern, self._step, DAY_SECONDS)
        self._last = LATEST
        if not in_period or (self._walk is not None and not self._walk.can_pick):
            self._last = start - 1
        elif rule.count is not None:
            self._last = self._numbered(rule.count, budget)

    def dates(self, year: int, budget: Budget) -> int:
        """The dates that the rule allows."""
        return self._days.of_year(year, budget)

    def next(self, after: int, budget: Budget) -> int | None:
        """The least one later than `after`."""
        found = self.between(after, LATEST * SECOND, 1, budget)
        return found[0] if found else None

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]."""
        first, last = self._clip(after, until)
        if self._walk is not None:
            return [i * SECOND for i in self._walk.between(first, last, limit, budget)]
        found: list[int] = []
        for low, high, offset in self._spans(first, last):
            for day in self._live_days(low, high, offset, budget):
                midnight = day * DAY_SECONDS
                begin, end = max(low - midnight, 0), min(high - midnight, DAY_SECONDS)
                seconds = self._seconds((midnight - offset - self._base) % self._step, budget)
                some = seconds.within(begin, end, limit - len(found), budget)
                budget.spend_on(len(some))
                midnight -= offset
                found += [(midnight + second) * SECOND for second in some]
                if len(found) >= limit:
                    return found
        return found

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]: by bit sets of the seconds of a day, not one by one."""
        first, last = self._clip(after, until)
        if self._walk is not None:
            return len(self._walk.between(first, last, 1 << 60, budget))
        return sum(
            self._count_local(low, high, offset, budget)
            for low, high, offset in self._spans(first, last)
        )

    def _clip(self, after: int, until: int) -> tuple[int, int]:
        """The first and the last second to look at."""
        first = max(after // SECOND, self._start - 1, EARLIEST) + 1
        return first, min(until // SECOND, self._last, LATEST - 1)

    def _spans(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The stretches [low, high) of the wall clock in [first, last], each with its offset."""
        if last < first:
            return
        zone = self._zone
        for index in range(zone.segment(first), zone.segment(last) + 1):
            offset = zone.offsets[index]
            low = max(first, zone.starts[index]) + offset
            yield low, min(last + 1, zone.ends[index]) + offset, offset

    def _live_days(self, low: int, high: int, offset: int, budget: Budget) -> Iterator[int]:
        """The allowed days that [low, high) of the wall clock touches and that may have fires."""
        first, last = low // DAY_SECONDS, (high - 1) // DAY_SECONDS
        for year in range(year_of(first), min(year_of(last), YEAR_LAST) + 1):
            begins = year_start(year)
            budget.spend(2)
            bits = self._days.of_year(year, budget) & block(first - begins, last - begins + 1)
            if bits and self._cycle <= CYCLE_MAX:
                bits = self._without_empty(begins, bits, offset, budget)
            while bits:
                yield begins + lowest(bits)
                bits &= bits - 1

    def _without_empty(self, begins: int, bits: int, offset: int, budget: Budget) -> int:
        """The days of a year without those on whose phase nothing fires."""
        origin = begins * DAY_SECONDS - offset - self._base
        budget.spend(self._cycle)
        for place in range(self._cycle):
            if not self._per_day((origin + place * DAY_SECONDS) % self._step, budget):
                bits &= ~(comb(1, self._cycle, YEAR_DAYS_MAX) << place)
        return bits

    def _seconds(self, phase: int, budget: Budget) -> DaySeconds:
        """The seconds of an allowed day that fire; `phase` is midnight's place in the period."""
        found = self._phases.get(phase)
        if found is None:
            budget.spend(PHASE_STEPS)
            if len(self._phases) >= PHASES_KEPT_MAX:
                # One step: another thread may evaluate the same schedule, and drop the same phase.
                self._phases.clear()
            ahead = self._step - phase
            bits = self._pattern >> phase if phase < UNITS["HOURLY"] else 0
            if ahead < DAY_SECONDS:
                bits |= self._comb << ahead
            found = self._phases[phase] = DaySeconds(bits & self._passing)
        else:
            budget.spend(1)
        return found

    def _per_day(self, phase: int, budget: Budget) -> int:
        """How many seconds of a day of a phase fire."""
        found = self._counts.get(phase)
        if found is None:
            if len(self._counts) >= COUNTS_KEPT_MAX:
                self._counts.clear()
            found = self._counts[phase] = self._seconds(phase, budget).size
        return found

    def _count_local(self, low: int, high: int, offset: int, budget: Budget) -> int:
        """How many lie in [low, high) on the wall clock, while the offset stays the same."""
        first, last = -(-low // DAY_SECONDS), high // DAY_SECONDS
        if last < first:
            return self._count_part(low // DAY_SECONDS, low, high, offset, budget)
        total = 0
        if low % DAY_SECONDS:
            total += self._count_part(first - 1, low, high, offset, budget)
        if high % DAY_SECONDS:
            total += self._count_part(last, low, high, offset, budget)
        return total + self._count_days(first, last, offset, budget)

    def _count_part(self, day: int, low: int, high: int, offset: int, budget: Budget) -> int:
        year = year_of(day)
        if year > YEAR_LAST or not self._days.of_year(year, budget) >> day - year_start(year) & 1:
            return 0
        midnight = day * DAY_SECONDS
        begin, end = max(low - midnight, 0), min(high - midnight, DAY_SECONDS)
        seconds = self._seconds((midnight - offset - self._base) % self._step, budget)
        return seconds.count(begin, end, budget)

    def _count_days(self, first: int, after: int, offset: int, budget: Budget) -> int:
        """How many lie in the whole days [first, after)."""
        if after <= first:
            return 0
        total = 0
        for year in range(year_of(first), min(year_of(after - 1), YEAR_LAST) + 1):
            begins = year_start(year)
            bits = self._days.of_year(year, budget) & block(first - begins, after - begins)
            total += self._count_bits(begins, bits, offset, budget)
        return total

    def _count_bits(self, begins: int, bits: int, offset: int, budget: Budget) -> int:
        """How many lie on these days of the year that begins on a day."""
        origin = begins * DAY_SECONDS - offset - self._base
        if self._cycle <= CYCLE_MAX:
            budget.spend(1 + self._cycle)
            alike = comb(1, self._cycle, YEAR_DAYS_MAX)
            days = [(place, (bits >> place & alike).bit_count()) for place in range(self._cycle)]
        else:
            budget.spend(bits.bit_count())
            days = [(place, 1) for place in numbers(bits)]
        return sum(
            number * self._per_day((origin + place * DAY_SECONDS) % self._step, budget)
            for place, number in days
            if number
        )

    def _numbered(self, number: int, budget: Budget) -> int:
        """The second of the number-th occurrence, or `LATEST` when there are not so many."""
        if self._walk is not None:
            found = self._walk.between(self._start, LATEST - 1, number, budget)
            return found[-1] if len(found) == number else LATEST
        for low, high, offset in self._spans(self._start, LATEST - 1):
            year, last = year_of(low // DAY_SECONDS), year_of((high - 1) // DAY_SECONDS)
            while year <= last:
                begin = max(low, year_start(year) * DAY_SECONDS)
                year += 1
                end = min(high, year_start(year) * DAY_SECONDS)
                size = self._count_local(begin, end, offset, budget)
                if size >= number:
                    return self._numbered_in(begin, end, offset, number, budget)
                number -= size
        return LATEST

    def _numbered_in(self, low: int, high: int, offset: int, number: int, budget: Budget) -> int:
        """The number-th in [low, high) of the wall clock: the day by halves, then the second."""
        first, last = low // DAY_SECONDS, (high - 1) // DAY_SECONDS
        while first < last:
            middle = (first + last) // 2
            edge = (middle + 1) * DAY_SECONDS
            size = self._count_local(max(low, first * DAY_SECONDS), edge, offset, budget)
            if size >= number:
                last = middle
            else:
                first, number = middle + 1, number - size
        midnight = first * DAY_SECONDS
        begin, end = max(low - midnight, 0), min(high - midnight, DAY_SECONDS)
        seconds = self._seconds((midnight - offset - self._base) % self._step, budget)
        return midnight - offset + seconds.numbered(begin, end, number, budget)

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:  # noqa: ARG002 -- a stopwatch knows no jump
        """Nothing special happens to a stopwatch."""
        return ()

    def intended(self, instant: int, budget: Budget) -> int | None:  # noqa: ARG002 -- as above
        """Nothing is moved."""
        return None

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:  # noqa: ARG002
        """Nothing is denied."""
        return []


class PickedRate:
    """BYSETPOS where the clock has jumped by a part of a period: walked period by period.

    A period then lies in two hours (or minutes) of the wall clock, of which one may be filtered
    out, so what is picked differs from period to period.
    """

    __slots__ = ("_base", "_days", "_in_period", "_places", "_rule", "_step", "_zone")

    def __init__(
        self,
        rule: Rule,
        base: int,
        step: int,
        in_period: tuple[int, ...],
        zone: Zone,
        days: RuleDays,
    ) -> None:
        self._rule = rule
        self._base = base
        self._step = step
        self._in_period = in_period
        self._places = tuple(p for p in rule.by_position if abs(p) <= len(in_period))
        self._zone = zone
        self._days = days

    @property
    def can_pick(self) -> bool:
        """Whether a period can be long enough for any of the wanted positions."""
        return bool(self._places)

    def between(self, first: int, last: int, limit: int, budget: Budget) -> list[int]:
        """The seconds in [first, last], the first `limit` of them."""
        found: list[int] = []
        index = max((first - self._base) // self._step, 0)
        while len(found) < limit:
            begin = self._base + index * self._step
            if begin > last:
                break
            kept = self._kept(begin, budget)
            found += [instant for instant in kept if first <= instant <= last]
            index = max(index + 1, (self._resume(begin, budget) - self._base) // self._step)
        return found[:limit]

    def _kept(self, begin: int, budget: Budget) -> list[int]:
        """The instants of one period that pass all filters and positions."""
        budget.spend(6 + 2 * len(self._in_period) + len(self._places) // 2)
        passes = self._passes
        kept = [begin + rest for rest in self._in_period if passes(begin + rest, budget)]
        return [kept[index] for index in picked(self._places, len(kept))]

    def _passes(self, instant: int, budget: Budget) -> bool:
        rule = self._rule
        day, second = divmod(self._zone.local(instant), DAY_SECONDS)
        if rule.by_hour and second // 3600 not in rule.by_hour:
            return False
        if (
            rule.frequency != "HOURLY"
            and rule.by_minute
            and second // 60 % 60 not in rule.by_minute
        ):
            return False
        return self._allows(day, budget)

    def _allows(self, day: int, budget: Budget) -> bool:
        year = year_of(day)
        return bool(self._days.of_year(year, budget) >> day - year_start(year) & 1)

    def _resume(self, begin: int, budget: Budget) -> int:
        """An instant before which nothing can pass: a few hours before the next allowed day."""
        day, second = divmod(self._zone.local(begin), DAY_SECONDS)
        if self._allows(day, budget):
            return begin
        year = year_of(day)
        bits = self._days.of_year(year, budget) >> day - year_start(year)
        first = day
        while not bits:
            year += 1
            if year > YEAR_LAST:
                return LATEST
            budget.spend(1)
            bits, first = self._days.of_year(year, budget), year_start(year)
        ahead = DAY_SECONDS * (first + lowest(bits) - day) - second
        # A day and some hours short, in case the clock jumps forward on the way.
        return begin + max(ahead - 27 * 3600, 0)


def _is_whole(zone: Zone, base: int, unit: int) -> bool:
    """Whether no change of the clock since a period began cuts a period."""
    return not any(
        (zone.starts[index] - base) % unit or (zone.offsets[index] - zone.offsets[index - 1]) % unit
        for index in zone.changes(base, LATEST)
    )


def passing(rule: Rule) -> int:
    """The seconds of a day that the BY parts of a rule let pass, as bits."""
    by_second = rule.by_second if rule.frequency == "SECONDLY" else ()
    by_minute = rule.by_minute if rule.frequency != "HOURLY" else ()
    minute = sum(1 << second for second in by_second or range(60))
    hour = sum(minute << 60 * number for number in by_minute or range(60))
    return sum(hour << 3600 * number for number in rule.by_hour or range(24))


def _expanded(rule: Rule, start: int) -> tuple[int, ...]:
    """The seconds inside a period at which candidates lie."""
    if rule.frequency == "SECONDLY":
        return (0,)
    seconds = rule.by_second or (start % 60,)
    if rule.frequency == "MINUTELY":
        return seconds
    minutes = rule.by_minute or (start // 60,)
    return tuple(minute * 60 + second for minute in minutes for second in seconds)


def _some(bits: int, limit: int) -> list[int]:
    """The first `limit` bits that are set."""
    if limit > SPARSE and bits.bit_count() > SPARSE:
        return numbers(bits, limit)
    found: list[int] = []
    base = 0
    while bits and len(found) < limit:
        place = lowest(bits)
        found.append(base + place)
        bits >>= place + 1
        base += place + 1
    return found


def _nth_bit(bits: int, number: int) -> int:
    """The place of the number-th bit that is set, by halves."""
    place, width = 0, bits.bit_length()
    while width > 1:
        half = width // 2
        low = bits & ((1 << half) - 1)
        size = low.bit_count()
        if size >= number:
            bits, width = low, half
        else:
            bits, place, width, number = bits >> half, place + half, width - half, number - size
    return place
