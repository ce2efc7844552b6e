"""APScheduler 3: jobs of a store, read from the objects themselves.

Nothing of APScheduler is imported: a trigger is known by what its object has. Its cron wants every
field to match, numbers weekdays from Monday, shifts a skipped time by the size of the gap and
fires in both passes of a repeated hour.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from betimes.domain.errors import BadSchedule, Refused
from betimes.importers.arguments import payload_of
from betimes.importers.verdict import Model, Verdict, judged
from betimes.importers.walls import zone_info

ORDER = ("second", "minute", "hour", "day", "month", "day_of_week", "year")
NTH = {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5}
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
XTH = re.compile(r"(1st|2nd|3rd|4th|5th|last)\s+(mon|tue|wed|thu|fri|sat|sun)", re.IGNORECASE)
NUMBER = re.compile(r"[0-9]+")
FOREVER = "P3650D"
MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What jobs do not say themselves."""

    queue: str | None = None
    prefix: str = ""


def read_jobs(jobs: Iterable[Any], where: Where) -> list[Verdict]:
    """A verdict for every job of a store."""
    return judged([_one(job, where) for job in jobs])


def _one(job: Any, where: Where) -> Verdict:
    trigger = getattr(job, "trigger", None)
    name = str(getattr(job, "id", "") or getattr(job, "name", "") or "job")
    verdict = Verdict(place=f"job {name}", source=str(trigger)[:200])
    try:
        return _job(job, name, verdict, where)
    except Refused as refused:
        return replace(verdict, reason=refused.sentence)


def _job(job: Any, name: str, verdict: Verdict, where: Where) -> Verdict:
    reference = getattr(job, "func_ref", None)
    if not reference:
        raise BadSchedule("its function has no name that could be called from elsewhere")
    schedule, notes = schedule_of(job.trigger)
    made: dict[str, Any] = {
        "name": f"{where.prefix}{name}",
        "description": str(getattr(job, "name", "") or ""),
        "schedule": {**schedule, **_catchup(job)},
        "handler": str(reference),
        "payload": payload_of(getattr(job, "args", ()), getattr(job, "kwargs", {}), notes),
    }
    if where.queue:
        made["queue"] = where.queue
    _overlap(job, made, notes)
    grace = getattr(job, "misfire_grace_time", None)
    if grace is not None:
        made["start_deadline"] = f"PT{int(grace)}S"
    return replace(
        verdict,
        job=made,
        warnings=tuple(notes),
        paused=getattr(job, "next_run_time", MISSING) is None,
        model=trigger_model(job.trigger),
        walks=True,
    )


def _catchup(job: Any) -> dict[str, Any]:
    grace = getattr(job, "misfire_grace_time", None)
    window = FOREVER if grace is None else f"PT{int(grace)}S"
    policy = "latest" if getattr(job, "coalesce", True) else "all"
    return {"catchup": {"policy": policy, "window": window}}


def _overlap(job: Any, made: dict[str, Any], notes: list[str]) -> None:
    most = getattr(job, "max_instances", 1)
    made["schedule"]["overlap"] = "skip" if most == 1 else "allow"
    if most > 1:
        made["concurrency"] = {"key": made["name"], "limit": most, "on_limit": "skip"}
        notes.append(f"max_instances {most} became a concurrency limit over all workers")


def schedule_of(trigger: Any) -> tuple[dict[str, Any], list[str]]:
    """Our words for a trigger, and what is worth knowing."""
    if hasattr(trigger, "fields") and hasattr(trigger, "timezone"):
        return _cron(trigger)
    if hasattr(trigger, "interval") and hasattr(trigger, "start_date"):
        return _interval(trigger)
    if hasattr(trigger, "run_date"):
        return {"type": "once", "at": _stamp(trigger.run_date)}, []
    if hasattr(trigger, "triggers"):
        return _combined(trigger)
    raise BadSchedule(f"a trigger of its own kind, {type(trigger).__name__}, cannot be read")


def _combined(trigger: Any) -> tuple[dict[str, Any], list[str]]:
    if type(trigger).__name__ != "OrTrigger":
        raise BadSchedule(
            "a trigger that fires when several agree (AndTrigger) cannot be said here"
        )
    parts, notes = [], []
    for one in trigger.triggers:
        part, more = schedule_of(one)
        parts.append(part)
        notes += more
    return {"type": "union", "of": parts}, notes


def _interval(trigger: Any) -> tuple[dict[str, Any], list[str]]:
    seconds = trigger.interval.total_seconds()
    found: dict[str, Any] = {"type": "interval", "every": f"PT{seconds:g}S"}
    found |= _bounds(trigger)
    found["anchor"] = found.pop("start_at")
    found["start_at"] = found["anchor"]
    return found, _jitter(trigger, found)


