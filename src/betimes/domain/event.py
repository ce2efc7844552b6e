"""Events: what can happen, how grave it is, and what is told about it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique
from types import MappingProxyType
from typing import Any

ALL = "*"
SUCCEEDED, FAILED = "run.succeeded", "run.failed"
TEST = "endpoint.test"
DISABLED = "endpoint.disabled"
FIRING, RESOLVED = "alert.firing", "alert.resolved"
WARNING, EXCEEDED = "quota.warning", "quota.exceeded"


@unique
class Severity(IntEnum):
    """How much somebody should care."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3


@dataclass(frozen=True, slots=True)
class EventType:
    """A kind of event: what it says, and an example of its data."""

    name: str
    severity: Severity
    says: str
    example: Mapping[str, Any] = field(default_factory=dict)


_JOB = {"job_id": "job_01JD8Q0W0G8S0B3T1N5Y6Z7A8B", "name": "report", "state": "active"}
_RUN = {
    "run_id": "run_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
    "job_id": "job_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
    "queue": "default",
    "handler": "report",
    "attempt": 1,
}
_WORKFLOW = {
    "workflow_run_id": "wfr_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
    "workflow": "nightly",
    "version": 3,
    "state": "running",
}
_QUEUE = {"queue": "mail"}
_ALERT = {
    "alert_id": "alr_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
    "rule": "nightly-late",
    "condition": "job_late",
    "subject": "job_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
    "severity": "error",
    "value": 754.2,
    "threshold": 600.0,
    "since": "2026-01-01T02:10:00.000000Z",
    "targets": [],
}
_ENDPOINT = {"endpoint_id": "ep_01JD8Q0W0G8S0B3T1N5Y6Z7A8B", "name": "on-call"}

