"""The way back: jobs as lines of a crontab, or as CronJobs; what cannot be said there is refused.

What is written is read again by the importer of the same source, and must fire at the same times,
or it is not written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from betimes.domain.errors import BadSchedule, Refused
from betimes.importers import crontab as cron
from betimes.importers import kubernetes as cluster
from betimes.importers.verdict import SOME_TIME, Verdict
from betimes.schedule import parse
from betimes.schedule.moment import to_instant

OVERLAPS = {ours: theirs for theirs, ours in cluster.OVERLAPS.items()}
LOOKED_AT = timedelta(days=800)
FIRES_LOOKED_AT = 20_000
FIELDS = 5


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and the jobs that could not be, each with its reason."""

    lines: list[str]
    documents: list[dict[str, Any]]
    refused: list[tuple[str, str]]


def write_crontab(jobs: Iterable[Mapping[str, Any]]) -> Written:
    """Lines with CRON_TZ and variables in front of those that need them, as cronie reads them."""
    written = Written([], [], [])
    zone, environment = None, None
    for job in jobs:
        try:
            line = _line(job)
            wanted = str(job["schedule"].get("timezone", "UTC"))
            env = dict((job.get("payload") or {}).get("env") or {})
            head = [] if wanted == zone else [f"CRON_TZ={wanted}"]
            if env != environment:
                if environment and set(environment) - set(env):
                    raise BadSchedule("a variable that was set for a line above cannot be unset")
                head += [f'{name}="{value}"' for name, value in sorted(env.items())]
            _same_fires(job, _read_line("\n".join([f"CRON_TZ={wanted}", line, ""])))
        except Refused as refused:
            written.refused.append((str(job.get("name", "-")), refused.sentence))
            continue
        zone, environment = wanted, env
        written.lines.extend([*head, f"# {job.get('name', '')}", line])
    return written


def _line(job: Mapping[str, Any]) -> str:
    payload = job.get("payload")
    if not isinstance(payload, Mapping) or not payload.get("command"):
        raise BadSchedule("a crontab needs a command; its payload has none")
    if payload.get("user"):
        raise BadSchedule(f"it runs as {payload['user']}; a crontab of a user cannot say so")
    command = _escaped(str(payload["command"]))
    if payload.get("stdin") is not None:
        text = str(payload["stdin"]).removesuffix("\n").replace("%", "\\%").replace("\n", "%")
        command = f"{command}%{text}"
    if "\n" in command:
        raise BadSchedule("a command of several lines is no line of a crontab")
    return f"{_expression(job)} {command}"


def _escaped(command: str) -> str:
    return command.replace("\\", "\\\\").replace("%", "\\%")


def _expression(job: Mapping[str, Any]) -> str:
    schedule = job.get("schedule")
    if not isinstance(schedule, Mapping) or schedule.get("type") != "cron":
        raise BadSchedule("only cron schedules can be written there")
    expression = str(schedule["expr"])
    if len(expression.split()) != FIELDS and not expression.startswith("@"):
        raise BadSchedule(f"{expression!r} has other than five fields")
    return expression


def _read_line(text: str) -> Verdict:
    return cron.read_crontab(text, cron.Where(flavour="cronie"))[-1]


def _same_fires(job: Mapping[str, Any], verdict: Verdict) -> None:
    """What was written fires as the job does, or is refused."""
    if verdict.job is None:
        raise BadSchedule(verdict.reason)
    ours, theirs = (_fires(one["schedule"]) for one in (job, verdict.job))
    if ours != theirs:
        raise BadSchedule("it would fire at other times there")


def _fires(schedule: Mapping[str, Any]) -> list[int]:
    read = parse(schedule, now=SOME_TIME)
    until = datetime(2026, 1, 1, tzinfo=UTC) + LOOKED_AT
    return read.instants(to_instant(SOME_TIME), to_instant(until), FIRES_LOOKED_AT)


def write_cron_jobs(jobs: Iterable[Mapping[str, Any]]) -> Written:
    """A CronJob for each job whose payload names an image."""
    written = Written([], [], [])
    for job in jobs:
        try:
            document = _cron_job(job)
            (verdict,) = cluster.read_manifests([document], cluster.Where())
            _same_fires(job, verdict)
        except Refused as refused:
            written.refused.append((str(job.get("name", "-")), refused.sentence))
        else:
            written.documents.append(document)
    return written


def _cron_job(job: Mapping[str, Any]) -> dict[str, Any]:
    payload, schedule = job.get("payload"), job.get("schedule") or {}
    if not isinstance(payload, Mapping) or not payload.get("image"):
        raise BadSchedule("a CronJob needs an image; its payload names none")
    expression = _expression(job)
    overlap = schedule.get("overlap", "skip")
    if overlap not in OVERLAPS:
        raise BadSchedule(f"Kubernetes knows no policy {overlap!r} for overlapping runs")
    container: dict[str, Any] = {"name": "job", "image": payload["image"]}
    container |= {
        name: payload[name] for name in ("command", "args", "workingDir") if name in payload
    }
    if payload.get("env"):
        container["env"] = [
            {"name": name, "value": value} for name, value in payload["env"].items()
        ]
    attempts = (job.get("retry") or {}).get("max_attempts", 5)
    pod = {"restartPolicy": "Never", "containers": [container]}
    metadata: dict[str, Any] = {"name": job.get("name")}
    if job.get("group", "default") != "default":
        metadata["namespace"] = job["group"]
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {
            "schedule": expression,
            "timeZone": str(schedule.get("timezone", "UTC")),
            "concurrencyPolicy": OVERLAPS[overlap],
            "jobTemplate": {
                "spec": {"backoffLimit": attempts - 1, "template": {"spec": pod}},
            },
        },
    }
