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
WHOLE_DAY = (1 << DAY_SECONDS) - 1
COUNT_WALK_MAX = 100_000
"""Instants that counting a rule with positions may visit; beyond it the count is a lower bound."""

STEPS_MAX = 20_000
"""Periods looked at in one search, after whole days, hours and minutes were passed over."""


class RuleRate:
    """The instants of an HOURLY, MINUTELY or SECONDLY rule in a zone; `start` is in seconds."""

    __slots__ = (
        "_base",
        "_days",
        "_in_period",
        "_last",
        "_passing",
        "_rule",
        "_start",
        "_step",
        "_zone",
    )

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
        self._passing = passing(self._rule)
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
        """How many lie in (after, until]: by bit sets of the seconds of a day, not one by one."""
        first = max(after // SECOND, self._start - 1) + 1
        last = min(until // SECOND, self._last)
        if last < first:
            return 0
        if self._rule.by_position:
            return len(self.between((first - 1) * SECOND, last * SECOND, COUNT_WALK_MAX))
        total = 0
        counts: dict[int, int] = {}
        for index in range(self._zone.segment(first), self._zone.segment(last) + 1):
            offset = self._zone.offsets[index]
            low = max(first, self._zone.starts[index]) + offset
            high = min(last + 1, self._zone.ends[index]) + offset
            total += self._count_local(low, high, offset, counts)
        return total

    def _count_local(self, low: int, high: int, offset: int, counts: dict[int, int]) -> int:
        """How many lie in [low, high) on the wall clock, while the offset stays the same."""
        total = 0
        for day in self._days.since(low // DAY_SECONDS):
            midnight = day * DAY_SECONDS
            if midnight >= high:
                break
            phase = (midnight - offset - self._base) % self._step
            begin, end = max(low - midnight, 0), min(high - midnight, DAY_SECONDS)
            if end - begin < DAY_SECONDS:
                part = self._seconds(phase) >> begin & ((1 << (end - begin)) - 1)
                total += part.bit_count()
                continue
            if phase not in counts:
                counts[phase] = self._seconds(phase).bit_count()
            total += counts[phase]
        return total

    def _seconds(self, phase: int) -> int:
        """The seconds of an allowed day that fire, as bits; `phase` is midnight's in the period."""
        aligned = 0
        for rest in self._in_period:
            aligned |= comb((rest - phase) % self._step, self._step)
        return aligned & self._passing

    def flags(self, instant: int) -> tuple[str, ...]:  # noqa: ARG002 -- a stopwatch knows no jump
        """Nothing special happens to a stopwatch."""
        return ()

    def intended(self, instant: int) -> int | None:  # noqa: ARG002 -- as above
        """Nothing is moved."""
        return None

    def dropped(self, after: int, until: int, limit: int) -> list[Dropped]:  # noqa: ARG002
        """Nothing is denied."""
        return []


def comb(first: int, step: int) -> int:
    """Every step-th of the seconds of a day as bits, from the first on."""
    bits, width = 1, step
    while width < DAY_SECONDS:
        bits |= bits << width
        width *= 2
    return bits << first & WHOLE_DAY


def passing(rule: Rule) -> int:
    """The seconds of a day that the BY parts of a rule let pass, as bits."""
    by_second = rule.by_second if rule.frequency == "SECONDLY" else ()
    by_minute = rule.by_minute if rule.frequency != "HOURLY" else ()
    minute = sum(1 << second for second in by_second or range(60))
    hour = sum(minute << 60 * number for number in by_minute or range(60))
    return sum(hour << 3600 * number for number in rule.by_hour or range(24))


def _expanded(rule: Rule, start: int) -> tuple[int, ...]:
    """The seconds inside a period at which candidates lie."""
    if rule.frequency == "SECONDLY":
        return (0,)
    seconds = rule.by_second or (start % 60,)
    if rule.frequency == "MINUTELY":
        return seconds
    minutes = rule.by_minute or (start // 60,)
    return tuple(minute * 60 + second for minute in minutes for second in seconds)
