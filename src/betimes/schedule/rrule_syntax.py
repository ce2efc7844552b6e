"""Reading RFC 5545 recurrence text: RRULE with DTSTART, RDATE and EXDATE.

What the RFC forbids is refused rather than guessed at, with the code `invalid_rrule`.
"""

import re
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType

from betimes.domain.errors import BadSchedule, TooLarge
from betimes.schedule.bounds import (
    DAY_SECONDS,
    RECURRENCE_COUNT_MAX,
    RECURRENCE_DATES_MAX,
    RECURRENCE_LENGTH_MAX,
    SECOND,
    YEAR_LAST,
)
from betimes.schedule.civil import EPOCH_ORDINAL
from betimes.schedule.moment import YEAR_MIN, Moment, read_moment

CODE = "invalid_rrule"
POINTER = "/expr"
WEEKDAYS = MappingProxyType(
    {name: number for number, name in enumerate(["SU", "MO", "TU", "WE", "TH", "FR", "SA"])}
)
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
SUB_DAILY = ("HOURLY", "MINUTELY", "SECONDLY")
BY_DAY = re.compile(r"(?P<nth>[+-]?[0-9]{1,2})?(?P<day>SU|MO|TU|WE|TH|FR|SA)")
NUMBER = re.compile(r"[+-]?[0-9]{1,7}")
BETWEEN = re.compile(r"\n|[ \t](?=(?:RRULE|DTSTART|RDATE|EXDATE)[:;])", re.IGNORECASE)
STAMP = re.compile(r"[0-9]{8}(?:T[0-9]{6}Z?)?")
LISTS = MappingProxyType(
    {
        "BYMONTH": (1, 12, False),
        "BYWEEKNO": (1, 53, True),
        "BYYEARDAY": (1, 366, True),
        "BYMONTHDAY": (1, 31, True),
        "BYHOUR": (0, 23, False),
        "BYMINUTE": (0, 59, False),
        "BYSECOND": (0, 59, False),
        "BYSETPOS": (1, 366, True),
    }
)
FORBIDDEN = MappingProxyType(
    {
        "BYWEEKNO": tuple(f for f in FREQUENCIES if f != "YEARLY"),
        "BYYEARDAY": ("MONTHLY", "WEEKLY", "DAILY"),
        "BYMONTHDAY": ("WEEKLY",),
    }
)
PARTS = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "WKST", *LISTS})
MONDAY = 1
NTH_MAX = 53
HOUR_LAST, SIXTY_LAST = 23, 59


