"""Which days of a year a recurrence rule allows.

Every day-level BY part is a question about one day: its month, its number from either end of month
or year, its weekday and how many such weekdays stand before or after it, its week. A day is
allowed when it passes all of them, so a year is one sorted tuple of day numbers.
"""

from collections.abc import Callable
from functools import lru_cache

from betimes.schedule.civil import (
    MONTH_STARTS,
    MONTHS,
    WEEK,
    month_length,
    month_number,
    month_of,
    weekday_of,
)
from betimes.schedule.rrule_syntax import Rule

Test = Callable[[int, int], bool]
"""Takes a day and its month."""

FIRST_WEEK_DAYS = 4
"""A week belongs to the year in which four of its days lie."""


def year_bounds(year: int) -> tuple[int, int]:
    """The first day of a year, and of the next."""
    first = month_number(year, 1)
    return MONTH_STARTS[first], MONTH_STARTS[first + MONTHS]


@lru_cache(maxsize=4096)
def first_week(year: int, week_start: int) -> int:
    """The day on which week 1 of a year begins."""
    january = year_bounds(year)[0]
    start = january - (weekday_of(january) - week_start) % WEEK
    return start if january - start <= WEEK - FIRST_WEEK_DAYS else start + WEEK


def week_number(day: int, week_start: int) -> tuple[int, int]:
    """The number of the week of a day, and how many weeks its year has."""
    year = 1970 + month_of(day) // MONTHS
    if day >= first_week(year + 1, week_start):
        year += 1
    elif day < first_week(year, week_start):
        year -= 1
    first = first_week(year, week_start)
    return (day - first) // WEEK + 1, (first_week(year + 1, week_start) - first) // WEEK


def tests(rule: Rule) -> list[Test]:
    """The questions that a rule asks of a day, cheap ones first."""
    found: list[Test] = []
    if rule.by_month:
        months = frozenset(rule.by_month)
        found.append(lambda _, month: month % MONTHS + 1 in months)
    if rule.by_month_day:
        month_days = frozenset(rule.by_month_day)
        found.append(lambda day, month: _on_month_day(day, month, month_days))
    if rule.by_year_day:
        year_days = frozenset(rule.by_year_day)
        found.append(lambda day, month: _on_year_day(day, month, year_days))
    if rule.by_week_number:
        weeks, start = frozenset(rule.by_week_number), rule.week_start
        found.append(lambda day, _: _in_week(day, weeks, start))
    if rule.by_day:
        found.append(_weekday_test(rule))
    return found


def _on_month_day(day: int, month: int, wanted: frozenset[int]) -> bool:
    number = day - MONTH_STARTS[month] + 1
    return number in wanted or number - month_length(month) - 1 in wanted


def _on_year_day(day: int, month: int, wanted: frozenset[int]) -> bool:
    first, after = year_bounds(1970 + month // MONTHS)
    return day - first + 1 in wanted or day - after in wanted


def _in_week(day: int, wanted: frozenset[int], week_start: int) -> bool:
    number, weeks = week_number(day, week_start)
    return number in wanted or number - weeks - 1 in wanted


def _weekday_test(rule: Rule) -> Test:
    every = frozenset(weekday for nth, weekday in rule.by_day if nth == 0)
    numbered = frozenset((nth, weekday) for nth, weekday in rule.by_day if nth)
    by_year = rule.frequency == "YEARLY" and not rule.by_month

    def test(day: int, month: int) -> bool:
        weekday = weekday_of(day)
        if weekday in every:
            return True
        if not numbered:
            return False
        if by_year:
            first, after = year_bounds(1970 + month // MONTHS)
        else:
            first, after = MONTH_STARTS[month], MONTH_STARTS[month + 1]
        ahead, behind = (day - first) // WEEK + 1, (after - 1 - day) // WEEK + 1
        return (ahead, weekday) in numbered or (-behind, weekday) in numbered

    return test


def allowed_days(year: int, rule_tests: list[Test]) -> tuple[int, ...]:
    """The days of a year that pass every test."""
    first = month_number(year, 1)
    found: list[int] = []
    for month in range(first, first + MONTHS):
        for day in range(MONTH_STARTS[month], MONTH_STARTS[month + 1]):
            for test in rule_tests:
                if not test(day, month):
                    break
            else:
                found.append(day)
    return tuple(found)
