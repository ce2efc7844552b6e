"""Things named in paths: by id, by name, or by group and name."""

from typing import Any

from betimes.api.call import Call
from betimes.api.problem import Trouble
from betimes.api.shaping import missing, read_id
from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId, RunId, time_of
from betimes.domain.job import GROUP_DEFAULT, Job
from betimes.ops.checks import NAME_LENGTH_MAX
from betimes.ops.desk import Desk
from betimes.ops.grip import no_such_job
from betimes.ops.read import get_job, get_named_job
from betimes.ops.runs import RunView, get_run

JOB_PREFIX = "job_"
SEPARATOR = "~"


async def find_job(call: Call[Any, Any], desk: Desk | None = None) -> Job:
    """The job a path means: `job_…`, `name`, or `group~name`."""
    text = call.path["job"]
    desk = desk or call.service.desk
    try:
        if text.startswith(JOB_PREFIX):
            return await _by_id(call, desk, JobId(read_id(desk, "job", text, "job")))
        group, name = split_name(text)
        return await get_named_job(desk, call.tenant, name, group=group)
    except NotFound:
        raise missing("job", text) from None


async def job_of(call: Call[Any, Any], text: str) -> JobId:
    """The job a parameter means; an id is taken as it is: what is left of it may be asked for."""
    desk = call.service.desk
    if text.startswith(JOB_PREFIX):
        return JobId(read_id(desk, "job", text, "job"))
    try:
        group, name = split_name(text)
        return (await get_named_job(desk, call.tenant, name, group=group)).id
    except NotFound:
        raise missing("job", text) from None


async def _by_id(call: Call[Any, Any], desk: Desk, job: JobId) -> Job:
    if desk.connection is not None:
        return await get_job(desk, call.tenant, job)
    found = await call.service.job_reads.get(call.tenant, job)
    if found is None or found.tenant != call.tenant:
        raise no_such_job(job)
    return found


def split_name(text: str) -> tuple[str, str]:
    """Group and name out of one path segment."""
    group, separator, name = text.partition(SEPARATOR)
    if not separator:
        group, name = GROUP_DEFAULT, text
    if not name or not group or max(len(name), len(group)) > NAME_LENGTH_MAX:
        raise missing("job", text)
    if "\x00" in text:
        raise missing("job", text)
    return group, name


def run_in_path(call: Call[Any, Any]) -> RunId:
    """The run a path means."""
    return RunId(read_id(call.service.desk, "run", call.path["run"], "run"))


async def find_run(call: Call[Any, Any], desk: Desk | None = None) -> RunView:
    """The run a path means, with its public state."""
    run = run_in_path(call)
    try:
        return await get_run(desk or call.service.desk, call.tenant, run)
    except NotFound:
        raise missing_run(call, run) from None


def missing_run(call: Call[Any, Any], run: RunId) -> Trouble:
    """The answer for a run that is not there.

    What was due before anything is kept may have existed, whoever it belonged to: that is told by
    the id alone, so that it says nothing about anybody's runs.
    """
    if time_of(run) >= call.service.now() - call.service.runs_kept:
        return missing("run", call.path["run"])
    days = call.service.runs_kept.days
    return Trouble(
        "retention_expired",
        f"runs are kept for {days} days, and {call.path['run']!r} would be older",
        resource_type="run",
    )
