"""EventBridge: schedules of its Scheduler, rules with a schedule, and templates that make either.

What is read are answers of `aws scheduler get-schedule` and `aws events list-rules`, and resources
of CloudFormation. What only means something inside AWS is named, never dropped silently.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from betimes.domain.errors import BadSchedule, Refused
from betimes.importers.amazon_cron import model, read_expression
from betimes.importers.verdict import Model, Verdict, judged, slug
from betimes.importers.walls import zone_info

WRAPPED = re.compile(r"\s*(cron|rate|at)\(([^()]*)\)\s*")
RATE = re.compile(r"([0-9]+)\s+(minute|hour|day)s?")
UNITS = {"minute": 60, "hour": 3600, "day": 86400}
LAMBDA = re.compile(r"arn:[^:]+:lambda:[^:]*:[^:]*:function:([A-Za-z0-9_-]+)(?::[^:]+)?")
SQS = re.compile(r"arn:[^:]+:sqs:[^:]*:[^:]*:([A-Za-z0-9_.-]+)")
PLACEHOLDER = re.compile(r"<aws\.scheduler\.[a-z-]+>")
SCHEDULE_KIND, RULE_KIND = "AWS::Scheduler::Schedule", "AWS::Events::Rule"
RETRIES, AGE_SECONDS = 185, 86_400
"""What the Scheduler does when a schedule says nothing of retries."""
WINDOW = "PT24H"
KNOWN = frozenset(
    {"Name", "GroupName", "ScheduleExpression", "ScheduleExpressionTimezone", "Target", "Targets",
     "State", "Description", "StartDate", "EndDate", "FlexibleTimeWindow", "ActionAfterCompletion",
     "Arn", "CreationDate", "LastModificationDate", "EventBusName", "RoleArn", "ResponseMetadata",
     "ManagedBy", "CreatedBy"}
)  # fmt: skip
TARGET_KNOWN = frozenset({"Id", "Arn", "RoleArn", "Input", "RetryPolicy", "SqsParameters"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What documents do not say: the time now, and who does the work of queues here."""

    now: datetime
    handler: str = "message"
    queue: str | None = None


def read_eventbridge(documents: Iterable[Any], where: Where) -> list[Verdict]:
    """A verdict for every schedule and every rule of the documents."""
    return judged(list(_all(documents, where)))


def _all(documents: Iterable[Any], where: Where) -> Iterator[Verdict]:
    for number, document in enumerate(documents, 1):
        place = f"document {number}"
        if document is None:
            continue
        if isinstance(document, list):
            yield from _several(document, place, where)
        elif not isinstance(document, Mapping):
            yield Verdict(place=place, source="", reason="an object was expected")
        elif isinstance(document.get("Resources"), Mapping):
            yield from _resources(document["Resources"], where)
        elif "Schedules" in document or "Rules" in document:
            yield from _several(
                document.get("Schedules") or document.get("Rules") or [], place, where
            )
        else:
            yield _one(document, place, where)


def _several(items: Any, place: str, where: Where) -> Iterator[Verdict]:
    for index, item in enumerate(items if isinstance(items, list) else [items], 1):
        yield _one(item, f"{place}, item {index}", where)


def _resources(resources: Mapping[str, Any], where: Where) -> Iterator[Verdict]:
    """Schedules and rules of a template; everything else of it is none of ours."""
    for name, resource in resources.items():
        kind = resource.get("Type") if isinstance(resource, Mapping) else None
        if kind not in (SCHEDULE_KIND, RULE_KIND):
            continue
        members = resource.get("Properties") or {}
        yield _one({"Name": str(name), **members}, f"resource {name}", where)


def _one(document: Any, place: str, where: Where) -> Verdict:
    if not isinstance(document, Mapping):
        return Verdict(place=place, source="", reason="an object was expected")
    name = document.get("Name")
    verdict = Verdict(place=place, source=str(document.get("ScheduleExpression") or name or ""))
    try:
        return _job(document, verdict, where)
    except Refused as refused:
        return replace(verdict, reason=refused.sentence)


