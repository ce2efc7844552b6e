"""Reading a compiled time zone (RFC 8536) into transitions, extended by its rule to our horizon.

The file holds explicit transitions, and a POSIX rule in its last line for all time after them.
We want one plain list, so the rule is unrolled year by year until `YEAR_LAST`.
"""

import re
import struct
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from betimes.domain.errors import Bug
from betimes.schedule.bounds import DAY_SECONDS, YEAR_LAST
from betimes.schedule.civil import EPOCH_ORDINAL, EPOCH_YEAR, WEEK

HEADER = struct.Struct(">4s1s15x6l")
TYPE = struct.Struct(">lbB")
MAGIC = b"TZif"
RULE = re.compile(
    r"(?P<standard>[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)(?P<offset>[+-]?[0-9:]+)"
    r"(?:(?P<summer>[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)(?P<summer_offset>[+-]?[0-9:]+)?"
    r",(?P<begin>[^,]+),(?P<end>[^,]+))?"
)
DEFAULT_CHANGE = "2"
LAST_WEEK = 5


@dataclass(frozen=True, slots=True)
class Transitions:
    """When the offset changes: `starts[i]` begins the time of `offsets[i]`, both in seconds.

    `starts[0]` is the beginning of time. Neighbouring offsets always differ.
    """

    starts: tuple[int, ...]
    offsets: tuple[int, ...]


BEGINNING = -(1 << 50)
"""Earlier than every time there is; its opposite is later, yet less than any `NEVER`."""


def read(content: bytes) -> Transitions:
    """All changes of offset in a compiled zone until the end of `YEAR_LAST`."""
    first = _header(content, 0)
    body = HEADER.size + _body_size(first, 4)
    counts = _header(content, body)
    data = body + HEADER.size
    _, _, leaps, times, types, _ = counts
    if leaps:
        raise Bug("expected zone data without leap seconds, got some")
    instants = struct.unpack_from(f">{times}q", content, data)
    indexes = content[data + 8 * times : data + 9 * times]
    offsets = [TYPE.unpack_from(content, data + 9 * times + 6 * i)[0] for i in range(types)]
    footer = content[data + _body_size(counts, 8) :].strip().decode("ascii")
    explicit = list(zip(instants, (offsets[i] for i in indexes), strict=True))
    return _merge([(BEGINNING, offsets[0]), *explicit], _unroll(footer, explicit))


def _header(content: bytes, at: int) -> tuple[int, int, int, int, int, int]:
    magic, _, *counts = HEADER.unpack_from(content, at)
    if magic != MAGIC:
        raise Bug(f"expected zone data to begin with {MAGIC!r}, got {magic!r}")
    ut, standard, leaps, times, types, letters = counts
    return ut, standard, leaps, times, types, letters


def _body_size(counts: tuple[int, int, int, int, int, int], width: int) -> int:
    ut, standard, leaps, times, types, letters = counts
    return times * (width + 1) + types * 6 + letters + leaps * (width + 4) + standard + ut


def _merge(explicit: list[tuple[int, int]], ruled: list[tuple[int, int]]) -> Transitions:
    kept = [explicit[0]]
    for start, offset in [*explicit[1:], *ruled]:
        if offset != kept[-1][1]:
            kept.append((start, offset))
    if any(left[0] >= right[0] for left, right in pairwise(kept)):
        raise Bug("expected the changes of a zone in order of time")
    return Transitions(tuple(start for start, _ in kept), tuple(offset for _, offset in kept))


def _unroll(footer: str, explicit: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The changes that the rule of the last line makes after the explicit ones."""
    rule = RULE.fullmatch(footer)
    if rule is None:
        raise Bug(f"expected a POSIX zone rule, got {footer!r}")
    standard = -_seconds(rule["offset"])
    last = explicit[-1][0] if explicit else BEGINNING
    if rule["summer"] is None:
        return [(last + 1, standard)] if explicit and explicit[-1][1] != standard else []
    given = rule["summer_offset"]
    summer = -_seconds(given) if given else standard + 3600
    changes = []
    for year in range(max(EPOCH_YEAR, 1970 + last // (366 * DAY_SECONDS)), YEAR_LAST + 2):
        changes.append((_change(rule["begin"], year) - standard, summer))
        changes.append((_change(rule["end"], year) - summer, standard))
    return sorted(change for change in changes if change[0] > last)


def _change(rule: str, year: int) -> int:
    """The local second at which a rule such as `M3.5.0/2` or `J60` strikes in a year."""
    day_rule, _, time = rule.partition("/")
    midnight = _rule_day(day_rule, year) * DAY_SECONDS
    return midnight + _seconds(time or DEFAULT_CHANGE)


def _rule_day(rule: str, year: int) -> int:
    first = date(year, 1, 1).toordinal() - EPOCH_ORDINAL
    if rule.startswith("J"):
        day = int(rule[1:])
        leap_day_passed = day >= 60 and date(year, 12, 31).timetuple().tm_yday == 366  # noqa: PLR2004 -- J60 is 1 March in every year
        return first + day - 1 + leap_day_passed
    if not rule.startswith("M"):
        return first + int(rule)
    month, week, weekday = (int(part) for part in rule[1:].split("."))
    month_first = date(year, month, 1)
    start = month_first.toordinal() - EPOCH_ORDINAL
    day = start + (weekday - month_first.isoweekday()) % WEEK + WEEK * (week - 1)
    after = date(year + month // 12, month % 12 + 1, 1).toordinal() - EPOCH_ORDINAL
    return day - WEEK if week == LAST_WEEK and day >= after else day


def _seconds(text: str) -> int:
    """Signed `h[:mm[:ss]]` in seconds."""
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)
