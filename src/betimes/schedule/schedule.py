"""A schedule: what was said, and the one set of instants that follows from it.

Long because every question about a schedule is answered here.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from betimes.domain.errors import BadSchedule, NeverFires, TooLarge
from betimes.domain.job import overlap_default
from betimes.schedule.bounded import BEGINNING, END, Bounded, Union
from betimes.schedule.bounds import DAY, FIRES_MAX, SECOND, UNION_DEPTH_MAX, UNION_MEMBERS_MAX
from betimes.schedule.budget import Budget, OwnBudget
from betimes.schedule.calendar import Calendar, Calendared, CalendarRule
from betimes.schedule.cautions import Warned, warnings
from betimes.schedule.describe import describe
from betimes.schedule.dst import COMPATIBLE
from betimes.schedule.duration import Duration
from betimes.schedule.fire import JITTERED, Drop, Fire, spread
from betimes.schedule.kinds import BUILDERS, Built, Given
from betimes.schedule.members import Catchup, Common, check_members, inside, read_common
from betimes.schedule.moment import (
    moment_text,
    naive_text,
    to_datetime,
    to_instant,
)
from betimes.schedule.placement import LATEST
from betimes.schedule.series import Series
from betimes.schedule.zone import Zone

NO_CALENDARS: Mapping[str, Calendar] = MappingProxyType({})
NTH_LISTED_MAX = 400
NTH_WALK_MAX = 10_000
"""Fires that are listed rather than counted: few, or as many as are not counted exactly."""

SCHEDULE_STEPS = 60
"""What reading one schedule costs, a member of a union included."""

FIRE_STEPS = 2
FIRES_AT_ONCE = 256
"""What telling all about a fire costs, and how many are computed as a block."""


class Schedule:
    """An immutable schedule of one job.

    Equal stored forms and equal seeds mean equal fires, on every node and in every process.
    """

    def __init__(
        self,
        kind: str,
        common: Common,
        built: Built,
        *,
        seed: str,
        members: tuple["Schedule", ...] = (),
        budget: Budget,
    ) -> None:
        self.kind = kind
        self.common = common
        self.built = built
        self.seed = seed
        self.members = members
        series = _calendared(built.series, built.zone, common.calendars)
        self.series = self._limited(series, budget)

    def _limited(self, series: Series, budget: Budget) -> Series:
        """The series within start_at, end_at and max_fires."""
        common = self.common
        first, last = BEGINNING, END
        if common.start_at is not None:
            first = _required(common.start_at.instant(common.zone, COMPATIBLE), "start_at")
        if common.end_at is not None:
            last = _required(common.end_at.instant(common.zone, COMPATIBLE), "end_at")
        if last < first:
            raise BadSchedule("expected end_at not before start_at", pointer="/end_at")
        if common.max_fires is not None:
            last = min(last, nth(Bounded(series, first, last), first - 1, common.max_fires, budget))
        return series if (first, last) == (BEGINNING, END) else Bounded(series, first, last)

    @classmethod
    def from_dict(
        cls,
        source: Mapping[str, object],
        *,
        seed: str = "",
        calendars: Mapping[str, Calendar] = NO_CALENDARS,
        budget: Budget | None = None,
    ) -> "Schedule":
        """Read a stored form: complete, nothing left to be filled in from a clock.

        Raises:
            TooExpensive: reading it takes more steps than the budget has, as everything that a
                schedule is asked does; without a budget, each question has one of its own.

        """
        return _from_dict(source, seed, calendars, depth=0, budget=budget or OwnBudget())

    def to_dict(self) -> dict[str, Any]:
        """The stored form: plain JSON values, only what was said."""
        common = self.common
        found: dict[str, Any] = {"type": self.kind, **self.built.members}
        if self.members:
            found["of"] = [member.to_dict() for member in self.members]
        found["timezone"] = common.zone.name
        for name in ("start_at", "end_at"):
            moment = getattr(common, name)
            if moment is not None:
                found[name] = moment_text(moment)
        for name in ("max_fires", "pause_after_failures"):
            if getattr(common, name) is not None:
                found[name] = getattr(common, name)
        for name in ("jitter", "window"):
            if getattr(common, name):
                found[name] = str(Duration(micros=getattr(common, name)))
        return found | _policies(common)

    @property
    def timezone(self) -> str:
        """The zone as it was given."""
        return self.common.zone.name

    @property
    def zone(self) -> Zone:
        """The zone in which the rule is read."""
        return self.built.zone

    @property
    def catchup(self) -> Catchup:
        """What to do with missed fires."""
        return self.common.catchup

    @property
    def overlap(self) -> str:
        """What to do when the previous run still runs; what fires once does not mind."""
        return self.common.overlap or overlap_default(self.kind)

    @property
    def is_fixed_delay(self) -> bool:
        """Whether the next fire depends on the end of the last run; the one exception."""
        return self.built.delay is not None

    @property
    def is_seeded(self) -> bool:
        """Whether nominal fires depend on the seed (`H` in cron)."""
        return self.built.hashed or any(member.is_seeded for member in self.members)

    @cached_property
    def canonical(self) -> str:
        """The schedule in one line, as it was understood."""
        if self.members:
            inner = " | ".join(f"({member.canonical})" for member in self.members)
            return f"union: {inner}"
        zone = "" if self.kind == "manual" else f" @ {self.timezone}"
        return f"{self.built.canonical}{zone}"

    @cached_property
    def key(self) -> str:
        """A text that is equal for schedules with the same nominal fires; the key of memos."""
        ignored = {"jitter", "window", "catchup", "overlap", "pause_after_failures"}
        told = {name: value for name, value in self.to_dict().items() if name not in ignored}
        seed = self.seed if self.is_seeded else ""
        return json.dumps([told, seed], sort_keys=True, separators=(",", ":"))

    def next_instant(
        self, after: int, last_end: int | None = None, *, budget: Budget | None = None
    ) -> int | None:
        """The least fire later than `after`, in microseconds; see `next`."""
        delay = self.built.delay
        if delay is None or last_end is None:
            return self.series.next(after, budget or OwnBudget())
        found = max(last_end + delay.elapsed(), after + 1)
        return found if self._admits(found) else None

    def _admits(self, instant: int) -> bool:
        """Whether start_at and end_at let a fixed-delay fire pass; the engine counts max_fires."""
        common = self.common
        if common.end_at is None:
            return True
        end = common.end_at.instant(common.zone, COMPATIBLE)
        return end is None or instant <= end

    def next(
        self, after: datetime, *, last_end: datetime | None = None, budget: Budget | None = None
    ) -> Fire | None:
        """The first fire later than `after`, or None.

        For a fixed delay, give the end of the last run: the next fire follows it by the delay.
        """
        budget = budget or OwnBudget()
        if last_end is None:
            found = self.series.next(to_instant(after), budget)
        else:
            found = self.next_instant(to_instant(after), to_instant(last_end), budget=budget)
        return None if found is None else self._fire(found, budget)

    def instants(
        self, after: int, until: int, limit: int = FIRES_MAX, *, budget: Budget | None = None
    ) -> list[int]:
        """The fires in (after, until] as microseconds, the first `limit` of them."""
        return self.series.between(after, until, limit, budget or OwnBudget())

    def fires(
        self,
        after: datetime,
        until: datetime | None = None,
        limit: int = FIRES_MAX,
        *,
        budget: Budget | None = None,
    ) -> Iterator[Fire]:
        """The fires later than `after`, through `until`, the first `limit` of them.

        Without a budget, every block of them has one of its own.
        """
        cursor = to_instant(after)
        end = END if until is None else to_instant(until)
        most = 1
        while limit > 0:
            most = min(most * 4, FIRES_AT_ONCE, limit)
            allowed = budget or OwnBudget()
            found = self.series.between(cursor, end, most, allowed)
            allowed.spend(FIRE_STEPS * len(found))
            for instant in found:
                yield self.fire(instant, budget=allowed)
            if len(found) < most:
                return
            limit -= most
            cursor = found[-1]

    def count(self, after: datetime, until: datetime, *, budget: Budget | None = None) -> int:
        """How many fires lie in (after, until], in bounded work."""
        return self.series.count(to_instant(after), to_instant(until), budget or OwnBudget())

    def fire(self, instant: int, *, budget: Budget | None = None) -> Fire:
        """All that is known about the fire at an instant."""
        return self._fire(instant, budget or OwnBudget())

    def _fire(self, instant: int, budget: Budget) -> Fire:
        nominal = to_datetime(instant)
        zone = self.built.zone
        # `Zone.offset`, written out: this is asked as often as `next` is.
        offset = zone.offsets[bisect_right(zone.starts, instant // SECOND) - 1]
        flags = self.series.flags(instant, budget)
        common = self.common
        if not (common.jitter or common.window):
            return Fire(nominal, nominal, offset, flags)
        effective = self.effective(instant)
        if effective != instant:
            flags = (*flags, JITTERED)
        return Fire(nominal, to_datetime(effective), offset, flags)

    @property
    def moves_starts(self) -> bool:
        """Whether a window or jitter makes runs due at other times than their fires."""
        return bool(self.common.window or self.common.jitter)

    def effective(self, instant: int, seed: str | None = None) -> int:
        """When to start: the window places a job, jitter each of its fires, both by digest.

        A planner that shares one schedule among many jobs gives the seed of each.
        """
        window, jitter = self.common.window, self.common.jitter
        seed = self.seed if seed is None else seed
        placed = spread(seed, "window", window) if window else 0
        shaken = spread(seed, str(instant), jitter) if jitter else 0
        return instant + placed + shaken

    def intended(self, fire: Fire, *, budget: Budget | None = None) -> str | None:
        """The wall clock reading that a fire was moved from by a gap, such as 2026-03-29T02:30."""
        local = self.series.intended(to_instant(fire.nominal), budget or OwnBudget())
        return None if local is None else naive_text(local)

    def dropped(
        self,
        after: datetime,
        until: datetime,
        limit: int = FIRES_MAX,
        *,
        budget: Budget | None = None,
    ) -> list[Drop]:
        """The occurrences in (after, until] that DST or a calendar took away, with reason codes."""
        budget = budget or OwnBudget()
        lost = self.series.dropped(to_instant(after), to_instant(until), limit, budget)
        budget.spend(len(lost))
        return [Drop(to_datetime(d.instant), naive_text(d.local), d.code) for d in lost]

    def describe(self) -> str:
        """The schedule in an English sentence."""
        return describe(self)

    def warnings(self, now: datetime, *, budget: Budget | None = None) -> list[Warned]:
        """What may surprise its author, looking 400 days ahead."""
        return warnings(self, now, budget or OwnBudget())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return self.to_dict() == other.to_dict() and self.seed == other.seed

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Schedule({self.canonical!r})"


def _required(instant: int | None, name: str) -> int:
    if instant is None:
        raise BadSchedule(f"expected {name} at a time that exists", pointer=f"/{name}")
    return instant


def _calendared(series: Series, zone: Zone, rule: CalendarRule) -> Series:
    return Calendared(series, zone, rule) if rule else series


def _policies(common: Common) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if common.dst.to_dict():
        found["dst"] = common.dst.to_dict()
    if common.catchup != Catchup():
        window = str(Duration(micros=common.catchup.window))
        found["catchup"] = {
            "policy": common.catchup.policy,
            "window": window,
            "max": common.catchup.max,
        }
    if common.overlap is not None:
        found["overlap"] = common.overlap
    rule = common.calendars
    if rule:
        found["calendars"] = {
            "include": [calendar.to_dict() for calendar in rule.include],
            "exclude": [calendar.to_dict() for calendar in rule.exclude],
            "roll": rule.roll,
        }
    return found


def _from_dict(
    source: Mapping[str, object],
    seed: str,
    calendars: Mapping[str, Calendar],
    depth: int,
    budget: Budget,
) -> Schedule:
    budget.spend(SCHEDULE_STEPS)
    kind = check_members(source)
    common = read_common(source, calendars, budget)
    if kind == "union":
        return _union(source, common, seed, calendars, depth, budget)
    builder = BUILDERS.get(kind)
    if builder is None:
        raise BadSchedule(
            f"expected a schedule of type {kind} to be resolved by parse() first", pointer="/type"
        )
    built = builder(Given(source, common, seed, budget))
    return _checked(Schedule(kind, common, built, seed=seed, budget=budget), budget)


def _union(
    source: Mapping[str, object],
    common: Common,
    seed: str,
    calendars: Mapping[str, Calendar],
    depth: int,
    budget: Budget,
) -> Schedule:
    entries = source.get("of")
    if not isinstance(entries, list | tuple) or not entries:
        raise BadSchedule("expected `of` as a list of schedules", pointer="/of")
    if len(entries) > UNION_MEMBERS_MAX or depth >= UNION_DEPTH_MAX:
        raise TooLarge(
            f"expected at most {UNION_MEMBERS_MAX} schedules in a union and {UNION_DEPTH_MAX} "
            "unions inside one another",
            pointer="/of",
        )
    members = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise BadSchedule("expected a schedule object in a union", pointer=f"/of/{index}")
        named = {"timezone": common.zone.name, **entry}
        with inside(f"/of/{index}"):
            members.append(_from_dict(named, seed, calendars, depth + 1, budget))
    if any(member.is_fixed_delay for member in members):
        raise BadSchedule("expected no fixed delay inside a union", pointer="/of")
    built = Built(Union(tuple(m.series for m in members)), {}, "", common.zone)
    schedule = Schedule("union", common, built, seed=seed, members=tuple(members), budget=budget)
    return _checked(schedule, budget)


def _checked(schedule: Schedule, budget: Budget) -> Schedule:
    """Refuse a schedule whose own limits or calendars leave it without a fire."""
    if schedule.kind != "manual" and schedule.series.next(BEGINNING, budget) is None:
        raise NeverFires(
            f"expected a schedule that fires at least once, got {schedule.canonical!r}"
        )
    return schedule


def nth(series: Series, after: int, number: int, budget: Budget) -> int:
    """The number-th instant of a series later than `after`, `END` when there are fewer."""
    most = NTH_LISTED_MAX if series.counts_exactly else NTH_WALK_MAX
    first = series.next(after, budget)
    if first is None:
        return END
    low, end = first - 1, LATEST * SECOND
    high = low + DAY
    while number > most:
        # Ever longer spans up to the one it lies in: nothing is counted twice.
        high = min(high, end)
        size = series.count(low, high, budget)
        if size >= number:
            break
        if high == end:
            return END
        low, high, number = high, high + 4 * (high - low), number - size
    while number > most and high - low > 1:
        middle = (low + high) // 2
        size = series.count(low, middle, budget)
        if size < number:
            low, number = middle, number - size
        else:
            high = middle
    found = series.between(low, END, number, budget)
    return found[-1] if len(found) == number else END
