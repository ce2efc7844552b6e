"""Celery beat: entries of a beat schedule, read from the objects themselves.

Nothing of Celery is imported: an entry is known by what its object has. Celery's crontab wants
every field to match. When the clock jumps, its wall clock arithmetic shifts a skipped time by the
size of the gap and serves a repeated hour once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from betimes.domain.errors import BadSchedule, Refused
from betimes.importers.arguments import payload_of
from betimes.importers.verdict import Model, Verdict, judged
from betimes.importers.walls import zone_info

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
CARRIED = frozenset({"queue", "priority", "expires", "time_limit"})
WINDOW = "P3650D"
PRIORITY_MOST = 9
SHORTEST_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What an application says outside its entries."""

    timezone: str = "UTC"
    queue: str | None = None
    prefix: str = ""


def read_beat(entries: Mapping[str, Any], where: Where) -> list[Verdict]:
    """A verdict for every entry of a beat schedule."""
    zone_info(where.timezone)
    return judged([_entry(str(name), entry, where) for name, entry in entries.items()])


def _entry(name: str, entry: Any, where: Where) -> Verdict:
    verdict = Verdict(place=f"entry {name}", source=_source(entry))
    try:
        return _job(name, entry, verdict, where)
    except Refused as refused:
        return replace(verdict, reason=refused.sentence)


def _source(entry: Any) -> str:
    schedule = entry.get("schedule") if isinstance(entry, Mapping) else entry
    return str(schedule)[:200]


def _job(name: str, entry: Any, verdict: Verdict, where: Where) -> Verdict:
    if not isinstance(entry, Mapping) or not entry.get("task"):
        raise BadSchedule("an entry with a `task` was expected")
    schedule, model, notes = _schedule(entry.get("schedule"), where)
    more: list[str] = []
    job: dict[str, Any] = {
        "name": f"{where.prefix}{name}",
        "schedule": {
            **schedule,
            "overlap": "allow",
            "catchup": {"policy": "latest", "window": WINDOW},
        },
        "handler": str(entry["task"]),
        "payload": payload_of(entry.get("args"), entry.get("kwargs"), more),
    }
    if where.queue:
        job["queue"] = where.queue
    more += _options(job, entry.get("options") or {})
    return replace(verdict, job=job, warnings=(*notes, *more), model=model, walks=True)


def _options(job: dict[str, Any], options: Mapping[str, Any]) -> list[str]:
    notes = []
    if options.get("queue"):
        job["queue"] = str(options["queue"])
    if options.get("priority") is not None:
        priority = int(options["priority"])
        job["priority"] = min(PRIORITY_MOST, max(0, priority))
        notes.append("priorities depend on the broker in Celery; here 9 is the most urgent")
    if options.get("expires") is not None:
        job["start_deadline"] = _seconds(options["expires"], "expires")
    if options.get("time_limit") is not None:
        job["timeout"] = _seconds(options["time_limit"], "time_limit")
    left = sorted(set(options) - CARRIED)
    if left:
        notes.append(f"options not carried over: {', '.join(left)}")
    return notes


def _seconds(value: Any, name: str) -> str:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise BadSchedule(f"{name} as a number of seconds was expected, got {value!r}")
    return f"PT{value:g}S"


def _schedule(schedule: Any, where: Where) -> tuple[dict[str, Any], Model | None, list[str]]:
    if all(isinstance(getattr(schedule, field, None), set | frozenset) for field in FIELDS):
        return _crontab(schedule, where)
    if hasattr(schedule, "event") and hasattr(schedule, "lat"):
        raise BadSchedule(
            f"solar events ({schedule.event}) depend on the sun; no schedule here does"
        )
    period = getattr(schedule, "run_every", schedule)
    if isinstance(period, bool) or not isinstance(period, int | float | timedelta):
        raise BadSchedule(f"a schedule of its own kind, {type(schedule).__name__}, cannot be read")
    seconds = period.total_seconds() if isinstance(period, timedelta) else float(period)
    if seconds < SHORTEST_SECONDS:
        raise BadSchedule(f"a period of at least a second was expected, got {seconds:g} s")
    notes = ["beat counts from the last start, here fires are counted from the import"]
    if getattr(schedule, "relative", False):
        notes = ["relative: beat rounds to whole units of time, here fires count from the import"]
    return {"type": "interval", "every": f"PT{seconds:g}S", "timezone": where.timezone}, None, notes


def _crontab(schedule: Any, where: Where) -> tuple[dict[str, Any], Model | None, list[str]]:
    sets = [getattr(schedule, field) for field in FIELDS]
    members = {
        "type": "cron",
        "expr": " ".join(_written(one, span) for one, span in zip(sets, RANGES, strict=True)),
        "dialect": "celery",
        "timezone": where.timezone,
        "dst": {"gap": "shift", "overlap": "first"},
    }
    restricted = [set(one) != set(range(low, high + 1))
                  for one, (low, high) in zip(sets, RANGES, strict=True)]  # fmt: skip
    notes = []
    if restricted[2] and restricted[4]:
        notes.append("both day fields are set: for Celery both must match, and so it stays")
    return members, beat_model(schedule), notes


def _written(values: Iterable[int], span: tuple[int, int]) -> str:
    """Numbers as a field; all of them are a star, evenly spread ones have a step."""
    low, high = span
    found = sorted(int(value) for value in values)
    if found == list(range(low, high + 1)):
        return "*"
    if len(found) > 2:  # noqa: PLR2004 -- two numbers are shorter as a list
        step = found[1] - found[0]
        if step > 1 and found == list(range(low, high + 1, step)):
            return f"*/{step}"
        if found == list(range(found[0], found[-1] + 1)):
            return f"{found[0]}-{found[-1]}"
    return ",".join(map(str, found))


def beat_model(schedule: Any) -> Model | None:
    """The fires as beat itself finds them: always the next one after the last start."""
    if not hasattr(schedule, "remaining_estimate"):
        return None

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        kept = schedule.nowfun
        now = after
        try:
            while True:
                at = now.astimezone(schedule.tz)
                schedule.nowfun = lambda at=at: at
                remaining = schedule.remaining_estimate(at)
                following = (now + remaining).astimezone(UTC).replace(microsecond=0)
                if following <= now or following > until:
                    return
                yield following
                now = following
        finally:
            schedule.nowfun = kept

    return between
