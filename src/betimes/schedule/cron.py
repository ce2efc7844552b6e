"""Cron: an expression becomes a clock of naive local times.

Nothing here knows zones. `CronClock` answers one question, the least matching local second after
a given one, with bit sets of days and sorted minutes of the day; `placement` lays its answers onto
the segments of a zone.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from betimes.domain.errors import BadSchedule, NeverFires, TooLarge
from betimes.schedule.bounds import DAY_SECONDS, EXPRESSION_LENGTH_MAX, YEAR_FIRST, YEAR_LAST
from betimes.schedule.budget import FIRES_PER_STEP, Budget
from betimes.schedule.civil import (
    CYCLE_DAYS,
    CYCLE_MONTHS,
    MONTH_STARTS,
    MONTHS,
    month_number,
    month_of,
)
from betimes.schedule.cron_days import (
    KINDS,
    STARS,
    DaysOfMonth,
    DaysOfWeek,
    days_of_kind,
    read_days,
    read_weekdays,
)
from betimes.schedule.cron_dialect import AND, OR, Dialect, dialect
from betimes.schedule.cron_field import Reader, field
from betimes.schedule.day_times import ClockTimes, minutes_of_day

NEVER = 1 << 60
"""Later than every time there is."""

UNKNOWN = -1
MONTHS_KNOWN_MAX = 120
BEFORE_FIRST_YEAR = MONTH_STARTS[month_number(YEAR_FIRST, 1)] * DAY_SECONDS - 1
MONTH_LAST = month_number(YEAR_LAST + 1, 1)

NICKNAMES = MappingProxyType(
    {
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    }
)
ALLOWED = re.compile(r"[0-9A-Za-z*?/,#+()\- \t]*")
ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ\s*=")


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression, read: bit sets and what the text said about itself.

    `wild` (minute, hour or second begins with `*`) decides how DST is treated by default;
    `hashed` says that the seed matters.
    """

    expression: str
    dialect: str
    seconds: int
    minutes: int
    hours: int
    days: DaysOfMonth
    months: int
    weekdays: DaysOfWeek
    years: int | None
    day_match: str
    wild: bool
    hashed: bool
    fields: MappingProxyType[str, str]


def read_cron(
    expression: str,
    dialect_name: str = "unix",
    *,
    seed: str = "",
    day_match: str | None = None,
    wrap: bool = False,
) -> Cron:
    """Read an expression, or say what was expected in it."""
    speech = dialect(dialect_name)
    names, texts, speech = _split(expression, speech)
    fields = dict(zip(names, texts, strict=True))
    match, fields["weekday"] = _match(fields, speech, day_match)
    if speech.question:
        _demand_question(fields)
    readers = {
        name: Reader(field(name, speech), speech, seed, wrap or speech.wrap) for name in names
    }
    sets = {
        name: _bits(fields[name], readers[name], readers[name].field.low if name == "year" else 0)
        for name in names
        if name not in {"day", "weekday"}
    }
    return Cron(
        expression=" ".join(texts),
        dialect=speech.name,
        seconds=sets.get("second", 1),
        minutes=sets["minute"],
        hours=sets["hour"],
        days=read_days(fields["day"], readers["day"]),
        months=sets["month"] >> 1,
        weekdays=read_weekdays(fields["weekday"], readers["weekday"]),
        years=None if fields.get("year", "*") == "*" else sets["year"],
        day_match=match,
        wild=any(fields.get(name, "0").startswith("*") for name in ("second", "minute", "hour")),
        hashed=any(term.startswith("H") for text in texts for term in text.split(",")),
        fields=MappingProxyType(fields),
    )


def _split(expression: str, speech: Dialect) -> tuple[tuple[str, ...], list[str], Dialect]:
    if not isinstance(expression, str):
        raise BadSchedule(f"expected a cron expression as text, got {type(expression).__name__}")
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise TooLarge(
            f"expected a cron expression of at most {EXPRESSION_LENGTH_MAX} characters, "
            f"got {len(expression)}",
            pointer="/expr",
        )
    text = expression.strip(" \t")
    if ZONE_PREFIX.match(text):
        raise BadSchedule(
            "expected a cron expression without a zone in it, got a `TZ=` prefix; "
            "put the zone into the field `timezone`",
            pointer="/expr",
        )
    if text.startswith("@"):
        text, speech = _nickname(text), dialect("unix")
    if not ALLOWED.fullmatch(text):
        odd = next(character for character in text if not ALLOWED.fullmatch(character))
        raise BadSchedule(
            f"expected ASCII digits, letters, `* ? / , # + - ( )`, spaces and tabs in a cron "
            f"expression, got {odd!r}",
            pointer="/expr",
        )
    texts = text.upper().split()
    return speech.layout(len(texts)), texts, speech


