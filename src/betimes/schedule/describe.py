"""A schedule in English, for people to check what they wrote."""

import re
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING

from betimes.schedule.bounds import SECOND
from betimes.schedule.cron import Cron, members
from betimes.schedule.cron_days import LAST, STARS
from betimes.schedule.cron_dialect import AND
from betimes.schedule.day_times import minutes_of_day
from betimes.schedule.duration import Duration, read_duration

if TYPE_CHECKING:  # the schedule itself offers these functions as methods
    from betimes.schedule.schedule import Schedule

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = tuple(date(2000, month, 1).strftime("%B") for month in range(1, 13))
ORDINALS = ("last", "first", "second", "third", "fourth", "fifth")
TIMES_SHOWN_MAX = 6
WORKING_DAYS = 0b0111110
WEEKEND = 0b1000001
EVERY_WEEKDAY = 0b1111111
EVERY_MONTH = 0b111111111111
HOURS = (1 << 24) - 1
SIXTY = (1 << 60) - 1


def describe(schedule: "Schedule") -> str:
    """One sentence, the zone in parentheses."""
    if schedule.kind == "manual":
        return "Only when asked to run"
    if schedule.members:
        return "; and ".join(describe(member) for member in schedule.members)
    zone = f" ({schedule.timezone})"
    if schedule.built.cron is not None:
        return _cron(schedule.built.cron) + zone
    return _other(schedule) + zone


def _other(schedule: "Schedule") -> str:
    stored = schedule.built.members
    if schedule.kind == "once":
        return f"Once, at {stored['at']}"
    if schedule.kind == "interval":
        every = _duration(read_duration(stored["every"]))
        if schedule.is_fixed_delay:
            return f"{every} after the end of the last run".capitalize()
        return f"Every {every}, counted from {stored['anchor']}"
    name = "Repeating interval" if schedule.kind == "iso8601" else "Recurrence rule"
    return f"{name} {str(stored['expr']).replace(chr(10), ' ')}"


def _duration(duration: Duration) -> str:
    years, months = divmod(duration.months, 12)
    weeks, days = divmod(duration.days, 7)
    minutes, rest = divmod(duration.micros, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    parts = [
        *((years, "year"), (months, "month"), (weeks, "week"), (days, "day")),
        *((hours, "hour"), (minutes, "minute"), (rest / SECOND, "second")),
    ]
    words = [f"{number:g} {unit}{'' if number == 1 else 's'}" for number, unit in parts if number]
    return listed(words).removeprefix("1 ") if len(words) == 1 else listed(words)


def _cron(cron: Cron) -> str:
    days = _days(cron)
    months = _months(cron)
    years = "" if cron.fields.get("year", "*") == "*" else f" in {cron.fields['year']}"
    times = _times(cron)
    if times.startswith("at "):
        sentence = f"{days or 'every day'}{months} {times}{years}"
    else:
        sentence = f"{times}{', ' + days if days else ''}{months}{years}"
    return sentence[0].upper() + sentence[1:]


def _times(cron: Cron) -> str:
    seconds = members(cron.seconds)
    if cron.seconds == SIXTY or len(seconds) > 1:
        pace = _pace(cron.seconds, "second")
        return f"{pace}{_within(cron)}"
    at = f" and {seconds[0]} seconds" if seconds[0] else ""
    clock = minutes_of_day(members(cron.hours), members(cron.minutes))
    if len(clock) <= TIMES_SHOWN_MAX:
        shown = [f"{m // 60:02}:{m % 60:02}" + (f":{seconds[0]:02}" if at else "") for m in clock]
        return f"at {listed(shown)}"
    minutes = members(cron.minutes)
    if len(minutes) == 1 and cron.hours == HOURS:
        return f"every hour at minute {minutes[0]}{at}"
    if len(minutes) == 1:
        return f"{_pace(cron.hours, 'hour')} at minute {minutes[0]}{at}"
    second = f" at second {seconds[0]}" if seconds[0] else ""
    return f"{_pace(cron.minutes, 'minute')}{_of_hours(cron)}{second}"


def _within(cron: Cron) -> str:
    if cron.minutes == SIXTY:
        return _of_hours(cron)
    return f", {_pace(cron.minutes, 'minute')}{_of_hours(cron)}"


def _of_hours(cron: Cron) -> str:
    return "" if cron.hours == HOURS else f", {_pace(cron.hours, 'hour')}"


def _pace(bits: int, unit: str) -> str:
    """Every value, every n-th, a stretch, or a list."""
    values = members(bits)
    width = 24 if unit == "hour" else 60
    if len(values) == width:
        return f"every {unit}"
    steps = {right - left for left, right in pairwise(values)}
    if len(steps) == 1 and len(values) > 2:  # noqa: PLR2004 -- two values make no rhythm
        (step,) = steps
        if values[0] == 0 and values[-1] + step >= width and width % step == 0:
            return f"every {step} {unit}s"
        if step == 1:
            return f"{unit}s {values[0]} through {values[-1]}"
    plural = "" if len(values) == 1 else "s"
    return f"{unit}{plural} {listed([str(value) for value in values])}"


def _days(cron: Cron) -> str:
    by_month, by_week = _month_days(cron), _week_days(cron)
    if by_month and by_week:
        both = "and also only" if cron.day_match == AND else "or"
        return f"{by_month} {both} {by_week}"
    return by_month or by_week


def _month_days(cron: Cron) -> str:
    if cron.fields["day"] in STARS:
        return ""
    days = cron.days
    rhythm = re.fullmatch(r"\*/([0-9]+)", cron.fields["day"])
    if rhythm is not None:
        return f"on every {_ordinal(int(rhythm[1]))} day of the month from day 1"
    words = [f"day {day + 1}" for day in members(days.plain)]
    words += [
        "the last day" if back == 0 else f"{back} days before the last" for back in days.from_end
    ]
    for near in days.nearest:
        if near > 0:
            words.append(f"the weekday nearest day {near}")
        else:
            words.append("the last weekday" if near == -1 else f"the weekday nearest L{near + 1}")
    return f"on {listed(words)} of the month"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number // 10 == 1 else ending}"


def _week_days(cron: Cron) -> str:
    weekdays = cron.weekdays
    if cron.fields["weekday"] in STARS:
        return ""
    named = {WORKING_DAYS: "Monday through Friday", WEEKEND: "Saturday and Sunday"}
    words = []
    if weekdays.plain in named:
        words.append(named[weekdays.plain])
    elif weekdays.plain == EVERY_WEEKDAY:
        words.append("any weekday")
    else:
        words += [WEEKDAYS[number] for number in members(weekdays.plain)]
    words += [
        f"the {ORDINALS[0 if which == LAST else which]} {WEEKDAYS[number]} of the month"
        for number, which in weekdays.nth
    ]
    return f"on {listed(words)}"


def _months(cron: Cron) -> str:
    if cron.months == EVERY_MONTH:
        return ""
    return f" in {listed([MONTHS[index] for index in members(cron.months)])}"


def listed(words: list[str]) -> str:
    """Words with commas and an `and`."""
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
