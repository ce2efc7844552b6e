"""Actions over a filter of jobs; every job is an act of its own."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from betimes.api.acting import answer, intent_of
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import Load, NoQuery, Policy, Route
from betimes.api.routes.jobs_list import read_tags
from betimes.domain.errors import Refused
from betimes.domain.ids import to_text
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.domain.states import JobState
from betimes.ops.acting import Told, act
from betimes.ops.desk import Desk
from betimes.ops.end import cancel_job, delete_job
from betimes.ops.listing import JobFilter, find_jobs
from betimes.ops.pause import pause_job, resume_job
from betimes.wire import jobs as wire
from betimes.wire.more import BulkDone

BULK_MAX = 500

Verb = Callable[[Desk, Job, str, str], Awaitable[object]]


async def _pause(desk: Desk, job: Job, reason: str, actor: str) -> object:
    return await pause_job(desk, job.tenant, job.id, reason=reason, actor=actor)


async def _resume(desk: Desk, job: Job, _reason: str, _actor: str) -> object:
    return await resume_job(desk, job.tenant, job.id)


async def _cancel(desk: Desk, job: Job, reason: str, actor: str) -> object:
    return await cancel_job(desk, job.tenant, job.id, reason=reason, actor=actor)


async def _delete(desk: Desk, job: Job, _reason: str, actor: str) -> object:
    await delete_job(desk, job.tenant, job.id, actor=actor)
    return job


VERBS: Mapping[str, Verb] = MappingProxyType(
    {"pause": _pause, "resume": _resume, "cancel": _cancel, "delete": _delete}
)
EVENTS = MappingProxyType(
    {
        "pause": "job.paused",
        "resume": "job.resumed",
        "cancel": "job.cancelled",
        "delete": "job.deleted",
    }
)


async def bulk(call: Call[NoQuery, wire.BulkJobs]) -> Reply:
    """Pause, resume, cancel or delete what a filter means, when its number is confirmed."""
    body = call.body
    jobs = await find_jobs(
        call.service.desk,
        call.tenant,
        _filter(body.filter),
        after=None,
        newest_first=False,
        limit=BULK_MAX + 1,
    )
    if len(jobs) > BULK_MAX:
        raise Trouble(
            "batch_too_large", f"the filter means more than {BULK_MAX} jobs; narrow it down"
        )
    if body.dry_run:
        return Reply(value=BulkDone(matched=len(jobs), done=0, dry_run=True))
    if body.confirm_count != len(jobs):
        raise Trouble(
            "confirm_count_mismatch",
            f"this would touch {len(jobs)} jobs, {body.confirm_count} are confirmed",
        )
    done = 0
    for job in jobs:
        done += await _one(call, job)
    return Reply(value=BulkDone(matched=len(jobs), done=done, dry_run=False))


async def _one(call: Call[NoQuery, wire.BulkJobs], job: Job) -> bool:
    """One job; what its state refuses is left as it is."""
    action = call.body.action
    text = to_text("job", job.id)

    async def verb(desk: Desk) -> object:
        return await VERBS[action](desk, job, call.body.reason, call.caller.key)

    def tell(_: Any) -> Told:
        return Told(
            answer=answer(200),
            resource=text,
            shard=job.shard,
            after={"bulk": action},
            event=EVENTS[action],
            details={"job_id": text},
        )

    try:
        await act(call.service.desk, intent_of(call), verb, tell)
    except Refused:
        return False
    return True


def _filter(asked: wire.JobChoice) -> JobFilter:
    return JobFilter(
        states=[JobState[state.upper()] for state in asked.state],
        queues=asked.queue,
        handlers=asked.handler,
        group=asked.group,
        prefix=asked.name_prefix,
        tags=read_tags([f"{name}:{value}" for name, value in asked.tags.items()]),
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/jobs/bulk",
        name="jobs.bulk",
        says="Pause, resume, cancel or delete what a filter means.",
        handler=bulk,
        scope=Scope.JOBS_WRITE,
        body=wire.BulkJobs,
        answers={200: BulkDone},
        load=Load.VITAL,
        policy=Policy.BULK,
        problems=("confirm_count_mismatch", "batch_too_large"),
        seconds=60.0,
    ),
)
