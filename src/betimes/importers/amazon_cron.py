"""Cron as EventBridge reads it: six fields, Sunday first, `?` in one of the two day fields.

A time in the hour that is skipped does not fire; one in the hour that is repeated fires once.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from betimes.domain.errors import BadSchedule
from betimes.importers.fields import MONTHS, WEEKDAYS
from betimes.importers.verdict import Model
from betimes.importers.walls import Pattern, cut, segments, zone_info

FIELDS = 6
TERM = re.compile(
    r"(?P<first>\*|[0-9]+|[A-Z]{3})(?:-(?P<last>[0-9]+|[A-Z]{3}))?(?:/(?P<step>[0-9]+))?"
)
NEAREST = re.compile(r"([0-9]+)W")
LAST_OF = re.compile(r"([0-9]|[A-Z]{3})L")
NTH = re.compile(r"([0-9]|[A-Z]{3})#([1-5])")
SATURDAY, SUNDAY = 5, 6
Judge = Callable[[date], bool]


@dataclass(frozen=True, slots=True)
class Place:
    """A field: its name, its numbers, its names."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


MINUTE, HOUR = Place("minutes", 0, 59), Place("hours", 0, 23)
DAY, MONTH = Place("day-of-month", 1, 31), Place("month", 1, 12, MONTHS)
WEEKDAY, YEAR = Place("day-of-week", 1, 7, WEEKDAYS), Place("year", 1970, 2199)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, read."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    is_day: Judge


def read_expression(text: str) -> Expression:
    """Six fields between `cron(` and `)`."""
    parts = text.upper().split()
    if len(parts) != FIELDS:
        raise BadSchedule(
            f"EventBridge reads six fields, the last being the year; got {len(parts)}"
        )
    minute, hour, day, month, weekday, year = parts
    if (day == "?") == (weekday == "?"):
        raise BadSchedule(
            "EventBridge wants `?` in exactly one of day-of-month and day-of-week; "
            f"got {day!r} and {weekday!r}"
        )
    months, years = numbers(month, MONTH), numbers(year, YEAR)
    judge = _days(day) if weekday == "?" else _weekdays(weekday)

    def is_day(one: date) -> bool:
        return one.month in months and one.year in years and judge(one)

    return Expression(text.strip(), numbers(minute, MINUTE), numbers(hour, HOUR), is_day)


def numbers(text: str, place: Place) -> frozenset[int]:
    """The numbers of a field; a range that runs over its end goes on from its beginning."""
    found: set[int] = set()
    for term in text.split(","):
        match = TERM.fullmatch(term)
        if match is None:
            raise BadSchedule(f"{term!r} cannot be read in its {place.name} field")
        step = int(match["step"] or 1)
        if step == 0:
            raise BadSchedule(f"a step of 0 in its {place.name} field never comes to an end")
        if match["first"] == "*":
            found |= set(range(place.low, place.high + 1, step))
            continue
        first = _number(match["first"], place)
        last = place.high if match["step"] and not match["last"] else first
        last = _number(match["last"], place) if match["last"] else last
        width = place.high - place.low + 1
        stretch = last - first if last >= first else last - first + width
        found |= {
            (first - place.low + offset) % width + place.low
            for offset in range(0, stretch + 1, step)
        }
    return frozenset(found)


def _number(text: str, place: Place) -> int:
    if text.isalpha():
        if text.lower() not in place.names:
            raise BadSchedule(f"{text!r} is no name of its {place.name} field")
        return place.low + place.names.index(text.lower())
    number = int(text[:5])
    if not place.low <= number <= place.high:
        raise BadSchedule(f"{number} is outside {place.low}-{place.high} of its {place.name} field")
    return number


def _days(text: str) -> Judge:
    """Days of the month: numbers, `L`, `LW` and `15W`."""
    if text == "L":
        return lambda one: one.day == _last(one)
    if text == "LW":
        return lambda one: one == _nearest(one.replace(day=_last(one)))
    near = NEAREST.fullmatch(text)
    if near is not None:
        wanted = _number(near[1], DAY)
        return lambda one: wanted <= _last(one) and one == _nearest(one.replace(day=wanted))
    days = numbers(text, DAY)
    return lambda one: one.day in days


def _weekdays(text: str) -> Judge:
    """Days of the week: numbers and names, `L`, `6L` and `3#2`."""
    if text == "L":
        return lambda one: one.weekday() == SATURDAY
    found = LAST_OF.fullmatch(text)
    if found is not None:
        wanted = _number(found[1], WEEKDAY)
        return lambda one: _weekday(one) == wanted and one.day + 7 > _last(one)
    found = NTH.fullmatch(text)
    if found is not None:
        wanted, which = _number(found[1], WEEKDAY), int(found[2])
        return lambda one: _weekday(one) == wanted and (one.day - 1) // 7 + 1 == which
    days = numbers(text, WEEKDAY)
    return lambda one: _weekday(one) in days


def _weekday(one: date) -> int:
    return one.isoweekday() % 7 + 1


def _last(one: date) -> int:
    return monthrange(one.year, one.month)[1]


def _nearest(one: date) -> date:
    """The weekday nearest to a day, in the same month."""
    if one.weekday() == SATURDAY:
        return one - timedelta(days=1) if one.day > 1 else one + timedelta(days=2)
    if one.weekday() == SUNDAY:
        return one + timedelta(days=1) if one.day < _last(one) else one - timedelta(days=2)
    return one


def model(expression: Expression, timezone: str) -> Model:
    """The instants at which EventBridge invokes a target."""
    zone = zone_info(timezone)
    pattern = Pattern(
        tuple(sorted(expression.minutes)), tuple(sorted(expression.hours)), expression.is_day
    )

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        told = datetime.min  # noqa: DTZ901 -- a wall clock
        for instant in cut(segments(zone, after - timedelta(days=1), until), pattern):
            wall = instant.astimezone(zone).replace(tzinfo=None)
            if wall > told:  # the second pass of a repeated hour was served by the first
                told = wall
                if instant > after:
                    yield instant

    return between
