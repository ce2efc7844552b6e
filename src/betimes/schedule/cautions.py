"""Warnings: a schedule that is fine to store and may still surprise its author."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.budget import Budget
from betimes.schedule.cron import Cron, day_fields_both_set, members
from betimes.schedule.cron_dialect import AND
from betimes.schedule.moment import naive_text, to_datetime, to_instant, to_local
from betimes.schedule.placement import GAP_SHIFTED, OVERLAP_FIRST, OVERLAP_SECOND
from betimes.schedule.zone import REACH

if TYPE_CHECKING:  # the schedule itself offers these functions as methods
    from betimes.schedule.schedule import Schedule

LOOKAHEAD = timedelta(days=400)
FREQUENT_GAP_MICROS = 60 * SECOND
SHORTEST_MONTH = 28
FIRES_NEAR_MAX = 200
FLAG_STEPS = 3
"""What looking at a fire near a jump costs."""


class Warned(NamedTuple):
    """What may surprise, when, and why."""

    code: str
    at: datetime | None
    detail: str


def warnings(schedule: "Schedule", now: datetime, budget: Budget) -> list[Warned]:
    """Everything worth saying before saving, looking 400 days ahead."""
    if schedule.kind == "manual" or schedule.is_fixed_delay:
        return []
    found = _never(schedule, now, budget)
    if schedule.built.cron is not None:
        for check in CRON_CHECKS:
            found += check(schedule.built.cron)
    found += _too_frequent(schedule, now, budget)
    return found + _jumps(schedule, now, budget)


def _never(schedule: "Schedule", now: datetime, budget: Budget) -> list[Warned]:
    if schedule.next_instant(to_instant(now), budget=budget) is not None:
        return []
    return [Warned("never_fires", None, "no fire lies in the future")]


def _day_fields(cron: Cron) -> list[Warned]:
    if not day_fields_both_set(cron):
        return []
    stepped = any(cron.fields[name].startswith("*") for name in ("day", "weekday"))
    rule = "both must match" if cron.day_match == AND else "either one is enough"
    detail = f"day of month and day of week are both set: {rule}"
    if stepped and cron.day_match != AND:
        detail += "; cron daemons read a stepped star as `both must match`"
    return [Warned("day_fields_both_set", None, detail)]


def _short_months(cron: Cron) -> list[Warned]:
    days = [day + 1 for day in members(cron.days.plain) if day + 1 > SHORTEST_MONTH]
    days += [day for day in cron.days.nearest if day > SHORTEST_MONTH]
    if cron.days.any or not days or cron.days.plain.bit_count() > 15:  # noqa: PLR2004 -- half a month is a rhythm, not a date
        return []
    text = ", ".join(str(day) for day in sorted(set(days)))
    return [Warned("short_months", None, f"day {text} is missing in some months; the last is `L`")]


def _uneven(cron: Cron) -> list[Warned]:
    """A step that does not divide its field restarts with a short interval."""
    found = []
    for name, width in (("second", 60), ("minute", 60), ("hour", 24)):
        text = cron.fields.get(name, "")
        step = text.removeprefix("*/")
        if text.startswith("*/") and step.isdigit() and width % int(step):
            detail = f"{text} does not divide {width} {name}s evenly: the last interval is shorter"
            found.append(Warned("uneven_step", None, detail))
    return found


CRON_CHECKS: tuple[Callable[[Cron], list[Warned]], ...] = (_day_fields, _short_months, _uneven)


def _too_frequent(schedule: "Schedule", now: datetime, budget: Budget) -> list[Warned]:
    first = schedule.next_instant(to_instant(now), budget=budget)
    second = None if first is None else schedule.next_instant(first, budget=budget)
    if first is None or second is None or second - first >= FREQUENT_GAP_MICROS:
        return []
    pause = (second - first) / SECOND
    detail = f"fires {pause:g} s apart; a job that runs longer will overlap itself"
    return [Warned("too_frequent", to_datetime(first), detail)]


def _jumps(schedule: "Schedule", now: datetime, budget: Budget) -> list[Warned]:
    """Fires and losses around the changes of the clock in the next 400 days."""
    start = to_instant(now) // SECOND
    until = to_instant(now + LOOKAHEAD) // SECOND
    found: list[Warned] = []
    for index in schedule.zone.changes(start, until):
        found += _around(schedule, schedule.zone.starts[index], budget)
    return found


def _around(schedule: "Schedule", change: int, budget: Budget) -> list[Warned]:
    after, until = (change - REACH) * SECOND, (change + REACH) * SECOND
    drops = schedule.series.dropped(after, until, FIRES_NEAR_MAX, budget)
    found = [
        Warned(
            "dst_gap",
            to_datetime(drop.instant),
            f"{naive_text(drop.local)} does not exist: skipped",
        )
        for drop in drops
        if drop.code == "DST_GAP_SKIPPED"
    ][:1]
    near = schedule.instants(
        (change - DAY_SECONDS // 4) * SECOND,
        (change + DAY_SECONDS // 4) * SECOND,
        FIRES_NEAR_MAX,
        budget=budget,
    )
    for instant in near:
        budget.spend(FLAG_STEPS)
        flags = schedule.series.flags(instant, budget)
        if not flags:
            continue
        at = to_datetime(instant)
        local = to_local(instant, schedule.zone)
        if GAP_SHIFTED in flags:
            intended = schedule.series.intended(instant, budget)
            named = "" if intended is None else naive_text(intended)
            found.append(Warned("dst_gap", at, f"{named} does not exist: runs at {local:%H:%M}"))
        elif OVERLAP_SECOND in flags and not any(w.code == "dst_overlap" for w in found):
            found.append(Warned("dst_overlap", at, f"{local:%Y-%m-%d %H:%M} comes twice"))
        elif OVERLAP_FIRST in flags and any(d.code == "DST_OVERLAP_MERGED" for d in drops):
            found.append(
                Warned("dst_overlap", at, f"{local:%Y-%m-%d %H:%M} comes twice: runs once")
            )
            break
    return found