@dataclass(frozen=True, slots=True)
class Rule:
    """The parts of an RRULE; empty tuples are parts that were not given.

    `by_day` pairs (which, weekday): which is 0 for every such weekday.
    """

    frequency: str
    interval: int = 1
    count: int | None = None
    until: Moment | None = None
    by_month: tuple[int, ...] = ()
    by_week_number: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[tuple[int, int], ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_position: tuple[int, ...] = ()
    week_start: int = MONDAY

    @property
    def is_sub_daily(self) -> bool:
        """Whether it is measured by a stopwatch."""
        return self.frequency in SUB_DAILY


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule with its start and its exceptions. `zone_name` is the TZID of DTSTART, if any."""

    rule: Rule
    start: Moment | None
    zone_name: str | None
    added: tuple[tuple[Moment, str | None], ...] = ()
    removed: tuple[tuple[Moment, str | None], ...] = ()
    removed_dates: tuple[Moment, ...] = field(default=())


def refusal(expected: str, got: object) -> BadSchedule:
    """What was expected in a rule, and what was got."""
    return BadSchedule(f"expected {expected}, got {got!r}", code=CODE, pointer=POINTER)


def read_recurrence(text: str) -> Recurrence:
    """Read RFC 5545 text: properties on lines of their own, or a bare rule."""
    if len(text) > RECURRENCE_LENGTH_MAX:
        raise TooLarge(
            f"expected at most {RECURRENCE_LENGTH_MAX} characters, got {len(text)}",
            pointer=POINTER,
        )
    properties = [_property(line) for line in _lines(text)]
    rules = [value for name, _, value in properties if name == "RRULE"]
    if len(rules) != 1:
        raise refusal("exactly one RRULE", len(rules))
    starts = [entry for entry in properties if entry[0] == "DTSTART"]
    if len(starts) > 1:
        raise refusal("at most one DTSTART", len(starts))
    start, zone_name, is_date = (
        _stamp(starts[0][2], starts[0][1]) if starts else (None, None, False)
    )
    added = _dates(properties, "RDATE")
    removed = _dates(properties, "EXDATE")
    return Recurrence(
        rule=read_rule(rules[0], date_too=is_date),
        start=start,
        zone_name=zone_name,
        added=tuple((moment, zone) for moment, zone, _ in added),
        removed=tuple((moment, zone) for moment, zone, is_date in removed if not is_date),
        removed_dates=tuple(moment for moment, _, is_date in removed if is_date),
    )


def _lines(text: str) -> list[str]:
    """The properties of a text: one to a line, folded or not, or with a space between them."""
    unfolded = text.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "")
    return [line.strip(" \t") for line in BETWEEN.split(unfolded) if line.strip(" \t")]


def _property(line: str) -> tuple[str, dict[str, str], str]:
    head, colon, value = line.partition(":")
    if not colon:
        return "RRULE", {}, line
    name, *pairs = head.split(";")
    name = name.upper()
    if name not in {"RRULE", "DTSTART", "RDATE", "EXDATE"}:
        raise refusal("RRULE, DTSTART, RDATE or EXDATE", name[:40])
    parameters = dict(_pair(pair) for pair in pairs)
    unknown = set(parameters) - {"TZID", "VALUE"}
    if unknown:
        raise refusal("the parameters TZID and VALUE only", min(unknown)[:40])
    return name, parameters, value


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise refusal("NAME=value", text[:80])
    return name.strip().upper(), value.strip()


def _stamp(text: str, parameters: dict[str, str]) -> tuple[Moment, str | None, bool]:
    """A DATE or DATE-TIME in basic form, its TZID, and whether it was a date only."""
    if not STAMP.fullmatch(text):
        raise refusal("a time such as 20261224T150000 or 20261224T150000Z", text[:80])
    is_date = "T" not in text
    if is_date != (parameters.get("VALUE", "DATE" if is_date else "") == "DATE"):
        raise refusal("VALUE=DATE with a date, and only then", text)
    zone_name = parameters.get("TZID")
    if zone_name is not None and text.endswith("Z"):
        raise refusal("either TZID or a time in UTC", text)
    return _basic(text), zone_name, is_date


def _basic(text: str) -> Moment:
    """A stamp; there may be a thousand of them, so the digits are cut where they stand."""
    try:
        day = date(int(text[:4]), int(text[4:6]), int(text[6:8])).toordinal() - EPOCH_ORDINAL
    except ValueError:
        return read_moment(text, POINTER)  # which says what is wrong with it
    hour, minute, second = (int(text[at : at + 2] or 0) for at in (9, 11, 13))
    year_fits = YEAR_MIN <= int(text[:4]) <= YEAR_LAST
    if not year_fits or hour > HOUR_LAST or minute > SIXTY_LAST or second > SIXTY_LAST:
        return read_moment(text, POINTER)
    seconds = day * DAY_SECONDS + hour * 3600 + minute * 60 + second
    return Moment(seconds * SECOND, 0 if text.endswith("Z") else None)


def _dates(
    properties: list[tuple[str, dict[str, str], str]], wanted: str
) -> list[tuple[Moment, str | None, bool]]:
    found = [
        _stamp(text, parameters)
        for name, parameters, value in properties
        if name == wanted
        for text in value.split(",")
    ]
    if len(found) > RECURRENCE_DATES_MAX:
        raise TooLarge(
            f"expected at most {RECURRENCE_DATES_MAX} dates in {wanted}, got {len(found)}",
            pointer=POINTER,
        )
    return found


def read_rule(text: str, *, date_too: bool = False) -> Rule:
    """Read `FREQ=…;…`; UNTIL may be a date where DTSTART is one, as RFC 5545 3.3.10 demands."""
    pairs = [_pair(part) for part in text.split(";") if part]
    parts = {name: value.upper() for name, value in pairs}
    if len(parts) != len(pairs):
        raise refusal("every part of a rule once", text[:80])
    unknown = sorted(set(parts) - PARTS)
    if unknown:
        raise refusal(f"parts out of {', '.join(sorted(PARTS))}", unknown[0][:40])
    frequency = parts.get("FREQ", "")
    if frequency not in FREQUENCIES:
        raise refusal(f"FREQ out of {', '.join(FREQUENCIES)}", frequency[:40])
    if "COUNT" in parts and "UNTIL" in parts:
        raise refusal("COUNT or UNTIL, not both", text[:80])
    lists = {name: _numbers(name, parts.get(name)) for name in LISTS}
    rule = Rule(
        frequency=frequency,
        interval=_positive("INTERVAL", parts.get("INTERVAL", "1"), 100_000),
        count=_positive("COUNT", parts["COUNT"], RECURRENCE_COUNT_MAX)
        if "COUNT" in parts
        else None,
        until=_until(parts["UNTIL"], date_too=date_too) if "UNTIL" in parts else None,
        by_month=lists["BYMONTH"],
        by_week_number=lists["BYWEEKNO"],
        by_year_day=lists["BYYEARDAY"],
        by_month_day=lists["BYMONTHDAY"],
        by_day=_by_day(parts.get("BYDAY"), parts),
        by_hour=lists["BYHOUR"],
        by_minute=lists["BYMINUTE"],
        by_second=lists["BYSECOND"],
        by_position=lists["BYSETPOS"],
        week_start=_weekday(parts.get("WKST", "MO")),
    )
    _check(parts, frequency)
    return rule


def _check(parts: dict[str, str], frequency: str) -> None:
    for name, frequencies in FORBIDDEN.items():
        if name in parts and frequency in frequencies:
            raise refusal(f"no {name} with FREQ={frequency}", parts[name][:40])
    others = [name for name in parts if name.startswith("BY") and name != "BYSETPOS"]
    if "BYSETPOS" in parts and not others:
        raise refusal("BYSETPOS together with another BY part", parts["BYSETPOS"][:40])


def _numbers(name: str, text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    low, high, signed = LISTS[name]
    found = []
    for part in text.split(","):
        number = int(part) if NUMBER.fullmatch(part) else None
        in_range = number is not None and low <= (abs(number) if signed else number) <= high
        if number is None or not in_range:
            sign = " or negative" if signed else ""
            raise refusal(f"{name} within {low}-{high}{sign}", part[:40])
        found.append(number)
    return tuple(sorted(set(found)))


def _positive(name: str, text: str, most: int) -> int:
    number = int(text) if NUMBER.fullmatch(text) else 0
    if not 1 <= number <= most:
        raise refusal(f"{name} within 1-{most}", text[:40])
    return number


def _until(text: str, *, date_too: bool) -> Moment:
    if not STAMP.fullmatch(text) or ("T" not in text and not date_too):
        raise refusal("UNTIL as a time in UTC such as 20261231T235959Z", text[:40])
    return read_moment(text, POINTER)


def _weekday(text: str) -> int:
    if text not in WEEKDAYS:
        raise refusal("a weekday out of MO, TU, WE, TH, FR, SA, SU", text[:40])
    return WEEKDAYS[text]


def _by_day(text: str | None, parts: dict[str, str]) -> tuple[tuple[int, int], ...]:
    if text is None:
        return ()
    found = []
    for part in text.split(","):
        match = BY_DAY.fullmatch(part)
        nth = int(match["nth"] or 0) if match else 0
        if match is None or (match["nth"] and not 1 <= abs(nth) <= NTH_MAX):
            raise refusal("BYDAY such as MO, 1MO or -1FR", part[:40])
        if nth and (parts.get("FREQ") not in {"YEARLY", "MONTHLY"} or "BYWEEKNO" in parts):
            raise refusal("a numbered weekday only with FREQ=MONTHLY or FREQ=YEARLY", part)
        found.append((nth, WEEKDAYS[match["day"]]))
    return tuple(found)
