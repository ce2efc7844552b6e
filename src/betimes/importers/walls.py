"""Wall clocks: every instant whose local clock reads a match, and where the clock jumps.

This is the ground on which the rules of other programs are modelled. It shares nothing with
`betimes.schedule` but the names of zones, so that one can be held against the other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

from betimes.domain.errors import BadZone

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@lru_cache(maxsize=64)
def zone_info(name: str) -> ZoneInfo:
    """A zone of the pinned data."""
    try:
        with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            return ZoneInfo.from_file(file, key=name)
    except (OSError, ValueError):
        raise BadZone(f"expected an IANA time zone, got {name[:80]!r}") from None


class Segment(NamedTuple):
    """A time without a jump, as local wall clock times, and its distance from UTC."""

    first: datetime
    last: datetime
    offset: timedelta


def segments(zone: ZoneInfo, after: datetime, until: datetime) -> list[Segment]:
    """The wall clock of (after, until], cut where its offset changes; to the minute."""
    found: list[Segment] = []
    begin = after.astimezone(UTC)
    end = until.astimezone(UTC)
    while begin < end:
        offset = begin.astimezone(zone).utcoffset() or timedelta()
        stop = _change(zone, begin, end, offset)
        local = begin.replace(tzinfo=None) + offset
        found.append(Segment(local, stop.replace(tzinfo=None) + offset, offset))
        begin = stop
    return found


def _change(zone: ZoneInfo, begin: datetime, end: datetime, offset: timedelta) -> datetime:
    """The first minute with another offset, or the end."""
    probe = begin
    while probe < end:
        following = min(probe + 6 * HOUR, end)
        if following.astimezone(zone).utcoffset() != offset:
            low, high = probe, following
            while high - low > MINUTE:
                middle = low + (high - low) / 2
                middle = middle.replace(second=0, microsecond=0)
                if middle <= low:
                    break
                if middle.astimezone(zone).utcoffset() == offset:
                    low = middle
                else:
                    high = middle
            return high
        probe = following
    return end


@dataclass(frozen=True, slots=True)
class Pattern:
    """Minutes and hours that match, and a judge of days."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    is_day: Callable[[date], bool]

    def walls(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """The matching wall clock times in (first, last]."""
        day = first.date()
        while day <= last.date():
            if self.is_day(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        wall = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 -- a wall clock
                        if first < wall <= last:
                            yield wall
            day += DAY
        # A day beyond the last has nothing to give.


def cut(parts: list[Segment], pattern: Pattern) -> Iterator[datetime]:
    """Every instant whose wall clock matches: nothing in a gap, both passes of an overlap."""
    for place, part in enumerate(parts):
        # A jump's own minute belongs to what follows it.
        last = part.last - MINUTE if place + 1 < len(parts) else part.last
        first = part.first - MINUTE if place else part.first
        for wall in pattern.walls(first, last):
            yield (wall - part.offset).replace(tzinfo=UTC)
