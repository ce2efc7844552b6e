"""Plain words: a closed list of English phrases, each with exactly one reading.

A phrase becomes members of another kind (cron, interval, once, delay), and that canonical form is
what is stored and echoed. What can be read in two ways is refused with the alternatives named.
The grammar is written down in the reference of the schedule language.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from betimes.domain.errors import AmbiguousText, BadSchedule, TooLarge
from betimes.schedule.bounds import EXPRESSION_LENGTH_MAX
from betimes.schedule.text_words import (
    DAY_NAME,
    DAYS,
    MONTH_NAME,
    MONTHS,
    NUMBER_DAY,
    ORDINAL,
    ORDINALS,
    TIMES,
    Clock,
    day_list,
    read_times,
    weekday_list,
)

Members = dict[str, object]
EVERY_MONTH = r"(?:of (?:the|every|each) month|every month|each month|monthly)"
MINUTES = 60
STEPS = {"second": 60, "minute": 60, "hour": 24}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A pattern and what it means; `now` is the local wall clock, for phrases that need it."""

    pattern: re.Pattern[str]
    meaning: Callable[[re.Match[str], datetime | None], Members]


def read_text(text: str, now: datetime | None = None) -> Members:
    """The members that a phrase stands for."""
    if len(text) > EXPRESSION_LENGTH_MAX:
        raise TooLarge(
            f"expected at most {EXPRESSION_LENGTH_MAX} characters, got {len(text)}",
            pointer="/expr",
        )
    if not text.isascii():
        raise BadSchedule(f"expected plain ASCII words, got {text!r}", pointer="/expr")
    plain = re.sub(r"[ \t]+", " ", text.strip(" \t").lower()).rstrip(".")
    _refuse_ambiguous(plain, now)
    for phrase in PHRASES:
        found = phrase.pattern.fullmatch(plain)
        if found is not None:
            _refuse_bare_hours(found)
            return phrase.meaning(found, now)
    raise BadSchedule(
        "expected a phrase such as `every weekday at 9:30`, `every 15 minutes`, `first monday of "
        f"the month at noon` or `in 2 hours`, got {text!r}",
        pointer="/expr",
    )


AMBIGUOUS = (
    (r"every other day.*", ("every P2D", "0 9 */2 * *")),
    (r"(?:biweekly|bi-weekly|fortnightly|every other week).*", ("every P2W", "0 9 * * MON,THU")),
    (r"(?:bimonthly|bi-monthly|every other month).*", ("every P2M", "0 9 1,15 * *")),
    (r"(?:weekly|every week)", ("every monday at 9:00", "@weekly")),
    (r"(?:monthly|every month)", ("on the 1st of every month at 9:00", "@monthly")),
    (r"(?:yearly|annually|every year)", ("every year on 1 january at 9:00", "@yearly")),
    (r"(?:daily|every day)", ("every day at 9:00", "@daily")),
    (r"(?:every weekday|weekdays)", ("every weekday at 9:00", "0 0 * * MON-FRI")),
    (r"every weekend", ("every weekend at 9:00", "0 0 * * SAT,SUN")),
    (rf"(?:on |every )?(?P<day>{DAY_NAME})s?", ("every {day} at 9:00", "0 0 * * {short}")),
)
"""Phrases with two readings, and lines with one that may have been meant."""
BETWEEN = ("*/15 9-16 * * *", "*/15 9-17 * * *")
ONE_DAY = re.compile(rf"(?:on |next |this )?(?P<day>{DAY_NAME}) at (?P<times>{TIMES})")
BARE_HOUR = re.compile(r"(?<![0-9:])(1[0-2]|[1-9])(?![0-9:]| ?[ap]m)")


def _refuse_ambiguous(text: str, now: datetime | None) -> None:
    for pattern, lines in AMBIGUOUS:
        if found := re.fullmatch(pattern, text):
            day = found.groupdict().get("day") or ""
            told = {"day": day, "short": day[:3].upper()}
            raise _ambiguous(text, tuple(line.format(**told) for line in lines))
    if re.search(r"\bbetween\b", text):
        raise _ambiguous(text, BETWEEN, are_readings=False)
    if found := ONE_DAY.fullmatch(text):
        raise _ambiguous(text, _every_or_once(found["day"], found["times"], now))


def _refuse_bare_hours(found: re.Match[str]) -> None:
    """A `9` may be morning or evening: said with both lines."""
    times = found.groupdict().get("times")
    if times is None or not BARE_HOUR.search(times):
        return
    begin, end = found.start("times"), found.end("times")
    whole = found.string
    halves = (BARE_HOUR.sub(rf"\1{half}", times) for half in ("am", "pm"))
    raise _ambiguous(whole, tuple(f"{whole[:begin]}{half}{whole[end:]}" for half in halves))