def _nickname(text: str) -> str:
    if text in NICKNAMES:
        return NICKNAMES[text]
    hint = "; a job cannot be bound to the start of a machine" if text == "@reboot" else ""
    known = ", ".join(NICKNAMES)
    raise BadSchedule(f"expected one of {known} or @every, got {text!r}{hint}", pointer="/expr")


def _match(fields: dict[str, str], speech: Dialect, wanted: str | None) -> tuple[str, str]:
    """Whether both day fields must match, and the weekday field without its OCPS `+`."""
    text = fields["weekday"]
    if wanted not in (None, OR, AND):
        raise BadSchedule(f"expected day_match or|and, got {wanted!r}", pointer="/day_match")
    if text.startswith("+"):
        if wanted == OR:
            raise BadSchedule("expected day_match `and` with `+`, got `or`", pointer="/day_match")
        return AND, text[1:]
    return wanted or speech.day_match, text


def _demand_question(fields: dict[str, str]) -> None:
    if (fields["day"] == "?") == (fields["weekday"] == "?"):
        raise BadSchedule(
            "expected `?` in exactly one of the day-of-month and day-of-week fields, got "
            f"{fields['day']!r} and {fields['weekday']!r}",
            pointer="/expr",
        )


def _bits(text: str, reader: Reader, base: int) -> int:
    found = 0
    for term in text.split(","):
        for value in reader.values(term):
            found |= 1 << (value - base)
    return found


@lru_cache(maxsize=4096)
def members(bits: int) -> tuple[int, ...]:
    """The numbers in a bit set, in order."""
    return tuple(index for index in range(bits.bit_length()) if bits >> index & 1)