def _job(document: Mapping[str, Any], verdict: Verdict, where: Where) -> Verdict:
    name = _text(document, "Name")
    if not name:
        raise BadSchedule("a Name was expected")
    expression = _text(document, "ScheduleExpression")
    if not expression:
        raise BadSchedule(_without_expression(document))
    notes: list[str] = []
    schedule, found_model = _schedule(expression, document, where, notes)
    job: dict[str, Any] = {
        "name": name,
        "schedule": {**schedule, "overlap": "allow"},
        **_work(_target(document), where, notes),
    }
    if document.get("GroupName") not in (None, "default"):
        job["group"] = _text(document, "GroupName")
    if document.get("Description"):
        job["description"] = _text(document, "Description")
    if document.get("ActionAfterCompletion") == "DELETE":
        job["action_after_completion"] = "delete"
    left = sorted(set(document) - KNOWN)
    if left:
        notes.append(f"not carried over: {', '.join(left)}")
    return replace(
        verdict,
        job=job,
        warnings=tuple(notes),
        paused=document.get("State") == "DISABLED",
        model=found_model,
    )


def _without_expression(document: Mapping[str, Any]) -> str:
    if document.get("EventPattern") is not None:
        return "it waits for events (EventPattern) and not for a time; no job here does"
    if "Arn" in document and "Target" in document:
        return (
            "lists leave the expression out; read it with: aws scheduler get-schedule --name "
            f"{document.get('Name')} --group-name {document.get('GroupName', 'default')}"
        )
    return "a ScheduleExpression was expected"


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if isinstance(value, Mapping):
        raise BadSchedule(
            f"{name} is worked out when the template is deployed ({next(iter(value), '')}); "
            "export what was deployed instead"
        )
    return str(value).strip() if value is not None else ""


def _schedule(
    expression: str, document: Mapping[str, Any], where: Where, notes: list[str]
) -> tuple[dict[str, Any], Model | None]:
    found = WRAPPED.fullmatch(expression)
    if found is None:
        raise BadSchedule("cron(…), rate(…) or at(…) was expected")
    kind, body = found[1], found[2].strip()
    zone = _text(document, "ScheduleExpressionTimezone") or "UTC"
    zone_info(zone)
    begin, end = (_moment(document, name) for name in ("StartDate", "EndDate"))
    if end is not None and end <= where.now:
        raise BadSchedule(f"it ended at {_stamp(end)}")
    made: dict[str, Any]
    if kind == "at":
        return _once(body, zone, where), None
    if kind == "cron":
        made = {
            "type": "cron", "expr": body, "dialect": "aws", "timezone": zone,
            "dst": {"gap": "skip", "overlap": "first"},
        }  # fmt: skip
        found_model: Model | None = model(read_expression(body), zone)
    else:
        made, found_model = _rate(body, begin or _moment(document, "CreationDate"), notes)
    made["catchup"] = {"policy": "latest", "window": WINDOW}
    for ours, moment in (("start_at", begin), ("end_at", end)):
        if moment is not None:
            made[ours] = _stamp(moment)
    _window(document, made)
    return made, _within(found_model, begin, end)


def _within(inner: Model | None, begin: datetime | None, end: datetime | None) -> Model | None:
    if inner is None or (begin is None and end is None):
        return inner

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        for instant in inner(after, until):
            if (begin is None or instant >= begin) and (end is None or instant <= end):
                yield instant

    return between


def _once(body: str, zone: str, where: Where) -> dict[str, Any]:
    try:
        wall = datetime.fromisoformat(body)
    except ValueError:
        raise BadSchedule(f"at(yyyy-mm-ddThh:mm:ss) was expected, got at({body[:40]})") from None
    if wall.tzinfo is not None:
        raise BadSchedule("at() takes a local time; its zone is ScheduleExpressionTimezone")
    if wall.replace(tzinfo=zone_info(zone)) <= where.now:
        raise BadSchedule("its time has passed")
    return {"type": "once", "at": wall.isoformat(), "timezone": zone}