def _every_or_once(day: str, times: str, now: datetime | None) -> tuple[str, ...]:
    """A weekday with a time: each week, or the next time it comes."""
    certain = BARE_HOUR.sub(r"\1am", times)
    every, first = f"every {day} at {certain}", read_times(certain)[0]
    if now is None:
        return (every,)
    number = list(DAYS).index(day[:3])
    ahead = (number - now.weekday()) % 7
    on = now.replace(hour=first.hour, minute=first.minute, second=0, microsecond=0)
    on += timedelta(days=ahead if ahead or on > now else 7)
    return every, on.isoformat(timespec="minutes")


def _ambiguous(
    text: str, alternatives: tuple[str, ...], *, are_readings: bool = True
) -> AmbiguousText:
    return AmbiguousText(
        f"expected a phrase with one reading, got {text!r}; say for example "
        + " or ".join(f"`{choice}`" for choice in alternatives),
        alternatives=alternatives,
        pointer="/expr",
        are_readings=are_readings,
    )


def _cron(times: list[Clock], day: str = "*", month: str = "*", weekday: str = "*") -> Members:
    """One cron expression, or a union of them when the minutes differ."""
    minutes = sorted({clock.minute for clock in times})
    parts = [
        (minute, ",".join(str(c.hour) for c in times if c.minute == minute)) for minute in minutes
    ]
    crons = [f"{minute} {hours} {day} {month} {weekday}" for minute, hours in parts]
    if len(crons) == 1:
        return {"type": "cron", "expr": crons[0]}
    return {"type": "union", "of": [{"type": "cron", "expr": cron} for cron in crons]}


def _step(found: re.Match[str], _: datetime | None) -> Members:
    number, unit = int(found["number"] or 1), found["unit"]
    if number == 0 or STEPS[unit] % number:
        letter = unit[0]
        alternatives = (f"every {number}{letter}",)
        raise AmbiguousText(
            f"expected a number of {unit}s that divides {STEPS[unit]}, got {number}; "
            f"for a fixed rate say `every {number}{letter}`",
            alternatives=alternatives,
            pointer="/expr",
        )
    star = "*" if number == 1 else f"*/{number}"
    if STEPS[unit] == number:
        star = "0"
    patterns = {"second": f"{star} * * * * *", "minute": f"{star} * * * *"}
    return {"type": "cron", "expr": patterns.get(unit, f"0 {star} * * *")}


def _past_hour(found: re.Match[str], _: datetime | None) -> Members:
    minute = int(found["minute"])
    if minute >= MINUTES:
        raise BadSchedule(f"expected a minute within 0-59, got {minute}", pointer="/expr")
    return {"type": "cron", "expr": f"{minute} * * * *"}


def _daily(found: re.Match[str], _: datetime | None) -> Members:
    return _cron(read_times(found["times"]))


def _working_days(found: re.Match[str], _: datetime | None) -> Members:
    return _cron(read_times(found["times"]), weekday="MON-FRI")


def _weekend(found: re.Match[str], _: datetime | None) -> Members:
    return _cron(read_times(found["times"]), weekday="SAT,SUN")


def _weekdays(found: re.Match[str], _: datetime | None) -> Members:
    return _cron(read_times(found["times"]), weekday=weekday_list(found["days"]))


def _weekday_range(found: re.Match[str], _: datetime | None) -> Members:
    first, last = DAYS[found["first"][:3]], DAYS[found["last"][:3]]
    return _cron(read_times(found["times"]), weekday=f"{first}-{last}")


def _nth_weekday(found: re.Match[str], _: datetime | None) -> Members:
    which, day = ORDINALS[found["which"]], DAYS[found["day"][:3]]
    mark = f"{day}#L" if which == "L" else f"{day}#{which}"
    return _cron(read_times(found["times"]), weekday=mark)


def _end_day(found: re.Match[str], _: datetime | None) -> Members:
    marks = {"last day": "L", "first day": "1", "last weekday": "LW", "first weekday": "1W"}
    return _cron(read_times(found["times"]), day=marks[found["which"]])


def _quarter(found: re.Match[str], _: datetime | None) -> Members:
    if found["which"] == "first":
        return _cron(read_times(found["times"]), day="1", month="1,4,7,10")
    return _cron(read_times(found["times"]), day="L", month="3,6,9,12")


def _month_days(found: re.Match[str], _: datetime | None) -> Members:
    return _cron(read_times(found["times"]), day=day_list(found["days"]))


def _yearly(found: re.Match[str], _: datetime | None) -> Members:
    month = str(MONTHS[(found["month"] or found["month_b"])[:3]])
    day = day_list(found["day"] or found["day_b"])
    return _cron(read_times(found["times"]), day=day, month=month)


def _once(found: re.Match[str], now: datetime | None) -> Members:
    clock = _single(found["times"])
    month = MONTHS[(found["month"] or found["month_b"])[:3]]
    day = int(day_list(found["day"] or found["day_b"]))
    if found["year"]:
        return _at(int(found["year"]), month, day, clock)
    today = _needed(now)
    for year in range(today.year, today.year + 9):
        try:
            moment = datetime(year, month, day, clock.hour, clock.minute)  # noqa: DTZ001 -- a wall clock reading
        except ValueError:
            continue
        if moment > today:
            return {"type": "once", "at": moment.isoformat()}
    raise BadSchedule(f"expected a date that exists, got {day} of month {month}", pointer="/expr")


