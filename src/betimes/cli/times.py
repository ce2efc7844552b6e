"""Times as people write and read them: `10m`, `in 2h`, `2026-03-29T02:00`; `in 4m`, `3d ago`."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
PIECE = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)")
RELATIVE = re.compile(r"(?P<sign>[+-]|in )?(?P<span>(?:\d+(?:\.\d+)?[smhdw])+)(?P<ago> ago)?")
STEPS = ((604800, "w"), (86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
TWO_UNITS_BELOW = 10
MANY_WEEKS = 9 * 604800
SECONDS_PER_MILLISECOND = 1000.0


def read_time(text: str, *, now: datetime, zone: tzinfo, behind: bool = False) -> str:
    """A time as the API takes it.

    Relative ones count from now; a plain span lies ahead (or `behind`, where one looks back),
    `+2h` and `in 2h` always ahead, `-2h` and `2h ago` always behind. A wall clock without an offset
    is one of `zone`.
    """
    said = text.strip()
    if said == "now":
        return stamp(now)
    found = RELATIVE.fullmatch(said)
    if found is not None:
        said_behind = found["sign"] == "-" or found["ago"] is not None
        span = timedelta(seconds=seconds_of(found["span"]))
        return stamp(now - span if said_behind or (behind and not found["sign"]) else now + span)
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        raise click.BadParameter(
            f"expected a time such as 2026-03-29T02:00, 10m, -2h or now, got {text!r}."
        ) from None
    return stamp(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))


def seconds_of(span: str) -> float:
    """How long `1h30m` is."""
    return sum(float(number) * UNITS[unit] for number, unit in PIECE.findall(span))


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def zone_of(name: str | None) -> tzinfo:
    """A zone by its name; UTC when none is given."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise click.BadParameter(
            f"expected an IANA time zone such as Europe/Oslo, got {name!r}."
        ) from None


def moment_of(text: object) -> datetime | None:
    """A time of an answer."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def relative(moment: datetime, now: datetime) -> str:
    """`in 4m`, `3d ago`, `now`."""
    seconds = (moment - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    text = span(abs(seconds))
    return f"in {text}" if seconds > 0 else f"{text} ago"


def span(seconds: float) -> str:
    """A length of time in one unit, or two where one would be coarse."""
    if seconds > MANY_WEEKS:
        return f"{seconds / 86400:.0f}d"
    for place, (size, unit) in enumerate(STEPS):
        if seconds >= size:
            count = int(seconds // size)
            rest = int(seconds - count * size)
            if count < TWO_UNITS_BELOW and place + 1 < len(STEPS):
                smaller, name = STEPS[place + 1]
                if rest // smaller:
                    return f"{count}{unit}{rest // smaller}{name}"
            return f"{count}{unit}"
    return "0s"


def milliseconds(value: float) -> str:
    """`12ms`, `3.4s`, `5m2s`."""
    if value < SECONDS_PER_MILLISECOND:
        return f"{value:.0f}ms"
    seconds = value / SECONDS_PER_MILLISECOND
    return f"{seconds:.1f}s" if seconds < UNITS["m"] else span(seconds)


def exact(moment: datetime, zone: tzinfo) -> str:
    """A time in full, in a zone."""
    local = moment.astimezone(zone)
    text = local.isoformat(sep=" ", timespec="seconds")
    return text.removesuffix("+00:00") + "Z" if local.utcoffset() == timedelta() else text
