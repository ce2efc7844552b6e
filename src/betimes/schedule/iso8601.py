"""ISO 8601 repeating intervals: `R[n]/start/duration[/end]`.

`Rn` means n occurrences in all, the first at the start; `R` alone goes on for ever. `R0` has none
and is refused. An `end`, where given, is the last instant at which an occurrence may lie.
"""

import re
from dataclasses import dataclass

from betimes.domain.errors import BadSchedule, NeverFires, TooLarge
from betimes.schedule.bounds import EXPRESSION_LENGTH_MAX
from betimes.schedule.duration import Duration, read_period
from betimes.schedule.moment import Moment, read_moment

REPEAT = re.compile(r"R(?P<count>[0-9]{0,9})")
POINTER = "/expr"
FORM = "R[n]/start/duration[/end]"
PARTS = (3, 4)


@dataclass(frozen=True, slots=True)
class Repeating:
    """A repeating interval, read."""

    count: int | None
    start: Moment
    duration: Duration
    end: Moment | None


def read_repeating(expression: str) -> Repeating:
    """Read a repeating interval, or say what was expected in it."""
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise TooLarge(
            f"expected at most {EXPRESSION_LENGTH_MAX} characters, got {len(expression)}",
            pointer=POINTER,
        )
    parts = expression.strip(" \t").split("/")
    repeat = REPEAT.fullmatch(parts[0])
    if repeat is None or len(parts) not in PARTS:
        raise BadSchedule(f"expected {FORM}, got {expression!r}", pointer=POINTER)
    if parts[1].startswith("P"):
        raise BadSchedule(
            f"expected {FORM}, got {expression!r}: an interval that counts back from its end is "
            "not supported",
            pointer=POINTER,
        )
    if not parts[2].startswith("P"):
        raise BadSchedule(
            f"expected a duration such as P1M or PT1H after the start, got {parts[2]!r}",
            pointer=POINTER,
        )
    count = int(repeat["count"]) if repeat["count"] else None
    if count == 0:
        raise NeverFires("expected at least one repetition, got R0", pointer=POINTER)
    return Repeating(
        count=count,
        start=read_moment(parts[1], POINTER),
        duration=read_period(parts[2], POINTER),
        end=read_moment(parts[3], POINTER) if parts[3:] else None,
    )
