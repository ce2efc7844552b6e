"""Importing holidays: the dates of an iCalendar file as a calendar.

Every VEVENT counts by its dates: DTSTART (a date or a time, of which the date is taken) through
DTEND, repeated by RRULE within the years asked for. Other components and properties are passed by.
"""

from datetime import timedelta

from betimes.domain.errors import BadSchedule, TooLarge
from betimes.schedule.bounds import (
    CALENDAR_RANGES_MAX,
    CALENDAR_RULES_MAX,
    CALENDAR_TEXT_LENGTH_MAX,
    DAY_SECONDS,
    EVALUATION_STEPS_MAX,
    SECOND,
)
from betimes.schedule.budget import Budget
from betimes.schedule.calendar import Calendar
from betimes.schedule.civil import date_of, day_of
from betimes.schedule.moment import read_moment
from betimes.schedule.rrule import RuleClock
from betimes.schedule.rrule_syntax import read_rule

MICRO_DAY = DAY_SECONDS * SECOND
IMPORT_STEPS_MAX = 20 * EVALUATION_STEPS_MAX
"""Steps that the rules of a whole file may take together; it is read beside the event loop."""

BY_DAY = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")


def import_calendar(
    name: str, text: str, first_year: int, last_year: int, budget: Budget | None = None
) -> Calendar:
    """The dates of all events within some years."""
    if len(text) > CALENDAR_TEXT_LENGTH_MAX:
        raise TooLarge(
            f"expected an iCalendar text of at most {CALENDAR_TEXT_LENGTH_MAX} characters, "
            f"got {len(text)}"
        )
    budget = budget or Budget(IMPORT_STEPS_MAX)
    first, last = day_of(first_year, 1, 1), day_of(last_year, 12, 31)
    ranges: list[str] = []
    events = _events(text)
    if sum("RRULE" in event for event in events) > CALENDAR_RULES_MAX:
        raise TooLarge(f"expected at most {CALENDAR_RULES_MAX} events that repeat in a calendar")
    for event in events:
        ranges += _ranges(event, first, last, budget)
        if len(ranges) > CALENDAR_RANGES_MAX:
            raise TooLarge(f"expected at most {CALENDAR_RANGES_MAX} dates in a calendar")
    return Calendar.of(name, ranges)


def _events(text: str) -> list[dict[str, str]]:
    """The properties of every VEVENT, the parameters of their names cut off."""
    unfolded = text.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "")
    events: list[dict[str, str]] = []
    current: dict[str, str] | None = None
    for line in unfolded.split("\n"):
        head, _, value = line.strip().partition(":")
        name = head.split(";")[0].upper()
        if (name, value.upper()) == ("BEGIN", "VEVENT"):
            current = {}
        elif (name, value.upper()) == ("END", "VEVENT") and current is not None:
            events.append(current)
            current = None
        elif current is not None:
            current[name] = value
    if not events:
        raise BadSchedule("expected an iCalendar text with at least one VEVENT, got none")
    return events


def _ranges(event: dict[str, str], first: int, last: int, budget: Budget) -> list[str]:
    if "DTSTART" not in event:
        raise BadSchedule("expected DTSTART in every VEVENT, got one without")
    start = read_moment(event["DTSTART"]).local // MICRO_DAY
    length = 1
    if "DTEND" in event:
        # An end is exclusive: the last date is that of the microsecond before it.
        length = max((read_moment(event["DTEND"]).local - 1) // MICRO_DAY - start + 1, 1)
    begins = [start]
    if "RRULE" in event:
        rule = read_rule(event["RRULE"], date_too=True)
        if rule.frequency not in BY_DAY:
            raise BadSchedule(
                f"expected dates that repeat by {', '.join(BY_DAY)}, got FREQ={rule.frequency}"
            )
        clock = RuleClock(rule, start * DAY_SECONDS, budget)
        since, until = (first - length) * DAY_SECONDS, last * DAY_SECONDS
        if rule.until is not None:
            until = min(until, rule.until.local // SECOND)
        found = clock.between(since, until, CALENDAR_RANGES_MAX, budget)
        begins = [local // DAY_SECONDS for local in found]
    return [
        f"{date_of(day)}/{date_of(day) + timedelta(days=length - 1)}"
        for day in begins
        if first <= day + length - 1 and day <= last
    ]