class CronClock:
    """The naive local seconds that match a cron expression."""

    __slots__ = (
        "_cron",
        "_first",
        "_first_second",
        "_jumps",
        "_kinds",
        "_known",
        "_last_second",
        "_minutes",
        "_months",
        "_per_day",
        "_seconds",
        "_times",
        "_years",
    )

    def __init__(self, cron: Cron) -> None:
        self._cron = cron
        self._months = cron.months
        self._years = cron.years
        self._seconds = members(cron.seconds)
        self._minutes = minutes_of_day(members(cron.hours), members(cron.minutes))
        self._times = ClockTimes(self._minutes, self._seconds)
        self._first = self._minutes[0] * 60 + self._seconds[0]
        self._first_second = self._seconds[0]
        self._last_second = self._seconds[-1]
        self._known: dict[int, int] = {}
        self._per_day = self._times.size
        self._kinds = [UNKNOWN] * 28
        self._jumps = _jumps(cron.months)

    def dates(self, year: int, budget: Budget) -> int:
        """The dates of a year, as bits from 1 January on."""
        budget.spend(3)
        first = month_number(year, 1)
        begin, bits = MONTH_STARTS[first], 0
        for month in range(first, first + MONTHS):
            bits |= self._days(month) << (MONTH_STARTS[month] - begin)
        return bits

    def after(self, local: int, budget: Budget) -> int:
        """The least match later than `local`, or `NEVER`.

        The busiest function of the room: what could be a helper of its own is written out.
        """
        day, second = divmod(local, DAY_SECONDS)
        month = day * CYCLE_MONTHS // CYCLE_DAYS
        first = MONTH_STARTS[month]
        if first > day:
            month -= 1
            first = MONTH_STARTS[month]
        elif MONTH_STARTS[month + 1] <= day:
            month += 1
            first = MONTH_STARTS[month]
        rest = self._days(month) >> (day - first)
        if rest & 1:
            minute = second // 60
            minutes = self._minutes
            index = bisect_left(minutes, minute)
            if index < len(minutes) and minutes[index] == minute:
                second -= minute * 60
                if second < self._last_second:
                    later = self._seconds[bisect_right(self._seconds, second)]
                    return day * DAY_SECONDS + minute * 60 + later
                index += 1
            if index < len(minutes):
                return day * DAY_SECONDS + minutes[index] * 60 + self._first_second
        rest >>= 1
        if rest:
            return (day + (rest & -rest).bit_length()) * DAY_SECONDS + self._first
        return self._in_later_month(month, budget)

    def _in_later_month(self, month: int, budget: Budget) -> int:
        jumps, years = self._jumps, self._years
        month += jumps[month % MONTHS]
        found, walked = NEVER, 0
        while month < MONTH_LAST:
            if years is not None:
                ahead = years >> max(month // MONTHS, 0)
                if not ahead:
                    break
                if not ahead & 1:
                    # The first matching month of the next year that is named.
                    month = (max(month // MONTHS, 0) + (ahead & -ahead).bit_length() - 1) * MONTHS
                    month += jumps[-1] - 1
                    walked += 1
                    continue
            days = self._days(month)
            if days:
                day = MONTH_STARTS[month] + (days & -days).bit_length() - 1
                found = day * DAY_SECONDS + self._first
                break
            month += jumps[month % MONTHS]
            walked += 1
        if walked:
            # For the whole walk: it passes each of the 4,800 months at most once.
            budget.spend(walked)
        return found

    def _days(self, month: int) -> int:
        """The matching days of a month as a bit set."""
        found = self._known.get(month)
        if found is None:
            if len(self._known) >= MONTHS_KNOWN_MAX:
                self._known.clear()
            found = self._known[month] = self._days_of(month)
        return found

    def _days_of(self, month: int) -> int:
        if month >= MONTH_LAST or not self._months >> month % MONTHS & 1:
            return 0
        years = self._years
        if years is not None and (month < 0 or not years >> month // MONTHS & 1):
            return 0
        kind = KINDS[month]
        found = self._kinds[kind]
        if found == UNKNOWN:
            cron = self._cron
            found = days_of_kind(kind, cron.days, cron.weekdays, cron.day_match)
            self._kinds[kind] = found
        return found

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """The matches in (after, until], at most `limit` of them: a day at a time."""
        found: list[int] = []
        times, size = self._times, self._per_day
        last, end = divmod(until, DAY_SECONDS)
        while len(found) < limit:
            after = self.after(after, budget)
            if after > until:
                break
            day, second = divmod(after, DAY_SECONDS)
            first = times.through(second) - 1
            high = min(times.through(end) if day == last else size, first + limit - len(found))
            if high == first + 1:
                found.append(after)
            else:
                midnight = day * DAY_SECONDS
                budget.spend((high - first) // FIRES_PER_STEP)
                found += [midnight + time for time in times.span(first, high)]
                after = found[-1]
            if day == last:
                break  # whatever lies before the end of this day is found
            budget.spend(1)
        return found

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many matches lie in (after, until], without visiting them."""
        if until <= after:
            return 0
        first, before = self._within_month(after)
        last, through = self._within_month(until)
        budget.spend((last - first) // 4 + 1)
        days = sum(self._days(month).bit_count() for month in range(first, last))
        return days * self._per_day + through - before

    def _within_month(self, until: int) -> tuple[int, int]:
        """The month of a local time, and how many matches it has through that time."""
        day, second = divmod(until, DAY_SECONDS)
        month = month_of(day)
        days = self._days(month)
        today = day - MONTH_STARTS[month]
        total = (days & ((1 << today) - 1)).bit_count() * self._per_day
        if days >> today & 1:
            total += self._times.through(second)
        return month, total


@lru_cache(maxsize=4096)
def _jumps(months: int) -> tuple[int, ...]:
    """For each month of the year, how many months until the next that matches."""
    return tuple(
        next(step for step in range(1, MONTHS + 1) if months >> (index + step) % MONTHS & 1)
        for index in range(MONTHS)
    )


def possible_clock(cron: Cron, budget: Budget) -> CronClock:
    """The clock of an expression; one without a single date, such as 30 February, is refused."""
    clock = CronClock(cron)
    if clock.after(BEFORE_FIRST_YEAR, budget) == NEVER:
        raise NeverFires(
            f"expected a cron expression that fires at least once before 2200, got "
            f"{cron.expression!r}: no such date exists",
            pointer="/expr",
        )
    return clock


def day_fields_both_set(cron: Cron) -> bool:
    """Whether day of month and day of week are both restricted."""
    return cron.fields["day"] not in STARS and cron.fields["weekday"] not in STARS
