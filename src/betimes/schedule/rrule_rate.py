"""Recurrence rules by the hour, minute or second: fixed rates with filters.

RFC 5545 leaves open what an hourly rule does when the clock jumps, and implementations differ. Here
a stopwatch counts the periods from DTSTART, and the BY parts ask what the wall clock reads at each
candidate. So an hourly job stays hourly on both nights.
"""

from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.placement import EARLIEST, LATEST
from betimes.schedule.rrule import RuleDays, with_defaults
from betimes.schedule.rrule_syntax import Rule
from betimes.schedule.series import Dropped
from betimes.schedule.zone import Zone

QUARTER = 900
"""Seconds: hours are passed over by quarters, so that no half-hour shift is missed."""

UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
STEPS_MAX = 20_000
"""Periods looked at in one search, after whole days, hours and minutes were passed over."""


class RuleRate:
    """The instants of an HOURLY, MINUTELY or SECONDLY rule in a zone; `start` is in seconds."""

    __slots__ = ("_base", "_days", "_in_period", "_last", "_rule", "_start", "_step", "_zone")

    def __init__(self, rule: Rule, start: int, zone: Zone) -> None:
        local = zone.local(start)
        self._rule = with_defaults(rule, local)
        self._days = RuleDays(self._rule)
        self._zone = zone
        self._start = start
        unit = UNITS[rule.frequency]
        self._step = unit * rule.interval
        self._base = start - local % unit
        self._in_period = _expanded(self._rule, local % unit)
        self._last = LATEST
        if rule.count is not None:
            self._last = self._numbered(rule.count)

    def _numbered(self, number: int) -> int:
        found = self.between((self._start - 1) * SECOND, LATEST * SECOND, number)
        return found[-1] // SECOND if len(found) == number else LATEST

    def next(self, after: int) -> int | None:
        """The least one later than `after`."""
        second = max(after // SECOND, self._start - 1, EARLIEST)
        index = max((second - self._base) // self._step, 0)
        steps = STEPS_MAX if self._has_positions() else 0
        for _ in range(steps):
            begin = self._base + index * self._step
            if begin > self._last:
                return None
            for instant in self._kept(begin):
                if second < instant <= self._last:
                    return instant * SECOND
            index = max(index + 1, (self._resume(begin) - self._base) // self._step)
        return None

    def _has_positions(self) -> bool:
        """Whether a period can be long enough for any of the wanted positions."""
        positions = self._rule.by_position
        return not positions or any(abs(p) <= len(self._in_period) for p in positions)

    def _kept(self, begin: int) -> list[int]:
        """The instants of one period that pass all filters and positions."""
        kept = [begin + rest for rest in self._in_period if self._passes(begin + rest)]
        positions = self._rule.by_position
        if not positions:
            return kept
        indexes = {p - 1 if p > 0 else len(kept) + p for p in positions}
        return [kept[index] for index in sorted(indexes) if 0 <= index < len(kept)]

    def _passes(self, instant: int) -> bool:
        rule = self._rule
        day, second = divmod(self._zone.local(instant), DAY_SECONDS)
        if rule.by_hour and second // 3600 not in rule.by_hour:
            return False
        if (
            rule.frequency != "HOURLY"
            and rule.by_minute
            and second // 60 % 60 not in rule.by_minute
        ):
            return False
        if rule.frequency == "SECONDLY" and rule.by_second and second % 60 not in rule.by_second:
            return False
        return day in self._days.within(day, day + 1)

    def _resume(self, begin: int) -> int:
        """An instant before which nothing can pass, found from what the wall clock reads."""
        local = self._zone.local(begin)
        day, second = divmod(local, DAY_SECONDS)
        if not self._days.within(day, day + 1):
            allowed = next(self._days.since(day), None)
            ahead = DAY_SECONDS * (allowed - day) - second if allowed is not None else LATEST
            # An hour short, in case the clock jumps forward on the way.
            return begin + max(ahead - 3 * 3600, 0)
        rule = self._rule
        if rule.by_hour and second // 3600 not in rule.by_hour:
            return begin + QUARTER - second % QUARTER
        if (
            rule.frequency == "SECONDLY"
            and rule.by_minute
            and second // 60 % 60 not in rule.by_minute
        ):
            return begin + 60 - second % 60
        return begin

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """Those in (after, until]."""
        found: list[int] = []
        while len(found) < limit:
            instant = self.next(after)
            if instant is None or instant > until:
                break
            found.append(instant)
            after = instant
        return found

    def count(self, after: int, until: int) -> int:
        """How many lie in (after, until]; UTC days that look alike are counted once."""
        first = max(after // SECOND, self._start - 1)
        last = min(until // SECOND, self._last)
        seen: dict[tuple[int, int, int], int] = {}
        total = 0
        while first < last:
            end = min((first // DAY_SECONDS + 1) * DAY_SECONDS, last)
            look = self._look(first) if end - first == DAY_SECONDS else None
            if look is None:
                total += self._count_plain(first, end)
            else:
                if look not in seen:
                    seen[look] = self._count_plain(first, end)
                total += seen[look]
            first = end
        return total

    def _look(self, first: int) -> tuple[int, int, int] | None:
        """What decides the count of the UTC day after `first`; None when the clock jumps in it."""
        if self._zone.changes(first, first + DAY_SECONDS + 1):
            return None
        offset = self._zone.offset(first + 1)
        day = (first + 1 + offset) // DAY_SECONDS
        spans = sum(bool(self._days.within(day + d, day + d + 1)) << d for d in (0, 1))
        return (first - self._base) % self._step, offset, spans

    def _count_plain(self, after: int, until: int) -> int:
        return len(self.between(after * SECOND, until * SECOND, DAY_SECONDS + 1))

    def flags(self, instant: int) -> tuple[str, ...]:  # noqa: ARG002 -- a stopwatch knows no jump
        """Nothing special happens to a stopwatch."""
        return ()

    def intended(self, instant: int) -> int | None:  # noqa: ARG002 -- as above
        """Nothing is moved."""
        return None

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:  # noqa: ARG002
        """Nothing is denied."""
        return []


def _expanded(rule: Rule, start: int) -> tuple[int, ...]:
    """The seconds inside a period at which candidates lie."""
    if rule.frequency == "SECONDLY":
        return (0,)
    seconds = rule.by_second or (start % 60,)
    if rule.frequency == "MINUTELY":
        return seconds
    minutes = rule.by_minute or (start // 60,)
    return tuple(minute * 60 + second for minute in minutes for second in seconds)
