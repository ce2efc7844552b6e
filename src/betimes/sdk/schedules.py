"""Schedules in decorators: what they mean, and how they get to the service."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from betimes.schedule import parse
from betimes.schedule.parse import shorthand
from betimes.sdk.ambient import wall_clock
from betimes.sdk.options import SCHEDULE_MEMBERS, plain, run_members

if TYPE_CHECKING:
    from betimes.sdk.application import App
    from betimes.sdk.task import AnyTask
    from betimes.sdk.workflow import AnyWorkflow
    from betimes.wire.apply import Applied

OWNER_TAG = "betimes.app"


class Fire(NamedTuple):
    """One occurrence of a schedule."""

    utc: datetime
    local: datetime
    flags: list[str]
    """What is special about it, such as `dst_gap_shifted`."""


def members_of(task: "AnyTask | AnyWorkflow") -> dict[str, Any]:
    """The schedule of a task or workflow as the API reads it; decorators may say it in parts."""
    options: dict[str, Any] = dict(task.options)
    source = options.get("schedule")
    if source is None:
        raise ValueError(f"expected {task!r} to have a schedule, it has none")
    members = dict(shorthand(source) if isinstance(source, str) else source)
    for name in SCHEDULE_MEMBERS - {"schedule"}:
        if options.get(name) is not None:
            members[name] = plain(options[name])
    return members


def next_fires(task: "AnyTask | AnyWorkflow", count: int) -> list[Fire]:
    """The next fires, worked out here; a schedule that names calendars asks the service."""
    members = members_of(task)
    if "calendars" in members:
        told = task.app.client.schedules.preview(schedule=members, count=count)
        return [_told(one) for one in told.occurrences][:count]
    now = wall_clock()
    schedule = parse(members, now=now, seed=task.name)
    return [
        Fire(fire.nominal.astimezone(UTC), fire.local, list(fire.flags))
        for fire in schedule.fires(now, limit=count)
    ]


def _told(one: dict[str, Any]) -> Fire:
    utc = datetime.fromisoformat(one["utc"])
    local = datetime.fromisoformat(f"{one['local']}{one['offset']}")
    return Fire(utc, local, list(one["flags"]))


def sync(app: "App", *, prune: bool, dry_run: bool) -> "Applied":
    """Bring workflows to the service, then the jobs of an app as one set, marked by its name."""
    from betimes.sdk.exchange import Given  # noqa: PLC0415 -- only who calls needs it
    from betimes.sdk.operations import JOBS_APPLY  # noqa: PLC0415 -- as above

    owner = {OWNER_TAG: app.name}
    jobs = [_job(task, owner) for task in app.tasks.values() if task.options.get("schedule")]
    jobs += [_starting(one, owner) for one in app.workflows.values() if one.options.get("schedule")]
    if not dry_run:
        for workflow in app.workflows.values():
            app.client.perform(*workflow.putting())
    body = {"jobs": jobs, "selector": {"tags": owner}, "prune": prune, "dry_run": dry_run}
    applied: Applied = app.client.perform(JOBS_APPLY, Given(body=body))
    return applied


def _job(task: "AnyTask", owner: dict[str, str]) -> dict[str, Any]:
    job: dict[str, Any] = {
        "name": task.name,
        "handler": task.name,
        "schedule": members_of(task),
        **run_members(dict(task.options)),
    }
    if description := task.options.get("description"):
        job["description"] = description
    job["tags"] = {**job.get("tags", {}), **owner}
    # A schedule calls without arguments: better refused here than by every fire.
    task.arguments.decode(None)
    return job


def _starting(workflow: "AnyWorkflow", owner: dict[str, str]) -> dict[str, Any]:
    """The job that starts a workflow."""
    job: dict[str, Any] = {
        "name": workflow.name,
        "target": {"type": "workflow", "workflow": workflow.name},
        "schedule": members_of(workflow),
        "tags": {**workflow.options.get("tags", {}), **owner},
    }
    if description := workflow.options.get("description"):
        job["description"] = description
    # As above: better refused here than by every fire.
    data = workflow.encode()
    if data is not None:
        job["payload"] = msgspec.Raw(data)
    return job
