"""The members that every kind of schedule shares, and which members each kind may have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from betimes.domain.errors import BadSchedule, Refused
from betimes.schedule.bounds import DAY, HOUR, MAX_FIRES_MAX, MINUTE
from betimes.schedule.budget import Budget
from betimes.schedule.calendar import Calendar, CalendarRule, read_calendars
from betimes.schedule.dst import Dst, read_dst
from betimes.schedule.duration import read_duration
from betimes.schedule.moment import Moment, read_moment
from betimes.schedule.zone import Zone, zone

KINDS = MappingProxyType(
    {
        "once": frozenset({"at"}),
        "delay": frozenset({"after"}),
        "cron": frozenset({"expr", "dialect", "day_match", "wrap"}),
        "interval": frozenset({"every", "anchor", "mode", "month_end"}),
        "iso8601": frozenset({"expr", "month_end"}),
        "rrule": frozenset({"expr", "anchor"}),
        "text": frozenset({"expr", "accept_first"}),
        "union": frozenset({"of"}),
        "manual": frozenset(),
    }
)
COMMON = frozenset(
    {
        *("type", "timezone", "start_at", "end_at", "max_fires", "jitter", "window"),
        *("calendars", "dst", "catchup", "overlap", "pause_after_failures"),
    }
)
OVERLAPS = ("allow", "skip", "buffer_one", "buffer_all", "cancel_running", "replace")
CATCHUPS = ("none", "latest", "all")
WINDOW_MAX = 1440 * MINUTE
CATCHUP_WINDOW_MAX = 3660 * DAY
CATCHUP_MAX_MAX = 10_000
FAILURES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Catchup:
    """What to do with fires missed during an outage: how many, and how old at most."""

    policy: str = "latest"
    window: int = HOUR
    max: int = 100


@dataclass(frozen=True, slots=True)
class Common:
    """The shared members, read; durations in microseconds."""

    zone: Zone
    dst: Dst
    start_at: Moment | None
    end_at: Moment | None
    max_fires: int | None
    jitter: int
    window: int
    calendars: CalendarRule
    catchup: Catchup
    overlap: str | None
    pause_after_failures: int | None


@contextmanager
def inside(place: str) -> Iterator[None]:
    """Let what is refused in a part of a schedule point at that part."""
    try:
        yield
    except Refused as refused:
        refused.pointer = f"{place}{refused.pointer}"
        raise


def check_members(source: Mapping[str, object]) -> str:
    """The kind of a schedule whose members are all known for it."""
    kind = source.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        got = f"got {str(kind)[:40]!r}" if "type" in source else "but `type` is missing"
        raise BadSchedule(
            f"expected a schedule type out of {', '.join(KINDS)}, {got}", pointer="/type"
        )
    for name in source:
        if name not in COMMON and name not in KINDS[kind]:
            allowed = ", ".join(sorted(KINDS[kind] | COMMON))
            raise BadSchedule(
                f"expected members out of {allowed} in a schedule of type {kind}, "
                f"got {str(name)[:40]!r}",
                code="unknown_field",
                pointer=f"/{str(name)[:40]}",
            )
    return kind


def text_member(source: Mapping[str, object], name: str, default: str | None = None) -> str:
    """A member that must be text without NUL or lone surrogates."""
    value = source.get(name, default)
    if not isinstance(value, str):
        got = "nothing" if value is None else type(value).__name__
        raise BadSchedule(f"expected `{name}` as text, got {got}", pointer=f"/{name}")
    if "\0" in value or (not value.isprintable() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise BadSchedule(f"expected `{name}` without NUL and lone surrogates", pointer=f"/{name}")
    return value


def read_common(
    source: Mapping[str, object], calendars: Mapping[str, Calendar], budget: Budget
) -> Common:
    """Read the shared members, each or its default."""
    return Common(
        zone=zone(text_member(source, "timezone", "UTC")),
        dst=read_dst(source.get("dst")),
        start_at=_moment(source, "start_at"),
        end_at=_moment(source, "end_at"),
        max_fires=_whole(source, "max_fires", MAX_FIRES_MAX),
        jitter=_elapsed(source, "jitter", DAY),
        window=_elapsed(source, "window", WINDOW_MAX),
        calendars=read_calendars(source.get("calendars"), calendars, budget),
        catchup=read_catchup(source.get("catchup")),
        overlap=_overlap(source.get("overlap")),
        pause_after_failures=_whole(source, "pause_after_failures", FAILURES_MAX),
    )


def _moment(source: Mapping[str, object], name: str) -> Moment | None:
    value = source.get(name)
    return None if value is None else read_moment(value, f"/{name}")


def _whole(source: Mapping[str, object], name: str, most: int, inside: str = "") -> int | None:
    value = source.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    raise BadSchedule(
        f"expected `{name}` as a whole number within 1-{most}, got {str(value)[:40]!r}",
        pointer=f"{inside}/{name}",
    )


def _elapsed(source: Mapping[str, object], name: str, most: int, inside: str = "") -> int:
    value = source.get(name)
    if value is None:
        return 0
    pointer = f"{inside}/{name}"
    found = read_duration(value, pointer).elapsed(pointer)
    if found > most:
        raise BadSchedule(
            f"expected `{name}` of at most {most // MINUTE} minutes, got {value!r}",
            pointer=pointer,
        )
    return found


def _overlap(value: object) -> str | None:
    if value is None or (isinstance(value, str) and value in OVERLAPS):
        return value
    raise BadSchedule(
        f"expected overlap out of {', '.join(OVERLAPS)}, got {str(value)[:40]!r}",
        pointer="/overlap",
    )


def read_catchup(source: object) -> Catchup:
    """The member `catchup`: a policy name, or an object with policy, window and max."""
    if source is None:
        return Catchup()
    if isinstance(source, Catchup):
        return source
    given = {"policy": source} if isinstance(source, str) else source
    if not isinstance(given, Mapping) or set(given) - {"policy", "window", "max"}:
        raise BadSchedule("expected catchup with policy, window and max", pointer="/catchup")
    policy = given.get("policy", "latest")
    if policy not in CATCHUPS:
        raise BadSchedule(
            f"expected catchup.policy out of {', '.join(CATCHUPS)}, got {str(policy)[:40]!r}",
            pointer="/catchup/policy",
        )
    inside = "/catchup"
    window = _elapsed(given, "window", CATCHUP_WINDOW_MAX, inside) if "window" in given else HOUR
    return Catchup(str(policy), window, _whole(given, "max", CATCHUP_MAX_MAX, inside) or 100)