_EVERY = (
    EventType("job.created", Severity.INFO, "A job was made.", _JOB),
    EventType("job.updated", Severity.INFO, "The definition of a job was changed.", _JOB),
    EventType("job.paused", Severity.INFO, "Somebody paused a job.", {**_JOB, "state": "paused"}),
    EventType(
        "job.auto_paused",
        Severity.ERROR,
        "A rule paused a job: it failed too often, or its target answered 410.",
        {"job_id": _JOB["job_id"], "code": "JOB_AUTO_PAUSED", "failures": 5},
    ),
    EventType("job.resumed", Severity.INFO, "A job fires again.", _JOB),
    EventType(
        "job.completed",
        Severity.INFO,
        "The schedule of a job has come to its end. Of jobs with a single fire told only where "
        "somebody wants to know: an endpoint that takes this type, or the setting "
        "`run_events: all` of the tenant. Of a job whose last fires were seconds away when it was "
        "made, told when its last run is over.",
        {**_JOB, "state": "completed"},
    ),
    EventType("job.cancelled", Severity.INFO, "A job was ended for good.", _JOB),
    EventType("job.deleted", Severity.INFO, "A job was deleted.", _JOB),
    EventType(
        "run.queued",
        Severity.INFO,
        "Somebody asked for a run; a batch is told once, with how many there are.",
        {"run_id": _RUN["run_id"]},
    ),
    EventType(
        "run.started",
        Severity.INFO,
        "A worker has a run. Written only with the setting `run_events: all` of the tenant.",
        {**_RUN, "state": "running"},
    ),
    EventType(
        SUCCEEDED,
        Severity.INFO,
        "A run succeeded. Written only where somebody wants to know: an endpoint that takes this "
        "type, a callback, or the setting `run_events: all` of the tenant.",
        {**_RUN, "state": "succeeded"},
    ),
    EventType(
        FAILED,
        Severity.WARNING,
        "An attempt failed, with its error; `run.retrying` or `run.dead` says what becomes of the "
        "run. Written only where somebody wants to know: an endpoint that takes this type, or the "
        "setting `run_events: all` of the tenant.",
        {
            **_RUN,
            "state": "retry_wait",
            "error": {"type": "Http503", "message": "https://example.com answered 503"},
        },
    ),
    EventType(
        "run.retrying",
        Severity.WARNING,
        "An attempt failed; there will be another.",
        {**_RUN, "state": "retry_wait", "next_retry_at": "2026-01-01T00:00:05Z"},
    ),
    EventType(
        "run.dead",
        Severity.ERROR,
        "A run is out of attempts and lies in the dead letters.",
        {**_RUN, "state": "dead", "reason": "RETRIES_EXHAUSTED", "attempt": 5},
    ),
    EventType(
        "run.cancelled", Severity.INFO, "A run was cancelled.", {**_RUN, "state": "cancelled"}
    ),
    EventType(
        "run.skipped",
        Severity.WARNING,
        "A run was dropped before it began.",
        {**_RUN, "state": "skipped", "reason": "OVERLAP_SKIPPED"},
    ),
    EventType(
        "run.expired",
        Severity.WARNING,
        "The start deadline of a run passed while it waited.",
        {**_RUN, "state": "expired", "reason": "START_DEADLINE_PASSED"},
    ),
    EventType(
        "run.missed",
        Severity.ERROR,
        "Fires of a job passed while nobody could run them, and are not caught up with.",
        {"job_id": _RUN["job_id"], "state": "missed", "fires": 3, "reason": "CATCHUP_COALESCED"},
    ),
    EventType("workflow_run.started", Severity.INFO, "A workflow was started.", _WORKFLOW),
    EventType(
        "workflow_run.waiting",
        Severity.WARNING,
        "A node of a workflow run waits for an approval or a signal.",
        {**_WORKFLOW, "node": "publish", "gate": "approval"},
    ),
    EventType(
        "workflow_run.retried",
        Severity.INFO,
        "Somebody has some nodes of a workflow run done again.",
        {**_WORKFLOW, "nodes": ["merge", "publish"]},
    ),
    EventType(
        "workflow_run.succeeded",
        Severity.INFO,
        "A workflow run ended, and whatever failed in it was handled.",
        {**_WORKFLOW, "state": "succeeded"},
    ),
    EventType(
        "workflow_run.failed",
        Severity.ERROR,
        "A workflow run ended with a failure, or its time was up.",
        {
            **_WORKFLOW,
            "state": "failed",
            "error": {"type": "NODE_FAILED", "message": "the node 'merge' failed: boom"},
        },
    ),
    EventType(
        "workflow_run.cancelled",
        Severity.INFO,
        "A workflow run was cancelled, or one of its nodes was.",
        {**_WORKFLOW, "state": "cancelled"},
    ),
    EventType("queue.paused", Severity.INFO, "Nothing of a queue is handed out.", _QUEUE),
    EventType("queue.resumed", Severity.INFO, "A queue goes on.", _QUEUE),
    EventType(
        "run.late",
        Severity.WARNING,
        "A run of a job is later than an alert rule `job_late` allows.",
        {"job_id": _RUN["job_id"], "rule": "nightly-late", "value": 754.2, "threshold": 600.0},
    ),
    EventType(
        "queue.lagging",
        Severity.WARNING,
        "Something in a queue has waited longer than an alert rule `queue_lag` allows.",
        {**_QUEUE, "rule": "mail-late", "value": 301.0, "threshold": 300.0},
    ),
    EventType(
        "queue.recovered",
        Severity.INFO,
        "A queue that lagged does so no longer.",
        {**_QUEUE, "rule": "mail-late", "threshold": 300.0},
    ),
    EventType(
        WARNING,
        Severity.WARNING,
        "Most of a quota is used; told at most once an hour.",
        {"quota": "jobs", "limit": 1000, "used": 800},
    ),
    EventType(
        EXCEEDED,
        Severity.ERROR,
        "Something was refused because a quota is used up; told at most once an hour.",
        {"quota": "jobs", "limit": 1000, "used": 1000},
    ),
    EventType(
        "worker.lease_lost",
        Severity.WARNING,
        "A worker was not heard of while it held runs; they are tried again.",
        {"worker_id": "wrk_01JD8Q0W0G8S0B3T1N5Y6Z7A8B", "runs": 12, **_QUEUE},
    ),
    EventType(
        "worker.offline",
        Severity.WARNING,
        "A worker has left, was removed, or was not heard of for an hour.",
        {"worker_id": "wrk_01JD8Q0W0G8S0B3T1N5Y6Z7A8B", "name": "worker-1"},
    ),
    EventType("worker.online", Severity.INFO, "A worker has registered.", {"name": "worker-1"}),
    EventType(
        DISABLED,
        Severity.ERROR,
        "An endpoint takes nothing any more, so nothing more is sent to it.",
        {**_ENDPOINT, "reason": "it has failed since 2026-01-01T00:00:00Z", "failures": 31},
    ),
    EventType(TEST, Severity.INFO, "Somebody wants to see whether an endpoint works.", _ENDPOINT),
    EventType(
        FIRING,
        Severity.ERROR,
        "The condition of an alert rule holds.",
        {**_ALERT, "state": "firing"},
    ),
    EventType(
        RESOLVED,
        Severity.INFO,
        "The condition of an alert rule holds no longer.",
        {**_ALERT, "state": "resolved", "resolved_at": "2026-01-01T02:31:00.000000Z"},
    ),
)
CATALOGUE: Mapping[str, EventType] = MappingProxyType({one.name: one for one in _EVERY})
"""Every type there is, by name."""


def severity_of(kind: str, body: Mapping[str, Any]) -> Severity:
    """How grave an event is; an alert is as grave as its rule says."""
    if kind == FIRING and (said := body.get("severity")) is not None:
        return Severity[str(said).upper()]
    known = CATALOGUE.get(kind)
    return Severity.INFO if known is None else known.severity


def is_pattern(text: str) -> bool:
    """Whether a text names a type, all types of a noun such as `run.*`, or everything."""
    if text == ALL or text in CATALOGUE:
        return True
    noun, dot, rest = text.partition(".")
    return bool(dot) and rest == ALL and any(name.startswith(f"{noun}.") for name in CATALOGUE)


def fits(patterns: Iterable[str], kind: str) -> bool:
    """Whether a type is among those that are named."""
    noun = kind.partition(".")[0]
    return any(one in (ALL, kind, f"{noun}.{ALL}") for one in patterns)
