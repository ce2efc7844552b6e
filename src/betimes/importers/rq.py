"""RQ: what rq-scheduler repeats, what RQ itself holds back, and the jobs of its cron scheduler.

Nothing of RQ is imported: a job is known by what its object has. rq-scheduler reads cron by the
wall clock of its machine and wants both day fields to match; RQ's own cron reads it in UTC, and one
of two day fields is enough there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from betimes.domain.errors import BadSchedule, Refused
from betimes.importers.arguments import payload_of
from betimes.importers.verdict import Model, Verdict, judged
from betimes.importers.walls import zone_info

FOREVER = "P3650D"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LAST_WEEKDAY = re.compile(r"l([0-7])")
FIVE, SIX, SEVEN = 5, 6, 7
NextWall = Callable[[str, datetime], datetime | None]
"""The wall clock time at which an expression matches next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What jobs do not say: the time now, the zone of the scheduler's machine, and its own rules.

    `local_next` and `utc_next` ask the libraries that rq-scheduler and RQ use, where they are.
    """

    now: datetime
    timezone: str | None = None
    queue: str | None = None
    local_next: NextWall | None = None
    utc_next: NextWall | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A job that RQ or rq-scheduler holds, and when it is due."""

    job: Any
    due: datetime


@dataclass(frozen=True, slots=True)
class Gone:
    """A job whose own data is there no more."""

    id: str

    @property
    def func_name(self) -> str:
        """Nobody knows."""
        raise BadSchedule("its data is gone from Redis")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A schedule, how it fires there, and what is worth knowing."""

    schedule: dict[str, Any]
    model: Model | None = None
    notes: tuple[str, ...] = ()


def read_rq(entries: Iterable[Any], where: Where) -> list[Verdict]:
    """A verdict for every job that is held, and every job of a cron scheduler."""
    return judged([_one(entry, where) for entry in entries])


def _one(entry: Any, where: Where) -> Verdict:
    held = isinstance(entry, Held)
    job = entry.job if held else entry
    verdict = Verdict(place=f"job {_name_of(job)}", source="")
    try:
        return _held(entry, verdict, where) if held else _cron_job(job, verdict, where)
    except Refused as refused:
        return replace(verdict, reason=refused.sentence)


def _name_of(job: Any) -> str:
    return str(getattr(job, "id", "") or getattr(job, "name", "") or "job")


def _held(entry: Held, verdict: Verdict, where: Where) -> Verdict:
    """A job of a sorted set: repeated by its meta, or due once."""
    job, meta = entry.job, dict(getattr(entry.job, "meta", None) or {})
    verdict = replace(verdict, source=_source(meta, entry.due))
    function = _function(job)
    if getattr(job, "_dependency_ids", None):
        raise BadSchedule("it waits for other jobs (depends_on), which a job here cannot")
    notes: list[str] = []
    made = {
        "name": _name(job, function),
        "description": str(getattr(job, "description", "") or "")[:2000],
        "handler": function,
        "payload": payload_of(job.args, job.kwargs, notes),
        "queue": where.queue or str(job.origin),
        "retry": _retry(job, notes),
    }
    timeout = getattr(job, "timeout", None)
    if timeout is not None and float(timeout) > 0:
        made["timeout"] = f"PT{float(timeout):g}S"
    found = _repeated(meta, entry.due, where)
    made["schedule"] = {**found.schedule, **_manner()}
    return replace(
        verdict, job=made, warnings=(*found.notes, *notes), model=found.model, walks=True
    )


def _source(meta: Mapping[str, Any], due: datetime) -> str:
    if meta.get("cron_string"):
        return str(meta["cron_string"])
    if meta.get("interval"):
        return f"every {meta['interval']} s"
    return f"at {due.isoformat()}"


def _function(job: Any) -> str:
    try:
        found = job.func_name
    except Exception as fault:  # noqa: BLE001 -- unpickling may raise anything
        raise BadSchedule(f"what it calls cannot be read here: {fault}") from None
    if not found:
        raise BadSchedule("it names no function")
    return str(found)


def _name(job: Any, function: str) -> str:
    identity = str(job.id)
    if UUID.fullmatch(identity):
        return f"{function.rpartition('.')[2]}-{identity[:8]}"
    return identity


def _manner() -> dict[str, Any]:
    """A late scheduler enqueues what is overdue once, and never looks at what still runs."""
    return {"overlap": "allow", "catchup": {"policy": "latest", "window": FOREVER}}


def _retry(job: Any, notes: list[str]) -> dict[str, Any]:
    left = int(getattr(job, "retries_left", None) or 0)
    pauses = [float(one) for one in getattr(job, "retry_intervals", None) or ()]
    if left == 0:
        return {"max_attempts": 1}
    if any(pauses):
        return {
            "max_attempts": left + 1, "backoff": "list", "jitter": "none",
            "delays": [f"PT{max(one, 1.0):g}S" for one in pauses],
        }  # fmt: skip
    notes.append("RQ tries again at once; here a second passes before each attempt")
    return {"max_attempts": left + 1, "backoff": "fixed", "initial": "PT1S", "jitter": "none"}


def _repeated(meta: Mapping[str, Any], due: datetime, where: Where) -> Found:
    if meta.get("cron_string"):
        found = local_cron(str(meta["cron_string"]), where)
    elif meta.get("interval"):
        found = _interval(int(meta["interval"]), due)
    elif due <= where.now:
        raise BadSchedule(f"it was due at {_stamp(due)} already; nobody has enqueued it there")
    else:
        return Found(schedule={"type": "once", "at": _stamp(due)})
    if meta.get("repeat") is not None:
        times = max(1, int(meta["repeat"]))
        limited = {**found.schedule, "max_fires": times, "start_at": _stamp(where.now)}
        return replace(found, schedule=limited, model=_first_of(found.model, times))
    return found


def _first_of(model: Model | None, times: int) -> Model | None:
    if model is None:
        return None

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        for number, instant in enumerate(model(after, until)):
            if number == times:
                return
            yield instant

    return between


def _interval(seconds: int, due: datetime) -> Found:
    period = timedelta(seconds=seconds)
    note = "there each period counts from when the last one was served, and slips; here it does not"

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        step = max(0, (after - due) // period + 1)
        while (instant := due + step * period) <= until:
            yield instant
            step += 1

    return Found(
        schedule={"type": "interval", "every": f"PT{seconds}S", "anchor": _stamp(due)},
        model=between,
        notes=(note,),
    )


def local_cron(text: str, where: Where) -> Found:
    """Cron of rq-scheduler: five to seven fields, all of which must match."""
    zone = where.timezone or "UTC"
    zone_info(zone)
    notes = []
    if where.timezone is None:
        notes.append("it goes by the wall clock of the scheduler's machine, read as UTC; say --tz")
    parts = text.lower().split()
    if len(parts) == SIX:
        parts.insert(0, "0")
    if not text.startswith("@") and len(parts) not in (FIVE, SEVEN):
        raise BadSchedule(f"rq-scheduler reads five to seven fields, got {len(parts)}")
    if not text.startswith("@"):
        place = -1 if len(parts) == FIVE else -2
        parts[place] = ",".join(_weekday(one) for one in parts[place].split(","))
        if any("z" in one for one in parts):
            raise BadSchedule("days counted from the end of the month (`Z2`) cannot be said here")
    schedule = {
        "type": "cron", "expr": " ".join(parts), "timezone": zone, "day_match": "and",
        "dst": {"gap": "shift", "overlap": "first"},
    }  # fmt: skip
    asked = where.local_next
    return Found(
        schedule=schedule,
        notes=tuple(notes),
        model=None if asked is None else wall_model(asked, text, zone),
    )


def _weekday(term: str) -> str:
    """`L5` there is `5L` here; `?` is another star."""
    found = LAST_WEEKDAY.fullmatch(term)
    if found is not None:
        return f"{int(found[1]) % 7}L"
    if term.startswith("l"):
        raise BadSchedule(f"a range of last weekdays ({term.upper()}) cannot be said here")
    return "*" if term == "?" else term


def wall_model(following: NextWall, text: str, timezone: str) -> Model:
    """The instants of a library that only knows wall clocks, as rq-scheduler makes them."""
    zone = zone_info(timezone)

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        cursor = after
        while True:
            wall = following(text, cursor.astimezone(zone).replace(tzinfo=None))
            if wall is None:
                return
            instant = wall.replace(tzinfo=zone).astimezone(UTC)
            if instant > until:
                return
            if instant > cursor:
                yield instant
                cursor = instant
            else:  # the first pass of a repeated hour is over: nothing until the second is
                cursor += timedelta(minutes=1)

    return between


def _cron_job(job: Any, verdict: Verdict, where: Where) -> Verdict:
    """A job of RQ's own cron scheduler."""
    notes: list[str] = []
    options = dict(getattr(job, "job_options", None) or {})
    made: dict[str, Any] = {
        "name": str(job.name),
        "handler": str(job.func_name),
        "payload": payload_of(job.args, job.kwargs, notes),
        "queue": where.queue or str(job.queue_name),
        "retry": {"max_attempts": 1},
    }
    if job.cron:
        found = utc_cron(str(job.cron), where)
    else:
        began = getattr(job, "latest_enqueue_time", None) or where.now
        found = _interval(int(job.interval), began)
    if options.get("job_timeout"):
        made["timeout"] = f"PT{float(options.pop('job_timeout')):g}S"
    left = sorted(set(options) - {"result_ttl", "failure_ttl"})
    if left:
        notes.append(f"options not carried over: {', '.join(left)}")
    made["schedule"] = {**found.schedule, **_manner()}
    return replace(
        verdict,
        source=str(job.cron or f"every {job.interval} s"),
        job=made,
        warnings=(*found.notes, *notes),
        model=found.model,
        walks=True,
    )


def utc_cron(text: str, where: Where) -> Found:
    """Cron of RQ: five fields, or six with the second last; in UTC."""
    parts = text.split()
    if len(parts) == SIX:
        parts = [parts[-1], *parts[:-1]]
    elif len(parts) != FIVE and not text.startswith("@"):
        raise BadSchedule(f"RQ reads five or six fields, got {len(parts)}")
    schedule = {"type": "cron", "expr": " ".join(parts), "timezone": "UTC"}
    asked = where.utc_next
    model = None if asked is None else wall_model(asked, text, "UTC")
    return Found(schedule=schedule, model=model)


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