def _rate(
    body: str, anchor: datetime | None, notes: list[str]
) -> tuple[dict[str, Any], Model | None]:
    found = RATE.fullmatch(body)
    if found is None or int(found[1]) == 0:
        raise BadSchedule(f"rate(n minutes|hours|days) was expected, got rate({body[:40]})")
    period = timedelta(seconds=int(found[1]) * UNITS[found[2]])
    made: dict[str, Any] = {"type": "interval", "every": f"PT{int(period.total_seconds())}S"}
    if anchor is None:
        notes.append("it says not when it began: the period counts from the import")
        return made, None
    made["anchor"] = _stamp(anchor)

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        step = max(0, (after - anchor) // period + 1)
        while (instant := anchor + step * period) <= until:
            yield instant
            step += 1

    return made, between


def _window(document: Mapping[str, Any], made: dict[str, Any]) -> None:
    window = document.get("FlexibleTimeWindow") or {}
    if isinstance(window, Mapping) and window.get("Mode") == "FLEXIBLE":
        made["window"] = f"PT{int(window.get('MaximumWindowInMinutes', 1))}M"


def _moment(document: Mapping[str, Any], name: str) -> datetime | None:
    """A time as the command line (text) or the wire (seconds) tells it."""
    value = document.get(name)
    if value is None or isinstance(value, datetime):
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        raise BadSchedule(f"{name} as a time was expected, got {value!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _target(document: Mapping[str, Any]) -> Mapping[str, Any]:
    target = document.get("Target")
    targets = document.get("Targets")
    if target is None and isinstance(targets, list):
        if len(targets) > 1:
            raise BadSchedule(f"it has {len(targets)} targets; a job has one: make a rule for each")
        target = targets[0] if targets else None
    if not isinstance(target, Mapping):
        raise BadSchedule(
            "no target is said; put what `aws events list-targets-by-rule` answers under `Targets`"
        )
    return target


def _work(target: Mapping[str, Any], where: Where, notes: list[str]) -> dict[str, Any]:
    """Handler or request, payload, queue and retries."""
    address = _text(target, "Arn")
    made: dict[str, Any] = {"retry": _retry(target)}
    called, queued = LAMBDA.fullmatch(address), SQS.fullmatch(address)
    if called is not None:
        made["handler"] = called[1]
    elif queued is not None:
        made |= {"handler": where.handler, "queue": slug(queued[1].removesuffix(".fifo"))}
        notes.append(
            f"a message of the queue {queued[1]} became a run of {where.handler!r} in our queue"
        )
    elif address.startswith(("https://", "http://")):
        made["target"] = {"type": "http", "method": "POST", "url": address}
    else:
        raise BadSchedule(f"its target {address[:120] or '(none)'} is nothing that can be run here")
    if where.queue:
        made["queue"] = where.queue
    payload = _input(target, notes)
    if payload is not None:
        made["payload"] = payload
    left = sorted(set(target) - TARGET_KNOWN)
    if left:
        notes.append(f"of its target not carried over: {', '.join(left)}")
    return made


def _retry(target: Mapping[str, Any]) -> dict[str, Any]:
    policy = target.get("RetryPolicy") or {}
    retries = int(policy.get("MaximumRetryAttempts", RETRIES))
    age = int(policy.get("MaximumEventAgeInSeconds", AGE_SECONDS))
    return {"max_attempts": retries + 1, "max_elapsed": f"PT{age}S"}


def _input(target: Mapping[str, Any], notes: list[str]) -> Any:
    text = target.get("Input")
    if text is None:
        notes.append("it says no Input: AWS would send an event of its own; here nothing is sent")
        return None
    if not isinstance(text, str):
        return text
    if PLACEHOLDER.search(text):
        notes.append(
            "placeholders such as <aws.scheduler.scheduled-time> in Input stay as they are"
        )
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
