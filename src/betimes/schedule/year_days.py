"""The days of a year as a bit set: bit 0 is 1 January.

Most of what a rule asks of a day depends only on the weekday of 1 January and on which of three
years (the one before, the year itself, the next) are leap years. There are 28 such kinds of year,
so a rule computes 28 bit sets at most, however far it searches.
"""

from functools import lru_cache
from typing import NamedTuple

from betimes.schedule.bounds import YEAR_LAST
from betimes.schedule.civil import EPOCH_YEAR, MONTH_STARTS, MONTHS, WEEK, month_number, month_of

YEAR_DAYS_MAX = 366
ANY_DATE = (1 << YEAR_DAYS_MAX) - 1
TABLE_FIRST, TABLE_LAST = 1800, YEAR_LAST + 3
"""The years that the civil table knows whole."""


class YearKind(NamedTuple):
    """All that a rule can know of a year; `first` is the weekday of 1 January, Sunday 0."""

    first: int
    leap_before: bool
    leap: bool
    leap_after: bool

    @property
    def length(self) -> int:
        """How many days it has."""
        return 365 + self.leap


def year_of(day: int) -> int:
    """The year a day lies in."""
    return EPOCH_YEAR + month_of(day) // MONTHS


def year_start(year: int) -> int:
    """The day number of 1 January."""
    return MONTH_STARTS[month_number(year, 1)]


@lru_cache(maxsize=1024)
def kind_of(year: int) -> YearKind:
    """The kind of a year."""
    return YearKind((year_start(year) + 4) % WEEK, _leap(year - 1), _leap(year), _leap(year + 1))


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@lru_cache(maxsize=2)
def month_spans(leap: bool) -> tuple[tuple[int, int], ...]:
    """Where each month begins in its year, and its length."""
    year = 2000 if leap else 2001
    first = month_number(year, 1)
    begin = MONTH_STARTS[first]
    return tuple(
        (MONTH_STARTS[month] - begin, MONTH_STARTS[month + 1] - MONTH_STARTS[month])
        for month in range(first, first + MONTHS)
    )


def block(first: int, after: int) -> int:
    """The days [first, after) as bits; what lies before day 0 is left out."""
    first = max(first, 0)
    return ((1 << (after - first)) - 1) << first if after > first else 0


def comb(bits: int, step: int, width: int) -> int:
    """The bits repeated every `step`, cut to `width`."""
    while step < width:
        bits |= bits << step
        step *= 2
    return bits & ((1 << width) - 1)


def lowest(bits: int) -> int:
    """The number of the lowest bit of a set that has one."""
    return (bits & -bits).bit_length() - 1


def numbers(bits: int, limit: int = 1 << 60) -> list[int]:
    """The bits that are set, in order, the first `limit` of them."""
    text = bin(bits)[:1:-1]
    found: list[int] = []
    place = text.find("1")
    while place >= 0 and len(found) < limit:
        found.append(place)
        place = text.find("1", place + 1)
    return found
