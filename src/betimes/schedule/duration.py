"""Durations: a calendar part (months, days) and an elapsed part (microseconds), never mixed up.

`PT24H` is 24 hours on a stopwatch; `P1D` is the same wall clock a day later, 23 to 25 hours away.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

from betimes.domain.errors import BadSchedule
from betimes.schedule.bounds import DAY, EXPRESSION_LENGTH_MAX, HOUR, MINUTE, SECOND

PERIOD_YEARS_MAX = 200
MONTHS_MAX = PERIOD_YEARS_MAX * 12
DAYS_MAX = PERIOD_YEARS_MAX * 366

NUMBER = r"(?P<{0}>[0-9]{{1,9}}(?:[.,][0-9]{{1,9}})?){1}"
ISO = re.compile(
    "P"
    + "".join(
        f"(?:{NUMBER.format(name, unit)})?"
        for name, unit in [("years", "Y"), ("months", "M"), ("weeks", "W"), ("days", "D")]
    )
    + "(?P<time>T"
    + "".join(
        f"(?:{NUMBER.format(name, unit)})?"
        for name, unit in [("hours", "H"), ("minutes", "M"), ("seconds", "S")]
    )
    + ")?"
)
PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) *([a-z]{1,7})(?: *,? *(?:and +)?)?")
UNITS = {
    "ms": (0, 0, 1000),
    "s": (0, 0, SECOND),
    "m": (0, 0, MINUTE),
    "h": (0, 0, HOUR),
    "d": (0, 1, 0),
    "w": (0, 7, 0),
    "mo": (1, 0, 0),
    "y": (12, 0, 0),
}
NAMES = {
    **{unit: unit for unit in UNITS},
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "min": "m",
    "mins": "m",
    "minute": "m",
    "minutes": "m",
    "hr": "h",
    "hrs": "h",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    "week": "w",
    "weeks": "w",
    "month": "mo",
    "months": "mo",
    "year": "y",
    "years": "y",
}


@dataclass(frozen=True, slots=True)
class Duration:
    """Months and days of the calendar, then elapsed microseconds."""

    months: int = 0
    days: int = 0
    micros: int = 0

    @property
    def is_elapsed(self) -> bool:
        """Whether a stopwatch can measure it."""
        return not (self.months or self.days)

    @property
    def is_zero(self) -> bool:
        """Whether it moves nothing."""
        return not (self.months or self.days or self.micros)

    def elapsed(self, pointer: str = "") -> int:
        """Microseconds, a day being 24 hours; months have no fixed length and are refused."""
        if self.months:
            raise BadSchedule(
                f"expected a duration without months or years, got {self}", pointer=pointer
            )
        return self.days * DAY + self.micros

    def __str__(self) -> str:
        years, months = divmod(self.months, 12)
        hours, rest = divmod(self.micros, HOUR)
        minutes, rest = divmod(rest, MINUTE)
        seconds = f"{Decimal(rest) / SECOND:f}"
        weeks = self.days // 7 if self.days % 7 == 0 and not self.months else 0
        days = 0 if weeks else self.days
        calendar = _joined([(years, "Y"), (months, "M"), (weeks, "W"), (days, "D")])
        clock = _joined([(hours, "H"), (minutes, "M"), (seconds if rest else 0, "S")])
        return f"P{calendar}{'T' if clock else ''}{clock}" if calendar or clock else "PT0S"


def _joined(parts: list[tuple[int | str, str]]) -> str:
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def read_duration(source: object, pointer: str = "") -> Duration:
    """ISO 8601 (`P1DT12H`), short (`1h30m`), words (`2 days`), or a number of seconds."""
    if isinstance(source, int | float) and not isinstance(source, bool):
        return _bounded(_of_seconds(source, pointer), source, pointer)
    if not isinstance(source, str) or len(source) > EXPRESSION_LENGTH_MAX:
        raise _refusal(str(source)[:EXPRESSION_LENGTH_MAX], pointer)
    text = source.strip(" \t")
    found = _iso(text, pointer) if text.startswith("P") else _words(text.lower(), pointer)
    return _bounded(found, source, pointer)


def read_period(source: object, pointer: str = "") -> Duration:
    """A duration that moves forward."""
    found = read_duration(source, pointer)
    if found.is_zero:
        raise BadSchedule(f"expected a period longer than zero, got {source!r}", pointer=pointer)
    return found


def _of_seconds(seconds: float, pointer: str) -> Duration:
    if not 0 <= seconds <= DAYS_MAX * 86_400:  # also refuses NaN, which compares with nothing
        raise _refusal(repr(seconds), pointer)
    return Duration(micros=round(seconds * SECOND))


def _iso(text: str, pointer: str) -> Duration:
    found = ISO.fullmatch(text)
    if found is None or text.endswith("T") or text == "P":
        raise _refusal(text, pointer)
    given = [(name, value) for name, value in found.groupdict().items() if name != "time" and value]
    if any("." in value or "," in value for _, value in given[:-1]):
        raise BadSchedule(
            f"expected a fraction in the last part of a duration only, got {text!r}",
            pointer=pointer,
        )
    units = {"years": "y", "months": "mo", "weeks": "w", "days": "d"} | {
        "hours": "h",
        "minutes": "m",
        "seconds": "s",
    }
    return _total([(value.replace(",", "."), units[name]) for name, value in given], text, pointer)


def _words(text: str, pointer: str) -> Duration:
    parts = PART.findall(text)
    if not parts or PART.sub("", text):
        raise _refusal(text, pointer)
    if any(name not in NAMES for _, name in parts):
        raise _refusal(text, pointer)
    return _total([(number, NAMES[name]) for number, name in parts], text, pointer)


def _total(parts: list[tuple[str, str]], text: str, pointer: str) -> Duration:
    months = days = micros = Decimal(0)
    for number, unit in parts:
        amount = Decimal(number)
        each = UNITS[unit]
        months += amount * each[0]
        days += amount * each[1]
        micros += amount * each[2]
    if months % 1 or days % 1:
        raise BadSchedule(
            f"expected whole days, weeks, months and years, got {text!r}", pointer=pointer
        )
    return Duration(int(months), int(days), int(micros))


def _bounded(found: Duration, source: object, pointer: str) -> Duration:
    if found.months > MONTHS_MAX or found.days > DAYS_MAX or found.micros > DAYS_MAX * DAY:
        raise BadSchedule(
            f"expected a duration of at most {PERIOD_YEARS_MAX} years, got {source!r}",
            pointer=pointer,
        )
    return found


def _refusal(got: str, pointer: str) -> BadSchedule:
    return BadSchedule(
        f"expected a duration such as PT15M, P1D, 1h30m or `2 days`, got {got!r}", pointer=pointer
    )
