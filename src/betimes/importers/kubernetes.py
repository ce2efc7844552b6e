"""Kubernetes CronJobs: every document becomes a job or a refusal; what is left behind is named."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from betimes.domain.errors import BadSchedule, Refused
from betimes.importers.robfig import every_seconds, model, read_expression
from betimes.importers.verdict import Verdict, judged
from betimes.importers.walls import zone_info

OVERLAPS = {"Allow": "allow", "Forbid": "skip", "Replace": "replace"}
VERSIONS = ("batch/v1", "batch/v1beta1")
BACKOFF_LIMIT = 6
FORBID = (
    "Forbid drops a start there only until the run before it ends, and may then start late; "
    "`skip` drops it for good (`buffer_one` would wait)"
)
LATEST_WINDOW = "P3650D"
HISTORY = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit", "ttlSecondsAfterFinished")
SPEC_KNOWN = frozenset(
    {"schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend",
     "jobTemplate", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}
)  # fmt: skip
JOB_KNOWN = frozenset({"template", "backoffLimit", "activeDeadlineSeconds", "parallelism",
                       "completions", "ttlSecondsAfterFinished", "suspend"})  # fmt: skip
POD_KNOWN = frozenset({"containers", "initContainers", "restartPolicy"})
CONTAINER_KNOWN = frozenset({"name", "image", "command", "args", "env", "workingDir"})
PLAIN = frozenset({"imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What manifests do not say: the zone of the controller, and who does the work here."""

    timezone: str | None = None
    handler: str = "container"
    queue: str | None = None


def read_manifests(documents: Iterable[Any], where: Where) -> list[Verdict]:
    """A verdict for every document."""
    return judged(list(_all(documents, where)))


def _all(documents: Iterable[Any], where: Where) -> Iterator[Verdict]:
    for number, document in enumerate(documents, 1):
        place = f"document {number}"
        if document is None:
            continue
        if not isinstance(document, Mapping):
            yield Verdict(place=place, source="", reason="an object was expected")
            continue
        if str(document.get("kind", "")).endswith("List"):
            items = document.get("items") or []
            yield from (
                _one(item, f"{place}, item {index}", where) for index, item in enumerate(items, 1)
            )
            continue
        yield _one(document, place, where)


def _one(document: Any, place: str, where: Where) -> Verdict:
    if not isinstance(document, Mapping):
        return Verdict(place=place, source="", reason="an object was expected")
    kind = document.get("kind")
    try:
        metadata = _members(document, "metadata")
    except Refused as refused:
        return Verdict(place=place, source=str(kind), reason=refused.sentence)
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    verdict = Verdict(place=place, source=f"{kind} {name}".strip())
    if kind != "CronJob":
        return replace(verdict, reason=f"a CronJob was expected, got kind {kind!r}")
    if document.get("apiVersion") not in VERSIONS:
        return replace(
            verdict,
            reason=f"apiVersion {VERSIONS[0]} was expected, got {document.get('apiVersion')!r}",
        )
    if not metadata.get("name"):
        return replace(verdict, reason="metadata.name was expected")
    try:
        return _job(document, metadata, verdict, where)
    except Refused as refused:
        return replace(verdict, reason=refused.sentence)


