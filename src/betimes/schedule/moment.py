"""Moments: reading points in time, and crossing between datetimes, instants and wall clocks."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from betimes.domain.errors import BadSchedule
from betimes.schedule.bounds import DAY_SECONDS, SECOND, YEAR_LAST
from betimes.schedule.civil import EPOCH_ORDINAL
from betimes.schedule.dst import BOTH, COMPATIBLE, NEXT, SECOND_PASS, SHIFT, Dst
from betimes.schedule.zone import Zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT_LENGTH_MAX = 64
YEAR_MIN = 1900
OFFSET_HOURS_MAX = 23

MOMENT = re.compile(
    r"(?P<year>[0-9]{4})(?:"
    r"-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})|(?P<month_b>[0-9]{2})(?P<day_b>[0-9]{2})"
    r"|-?W(?P<week>[0-9]{2})-?(?P<weekday>[1-7])"
    r"|-?(?P<ordinal>[0-9]{3}))"
    r"(?:[Tt ](?P<hour>[0-9]{2}):?(?:(?P<minute>[0-9]{2}):?(?:(?P<second>[0-9]{2})"
    r"(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    r"(?P<offset>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time as somebody wrote it: a wall clock reading, perhaps with an offset.

    `local` is in microseconds; without an `offset` (seconds) the zone of the schedule decides.
    """

    local: int
    offset: int | None

    def instant(self, zone: Zone, dst: Dst = COMPATIBLE) -> int | None:
        """The instant in a zone: a gap shifts and an overlap is its first pass, unless told."""
        if self.offset is not None:
            return self.local - self.offset * SECOND
        second, micro = divmod(self.local, SECOND)
        found = resolve(zone, second, dst)
        return found[0] * SECOND + micro if found else None


def resolve(zone: Zone, local: int, dst: Dst) -> tuple[int, ...]:
    """The instants (seconds) that a local second stands for under a policy."""
    found = zone.instants(local)
    if not found:
        return _out_of_gap(zone, local, dst)
    if len(found) == 1 or dst.overlap == BOTH:
        return found
    return found[-1:] if dst.overlap == SECOND_PASS else found[:1]


def _out_of_gap(zone: Zone, local: int, dst: Dst) -> tuple[int, ...]:
    index = zone.gap_around(local)
    if dst.gap == NEXT:
        return (zone.starts[index],)
    if dst.gap == SHIFT:
        return (local - zone.offsets[index - 1],)
    return ()


def to_instant(moment: datetime) -> int:
    """Microseconds since the epoch; a naive datetime is refused."""
    if moment.tzinfo is None:
        raise BadSchedule(f"expected a datetime with a time zone, got {moment.isoformat()}")
    delta = moment - EPOCH
    return (delta.days * DAY_SECONDS + delta.seconds) * SECOND + delta.microseconds


def to_datetime(instant: int) -> datetime:
    """The aware UTC datetime of an instant."""
    second, micro = divmod(instant, SECOND)
    if second < 0 or micro:
        return EPOCH + timedelta(microseconds=instant)
    return datetime.fromtimestamp(second, UTC)


def to_local(instant: int, zone: Zone) -> datetime:
    """The datetime a wall clock in the zone shows, with its offset."""
    return to_datetime(instant).astimezone(zone.tzinfo(instant // SECOND))


def naive_text(local: int) -> str:
    """A local second as `2026-03-29T02:30:00`."""
    return (EPOCH + timedelta(seconds=local)).strftime("%Y-%m-%dT%H:%M:%S")


def instant_text(instant: int) -> str:
    """An instant as RFC 3339 in UTC."""
    return to_datetime(instant).isoformat().replace("+00:00", "Z")


def moment_text(moment: Moment) -> str:
    """A moment as it would be written again."""
    shown = (EPOCH + timedelta(microseconds=moment.local)).replace(tzinfo=None).isoformat()
    if moment.offset is None:
        return shown
    if moment.offset == 0:
        return f"{shown}Z"
    sign = "-" if moment.offset < 0 else "+"
    hours, minutes = divmod(abs(moment.offset) // 60, 60)
    return f"{shown}{sign}{hours:02}:{minutes:02}"


def read_moment(source: object, pointer: str = "") -> Moment:
    """A datetime, or ISO 8601 text: calendar, week or ordinal date, extended or basic."""
    if isinstance(source, datetime):
        return _from_datetime(source)
    if not isinstance(source, str):
        raise BadSchedule(
            f"expected a time such as 2026-12-24T15:00:00Z, got {type(source).__name__}",
            pointer=pointer,
        )
    text = source.strip(" \t")
    found = MOMENT.fullmatch(text) if len(text) <= TEXT_LENGTH_MAX else None
    if found is None:
        raise BadSchedule(
            f"expected a time such as 2026-12-24T15:00:00Z, got {source[:TEXT_LENGTH_MAX]!r}",
            pointer=pointer,
        )
    try:
        return Moment(_local(found), _offset(found["offset"]))
    except ValueError:
        raise BadSchedule(f"expected a time that exists, got {text!r}", pointer=pointer) from None


def _from_datetime(source: datetime) -> Moment:
    local = to_instant(source.replace(tzinfo=UTC))
    shift = source.utcoffset()
    return Moment(local, None if shift is None else int(shift.total_seconds()))


def _local(found: re.Match[str]) -> int:
    day = _date(found).toordinal() - EPOCH_ORDINAL
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if not (hour < 24 and minute < 60 and second < 60):  # noqa: PLR2004 -- a day, an hour, a minute
        raise ValueError
    micro = int((found["fraction"] or "0").ljust(6, "0")[:6])
    return (day * DAY_SECONDS + hour * 3600 + minute * 60 + second) * SECOND + micro


def _date(found: re.Match[str]) -> date:
    year = int(found["year"])
    if not YEAR_MIN <= year <= YEAR_LAST:
        raise ValueError
    if found["week"]:
        return date.fromisocalendar(year, int(found["week"]), int(found["weekday"]))
    if found["ordinal"]:
        day = date(year, 1, 1) + timedelta(days=int(found["ordinal"]) - 1)
        if day.year != year:
            raise ValueError
        return day
    return date(year, int(found["month"] or found["month_b"]), int(found["day"] or found["day_b"]))


def _offset(text: str | None) -> int | None:
    if text is None:
        return None
    if text in "Zz":
        return 0
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if hours > OFFSET_HOURS_MAX or minutes >= 60:  # noqa: PLR2004 -- an hour
        raise ValueError
    seconds = hours * 3600 + minutes * 60
    return -seconds if text.startswith("-") else seconds
