"""Named calendars: sets of dates that a schedule keeps to or keeps away from.

A calendar is a list of date ranges and a set of weekdays. A schedule names calendars to `include`
(the date of a fire must be in one of them) and to `exclude` (in none). A fire on a date that is
out is dropped, or rolled: moved to the previous, next or nearest date that is in, at the same time
of day.

Long because dropping, rolling and counting fires share one way over the dates.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from betimes.domain.errors import BadSchedule, TooLarge
from betimes.schedule.bounds import CALENDAR_RANGES_MAX, DAY_SECONDS, SECOND, YEAR_LAST
from betimes.schedule.budget import Budget
from betimes.schedule.civil import EPOCH_ORDINAL, WEEK
from betimes.schedule.dst import COMPATIBLE
from betimes.schedule.moment import resolve
from betimes.schedule.placement import EARLIEST, LATEST
from betimes.schedule.series import Dropped, Series
from betimes.schedule.year_days import (
    ANY_DATE,
    TABLE_FIRST,
    block,
    comb,
    kind_of,
    lowest,
    year_of,
    year_start,
)
from betimes.schedule.zone import REACH, Zone

CALENDAR_EXCLUDED = "calendar_excluded"
ROLLS = ("none", "previous", "next", "nearest")
ROLL_DAYS_MAX = 31
ROLL_FIRES_MAX = 2_000
"""Fires that roll to one date and are counted one by one; beyond, they are taken to meet."""

CALENDAR_STEPS = 5
DATES_PER_STEP = 1
"""What a calendar that is written out costs, and its dates."""

RUN_STEPS = 8
"""What a stretch of dates that are all in, or all out, costs."""

ROLL_STEPS = 16
"""What a date that rolls costs."""

WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class Calendar:
    """Dates as sorted, disjoint, closed ranges of day numbers, plus whole weekdays."""

    name: str
    firsts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    weekdays: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, name: str, dates: Iterable[object] = (), weekdays: Iterable[object] = ()
    ) -> "Calendar":
        """A calendar from dates (`2026-12-25`), ranges (`2026-12-24/2026-12-26`), weekday names."""
        ranges = sorted(_range(entry) for entry in dates)
        if len(ranges) > CALENDAR_RANGES_MAX:
            raise TooLarge(
                f"expected at most {CALENDAR_RANGES_MAX} dates in a calendar, got {len(ranges)}"
            )
        merged: list[tuple[int, int]] = []
        for first, last in ranges:
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        return cls(
            name,
            tuple(first for first, _ in merged),
            tuple(last for _, last in merged),
            frozenset(_weekday(entry) for entry in weekdays),
        )

    def of_year(self, year: int, budget: Budget) -> int:
        """Its dates in a year as a bit set, bit 0 being 1 January."""
        begin, kind = year_start(year), kind_of(year)
        bits = 0
        for weekday in self.weekdays:
            bits |= comb(1 << (weekday - kind.first) % WEEK, WEEK, kind.length)
        low = bisect_left(self.lasts, begin)
        high = bisect_left(self.firsts, begin + kind.length)
        budget.spend(2 + (high - low))
        for index in range(low, high):
            bits |= block(self.firsts[index] - begin, self.lasts[index] + 1 - begin)
        return bits & block(0, kind.length)

    def to_dict(self) -> dict[str, object]:
        """The inline form."""
        ranges = zip(self.firsts, self.lasts, strict=True)
        return {
            "name": self.name,
            "dates": [_shown(first, last) for first, last in ranges],
            "weekdays": [WEEKDAY_NAMES[number] for number in sorted(self.weekdays)],
        }


def _shown(first: int, last: int) -> str:
    texts = [date.fromordinal(day + EPOCH_ORDINAL).isoformat() for day in (first, last)]
    return texts[0] if first == last else "/".join(texts)


def _range(entry: object) -> tuple[int, int]:
    texts = entry.isoformat() if isinstance(entry, date) else entry
    if not isinstance(texts, str):
        raise _refusal(entry)
    parts = texts.split("/")
    try:
        days = [date.fromisoformat(part).toordinal() - EPOCH_ORDINAL for part in parts]
    except ValueError:
        raise _refusal(entry) from None
    if len(days) not in (1, 2) or days[-1] < days[0]:
        raise _refusal(entry)
    return days[0], days[-1]


def _refusal(entry: object) -> BadSchedule:
    return BadSchedule(
        f"expected a date such as 2026-12-25 or a range such as 2026-12-24/2026-12-26, "
        f"got {str(entry)[:40]!r}",
        pointer="/calendars",
    )


def _weekday(entry: object) -> int:
    if isinstance(entry, str) and entry.lower() in WEEKDAY_NAMES:
        return WEEKDAY_NAMES.index(entry.lower())
    raise BadSchedule(
        f"expected a weekday out of {', '.join(WEEKDAY_NAMES)}, got {str(entry)[:40]!r}",
        pointer="/calendars",
    )


@dataclass(frozen=True, slots=True)
class CalendarRule:
    """Which calendars a schedule keeps to, which it avoids, and where an excluded fire goes."""

    include: tuple[Calendar, ...] = ()
    exclude: tuple[Calendar, ...] = ()
    roll: str = "none"

    def __bool__(self) -> bool:
        return bool(self.include or self.exclude)


class OpenDays:
    """The dates that a rule lets in, as a bit set for each year."""

    __slots__ = ("_rule", "_years")

    def __init__(self, rule: CalendarRule) -> None:
        self._rule = rule
        self._years: dict[int, int] = {}

    def of_year(self, year: int, budget: Budget) -> int:
        """The dates of a year that are in."""
        found = self._years.get(year)
        if found is None:
            rule = self._rule
            found = block(0, kind_of(year).length)
            if rule.include:
                kept = 0
                for calendar in rule.include:
                    kept |= calendar.of_year(year, budget)
                found &= kept
            for calendar in rule.exclude:
                found &= ~calendar.of_year(year, budget)
            self._years[year] = found
        return found

    def allows(self, day: int, budget: Budget) -> bool:
        """Whether a date is in."""
        year = year_of(day)
        return bool(self.of_year(year, budget) >> day - year_start(year) & 1)

    def following(self, day: int, budget: Budget, *, allowed: bool) -> int | None:
        """The first date from this one on that is in, or that is out."""
        year = year_of(day)
        while year <= YEAR_LAST + 1:
            begin = year_start(year)
            bits = self.of_year(year, budget)
            if not allowed:
                bits = ~bits & block(0, kind_of(year).length)
            bits &= block(day - begin, kind_of(year).length)
            if bits:
                return begin + lowest(bits)
            budget.spend(1)
            year += 1
        return None

    def preceding(self, day: int, budget: Budget) -> int | None:
        """The last date up to this one that is in, not looked for beyond the year before."""
        year = year_of(day)
        for earlier in (year, year - 1):
            if earlier < TABLE_FIRST:
                break
            begin = year_start(earlier)
            bits = self.of_year(earlier, budget) & block(0, day - begin + 1)
            if bits:
                return begin + bits.bit_length() - 1
        return None

    def target(self, day: int, budget: Budget) -> int | None:
        """Where the fires of a date go: it stays if it is in; the earlier of two equally near."""
        if self.allows(day, budget):
            return day
        roll = self._rule.roll
        found: list[int] = []
        if roll in {"previous", "nearest"}:
            before = self.preceding(day, budget)
            found += [] if before is None else [before]
        if roll in {"next", "nearest"}:
            after = self.following(day, budget, allowed=True)
            found += [] if after is None else [after]
        near = [target for target in found if abs(target - day) <= ROLL_DAYS_MAX]
        return min(near, key=lambda target: (abs(target - day), target), default=None)


def read_calendars(source: object, known: Mapping[str, Calendar], budget: Budget) -> CalendarRule:
    """The member `calendars`: names to look up, or calendars written out."""
    if source is None:
        return CalendarRule()
    if not isinstance(source, Mapping) or set(source) - {"include", "exclude", "roll"}:
        raise BadSchedule("expected calendars with include, exclude and roll", pointer="/calendars")
    roll = source.get("roll", "none")
    if roll not in ROLLS:
        raise BadSchedule(
            f"expected calendars.roll out of {', '.join(ROLLS)}, got {roll!r}",
            pointer="/calendars/roll",
        )
    return CalendarRule(
        _calendars(source.get("include", ()), known, budget),
        _calendars(source.get("exclude", ()), known, budget),
        str(roll),
    )


def _calendars(
    source: object, known: Mapping[str, Calendar], budget: Budget
) -> tuple[Calendar, ...]:
    if not isinstance(source, list | tuple):
        raise BadSchedule("expected a list of calendars", pointer="/calendars")
    return tuple(_calendar(entry, known, budget) for entry in source)


def _calendar(entry: object, known: Mapping[str, Calendar], budget: Budget) -> Calendar:
    budget.spend(CALENDAR_STEPS)
    if isinstance(entry, str) and entry in known:
        return known[entry]
    if isinstance(entry, Mapping) and not set(entry) - {"name", "dates", "weekdays"}:
        dates, weekdays = entry.get("dates", ()), entry.get("weekdays", ())
        if isinstance(dates, list | tuple) and isinstance(weekdays, list | tuple):
            budget.spend((len(dates) + len(weekdays)) // DATES_PER_STEP)
            return Calendar.of(str(entry.get("name", "")), dates, weekdays)
    raise BadSchedule(
        f"expected the name of a known calendar, got {str(entry)[:40]!r}", pointer="/calendars"
    )


class Calendared:
    """A series without the fires whose local date is out, or with them rolled.

    Dates that are in (or out) come in runs, and what a run has is asked of the series inside at
    once. Where fires roll, later dates never roll to earlier ones than earlier dates do, so the
    dates that have fires are gone through in order.
    """

    __slots__ = ("_open", "_rolls", "_series", "_zone")

    def __init__(self, series: Series, zone: Zone, rule: CalendarRule) -> None:
        self._series = series
        self._zone = zone
        self._rolls = rule.roll != "none"
        self._open = OpenDays(rule)

    @property
    def counts_exactly(self) -> bool:
        """As the series inside does, unless fires roll."""
        return not self._rolls and self._series.counts_exactly

    def dates(self, year: int, budget: Budget) -> int:
        """Those of the series inside that are in; any date where fires roll."""
        if self._rolls:
            return ANY_DATE
        return self._series.dates(year, budget) & self._open.of_year(year, budget)

    def _opens(self, day: int, budget: Budget) -> int | None:
        """The first date from this one on that is in and may have fires."""
        for year in range(year_of(day), YEAR_LAST + 1):
            budget.spend(3)
            begin = year_start(year)
            bits = self.dates(year, budget) & block(day - begin, kind_of(year).length)
            if bits:
                return begin + lowest(bits)
        return None

    def _closes(self, day: int, budget: Budget) -> int | None:
        """The first date from this one on that is out."""
        return self._open.following(day, budget, allowed=False)

    def _day(self, instant: int) -> int:
        return self._zone.local(instant // SECOND) // DAY_SECONDS

    def _end_of(self, day: int) -> int:
        """The last microsecond before the next local date begins."""
        return resolve(self._zone, (day + 1) * DAY_SECONDS, COMPATIBLE)[0] * SECOND - 1

    def next(self, after: int, budget: Budget) -> int | None:
        """The least one later than `after`."""
        found = self.between(after, LATEST * SECOND - 1, 1, budget)
        return found[0] if found else None

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]."""
        after, until = max(after, EARLIEST * SECOND), min(until, LATEST * SECOND - 1)
        if self._rolls:
            return self._between_rolled(after, until, limit, budget)
        found: list[int] = []
        for first, last in self._runs(after, until, budget, allowed=True):
            found += self._series.between(first, last, limit - len(found), budget)
            if len(found) >= limit:
                break
        return found

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until].

        Where many fires roll to one date, they are taken to meet one another, as they do in every
        schedule that fires at the same times each day.
        """
        after, until = max(after, EARLIEST * SECOND), min(until, LATEST * SECOND - 1)
        if self._rolls:
            return self._count_rolled(after, until, budget)
        return sum(
            self._series.count(first, last, budget)
            for first, last in self._runs(after, until, budget, allowed=True)
        )

    def _runs(
        self, after: int, until: int, budget: Budget, *, allowed: bool
    ) -> Iterator[tuple[int, int]]:
        """The stretches (first, last] of dates in (or out) that have fires."""
        while after < until:
            budget.spend(RUN_STEPS)
            fire = self._series.next(after, budget)
            if fire is None or fire > until:
                return
            day = self._day(fire)
            if self._open.allows(day, budget) == allowed:
                edge = self._open.following(day + 1, budget, allowed=not allowed)
                last = until if edge is None else min(self._end_of(edge - 1), until)
                after = max(last, fire)
                yield fire - 1, after
            else:
                found = self._opens if allowed else self._closes
                edge = found(day + 1, budget)
                if edge is None:
                    return
                after = max(self._end_of(edge - 1), fire)

    def _groups(self, after: int, until: int, budget: Budget) -> Iterator[tuple[int, list[int]]]:
        """The dates that have fires in (after, until], each with the dates these come from."""
        begin = self._day(after) - 1
        before = self._open.preceding(begin - 1, budget)
        first = begin - ROLL_DAYS_MAX if before is None else max(before + 1, begin - ROLL_DAYS_MAX)
        cursor = self._end_of(first - 1)
        last = self._day(until) + 1
        current: int | None = None
        sources: list[int] = []
        while True:
            budget.spend(ROLL_STEPS)
            fire = self._series.next(cursor, budget)
            if fire is None or fire >= LATEST * SECOND:
                break
            source = self._day(fire)
            cursor = max(self._end_of(source), fire)
            target = self._open.target(source, budget)
            if target is None:
                opens = self._open.following(source, budget, allowed=True)
                if opens is None or opens >= LATEST // DAY_SECONDS:
                    break
                cursor = max(self._end_of(opens - ROLL_DAYS_MAX - 1), cursor)
                continue
            if target > last:
                break
            if target != current:
                if current is not None and current >= begin:
                    yield current, sources
                current, sources = target, []
            sources.append(source)
        if current is not None and current >= begin:
            yield current, sources

    def _between_rolled(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        found: list[int] = []
        pending: list[int] = []
        for target, sources in self._groups(after, until, budget):
            # A gap at midnight may move a fire into the next date: sorted together with it.
            begin = self._end_of(target - 1)
            found += [instant for instant in pending if instant <= begin]
            if len(found) >= limit:
                return found[:limit]
            late = [instant for instant in pending if instant > begin]
            moved = {
                instant
                for source in sources
                for instant in self._moved(source, target, after, until, limit, budget)
            }
            pending = sorted(moved.union(late))
        return (found + pending)[:limit]

    def _count_rolled(self, after: int, until: int, budget: Budget) -> int:
        total = 0
        for target, sources in self._groups(after, until, budget):
            pieces = [
                (max(first, after - shift), min(last, until - shift))
                for source in sources
                for first, last, shift in self._pieces(source, target)
            ]
            counts = [
                self._series.count(first, last, budget) for first, last in pieces if first < last
            ]
            if len(counts) > 1 and sum(counts) <= ROLL_FIRES_MAX:
                moved = {
                    instant
                    for source in sources
                    for instant in self._moved(source, target, after, until, ROLL_FIRES_MAX, budget)
                }
                total += len(moved)
            elif len(sources) == 1:
                total += sum(counts)
            else:
                total += max(counts, default=0)
        return total

    def _moved(
        self, source: int, target: int, after: int, until: int, limit: int, budget: Budget
    ) -> list[int]:
        """The fires of a date in (after, until], moved to another date."""
        found: list[int] = []
        for first, last, shift in self._pieces(source, target):
            low, high = max(first, after - shift), min(last, until - shift)
            if low < high:
                some = self._series.between(low, high, limit, budget)
                budget.spend(4 + len(some) // 8)
                found += [instant + shift for instant in some]
        return found

    def _pieces(self, source: int, target: int) -> list[tuple[int, int, int]]:
        """The stretches (first, last] of a date that move by the same time to another date."""
        first, last = self._span(source)
        if source == target:
            return [(first, last, 0)]
        if first >= last:
            return []
        zone, days = self._zone, (target - source) * DAY_SECONDS
        low, high = first // SECOND + 1, last // SECOND
        found: list[tuple[int, int, int]] = []
        for index in range(zone.segment(low), zone.segment(high) + 1):
            offset = zone.offsets[index]
            begin, end = max(low, zone.starts[index]), min(high, zone.ends[index] - 1)
            while begin <= end:
                local = begin + offset + days
                other, edge = self._offset_at(local)
                stop = min(end, edge - 1 - offset - days)
                shift = (offset + days - other) * SECOND
                found.append((begin * SECOND - 1, stop * SECOND + SECOND - 1, shift))
                begin = stop + 1
        return found

    def _offset_at(self, local: int) -> tuple[int, int]:
        """The offset that a local second is resolved with, and the local second it ends before."""
        zone = self._zone
        index = zone.segment(local - REACH)
        while True:
            if index + 1 >= len(zone.starts):
                return zone.offsets[index], LATEST + REACH
            edge = zone.starts[index + 1] + max(zone.offsets[index], zone.offsets[index + 1])
            if local < edge:
                return zone.offsets[index], edge
            index += 1

    def _span(self, day: int) -> tuple[int, int]:
        """The instants (after, until] of a local date."""
        return self._end_of(day - 1), self._end_of(day)

    def flags(self, instant: int, budget: Budget) -> tuple[str, ...]:
        """As the series inside says; a rolled fire says so."""
        if self._is_rolled(instant, budget):
            return (CALENDAR_EXCLUDED,)
        return self._series.flags(instant, budget)

    def intended(self, instant: int, budget: Budget) -> int | None:
        """As the series inside says."""
        if self._is_rolled(instant, budget):
            return None
        return self._series.intended(instant, budget)

    def _is_rolled(self, instant: int, budget: Budget) -> bool:
        return self._rolls and self._series.next(instant - 1, budget) != instant

    def dropped(self, after: int, until: int, limit: int, budget: Budget) -> list[Dropped]:
        """What the zone denied, and what the calendars did."""
        after, until = max(after, EARLIEST * SECOND), min(until, LATEST * SECOND - 1)
        lost = self._series.dropped(after, until, limit, budget)
        excluded: list[int] = []
        for first, last in self._runs(after, until, budget, allowed=False):
            excluded += self._series.between(first, last, limit - len(excluded), budget)
            if len(excluded) >= limit:
                break
        budget.spend(len(excluded))
        local = self._zone.local
        lost += [Dropped(i, local(i // SECOND), "CALENDAR_EXCLUDED") for i in excluded]
        return sorted(lost, key=lambda drop: drop.instant)[:limit]