def _members(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadSchedule(f"{name} as an object was expected, got {type(value).__name__}")
    return value


def _job(
    document: Mapping[str, Any], metadata: Mapping[str, Any], verdict: Verdict, where: Where
) -> Verdict:
    spec = _members(document, "spec")
    template = _members(_members(spec, "jobTemplate"), "spec")
    container, warnings = _container(template)
    warnings += _left_behind(spec, template)
    timezone, zone_notes = _zone(spec, where)
    schedule, source_model, notes = _schedule(spec, timezone)
    job: dict[str, Any] = {
        "name": metadata["name"],
        "schedule": {**schedule, "timezone": timezone, **_policies(spec)},
        "handler": where.handler,
        "payload": container,
        "retry": _retry(template),
    }
    if metadata.get("namespace") and metadata["namespace"] != "default":
        job["group"] = metadata["namespace"]
    if where.queue:
        job["queue"] = where.queue
    labels = _members(metadata, "labels")
    if labels:
        job["metadata"] = {"labels": dict(labels)}
    deadline = template.get("activeDeadlineSeconds")
    if deadline is not None:
        job["timeout"] = f"PT{_whole(deadline, 'activeDeadlineSeconds')}S"
        if job["retry"]["max_attempts"] > 1:
            warnings.append(
                "activeDeadlineSeconds bounds all attempts together there, each one here"
            )
    if spec.get("startingDeadlineSeconds") is not None:
        seconds = _whole(spec["startingDeadlineSeconds"], "startingDeadlineSeconds")
        job["start_deadline"] = f"PT{seconds}S"
    return replace(
        verdict,
        job=job,
        warnings=(*zone_notes, *notes, *warnings, *_about_overlap(spec)),
        paused=bool(spec.get("suspend")),
        model=source_model,
    )


def _schedule(spec: Mapping[str, Any], timezone: str) -> tuple[dict[str, object], Any, list[str]]:
    text = spec.get("schedule")
    if not isinstance(text, str) or not text.strip():
        raise BadSchedule("spec.schedule as text was expected")
    period = every_seconds(text)
    if period is not None:
        note = "@every counts from the last run there, from the import here"
        return {"type": "interval", "every": f"PT{period:.0f}S"}, None, [note]
    expression = read_expression(text.strip())
    notes = [note for field in expression.fields for note in field.notes]
    if "*" not in (expression.fields[2].text, expression.fields[4].text):
        meaning = "both must match" if expression.together else "either is enough"
        notes.append(f"both day fields are set: for Kubernetes {meaning}, and so it stays")
    return expression.members, model(expression, timezone), notes


def _zone(spec: Mapping[str, Any], where: Where) -> tuple[str, list[str]]:
    named_zone = spec.get("timeZone")
    if named_zone is not None:
        if named_zone == "Local":
            raise BadSchedule("timeZone Local is refused by Kubernetes as well")
        zone_info(str(named_zone))
        return str(named_zone), []
    if where.timezone is not None:
        return where.timezone, []
    return "UTC", ["no timeZone: read in UTC; Kubernetes takes its controller's zone: say --tz"]


def _policies(spec: Mapping[str, Any]) -> dict[str, Any]:
    policy = spec.get("concurrencyPolicy", "Allow")
    if not isinstance(policy, str) or policy not in OVERLAPS:
        raise BadSchedule(f"concurrencyPolicy {', '.join(OVERLAPS)} was expected, got {policy!r}")
    window = LATEST_WINDOW
    if spec.get("startingDeadlineSeconds") is not None:
        window = f"PT{_whole(spec['startingDeadlineSeconds'], 'startingDeadlineSeconds')}S"
    return {"overlap": OVERLAPS[policy], "catchup": {"policy": "latest", "window": window}}


def _about_overlap(spec: Mapping[str, Any]) -> list[str]:
    if spec.get("concurrencyPolicy") != "Forbid":
        return []
    return [FORBID]


def _retry(template: Mapping[str, Any]) -> dict[str, Any]:
    limit = _whole(template.get("backoffLimit", BACKOFF_LIMIT), "backoffLimit")
    found: dict[str, Any] = {"max_attempts": limit + 1}
    if limit:
        found |= {"backoff": "exponential", "initial": "PT10S", "factor": 2, "max": "PT6M"}
        found["jitter"] = "none"
    return found


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadSchedule(f"{name} as a whole number was expected, got {value!r}")
    return value


def _container(template: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    for name in ("parallelism", "completions"):
        if _whole(template.get(name, 1) if template.get(name) is not None else 1, name) != 1:
            raise BadSchedule(f"{name} other than 1 starts several pods; a run is one")
    pod = _members(_members(template, "template"), "spec")
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], Mapping):
        raise BadSchedule("a container was expected in jobTemplate.spec.template.spec.containers")
    if len(containers) > 1 or pod.get("initContainers"):
        raise BadSchedule("several containers work together in its pod; a run is one command")
    container = containers[0]
    payload: dict[str, Any] = {}
    for name in ("image", "command", "args", "workingDir"):
        if container.get(name) is not None:
            payload[name] = container[name]
    environment, warnings = _environment(container)
    if environment:
        payload["env"] = environment
    dropped = sorted(set(container) - CONTAINER_KNOWN - PLAIN)
    dropped += [f"pod {name}" for name in sorted(set(pod) - POD_KNOWN)]
    if dropped:
        warnings.append(f"not carried over: {', '.join(dropped)}")
    if pod.get("restartPolicy") == "OnFailure":
        warnings.append(
            "OnFailure restarts the container in its pod; here a retry is a new attempt"
        )
    return payload, warnings


def _environment(container: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Variables that are written out, and a warning for each that is not."""
    found: dict[str, str] = {}
    warnings = []
    for one in container.get("env") or []:
        if not isinstance(one, Mapping) or "name" not in one:
            raise BadSchedule("env as a list of {name, value} was expected")
        if "valueFrom" in one:
            warnings.append(f"env {one['name']} comes from a secret or a field and is not carried")
        else:
            found[str(one["name"])] = str(one.get("value", ""))
    return found, warnings


def _left_behind(spec: Mapping[str, Any], template: Mapping[str, Any]) -> list[str]:
    warnings = []
    limits = [name for name in HISTORY if name in {**spec, **template}]
    if limits:
        warnings.append(f"{', '.join(limits)}: history is kept by the retention of the tenant")
    unknown = sorted((set(spec) - SPEC_KNOWN) | (set(template) - JOB_KNOWN))
    if unknown:
        warnings.append(f"not carried over: {', '.join(unknown)}")
    return warnings
