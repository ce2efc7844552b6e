"""The day of a cron expression: day of month and day of week, together.

A month matters only by its length and the weekday it begins with, so there are 28 kinds of month,
and the days of each kind are one bit set (bit 0 is the first), computed once.
"""

import re
from dataclasses import dataclass

from betimes.schedule.civil import MONTH_STARTS, WEEK
from betimes.schedule.cron_dialect import AND
from betimes.schedule.cron_field import SATURDAY, Reader

SHORTEST = 28
LAST = 0
"""In place of a number of a week, or of a day: the last one."""

SATURDAY_FIRST = 6
OFFSET_MAX = 30

DAY_SPECIAL = re.compile(
    r"(?P<last>L)(?:-(?P<back>[0-9]{1,2}))?(?P<last_near>W)?|(?P<near>[0-9]{1,2})W"
)
WEEKDAY_SPECIAL = re.compile(r"(?P<day>[0-9]|[A-Z]{3})(?:L|#(?P<nth>[1-5]|L))")
STARS = ("*", "?")

KINDS = {
    month: (start + 4) % WEEK * 4 + MONTH_STARTS[month + 1] - start - SHORTEST
    for month, start in MONTH_STARTS.items()
    if month + 1 in MONTH_STARTS
}
"""The kind of every month: four times the weekday of its first day, plus its length minus 28."""


@dataclass(frozen=True, slots=True)
class DaysOfMonth:
    """The day-of-month field.

    `plain` has bit d - 1 for day d; `from_end` counts back from the last day (0); `nearest` holds
    days whose nearest weekday is meant, negative ones counting from the last day (-1).
    """

    plain: int
    from_end: tuple[int, ...]
    nearest: tuple[int, ...]
    any: bool


@dataclass(frozen=True, slots=True)
class DaysOfWeek:
    """The day-of-week field: `plain` has bit w for weekday w; `nth` pairs (weekday, which)."""

    plain: int
    nth: tuple[tuple[int, int], ...]
    any: bool


def read_days(text: str, reader: Reader) -> DaysOfMonth:
    """The day-of-month field, `L`, `LW`, `nW` and (where the dialect has it) `L-n` included."""
    plain = 0
    from_end: list[int] = []
    nearest: list[int] = []
    for term in _terms(text, reader):
        special = DAY_SPECIAL.fullmatch(term)
        if special is None:
            for day in reader.values(term):
                plain |= 1 << (day - 1)
        elif special["near"]:
            nearest.append(reader.number(special["near"]))
        else:
            back = _back(special["back"], term, reader)
            if special["last_near"]:
                nearest.append(-1 - back)
            else:
                from_end.append(back)
    return DaysOfMonth(plain, tuple(from_end), tuple(nearest), text in STARS)


def _back(text: str | None, term: str, reader: Reader) -> int:
    if text is None:
        return 0
    if not reader.dialect.rich:
        raise reader.refusal("`L-n` only in dialect quartz or aws", term)
    if int(text) > OFFSET_MAX:
        raise reader.refusal(f"`L-n` with n within 0-{OFFSET_MAX}", term)
    return int(text)


def read_weekdays(text: str, reader: Reader) -> DaysOfWeek:
    """The day-of-week field, `D#k`, `D#L` and `DL` included."""
    plain, nth = 0, []
    for term in _terms(text, reader):
        special = WEEKDAY_SPECIAL.fullmatch(term)
        if term == "L" and reader.dialect.rich:
            plain |= 1 << SATURDAY
        elif special is None:
            for number in reader.values(term):
                plain |= 1 << reader.dialect.weekday(number)
        else:
            which = LAST if special["nth"] in (None, "L") else int(special["nth"])
            nth.append((reader.dialect.weekday(reader.number(special["day"])), which))
    return DaysOfWeek(plain, tuple(nth), text in STARS)


def _terms(text: str, reader: Reader) -> list[str]:
    if text == "?":
        return ["*"]
    terms = text.split(",")
    if not all(terms):
        raise reader.refusal("a value between commas", text)
    return terms


def days_of_kind(kind: int, days: DaysOfMonth, weekdays: DaysOfWeek, match: str) -> int:
    """The days of a kind of month that match, as a bit set."""
    first, length = kind // 4, SHORTEST + kind % 4
    by_month = _month_days(days, first, length)
    by_week = _week_days(weekdays, first, length)
    if days.any or weekdays.any or match == AND:
        return by_month & by_week
    return by_month | by_week


def _month_days(days: DaysOfMonth, first: int, length: int) -> int:
    found = days.plain & ((1 << length) - 1)
    for back in days.from_end:
        if back < length:
            found |= 1 << (length - 1 - back)
    for near in days.nearest:
        day = near if near > 0 else length + 1 + near
        if 1 <= day <= length:
            found |= 1 << (nearest_weekday(day, first, length) - 1)
    return found


def nearest_weekday(day: int, first: int, length: int) -> int:
    """Monday to Friday nearest to a day, never leaving its month."""
    weekday = (first + day - 1) % WEEK
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _week_days(weekdays: DaysOfWeek, first: int, length: int) -> int:
    found = 0
    for day in range(1, length + 1):
        if weekdays.plain >> ((first + day - 1) % WEEK) & 1:
            found |= 1 << (day - 1)
    for weekday, which in weekdays.nth:
        day = 1 + (weekday - first) % WEEK
        if which == LAST:
            day += (length - day) // WEEK * WEEK
        else:
            day += (which - 1) * WEEK
        if day <= length:
            found |= 1 << (day - 1)
    return found