def _cron(trigger: Any) -> tuple[dict[str, Any], list[str]]:
    texts = {field.name: str(field).lower() for field in trigger.fields}
    if texts.get("week", "*") != "*":
        raise BadSchedule(f"weeks of the year (week={texts['week']}) cannot be said in cron here")
    zone = str(trigger.timezone)
    zone_info(zone)
    days, weekdays, match = _days(texts["day"], texts["day_of_week"])
    parts = {**texts, "day": days, "day_of_week": weekdays}
    names = list(ORDER)
    if parts["year"] == "*":
        names.remove("year")
        if parts["second"] == "0":
            names.remove("second")
    found: dict[str, Any] = {
        "type": "cron",
        "expr": " ".join(parts[name] for name in names),
        "dialect": "unix",
        "day_match": match,
        "timezone": zone,
        "dst": {"gap": "shift", "overlap": "both"},
    }
    found |= _bounds(trigger)
    notes = _jitter(trigger, found)
    if "*" not in (days, weekdays) and match == "and":
        notes.append("both day fields are set: for APScheduler both must match, and so it stays")
    return found, notes


def _days(day: str, weekday: str) -> tuple[str, str, str]:
    """Both day fields; `3rd fri` and `last` move to where cron says them."""
    named_days = ",".join(_weekday(term) for term in weekday.split(","))
    plain, nth = [], []
    for term in day.split(","):
        found = XTH.fullmatch(term.strip())
        if found is not None:
            which = found[1].lower()
            nth.append(f"{found[2].lower()}{'L' if which == 'last' else f'#{NTH[which]}'}")
        else:
            plain.append("L" if term.strip() == "last" else term.strip())
    if not nth:
        return ",".join(plain), named_days, "and"
    if named_days != "*":
        raise BadSchedule(f"day={day} together with day_of_week={weekday} cannot be said in cron")
    return ",".join(plain) or "*", ",".join(nth), "or" if plain else "and"


def _weekday(term: str) -> str:
    """A term by names, because Monday is 0 there and 1 here; a stepped one is written out."""
    body, _, step = term.partition("/")
    if body == "*" and not step:
        return "*"
    first, dash, last = body.partition("-")
    low = 0 if body == "*" else _day(first)
    high = 6 if body == "*" or (step and not dash) else _day(last or first)
    return ",".join(WEEKDAYS[number] for number in range(low, high + 1, int(step or 1)))


def _day(text: str) -> int:
    return int(text) if NUMBER.fullmatch(text) else WEEKDAYS.index(text[:3])


def _bounds(trigger: Any) -> dict[str, Any]:
    found = {}
    for theirs, ours in (("start_date", "start_at"), ("end_date", "end_at")):
        moment = getattr(trigger, theirs, None)
        if moment is not None:
            found[ours] = _stamp(moment)
    return found


def _jitter(trigger: Any, found: dict[str, Any]) -> list[str]:
    jitter = getattr(trigger, "jitter", None)
    if not jitter:
        return []
    found["jitter"] = f"PT{jitter:g}S"
    return [f"jitter moves a fire by up to {jitter:g} s either way there, only later here"]


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def trigger_model(trigger: Any) -> Model | None:
    """The fires as the trigger itself finds them."""
    if not hasattr(trigger, "get_next_fire_time") or getattr(trigger, "jitter", None):
        return None

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        previous: datetime | None = None
        now = after + timedelta(microseconds=1)
        while True:
            following = trigger.get_next_fire_time(previous, now)
            if following is None or following > until:
                return
            instant = following.astimezone(UTC)
            if previous is not None and instant <= previous.astimezone(UTC):
                return
            yield instant
            previous, now = following, following

    return between


def jobs_of(found: Any) -> list[Any]:
    """The jobs of a scheduler, of a job store, or of a list of jobs."""
    if isinstance(found, list | tuple):
        return list(found)
    if hasattr(found, "get_all_jobs"):
        return list(found.get_all_jobs())
    stores: Mapping[str, Any] = getattr(found, "_jobstores", {})
    if not hasattr(found, "get_jobs"):
        raise BadSchedule("a scheduler, a job store or a list of jobs was expected")
    if getattr(found, "running", False) or not stores:
        return list(found.get_jobs())
    jobs = list(found.get_jobs())
    known = {job.id for job in jobs}
    for alias, store in stores.items():
        store.start(found, alias)
        jobs += [job for job in store.get_all_jobs() if job.id not in known]
    return jobs
