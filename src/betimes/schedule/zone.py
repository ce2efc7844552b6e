"""Zones: the pinned rules that turn wall clocks into instants.

What is authoritative: the `tzdata` distribution, never the files of the machine, so that every
node of a cluster reads the same rules and a stored fire time can name the release it came from.

A zone is a list of *segments*. Inside a segment the offset is fixed, so wall clock and UTC differ
by one addition. Between two segments the clock jumps: forward leaves a *gap* of local times that
never were, backward an *overlap* of local times that were twice. Everything else in the room
(cron, intervals, rules) is arithmetic inside segments plus a policy at their borders.

Only offsets matter: whether a government calls its time "summer" or "standard" is not read.
All numbers here are whole seconds since 1970-01-01T00:00:00, UTC or local as the name says.
"""

from bisect import bisect_right
from datetime import timedelta, timezone
from functools import lru_cache
from importlib import resources

import tzdata  # type: ignore[import-untyped]

from betimes.domain.errors import BadZone
from betimes.schedule import tzif

NAME_LENGTH_MAX = 64
REACH = 2 * 86_400
"""Seconds; the offsets on both sides of a jump lie well within it."""

HOST_DEPENDENT = frozenset({"localtime", "posixrules", "Factory"})
"""Names that mean whatever the machine says, or nothing at all."""


class Zone:
    """One IANA zone: its segments, and the two ways across."""

    __slots__ = ("ends", "name", "offsets", "starts")

    def __init__(self, name: str, transitions: tzif.Transitions) -> None:
        self.name = name
        self.starts = transitions.starts
        self.offsets = transitions.offsets
        self.ends = (*transitions.starts[1:], -tzif.BEGINNING)

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def segment(self, instant: int) -> int:
        """The index of the segment an instant lies in."""
        return bisect_right(self.starts, instant) - 1

    def offset(self, instant: int) -> int:
        """Seconds east of UTC at an instant."""
        return self.offsets[bisect_right(self.starts, instant) - 1]

    def local(self, instant: int) -> int:
        """What the wall clock reads at an instant."""
        return instant + self.offsets[bisect_right(self.starts, instant) - 1]

    def instants(self, local: int) -> tuple[int, ...]:
        """Every instant at which the wall clock reads `local`: none in a gap, two in an overlap."""
        first = max(bisect_right(self.starts, local - REACH) - 1, 0)
        last = bisect_right(self.starts, local + REACH)
        return tuple(
            local - self.offsets[i]
            for i in range(first, last)
            if self.starts[i] <= local - self.offsets[i] < self.ends[i]
        )

    def gap_around(self, local: int) -> int:
        """The segment that begins with the gap in which `local` lies."""
        index = bisect_right(self.starts, local - REACH)
        while not self._in_gap_before(index, local):
            index += 1
        return index

    def _in_gap_before(self, index: int, local: int) -> bool:
        start = self.starts[index]
        return start + self.offsets[index - 1] <= local < start + self.offsets[index]

    def changes(self, after: int, until: int) -> range:
        """The segments that begin within (after, until]."""
        return range(
            max(bisect_right(self.starts, after), 1), max(bisect_right(self.starts, until), 1)
        )

    def tzinfo(self, instant: int) -> timezone:
        """A fixed offset for showing one instant."""
        return fixed_offset(self.offset(instant))


@lru_cache(maxsize=512)
def fixed_offset(seconds: int) -> timezone:
    """A shared `timezone` for an offset."""
    return timezone(timedelta(seconds=seconds))


def tzdata_release() -> str:
    """The IANA release in use, such as `2026f`; store it beside every computed fire time."""
    return str(tzdata.IANA_VERSION)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every name the pinned release knows, without those that depend on the host."""
    listed = resources.files(tzdata).joinpath("zones").read_text(encoding="ascii").split()
    return frozenset(listed) - HOST_DEPENDENT


def zone(name: str) -> Zone:
    """The zone of that name; an alias keeps the name it was given."""
    if name not in zone_names():
        raise BadZone(
            f"expected an IANA time zone of tzdata {tzdata_release()}, such as Europe/Stockholm, "
            f"got {name[:NAME_LENGTH_MAX]!r}",
            pointer="/timezone",
        )
    return _load(name)


@lru_cache(maxsize=1024)
def _load(name: str) -> Zone:
    return Zone(name, _transitions(name))


def _transitions(name: str) -> tzif.Transitions:
    file = resources.files(tzdata).joinpath("zoneinfo", *name.split("/"))
    return tzif.read(file.read_bytes())
