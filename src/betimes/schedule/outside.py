"""The stable entry point for checks from outside."""

import re
from collections.abc import Mapping
from datetime import datetime

from betimes.domain.errors import BadSchedule, NeverFires
from betimes.schedule.moment import to_datetime, to_instant
from betimes.schedule.parse import parse, shorthand

EXPRESSION_MEMBER = {"once": "at", "delay": "after", "interval": "every"}
WRAPPED = {
    "cron": re.compile(r"\s*(?:cron\(|@every\b)"),
    "interval": re.compile(r"\s*(?:rate\(|@every\b|every\b)"),
    "once": re.compile(r"\s*at\("),
}
"""Forms that bring their own kind with them."""

KINDS = ("cron", "interval", "iso8601", "rrule", "text", "once", "delay", "union", "auto")


def fire_times(
    expr: str,
    tz: str,
    start: datetime,
    n: int,
    *,
    kind: str = "cron",
    dialect: str = "unix",
    dst: Mapping[str, str] | None = None,
) -> list[datetime]:
    """The first `n` fires later than `start`, aware and in UTC.

    `start` is also the creation time: an interval without an anchor counts from it. A well-formed
    expression that can never fire gives an empty list; anything else wrong is refused.
    """
    try:
        schedule = parse(_members(expr, kind, dialect), timezone=tz, now=start, dst=dst)
    except NeverFires:
        return []
    instant = to_instant(start)
    found: list[datetime] = []
    while len(found) < n:
        following = schedule.next_instant(instant)
        if following is None:
            break
        instant = following
        found.append(to_datetime(instant))
    return found


def _members(expr: str, kind: str, dialect: str) -> dict[str, object]:
    if kind not in KINDS:
        raise BadSchedule(f"expected a kind out of {', '.join(KINDS)}, got {kind!r}")
    if kind == "auto":
        return shorthand(expr)
    if kind == "union":
        return {"type": "union", "of": [shorthand(part) for part in expr.split("|")]}
    if kind in WRAPPED and WRAPPED[kind].match(expr):
        read = shorthand(expr)
        # `every 45 minutes` is words elsewhere; here the kind has been named.
        words = read["type"] == "text"
        return {"type": "interval", "every": expr.strip().removeprefix("every")} if words else read
    members: dict[str, object] = {"type": kind, EXPRESSION_MEMBER.get(kind, "expr"): expr}
    if kind == "cron":
        members["dialect"] = dialect
    return members
