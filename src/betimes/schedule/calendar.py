"""Named calendars: sets of dates that a schedule keeps to or keeps away from.

A calendar is a list of date ranges and a set of weekdays. A schedule names calendars to `include`
(the date of a fire must be in one of them) and to `exclude` (in none). A fire on a date that is
out is dropped, or rolled: moved to the previous, next or nearest date that is in, at the same time
of day.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from betimes.domain.errors import BadSchedule, TooLarge
from betimes.schedule.bounds import CALENDAR_RANGES_MAX, DAY, DAY_SECONDS, SECOND
from betimes.schedule.civil import EPOCH_ORDINAL, weekday_of
from betimes.schedule.dst import COMPATIBLE
from betimes.schedule.moment import resolve
from betimes.schedule.placement import EARLIEST, LATEST
from betimes.schedule.series import Dropped, Series
from betimes.schedule.zone import Zone

CALENDAR_EXCLUDED = "calendar_excluded"
ROLLS = ("none", "previous", "next", "nearest")
ROLL_DAYS_MAX = 31
ROLL_REACH = (ROLL_DAYS_MAX + 1) * DAY
ROLL_FIRES_MAX = 10_000
"""Fires moved in one search; where more lie within reach, dates are looked at one by one."""

CLOSED_DAYS_MAX = 20_000
"""Excluded dates passed over in one search: more than fifty years of them."""

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

    def contains(self, day: int) -> bool:
        """Whether a day is in it."""
        if weekday_of(day) in self.weekdays:
            return True
        index = bisect_right(self.firsts, day) - 1
        return index >= 0 and day <= self.lasts[index]

    def next_in(self, day: int) -> int | None:
        """The first day from this one on that is in it."""
        if self.contains(day):
            return day
        index = bisect_right(self.firsts, day)
        found = [self.firsts[index]] if index < len(self.firsts) else []
        found += [day + (number - weekday_of(day)) % 7 for number in self.weekdays]
        return min(found, default=None)

    def last_in(self, day: int) -> int:
        """The end of the range that a day of it lies in."""
        index = bisect_right(self.firsts, day) - 1
        return max(self.lasts[index], day) if index >= 0 else day

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

    def allows(self, day: int) -> bool:
        """Whether a date is in."""
        if self.include and not any(calendar.contains(day) for calendar in self.include):
            return False
        return not any(calendar.contains(day) for calendar in self.exclude)

    def next_allowed(self, day: int) -> int | None:
        """The first date from this one on that is in, after a bounded search."""
        for _ in range(CLOSED_DAYS_MAX):
            if self.include:
                opens = [calendar.next_in(day) for calendar in self.include]
                known = [found for found in opens if found is not None]
                if not known:
                    return None
                day = min(known)
            closed = [calendar for calendar in self.exclude if calendar.contains(day)]
            if not closed:
                return day
            day = max(calendar.last_in(day) for calendar in closed) + 1
        return None

    def rolled(self, day: int) -> int | None:
        """The date an excluded one rolls to; the earlier of two equally near; None if too far."""
        for distance in range(1, ROLL_DAYS_MAX + 1):
            if self.roll in {"previous", "nearest"} and self.allows(day - distance):
                return day - distance
            if self.roll in {"next", "nearest"} and self.allows(day + distance):
                return day + distance
        return None


def read_calendars(source: object, known: Mapping[str, Calendar]) -> CalendarRule:
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
        _calendars(source.get("include", ()), known),
        _calendars(source.get("exclude", ()), known),
        str(roll),
    )


def _calendars(source: object, known: Mapping[str, Calendar]) -> tuple[Calendar, ...]:
    if not isinstance(source, list | tuple):
        raise BadSchedule("expected a list of calendars", pointer="/calendars")
    return tuple(_calendar(entry, known) for entry in source)


def _calendar(entry: object, known: Mapping[str, Calendar]) -> Calendar:
    if isinstance(entry, str) and entry in known:
        return known[entry]
    if isinstance(entry, Mapping) and not set(entry) - {"name", "dates", "weekdays"}:
        dates, weekdays = entry.get("dates", ()), entry.get("weekdays", ())
        if isinstance(dates, list | tuple) and isinstance(weekdays, list | tuple):
            return Calendar.of(str(entry.get("name", "")), dates, weekdays)
    raise BadSchedule(
        f"expected the name of a known calendar, got {str(entry)[:40]!r}", pointer="/calendars"
    )


class Calendared:
    """A series without the fires whose local date is out, or with them rolled."""

    __slots__ = ("_allows", "_rule", "_series", "_sources", "_zone")

    def __init__(self, series: Series, zone: Zone, rule: CalendarRule) -> None:
        self._series = series
        self._zone = zone
        self._rule = rule
        self._allows = lru_cache(maxsize=4096)(rule.allows)
        self._sources = lru_cache(maxsize=256)(self._rolling_to)

    def _day(self, instant: int) -> int:
        return self._zone.local(instant // SECOND) // DAY_SECONDS

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        if self._rule.roll != "none":
            return self._next_rolled(after)
        found = self._series.next(after)
        while found is not None and not self._allows(self._day(found)):
            opens = self._rule.next_allowed(self._day(found) + 1)
            if opens is None or opens >= LATEST // DAY_SECONDS:
                return None
            found = self._series.next(max(self._end_of(opens - 1), found))
        return found

    def _end_of(self, day: int) -> int:
        """The last microsecond before the next local date begins."""
        return resolve(self._zone, (day + 1) * DAY_SECONDS, COMPATIBLE)[0] * SECOND - 1

    def _next_rolled(self, after: int) -> int | None:
        """Ever wider spans until one has a fire; a narrow one with very many goes date by date."""
        after, span = max(after, EARLIEST * SECOND), ROLL_REACH
        while after < LATEST * SECOND:
            is_dense = self._is_dense(after, after + span)
            if is_dense and span > ROLL_REACH:
                span = ROLL_REACH
                continue
            search = self._first_by_date if is_dense else self._rolled
            found = search(after, after + span)
            if found:
                return found[0]
            after, span = after + span, span * 4
        return None

    def _is_dense(self, after: int, until: int) -> bool:
        """Whether too many fires could roll into (after, until] to move them all."""
        return self._series.count(after - ROLL_REACH, until + ROLL_REACH) > ROLL_FIRES_MAX

    def _rolled(self, after: int, until: int) -> list[int]:
        near = self._series.between(after - ROLL_REACH, until + ROLL_REACH, ROLL_FIRES_MAX)
        moved = {self._moved(instant) for instant in near}
        return sorted(instant for instant in moved if instant and after < instant <= until)

    def _first_by_date(self, after: int, until: int) -> list[int]:
        """The least one in (after, until], from the dates that roll to each date that is in."""
        for target in range(self._day(after), self._day(until) + 1):
            sources = self._sources(target) if self._allows(target) else ()
            found = [self._first_from(source, target, after) for source in sources]
            known = [instant for instant in found if instant is not None]
            if known:
                return [min(known)]
        return []

    def _rolling_to(self, target: int) -> tuple[int, ...]:
        """A date that is in, and those that are out and roll to it."""
        near = range(target - ROLL_DAYS_MAX, target + ROLL_DAYS_MAX + 1)
        out = [day for day in near if not self._allows(day) and self._rule.rolled(day) == target]
        return (target, *out)

    def _first_from(self, source: int, target: int, after: int) -> int | None:
        """The least fire of one date, moved to another, that is later than `after`."""
        first, last = self._span(source)
        aim, end = self._span(target)
        if end <= after:
            return None
        if self._changes(first, last) or self._changes(aim, end):
            moved = [self._moved(i) for i in self._series.between(first, last, 2 * DAY_SECONDS)]
            return min((i for i in moved if i is not None and i > after), default=None)
        found = self._series.next(max(first, after - (aim - first)))
        return found + aim - first if found is not None and found <= last else None

    def _changes(self, after: int, until: int) -> bool:
        """Whether the clock jumps on a date; only then may fires change their order."""
        return bool(self._zone.changes(after // SECOND, until // SECOND + 1))

    def _moved(self, instant: int) -> int | None:
        local = self._zone.local(instant // SECOND)
        day = local // DAY_SECONDS
        if self._allows(day):
            return instant
        target = self._rule.rolled(day)
        if target is None:
            return None
        return resolve(self._zone, local + (target - day) * DAY_SECONDS, COMPATIBLE)[0] * SECOND

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        if self._rule.roll != "none" and not self._is_dense(after, until):
            return self._rolled(after, until)[:limit]
        found: list[int] = []
        while len(found) < limit:
            instant = self.next(after)
            if instant is None or instant > until:
                break
            found.append(instant)
            after = instant
        return found

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]: all of them less those on excluded dates.

        Where fires roll and are dense, those that roll are taken to meet others, as they do in
        every schedule that fires at the same times each day.
        """
        if self._rule.roll != "none" and not self._is_dense(after, until):
            return len(self._rolled(after, until))
        total = self._series.count(after, until)
        for day in range(self._day(after), self._day(until) + 1):
            if not self._allows(day):
                first, last = self._span(day)
                total -= self._series.count(max(first, after), min(last, until))
        return total

    def _span(self, day: int) -> tuple[int, int]:
        """The instants (after, until] of a local date."""
        edges = [resolve(self._zone, (day + n) * DAY_SECONDS, COMPATIBLE)[0] for n in (0, 1)]
        return edges[0] * SECOND - 1, edges[1] * SECOND - 1

    def flags(self, instant: int) -> tuple[str, ...]:
        """As the series inside says; a rolled fire says so."""
        if self._is_rolled(instant):
            return (CALENDAR_EXCLUDED,)
        return self._series.flags(instant)

    def intended(self, instant: int) -> int | None:
        """As the series inside says."""
        return None if self._is_rolled(instant) else self._series.intended(instant)

    def _is_rolled(self, instant: int) -> bool:
        return self._series.next(instant - 1) != instant

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:
        """What the zone denied, and what the calendars did."""
        lost = self._series.dropped(after, until, limit)
        cursor: int | None = after
        excluded: list[Dropped] = []
        while cursor is not None and len(excluded) < limit:
            cursor = self._next_excluded(cursor, until)
            if cursor is not None:
                local = self._zone.local(cursor // SECOND)
                excluded.append(Dropped(cursor, local, "CALENDAR_EXCLUDED"))
        return sorted([*lost, *excluded], key=lambda drop: drop.instant)[:limit]

    def _next_excluded(self, after: int, until: int) -> int | None:
        found = self._series.next(after)
        for _ in range(CLOSED_DAYS_MAX):
            if found is None or found > until:
                return None
            if not self._allows(self._day(found)):
                return found
            found = self._series.next(max(self._end_of(self._day(found)), found))
        return None
