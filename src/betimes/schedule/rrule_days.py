"""Which days of a year a recurrence rule allows.

Every day-level BY part is a set of days of a kind of year: months, numbers from either end of
month or year, weekdays and how many such weekdays stand before or after them, weeks. A day is
allowed when it is in all of these sets, so a year is one bit set (bit 0 is 1 January).
"""

from betimes.schedule.budget import Budget
from betimes.schedule.civil import WEEK
from betimes.schedule.rrule_syntax import Rule
from betimes.schedule.year_days import YearKind, block, comb, kind_of, month_spans

FIRST_WEEK_DAYS = 4
"""A week belongs to the year in which four of its days lie."""

NTH_IN_MONTH_MAX = 5
KIND_STEPS = 40
"""What the days of one kind of year cost, besides a step for each number in the rule."""


class RuleDays:
    """The allowed days of a rule, each kind of year computed once."""

    __slots__ = ("_kinds", "_rule", "_size")

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._kinds: dict[YearKind, int] = {}
        lists = (rule.by_month_day, rule.by_year_day, rule.by_week_number, rule.by_day)
        self._size = sum(len(numbers) for numbers in lists)

    def of_year(self, year: int, budget: Budget) -> int:
        """The allowed days of one year."""
        kind = kind_of(year)
        found = self._kinds.get(kind)
        if found is None:
            budget.spend(KIND_STEPS + self._size)
            found = self._kinds[kind] = allowed_days(kind, self._rule)
        return found


def allowed_days(kind: YearKind, rule: Rule) -> int:
    """The days of a kind of year that pass every BY part."""
    bits = block(0, kind.length)
    if rule.by_month:
        bits &= _months(kind, rule.by_month)
    if rule.by_month_day:
        bits &= _month_days(kind, rule.by_month_day)
    if rule.by_year_day:
        bits &= _from_both_ends(rule.by_year_day, kind.length)
    if rule.by_week_number:
        bits &= _weeks(kind, frozenset(rule.by_week_number), rule.week_start)
    if rule.by_day:
        bits &= _weekdays(kind, rule)
    return bits


def _months(kind: YearKind, months: tuple[int, ...]) -> int:
    spans = month_spans(kind.leap)
    bits = 0
    for month in months:
        begin, length = spans[month - 1]
        bits |= block(begin, begin + length)
    return bits


def _from_both_ends(wanted: tuple[int, ...], length: int) -> int:
    """The days 1, 2, … from the beginning and -1, -2, … from the end of so many."""
    bits = 0
    for number in wanted:
        day = number - 1 if number > 0 else length + number
        if 0 <= day < length:
            bits |= 1 << day
    return bits


def _month_days(kind: YearKind, wanted: tuple[int, ...]) -> int:
    by_length = {length: _from_both_ends(wanted, length) for length in (28, 29, 30, 31)}
    bits = 0
    for begin, length in month_spans(kind.leap):
        bits |= by_length[length] << begin
    return bits


def first_week(first: int, week_start: int) -> int:
    """Where week 1 begins, in days after 1 January, given the weekday of that day."""
    start = -((first - week_start) % WEEK)
    return start if -start <= WEEK - FIRST_WEEK_DAYS else start + WEEK


def _weeks(kind: YearKind, wanted: frozenset[int], week_start: int) -> int:
    """Weeks by number; days at either end may belong to a week of the neighbouring year."""
    length = kind.length
    begin = first_week(kind.first, week_start)
    end = length + first_week((kind.first + length) % WEEK, week_start)
    weeks = (end - begin) // WEEK
    bits = 0
    for number in range(1, weeks + 1):
        if number in wanted or number - weeks - 1 in wanted:
            bits |= block(begin + WEEK * (number - 1), begin + WEEK * number)
    before = 365 + kind.leap_before
    weeks_before = (before + begin - first_week((kind.first - before) % WEEK, week_start)) // WEEK
    if weeks_before in wanted or -1 in wanted:
        bits |= block(0, begin)
    later = (kind.first + length + 365 + kind.leap_after) % WEEK
    reach = 365 + kind.leap_after + first_week(later, week_start)
    weeks_after = (reach - (end - length)) // WEEK
    if 1 in wanted or -weeks_after in wanted:
        bits |= block(end, length)
    return bits & block(0, length)


def _weekdays(kind: YearKind, rule: Rule) -> int:
    bits = 0
    for weekday in {day for nth, day in rule.by_day if nth == 0}:
        bits |= comb(1 << (weekday - kind.first) % WEEK, WEEK, kind.length)
    numbered = {(nth, day) for nth, day in rule.by_day if nth}
    if not numbered:
        return bits
    if rule.frequency == "YEARLY" and not rule.by_month:
        return bits | _nth(numbered, kind.first, 0, kind.length)
    numbered = {(nth, day) for nth, day in numbered if abs(nth) <= NTH_IN_MONTH_MAX}
    for begin, length in month_spans(kind.leap):
        bits |= _nth(numbered, (kind.first + begin) % WEEK, begin, length)
    return bits


def _nth(numbered: set[tuple[int, int]], first: int, begin: int, length: int) -> int:
    """The n-th weekdays of a span that begins with the weekday `first`."""
    bits = 0
    for nth, weekday in numbered:
        ahead = (weekday - first) % WEEK
        if nth > 0:
            day = ahead + WEEK * (nth - 1)
        else:
            last = ahead + (length - 1 - ahead) // WEEK * WEEK
            day = last + WEEK * (nth + 1)
        if 0 <= day < length:
            bits |= 1 << (begin + day)
    return bits
