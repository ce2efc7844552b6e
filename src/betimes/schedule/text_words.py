"""The words of the phrase grammar: times of day, weekdays, months, ordinals."""

import re
from dataclasses import dataclass

from betimes.domain.errors import AmbiguousText, BadSchedule

DAYS = {name: name.upper() for name in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")}
DAY_NAME = (
    r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|wed|thu|fri|sat|sun)"
)
MONTH_NAME = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)"
)
MONTHS = {
    name: number
    for number, name in enumerate(
        (*("jan", "feb", "mar", "apr", "may", "jun"), *("jul", "aug", "sep", "oct", "nov", "dec")),
        start=1,
    )
}
ORDINALS = {
    "first": "1",
    "second": "2",
    "third": "3",
    "fourth": "4",
    "fifth": "5",
    "last": "L",
    "1st": "1",
    "2nd": "2",
    "3rd": "3",
    "4th": "4",
    "5th": "5",
}
ORDINAL = "(?:" + "|".join(ORDINALS) + ")"
NUMBER_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
TIME = r"(?:noon|midnight|[0-9]{1,2}(?::[0-9]{2})?(?: ?[ap]m)?)"
TIMES = rf"{TIME}(?:(?:, and |, | and ){TIME})*"

_SEPARATOR = re.compile(r", and |, | and ")
_CLOCK = re.compile(r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?(?: ?(?P<half>[ap]m))?")
NOON = 12
DAY_HOURS = 24
HOUR_MINUTES = 60
MONTH_DAYS = 31


@dataclass(frozen=True, slots=True, order=True)
class Clock:
    """A time of day."""

    hour: int
    minute: int


def read_times(text: str) -> list[Clock]:
    """Times of day, in order and once each."""
    return sorted({_time(part) for part in _SEPARATOR.split(text)})


def _time(text: str) -> Clock:
    if text in {"noon", "midnight"}:
        return Clock(NOON if text == "noon" else 0, 0)
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise _refusal(text)
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        if not 1 <= hour <= NOON:
            raise _refusal(text)
        hour = hour % NOON + (NOON if found["half"] == "pm" else 0)
    elif found["minute"] is None and 1 <= hour <= NOON:
        choices = (f"{hour}am", f"{hour}pm")
        raise AmbiguousText(
            f"expected a time with one reading, got {text!r}; say {choices[0]} or {choices[1]}",
            alternatives=choices,
            pointer="/expr",
        )
    if hour >= DAY_HOURS or minute >= HOUR_MINUTES:
        raise _refusal(text)
    return Clock(hour, minute)


def _refusal(text: str) -> BadSchedule:
    return BadSchedule(f"expected a time of day such as 9:30 or 5pm, got {text!r}", pointer="/expr")


def weekday_list(text: str) -> str:
    """Names of weekdays as a cron list."""
    names = [DAYS[part[:3]] for part in _SEPARATOR.split(text)]
    return ",".join(dict.fromkeys(names))


def day_list(text: str) -> str:
    """Numbers of days, such as `1st and the 15th`, as a cron list."""
    numbers = [int(re.sub(r"[^0-9]", "", part)) for part in _SEPARATOR.split(text)]
    wrong = [number for number in numbers if not 1 <= number <= MONTH_DAYS]
    if wrong:
        raise BadSchedule(f"expected a day within 1-31, got {wrong[0]}", pointer="/expr")
    return ",".join(str(number) for number in dict.fromkeys(numbers))