def _near_day(found: re.Match[str], now: datetime | None) -> Members:
    clock = _single(found["times"])
    today = _needed(now).date() + timedelta(days=found["day"] == "tomorrow")
    return _at(today.year, today.month, today.day, clock)


def _at(year: int, month: int, day: int, clock: Clock) -> Members:
    try:
        on = date(year, month, day)
    except ValueError:
        raise BadSchedule(
            f"expected a date that exists, got {year}-{month}-{day}", pointer="/expr"
        ) from None
    return {"type": "once", "at": f"{on.isoformat()}T{clock.hour:02}:{clock.minute:02}:00"}


def _single(text: str) -> Clock:
    times = read_times(text)
    if len(times) != 1:
        raise BadSchedule(f"expected one time of day, got {text!r}", pointer="/expr")
    return times[0]


def _needed(now: datetime | None) -> datetime:
    if now is None:
        raise BadSchedule("expected the current time to read this phrase with", pointer="/expr")
    return now


def _delay(found: re.Match[str], _: datetime | None) -> Members:
    return {"type": "delay", "after": found["duration"]}


def _phrase(pattern: str, meaning: Callable[[re.Match[str], datetime | None], Members]) -> Phrase:
    return Phrase(re.compile(pattern), meaning)


_A_DATE = (
    rf"(?:(?:the )?(?P<day>{NUMBER_DAY}) (?:of )?(?P<month>{MONTH_NAME})"
    rf"|(?P<month_b>{MONTH_NAME}) (?:the )?(?P<day_b>{NUMBER_DAY}))"
)
_AT = rf"at (?P<times>{TIMES})"
_DAYS = rf"(?P<days>{DAY_NAME}s?(?:(?:, and |, | and ){DAY_NAME}s?)*)"
_NUMBERS = rf"(?P<days>{NUMBER_DAY}(?:(?:, and |, | and )(?:the )?{NUMBER_DAY})*)"

PHRASES = (
    _phrase(r"every (?:(?P<number>[0-9]{1,4}) )?(?P<unit>second|minute|hour)s?", _step),
    _phrase(r"(?P<number>)(?P<unit>hour)ly", _step),
    _phrase(
        r"(?:every hour|hourly) at (?::|minute )?(?P<minute>[0-9]{1,2})(?: minutes?)?(?: past)?",
        _past_hour,
    ),
    _phrase(rf"(?:every day|each day|daily) {_AT}", _daily),
    _phrase(rf"{_AT} (?:every day|each day|daily)", _daily),
    _phrase(
        rf"(?:on )?(?:every |each )?(?:weekdays?|workdays?|working days?) {_AT}", _working_days
    ),
    _phrase(rf"(?:on )?(?:every |each )?weekends? {_AT}", _weekend),
    _phrase(
        rf"(?:every|each) (?P<first>{DAY_NAME}) (?:to|through) (?P<last>{DAY_NAME}) {_AT}",
        _weekday_range,
    ),
    _phrase(
        rf"(?P<first>{DAY_NAME}) ?(?:to|through|-) ?(?P<last>{DAY_NAME}) {_AT}", _weekday_range
    ),
    _phrase(rf"(?:on )?(?:every|each) {_DAYS} {_AT}", _weekdays),
    _phrase(rf"(?:on )?(?P<days>{DAY_NAME}s(?:(?:, and |, | and ){DAY_NAME}s)*) {_AT}", _weekdays),
    _phrase(rf"{_AT} (?:on )?(?:every|each) {_DAYS}", _weekdays),
    _phrase(
        rf"(?:on )?(?:the )?(?P<which>{ORDINAL}) (?P<day>{DAY_NAME}) {EVERY_MONTH} {_AT}",
        _nth_weekday,
    ),
    _phrase(
        rf"(?:on )?(?:the )?(?P<which>(?:first|last) (?:day|weekday)) {EVERY_MONTH} {_AT}", _end_day
    ),
    _phrase(
        rf"(?:on )?(?:the )?(?P<which>first|last) day of (?:the|every|each) quarter {_AT}", _quarter
    ),
    _phrase(rf"(?:on )?the {_NUMBERS} {EVERY_MONTH} {_AT}", _month_days),
    _phrase(rf"(?:every month|each month|monthly) on the {_NUMBERS} {_AT}", _month_days),
    _phrase(rf"(?:every year|each year|yearly|annually) on {_A_DATE} {_AT}", _yearly),
    _phrase(rf"(?:every|each) {_A_DATE} {_AT}", _yearly),
    _phrase(rf"(?:on )?{_A_DATE}(?:,? (?P<year>[0-9]{{4}}))? {_AT}", _once),
    _phrase(rf"{_AT} on {_A_DATE}(?:,? (?P<year>[0-9]{{4}}))?", _once),
    _phrase(rf"(?P<day>today|tomorrow) {_AT}", _near_day),
    _phrase(rf"{_AT} (?P<day>today|tomorrow)", _near_day),
    _phrase(r"in (?P<duration>[0-9][0-9a-z., ]*)", _delay),
)
