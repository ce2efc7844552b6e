"""Recurrence rules of RFC 5545 from years down to days: a clock of naive local times.

The BY parts limit days (see `rrule_days`) and times; periods (years, months, weeks, days counted
from DTSTART) keep every INTERVAL-th; BYSETPOS then picks positions inside a period.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace

from betimes.schedule.bounds import DAY_SECONDS, YEAR_LAST
from betimes.schedule.civil import MONTHS, WEEK, date_of, month_of, weekday_of
from betimes.schedule.placement import NEVER
from betimes.schedule.rrule_days import allowed_days, tests
from betimes.schedule.rrule_syntax import Rule


def with_defaults(rule: Rule, start: int) -> Rule:
    """The rule with what RFC 5545 takes from DTSTART (a local second) when nothing else is said."""
    day, second = divmod(start, DAY_SECONDS)
    date = date_of(day)
    if not (rule.by_week_number or rule.by_year_day or rule.by_month_day or rule.by_day):
        if rule.frequency == "YEARLY":
            rule = replace(rule, by_month=rule.by_month or (date.month,), by_month_day=(date.day,))
        elif rule.frequency == "MONTHLY":
            rule = replace(rule, by_month_day=(date.day,))
        elif rule.frequency == "WEEKLY":
            rule = replace(rule, by_day=((0, weekday_of(day)),))
    if rule.is_sub_daily:
        return rule
    return replace(
        rule,
        by_hour=rule.by_hour or (second // 3600,),
        by_minute=rule.by_minute or (second // 60 % 60,),
        by_second=rule.by_second or (second % 60,),
    )


PERIOD_DAYS = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": WEEK}
"""How many days a period has at most; one where it is a day."""


class RuleDays:
    """The allowed days of a rule, year by year, each computed once."""

    __slots__ = ("_tests", "_years")

    def __init__(self, rule: Rule) -> None:
        self._tests = tests(rule)
        self._years: dict[int, tuple[int, ...]] = {}

    def of_year(self, year: int) -> tuple[int, ...]:
        """The allowed days of one year."""
        found = self._years.get(year)
        if found is None:
            found = self._years[year] = allowed_days(year, self._tests)
        return found

    def since(self, day: int) -> Iterator[int]:
        """The allowed days from one on, until the end of our time."""
        year = 1970 + month_of(day) // MONTHS
        days = self.of_year(year)
        yield from days[bisect_left(days, day) :]
        for later in range(year + 1, YEAR_LAST + 1):
            yield from self.of_year(later)

    def within(self, first: int, after: int) -> tuple[int, ...]:
        """The allowed days in [first, after), a stretch of at most a year."""
        found: tuple[int, ...] = ()
        for year in sorted({1970 + month_of(day) // MONTHS for day in (first, after - 1)}):
            days = self.of_year(year)
            found += days[bisect_left(days, first) : bisect_left(days, after)]
        return found


class RuleClock:
    """The naive local seconds of a rule with FREQ of DAILY or longer."""

    __slots__ = ("_days", "_first_week", "_last", "_rule", "_start", "_start_period", "_times")

    def __init__(self, rule: Rule, start: int) -> None:
        self._rule = with_defaults(rule, start)
        self._start = start
        self._days = RuleDays(self._rule)
        self._times = tuple(
            hour * 3600 + minute * 60 + second
            for hour in self._rule.by_hour
            for minute in self._rule.by_minute
            for second in self._rule.by_second
        )
        day = start // DAY_SECONDS
        self._first_week = day - (weekday_of(day) - self._rule.week_start) % WEEK
        self._start_period = self._period(day)
        self._last = NEVER
        if self._never_picks():
            self._last = start - 1
        elif rule.count is not None:
            self._last = self._numbered(rule.count)

    def _never_picks(self) -> bool:
        """Whether BYSETPOS asks for more than any period holds; a search would go on to 2200."""
        days = PERIOD_DAYS.get(self._rule.frequency, 1)
        places = self._rule.by_position
        return bool(places) and min(map(abs, places)) > days * len(self._times)

    def _period(self, day: int) -> int:
        """The number of the year, month, week or day that a day lies in."""
        match self._rule.frequency:
            case "YEARLY":
                return month_of(day) // MONTHS
            case "MONTHLY":
                return month_of(day)
            case "WEEKLY":
                return (day - self._first_week) // WEEK
            case _:
                return day

    def _is_aligned(self, period: int) -> bool:
        return (period - self._start_period) % self._rule.interval == 0

    def after(self, local: int) -> int:
        """The least one later than `local`, or `NEVER`."""
        if self._last < self._start:
            return NEVER
        local = max(local, self._start - 1)
        if self._rule.by_position:
            found = self._after_by_position(local)
        else:
            found = self._after_by_day(local)
        return found if found <= self._last else NEVER

    def _after_by_day(self, local: int) -> int:
        today, second = divmod(local, DAY_SECONDS)
        for day in self._days.since(today):
            if not self._is_aligned(self._period(day)):
                continue
            if day > today:
                return day * DAY_SECONDS + self._times[0]
            index = bisect_right(self._times, second)
            if index < len(self._times):
                return day * DAY_SECONDS + self._times[index]
        return NEVER

    def _after_by_position(self, local: int) -> int:
        for picks in self._periods(local // DAY_SECONDS):
            index = bisect_right(picks, local)
            if index < len(picks):
                return picks[index]
        return NEVER

    def _periods(self, day: int) -> Iterator[tuple[int, ...]]:
        """What BYSETPOS picks in each period, from the period of a day on."""
        first = self._period_start(day)
        done = None
        for allowed in self._days.since(first):
            period = self._period(allowed)
            if period != done and self._is_aligned(period):
                done = period
                yield self._picked(self._group(allowed))

    def _period_start(self, day: int) -> int:
        if self._rule.frequency == "WEEKLY":
            return day - (day - self._first_week) % WEEK
        date = date_of(day)
        if self._rule.frequency == "YEARLY":
            return day - date.timetuple().tm_yday + 1
        return day - date.day + 1 if self._rule.frequency == "MONTHLY" else day

    def _group(self, day: int) -> tuple[int, ...]:
        """The allowed days in the period of a day."""
        first = self._period_start(day)
        date = date_of(first)
        length = PERIOD_DAYS.get(self._rule.frequency, 1)
        days = self._days.within(first, first + length)
        if self._rule.frequency == "YEARLY":
            return tuple(day for day in days if date_of(day).year == date.year)
        if self._rule.frequency == "MONTHLY":
            return tuple(day for day in days if date_of(day).month == date.month)
        return days

    def _picked(self, days: tuple[int, ...]) -> tuple[int, ...]:
        size, times = len(days) * len(self._times), self._times
        indexes = {p - 1 if p > 0 else size + p for p in self._rule.by_position}
        return tuple(
            days[index // len(times)] * DAY_SECONDS + times[index % len(times)]
            for index in sorted(indexes)
            if 0 <= index < size
        )

    def _numbered(self, number: int) -> int:
        """The number-th occurrence from DTSTART, or `NEVER` when there are not so many."""
        if self._rule.by_position:
            left = number
            for picks in self._periods(self._start // DAY_SECONDS):
                kept = picks[bisect_left(picks, self._start) :]
                if len(kept) >= left:
                    return kept[left - 1]
                left -= len(kept)
            return NEVER
        return self._numbered_by_day(number)

    def _numbered_by_day(self, number: int) -> int:
        today, second = divmod(self._start, DAY_SECONDS)
        passed = bisect_left(self._times, second)
        for day in self._days.since(today):
            if not self._is_aligned(self._period(day)):
                continue
            skip = passed if day == today else 0
            if number <= len(self._times) - skip:
                return day * DAY_SECONDS + self._times[skip + number - 1]
            number -= len(self._times) - skip
        return NEVER

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        found: list[int] = []
        while len(found) < limit:
            after = self.after(after)
            if after > until:
                break
            found.append(after)
        return found

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]."""
        after, until = max(after, self._start - 1), min(until, self._last)
        if until <= after:
            return 0
        if self._rule.by_position:
            return len(self.between(after, until, 1 << 30))
        return self._count_until(until, after) - self._count_until(after, after)

    def _count_until(self, until: int, since: int) -> int:
        """How many lie between the first second of the day of `since` and `until`."""
        first, (last, second) = since // DAY_SECONDS, divmod(until, DAY_SECONDS)
        total = 0
        for day in self._days.since(first):
            if day > last:
                break
            if self._is_aligned(self._period(day)):
                total += bisect_right(self._times, second) if day == last else len(self._times)
        return total
