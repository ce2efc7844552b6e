"""The proleptic Gregorian calendar in whole numbers.

A *day* counts from 1970-01-01 (day 0, a Thursday); a *month* counts from January 1970 (month 0).
Weekdays count from Sunday (0) to Saturday (6), as cron does.
"""

from datetime import date

from betimes.schedule.bounds import YEAR_LAST

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
EPOCH_YEAR = 1970
MONTHS = 12
WEEK = 7
TABLE_FIRST_YEAR = 1800

# Four centuries hold exactly this many days and months: a month can be guessed from a day by one
# multiplication, and the guess is off by one at most.
CYCLE_DAYS = 146_097
CYCLE_MONTHS = 4_800

_FIRST_MONTH = (TABLE_FIRST_YEAR - EPOCH_YEAR) * MONTHS
MONTH_END = (YEAR_LAST + 5 - EPOCH_YEAR) * MONTHS
"""The month after the last one of the table."""


def _first_day(month: int) -> int:
    year, index = divmod(month, MONTHS)
    return date(EPOCH_YEAR + year, index + 1, 1).toordinal() - EPOCH_ORDINAL


# Indexed by month - _FIRST_MONTH.
_STARTS = tuple(_first_day(month) for month in range(_FIRST_MONTH, MONTH_END + 1))
MONTH_STARTS = dict(zip(range(_FIRST_MONTH, MONTH_END + 1), _STARTS, strict=True))
"""The first day of every month."""


def month_of(day: int) -> int:
    """The month a day lies in."""
    month = day * CYCLE_MONTHS // CYCLE_DAYS
    starts = MONTH_STARTS
    if starts[month] > day:
        return month - 1
    if starts[month + 1] <= day:
        return month + 1
    return month


def month_length(month: int) -> int:
    """How many days a month has."""
    return MONTH_STARTS[month + 1] - MONTH_STARTS[month]


def weekday_of(day: int) -> int:
    """The weekday of a day, Sunday 0."""
    return (day + 4) % WEEK


def day_of(year: int, month: int, day: int) -> int:
    """The day number of a date that exists."""
    return date(year, month, day).toordinal() - EPOCH_ORDINAL


def date_of(day: int) -> date:
    """The date of a day number."""
    return date.fromordinal(day + EPOCH_ORDINAL)


def month_number(year: int, month: int) -> int:
    """The month number of a year and a month that counts from 1."""
    return (year - EPOCH_YEAR) * MONTHS + month - 1
