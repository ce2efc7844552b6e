"""The door of the room: anything a person may write becomes a complete schedule.

`parse` takes members or a line of shorthand, fills in what depends on the caller (zone, dialect,
creation time), turns words and delays into what they stand for, and hands the rest to
`Schedule.from_dict`. What it returns needs no clock ever again.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from betimes.domain.errors import AmbiguousText, BadSchedule, TooLarge
from betimes.schedule.bounds import (
    DAY,
    RECURRENCE_LENGTH_MAX,
    SECOND,
    UNION_DEPTH_MAX,
    UNION_MEMBERS_MAX,
)
from betimes.schedule.budget import Budget
from betimes.schedule.calendar import Calendar
from betimes.schedule.dst import COMPATIBLE
from betimes.schedule.duration import read_duration
from betimes.schedule.members import inside, text_member
from betimes.schedule.moment import (
    MOMENT,
    Moment,
    instant_text,
    moment_text,
    read_moment,
    to_instant,
    to_local,
)
from betimes.schedule.period import Period
from betimes.schedule.placement import LATEST
from betimes.schedule.schedule import NO_CALENDARS, Schedule
from betimes.schedule.text import read_text
from betimes.schedule.zone import zone

Members = dict[str, object]

PREFIX = re.compile(
    r"(?P<kind>cron|rrule|iso8601|text|every|once|at|interval)\s*:\s*", re.IGNORECASE
)
ZONE_SUFFIX = re.compile(
    r"(?P<rest>.*?)[ \t]+@[ \t]*(?P<zone>[A-Za-z][A-Za-z0-9_+\-/]*)", re.DOTALL
)
AWS = re.compile(r"(?P<kind>cron|rate|at)\((?P<body>[^()]*)\)")
AWS_RATE = re.compile(r"(?P<number>[0-9]{1,9}) (?P<unit>minute|hour|day)s?")
EVERY = re.compile(
    r"every[ \t]+(?P<every>P[0-9A-Z.,]+|(?:[0-9.]+ ?(?:ms|s|m|h|d|w|mo|y))+)"
    r"(?:[ \t]+from[ \t]+(?P<anchor>\S+))?"
)
CRON_FIELD = re.compile(r"[0-9*?HL][0-9A-Za-z*?/,#+()\-]*")
CRON_FIELDS_MIN = 5
RESOLVE_STEPS = 20
"""What filling in one schedule costs, a member of a union included."""


def parse(
    source: str | Mapping[str, object],
    *,
    timezone: str | None = None,
    dialect: str | None = None,
    now: datetime | None = None,
    seed: str = "",
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    dst: object = None,
    budget: Budget | None = None,
) -> Schedule:
    """A schedule from members or shorthand.

    `timezone`, `dialect` and `dst` are defaults for what the source leaves unsaid; `now` is the
    creation time, needed by whatever counts from it; `seed` is the job's id.
    """
    budget = budget or Budget()
    members = complete(source, timezone=timezone, dialect=dialect, now=now, dst=dst, budget=budget)
    return Schedule.from_dict(members, seed=seed, calendars=calendars, budget=budget)


def complete(
    source: str | Mapping[str, object],
    *,
    timezone: str | None = None,
    dialect: str | None = None,
    now: datetime | None = None,
    dst: object = None,
    budget: Budget | None = None,
) -> Members:
    """The members `parse` builds a schedule from: equal ones make equal schedules."""
    members = shorthand(source) if isinstance(source, str) else _copied(source)
    if timezone is not None:
        members.setdefault("timezone", timezone)
    if dst is not None:
        members.setdefault("dst", dst)
    if dialect is not None and members.get("type") == "cron":
        members.setdefault("dialect", dialect)
    return resolve_members(members, now, budget or Budget())


def counts_from_now(source: object) -> bool:
    """Whether fires may be over when it is read by a clock that is behind: delays, words, counts.

    An anchor that is filled in does not matter here: a period goes on.
    """
    members = shorthand(source) if isinstance(source, str) else source
    if not isinstance(members, Mapping):
        return False
    if members.get("type") in {"delay", "text"}:
        return True
    if members.get("max_fires") is not None and members.get("start_at") is None:
        return True
    entries = members.get("of")
    return isinstance(entries, list | tuple) and any(
        counts_from_now(entry) for entry in entries[:UNION_MEMBERS_MAX]
    )


def _copied(source: object) -> Members:
    if not isinstance(source, Mapping):
        raise BadSchedule(
            f"expected a schedule as an object or as text, got {type(source).__name__}"
        )
    return {str(name): value for name, value in source.items()}


def shorthand(text: str) -> Members:
    """One line of text as members; see the reference for its forms."""
    if len(text) > RECURRENCE_LENGTH_MAX:
        raise TooLarge(
            f"expected a schedule of at most {RECURRENCE_LENGTH_MAX} characters, got {len(text)}"
        )
    line = text.strip(" \t\r\n")
    suffix = ZONE_SUFFIX.fullmatch(line)
    if suffix is not None:
        return {**shorthand_body(suffix["rest"].strip(" \t")), "timezone": suffix["zone"]}
    return shorthand_body(line)


def shorthand_body(line: str) -> Members:
    """Shorthand without its zone."""
    prefix = PREFIX.match(line)
    if prefix is not None:
        return _prefixed(prefix["kind"].lower(), line[prefix.end() :])
    aws = AWS.fullmatch(line)
    if aws is not None:
        return _aws(aws["kind"], aws["body"])
    every = EVERY.fullmatch(line)
    if every is not None:
        anchor = {"anchor": every["anchor"]} if every["anchor"] else {}
        return {"type": "interval", "every": every["every"], **anchor}
    if line.startswith("@every"):
        return {"type": "interval", "every": line.removeprefix("@every").strip()}
    return _by_looks(line)


LOOKS = (
    (re.compile(r"manual"), "manual", ""),
    (re.compile(r"R[0-9]*/.*"), "iso8601", "expr"),
    (re.compile(r".*FREQ=.*", re.DOTALL | re.IGNORECASE), "rrule", "expr"),
    (re.compile(r"P[0-9T][^ ]*"), "interval", "every"),
    (MOMENT, "once", "at"),
    (re.compile(r"(?:@|CRON_TZ|TZ=).*"), "cron", "expr"),
)
"""What a line looks like, and the member it then is."""


def _by_looks(line: str) -> Members:
    for pattern, kind, member in LOOKS:
        if pattern.fullmatch(line):
            return {"type": kind, member: line} if member else {"type": kind}
    fields = line.split()
    looks_like_cron = len(fields) >= CRON_FIELDS_MIN and all(
        CRON_FIELD.match(field) for field in fields[:2]
    )
    return {"type": "cron" if looks_like_cron else "text", "expr": line}


def _prefixed(kind: str, body: str) -> Members:
    if kind in {"every", "interval"}:
        return shorthand_body(body if body.startswith("every") else f"every {body}")
    if kind in {"once", "at"}:
        return {"type": "once", "at": body}
    if kind == "cron" and body.startswith("@every"):
        return shorthand_body(body)
    return {"type": kind, "expr": body}


def _aws(kind: str, body: str) -> Members:
    """The wrappers of EventBridge: `cron(…)`, `rate(…)`, `at(…)`."""
    if kind == "cron":
        return {"type": "cron", "expr": body, "dialect": "aws"}
    if kind == "at":
        return {"type": "once", "at": body}
    found = AWS_RATE.fullmatch(body)
    if found is None:
        raise BadSchedule(f"expected rate(n minutes|hours|days), got rate({body[:40]})")
    seconds = {"minute": 60, "hour": 3600, "day": DAY // SECOND}[found["unit"]]
    return {"type": "interval", "every": int(found["number"]) * seconds}


def resolve_members(
    source: Mapping[str, object], now: datetime | None, budget: Budget, depth: int = 0
) -> Members:
    """Members with nothing left to be filled in from a clock.

    Unions deeper than allowed are left as they are, to be refused by their depth.
    """
    budget.spend(RESOLVE_STEPS)
    members = _copied(source)
    match members.get("type"):
        case "text":
            members = _from_text(members, now)
        case "cron" if str(members.get("expr", "")).startswith("@every"):
            members = _from_every(members)
        case "union" if depth < UNION_DEPTH_MAX:
            members["of"] = _resolve_union(members, now, budget, depth + 1)
        case _:
            pass
    if members.get("type") == "delay":
        members = _from_delay(members, now, budget)
    if members.get("type") == "interval" or _lacks_start(members):
        _fill_anchor(members, now)
    if members.get("max_fires") is not None and members.get("start_at") is None:
        members["start_at"] = instant_text(_known(now, "max_fires", "start_at"))
    return members


def _resolve_union(members: Members, now: datetime | None, budget: Budget, depth: int) -> object:
    entries = members.get("of")
    if not isinstance(entries, list | tuple):
        return entries
    shared = {"timezone": members["timezone"]} if "timezone" in members else {}
    found: list[object] = []
    for index, entry in enumerate(entries[: UNION_MEMBERS_MAX + 1]):
        with inside(f"/of/{index}"):
            read = shorthand(entry) if isinstance(entry, str) else entry
            if isinstance(read, Mapping):
                read = resolve_members({**shared, **read}, now, budget, depth)
        found.append(read)
    return found


def _from_every(members: Members) -> Members:
    every = str(members.pop("expr")).removeprefix("@every").strip()
    for name in ("dialect", "day_match", "wrap"):
        members.pop(name, None)
    return {**members, "type": "interval", "every": every}


def _from_text(members: Members, now: datetime | None) -> Members:
    """Words become what they stand for; `accept_first` takes the first of several readings."""
    text = text_member(members, "expr")
    rest = {k: v for k, v in members.items() if k not in {"type", "expr", "accept_first"}}
    body = text
    suffix = re.fullmatch(r"(?P<rest>.+) in (?P<zone>[A-Z][A-Za-z_]+/[A-Za-z0-9_+\-/]+|UTC)", text)
    if suffix is not None:
        body, rest["timezone"] = suffix["rest"], suffix["zone"]
    wall = None
    if now is not None:
        where = zone(text_member(rest, "timezone", "UTC"))
        wall = to_local(to_instant(now), where).replace(tzinfo=None)
    try:
        found = read_text(body, wall)
    except AmbiguousText as refusal:
        if members.get("accept_first") is not True:
            raise
        found = _first_reading(refusal)
    return {**rest, **found}


def _first_reading(refusal: AmbiguousText) -> Members:
    """The first alternative, which is always a line that can be read."""
    members = shorthand(refusal.alternatives[0])
    return read_text(str(members["expr"])) if members["type"] == "text" else members


def _from_delay(members: Members, now: datetime | None, budget: Budget) -> Members:
    """A delay is the moment it leads to."""
    begin = _known(now, "after", "at")
    after = read_duration(members.pop("after", None), "/after")
    where = zone(text_member(members, "timezone", "UTC"))
    if after.is_elapsed:
        at = begin + after.micros
    else:
        local = begin + where.offset(begin // SECOND) * SECOND
        period = Period(local, after, where, COMPATIBLE)
        found = period.between(begin, 1 << 62, 1, budget)
        if not found:
            raise BadSchedule(
                f"expected a delay that ends before 2200, got {after}", pointer="/after"
            )
        at = found[0]
    if at >= LATEST * SECOND:
        raise BadSchedule(f"expected a delay that ends before 2200, got {after}", pointer="/after")
    return {**members, "type": "once", "at": instant_text(at)}


def _lacks_start(members: Members) -> bool:
    return members.get("type") == "rrule" and "DTSTART" not in str(members.get("expr", "")).upper()


def _fill_anchor(members: Members, now: datetime | None) -> None:
    """A rate without an anchor counts from start_at, or from its creation, to the second."""
    if members.get("anchor") is not None:
        return
    if members.get("start_at") is not None:
        start = read_moment(members["start_at"], "/start_at")
        members["anchor"] = moment_text(start)
        return
    begin = _known(now, str(members.get("type")), "anchor")
    members["anchor"] = moment_text(Moment(begin // SECOND * SECOND, 0))


def _known(now: datetime | None, what: str, instead: str) -> int:
    if now is None:
        raise BadSchedule(
            f"expected `{instead}`, because `{what}` counts from a time that was not given",
            pointer=f"/{instead}",
        )
    return to_instant(now)
