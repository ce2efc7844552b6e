"""Recurrence rules of RFC 5545 from years down to days: a clock of naive local times.

The BY parts limit days (see `rrule_days`) and times; periods (years, months, weeks, days counted
from DTSTART) keep every INTERVAL-th; BYSETPOS then picks positions inside a period. Years are bit
sets of days, so a search or a count costs a step a year, not one a day.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace

from betimes.schedule.bounds import DAY_SECONDS, YEAR_LAST
from betimes.schedule.budget import Budget
from betimes.schedule.civil import MONTHS, WEEK, date_of, month_of, weekday_of
from betimes.schedule.day_times import (
    ClockTimes,
    DayTimes,
    ListedTimes,
    minutes_of_day,
    picked,
)
from betimes.schedule.placement import NEVER
from betimes.schedule.rrule_days import RuleDays
from betimes.schedule.rrule_syntax import Rule
from betimes.schedule.year_days import (
    YEAR_DAYS_MAX,
    block,
    comb,
    kind_of,
    lowest,
    month_spans,
    numbers,
    year_of,
    year_start,
)


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


@dataclass(frozen=True, slots=True)
class Picks:
    """What BYSETPOS picks in the periods that begin in one year, in seconds since its first day.

    `groups` pairs the first second of a period with what is picked in it.
    """

    groups: tuple[tuple[int, tuple[int, ...]], ...]
    total: int


class RuleClock:
    """The naive local seconds of a rule with FREQ of DAILY or longer."""

    __slots__ = (
        "_days",
        "_first_week",
        "_known",
        "_last",
        "_picked",
        "_picks",
        "_places",
        "_rule",
        "_start",
        "_start_period",
        "_times",
    )

    def __init__(self, rule: Rule, start: int, budget: Budget) -> None:
        self._rule = with_defaults(rule, start)
        self._start = start
        self._days = RuleDays(self._rule)
        self._places = self._rule.by_position
        self._times: DayTimes = ClockTimes(
            minutes_of_day(self._rule.by_hour, self._rule.by_minute), self._rule.by_second
        )
        if rule.frequency == "DAILY" and self._places:
            budget.spend(len(self._places))
            places = picked(self._places, self._times.size)
            self._times = ListedTimes(tuple(self._times.at(index) for index in places))
            self._places = ()
        day = start // DAY_SECONDS
        self._first_week = day - (weekday_of(day) - self._rule.week_start) % WEEK
        self._start_period = self._period(day)
        self._known: dict[int, int] = {}
        self._picks: dict[tuple[int, bool], Picks] = {}
        self._picked: dict[int, tuple[int, ...]] = {}
        self._last = NEVER
        if self._never_picks():
            self._last = start - 1
        elif rule.count is not None:
            self._last = self._numbered(rule.count, budget)

    def _never_picks(self) -> bool:
        """Whether BYSETPOS asks for more than any period holds; a search would go on to 2200."""
        if not self._times.size:
            return True
        days = PERIOD_DAYS.get(self._rule.frequency, 1)
        places = self._places
        return bool(places) and min(map(abs, places)) > days * self._times.size

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

    def _days_of(self, year: int, budget: Budget) -> int:
        """The days of a year that the rule allows, in every INTERVAL-th period."""
        found = self._known.get(year)
        if found is None:
            budget.spend(2)
            found = self._days.of_year(year, budget)
            if found and self._rule.interval > 1:
                found &= self._aligned(year)
            self._known[year] = found
        return found

    def _aligned(self, year: int) -> int:
        """The days of a year that lie in every INTERVAL-th period from DTSTART."""
        interval, first = self._rule.interval, year_start(year)
        match self._rule.frequency:
            case "YEARLY":
                away = self._period(first) - self._start_period
                return 0 if away % interval else block(0, YEAR_DAYS_MAX)
            case "MONTHLY":
                spans = month_spans(kind_of(year).leap)
                skipped = (self._start_period - self._period(first)) % interval
                months = [spans[index] for index in range(skipped, MONTHS, interval)]
                return sum(block(begin, begin + length) for begin, length in months)
            case "WEEKLY":
                cycle = WEEK * interval
                place = (first - self._first_week) % cycle
                bits = block(0, WEEK - place)
                if cycle - place < YEAR_DAYS_MAX:
                    bits |= comb(block(0, WEEK), cycle, YEAR_DAYS_MAX) << (cycle - place)
                return bits & block(0, YEAR_DAYS_MAX)
            case _:
                return comb(1 << (self._start_period - first) % interval, interval, YEAR_DAYS_MAX)

    def dates(self, year: int, budget: Budget) -> int:
        """The dates of a year, as bits from 1 January on."""
        return self._days_of(year, budget)

    def after(self, local: int, budget: Budget) -> int:
        """The least one later than `local`, or `NEVER`."""
        if self._last < self._start:
            return NEVER
        local = max(local, self._start - 1)
        if local >= self._last:
            return NEVER
        found = self._first_after(local, budget)
        return found if found <= self._last else NEVER

    def _first_after(self, local: int, budget: Budget) -> int:
        if self._places:
            found = self._between_picks(local, NEVER, 1, budget)
            return found[0] if found else NEVER
        today, second = divmod(local, DAY_SECONDS)
        year = year_of(today)
        first = year_start(year)
        rest = self._days_of(year, budget) >> (today - first)
        if rest & 1:
            index = self._times.through(second)
            if index < self._times.size:
                return today * DAY_SECONDS + self._times.at(index)
        rest >>= 1
        day = today + 1
        while not rest:
            year += 1
            if year > YEAR_LAST:
                return NEVER
            budget.spend(1)
            rest, day = self._days_of(year, budget), year_start(year)
        return (day + lowest(rest)) * DAY_SECONDS + self._times.at(0)

    def between(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        """Those in (after, until]."""
        after, until = max(after, self._start - 1), min(until, self._last)
        if until <= after or self._last < self._start:
            return []
        if self._places:
            return self._between_picks(after, until, limit, budget)
        found: list[int] = []
        (first, begin), (last, end) = divmod(after, DAY_SECONDS), divmod(until, DAY_SECONDS)
        times = self._times
        for year in range(year_of(first), min(_year_through(last), YEAR_LAST) + 1):
            begins = year_start(year)
            bits = self._days_of(year, budget) & block(first - begins, last - begins + 1)
            budget.spend(1)
            while bits and len(found) < limit:
                day = begins + lowest(bits)
                bits &= bits - 1
                low = times.through(begin) if day == first else 0
                high = times.through(end) if day == last else times.size
                high = min(high, low + limit - len(found))
                budget.spend_on(high - low)
                midnight = day * DAY_SECONDS
                found += [midnight + time for time in times.span(low, high)]
            if len(found) >= limit:
                break
        return found

    def count(self, after: int, until: int, budget: Budget) -> int:
        """How many lie in (after, until]."""
        after, until = max(after, self._start - 1), min(until, self._last)
        if until <= after or self._last < self._start:
            return 0
        if self._places:
            return self._count_picks(after, until, budget)
        (first, begin), (last, end) = divmod(after, DAY_SECONDS), divmod(until, DAY_SECONDS)
        days = 0
        total = 0
        for year in range(year_of(first), min(_year_through(last), YEAR_LAST) + 1):
            begins = year_start(year)
            bits = self._days_of(year, budget)
            budget.spend(1)
            if begins <= first < begins + YEAR_DAYS_MAX and bits >> (first - begins) & 1:
                total -= self._times.through(begin)
            if begins <= last < begins + YEAR_DAYS_MAX and bits >> (last - begins) & 1:
                total += self._times.through(end)
            days += (bits & block(first - begins, last - begins)).bit_count()
        return total + days * self._times.size

    def _numbered(self, number: int, budget: Budget) -> int:
        """The number-th occurrence from DTSTART, or `NEVER` when there are not so many."""
        day, second = divmod(self._start, DAY_SECONDS)
        if self._places:
            return self._numbered_pick(number, budget)
        for year in range(year_of(day), YEAR_LAST + 1):
            begins = year_start(year)
            budget.spend(1)
            bits = self._days_of(year, budget) & block(day - begins, YEAR_DAYS_MAX)
            size = bits.bit_count() * self._times.size
            if begins <= day and bits >> (day - begins) & 1:
                # Those of the first day before DTSTART do not count: begin with them.
                number += self._times.through(second - 1)
            if number <= size:
                index, time = divmod(number - 1, self._times.size)
                return (begins + numbers(bits)[index]) * DAY_SECONDS + self._times.at(time)
            number -= size
        return NEVER

    # BYSETPOS: what is picked in the periods of a year, kept for every shape a year can have.

    def _picks_of(self, year: int, budget: Budget) -> Picks:
        """What is picked in the periods that begin in a year, after its first day."""
        budget.spend(2)
        leap = kind_of(year).leap
        bits = self._days_of(year, budget)
        if self._rule.frequency == "WEEKLY":
            begin, end = self._week_edge(year), self._week_edge(year + 1)
            following = self._days_of(year + 1, budget)
            bits = bits >> begin | (following & block(0, end)) << (365 + leap - begin)
        found = self._picks.get((bits, leap))
        if found is None:
            groups = [
                (first * DAY_SECONDS, self._picks_in(bits >> first & block(0, length), budget))
                for first, length in self._periods(leap=leap)
            ]
            kept = tuple(group for group in groups if group[1])
            found = Picks(kept, sum(len(picks) for _, picks in kept))
            self._picks[bits, leap] = found
        return found

    def _base(self, year: int) -> int:
        """The first second of the first period that begins in a year."""
        edge = self._week_edge(year) if self._rule.frequency == "WEEKLY" else 0
        return (year_start(year) + edge) * DAY_SECONDS

    def _week_edge(self, year: int) -> int:
        """How many days after 1 January the first week begins that begins in a year."""
        return (self._rule.week_start - kind_of(year).first) % WEEK

    def _periods(self, *, leap: bool) -> list[tuple[int, int]]:
        """The first day and the length of each period of a year."""
        if self._rule.frequency == "YEARLY":
            return [(0, 365 + leap)]
        if self._rule.frequency == "MONTHLY":
            return list(month_spans(leap))
        return [(first, WEEK) for first in range(0, YEAR_DAYS_MAX + WEEK, WEEK)]

    def _picks_in(self, days: int, budget: Budget) -> tuple[int, ...]:
        """The seconds that BYSETPOS picks in a period with these days."""
        found = self._picked.get(days)
        if found is None:
            budget.spend(2 + len(self._places) // 2)
            listed, times = numbers(days), self._times
            size = times.size
            indexes = picked(self._places, len(listed) * size)
            found = self._picked[days] = tuple(
                listed[index // size] * DAY_SECONDS + times.at(index % size) for index in indexes
            )
        return found

    def _first_year(self, local: int) -> int:
        """The year in which the period of a local time begins."""
        day = local // DAY_SECONDS
        if self._rule.frequency == "WEEKLY":
            day -= (day - self._first_week) % WEEK
        return year_of(day)

    def _between_picks(self, after: int, until: int, limit: int, budget: Budget) -> list[int]:
        found: list[int] = []
        for year in range(self._first_year(after), YEAR_LAST + 1):
            base = self._base(year)
            if base > until or len(found) >= limit:
                break
            for begin, picks in self._picks_of(year, budget).groups:
                first = base + begin
                if first + picks[-1] <= after:
                    continue
                if first > until or len(found) >= limit:
                    break
                low, high = bisect_right(picks, after - first), bisect_right(picks, until - first)
                found += [first + pick for pick in picks[low:high]]
                budget.spend_on(high - low)
        return found[:limit]

    def _count_picks(self, after: int, until: int, budget: Budget) -> int:
        total = 0
        for year in range(self._first_year(after), self._first_year(until) + 1):
            picks = self._picks_of(year, budget)
            base = self._base(year)
            if after < base and base + (YEAR_DAYS_MAX + WEEK) * DAY_SECONDS <= until:
                total += picks.total
                continue
            budget.spend(len(picks.groups) // 2)
            for begin, found in picks.groups:
                first = base + begin
                total += bisect_right(found, until - first) - bisect_right(found, after - first)
        return total

    def _numbered_pick(self, number: int, budget: Budget) -> int:
        first = self._first_year(self._start)
        # Those of the first period before DTSTART do not count: begin with them.
        number += self._count_picks(self._base(first) - 1, self._start - 1, budget)
        for year in range(first, YEAR_LAST + 1):
            picks = self._picks_of(year, budget)
            if number > picks.total:
                number -= picks.total
                continue
            for begin, found in picks.groups:
                if number <= len(found):
                    return self._base(year) + begin + found[number - 1]
                number -= len(found)
        return NEVER


def _year_through(day: int) -> int:
    """The year of a day, which may lie beyond the table."""
    return YEAR_LAST if day >= year_start(YEAR_LAST + 1) else year_of(day)
