"""Jobs: creating, reading, replacing, editing, deleting."""

from datetime import timedelta
from typing import Any

import msgspec

from betimes.api.acting import answer, intent_of, perform, replied
from betimes.api.admitting import admitted, check_accepting, check_open
from betimes.api.call import Call, Reply
from betimes.api.context import context_of
from betimes.api.definitions import (
    asked_again,
    read_definition,
    read_job,
    reference_of,
    shown_job,
)
from betimes.api.editing import check_preconditions, require_match
from betimes.api.etag import expected_revision, tag_of
from betimes.api.finding import find_job, split_name
from betimes.api.merging import merge_patch
from betimes.api.problem import Trouble
from betimes.api.reading import convert
from betimes.api.rights import require
from betimes.api.route import Keyed, Load, Policy, Route
from betimes.api.routes.insights import stats_of
from betimes.api.routes.jobs_list import add_last_runs, check_view, list_all
from betimes.api.shaping import selected
from betimes.api.targets import HIDDEN
from betimes.api.told_jobs import told_made, told_of
from betimes.domain.errors import NotFound
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.ops.acting import Told
from betimes.ops.dedupe import MadeJob, create_made
from betimes.ops.desk import Desk
from betimes.ops.end import RunsOf, delete_job
from betimes.ops.evaluating import Evaluations
from betimes.ops.idempotency import shard_of_idempotency
from betimes.ops.read import get_named_job
from betimes.ops.update import ANCHOR, kept_anchor, update_job
from betimes.wire import jobs as wire
from betimes.wire.base import Members, Page
from betimes.wire.workflow_target import WorkflowTarget

DAY = timedelta(days=1)


async def create(call: Call[wire.CreateOptions, wire.NewJob]) -> Reply:
    """Create a job."""
    body = call.body
    context = await context_of(call, body.schedule, works=[body], references=[reference_of(body)])
    new = await read_job(Evaluations(), body, context)

    async def verb(desk: Desk) -> MadeJob:
        shard = shard_of_idempotency(desk, call.tenant, call.key.key) if call.key else None
        return (await create_made(desk, call.tenant, [new], shard=shard))[0]

    if told := await admitted(call, jobs=[new], only_try=call.query.validate_only):
        return told
    await check_open(call, [new.definition.queue], [new.definition.handler])
    intent = intent_of(call, only_try=call.query.validate_only)
    return replied(
        await call.service.jobs.act(new, intent, verb, lambda made: told_made(call, made))
    )


async def read(call: Call[wire.JobView, None]) -> Reply:
    """One job."""
    check_view(call, call.query.view)
    job = await find_job(call)
    shown = shown_job(job, view=call.query.view)
    await add_last_runs(call, [shown], [job], call.query.include)
    if "stats_24h" in call.query.include:
        shown.status.stats_24h = await stats_of(call, job.id, DAY)
    return Reply(
        value=selected(shown, call.query.fields),
        headers={"ETag": tag_of(job.revision)},
        cacheable=call.query.view == "definition" and not call.query.include,
    )


async def replace(call: Call[wire.ReplaceOptions, wire.NewJob]) -> Reply:
    """Create a job under this name, or replace its whole definition."""
    group, name = split_name(call.path["job"])
    if name.startswith("job_"):
        raise Trouble("invalid_parameter", "expected a name in the path, got an id")
    if call.body.name not in (None, name):
        raise Trouble("invalid_parameter", "expected the name of the path in the body, or none")
    try:
        current = await get_named_job(call.service.desk, call.tenant, name, group=group)
    except NotFound:
        current = None
    seen = None if current is None else current.revision
    check_preconditions(call.request, seen, force=call.query.force)
    call.body.name, call.body.group = name, group
    if current is None:
        return await _create_named(call)
    return await _update(call, current, call.body, event="job.updated")


async def _create_named(call: Call[wire.ReplaceOptions, wire.NewJob]) -> Reply:
    check_accepting(call)
    body = call.body
    context = await context_of(call, body.schedule, works=[body], references=[reference_of(body)])
    new = await read_job(Evaluations(), body, context)
    if told := await admitted(call, jobs=[new], only_try=call.query.validate_only):
        return told
    await check_open(call, [new.definition.queue], [new.definition.handler])

    async def verb(desk: Desk) -> MadeJob:
        return (await create_made(desk, call.tenant, [new]))[0]

    return await perform(
        call,
        verb,
        lambda made: told_made(call, made),
        only_try=call.query.validate_only,
    )


async def patch(call: Call[wire.PatchOptions, Members]) -> Reply:
    """Edit a job by a merge patch."""
    job = await find_job(call)
    require_match(call)
    expected_revision(call.request, job.revision)
    if "paused" in call.body or "pause_reason" in call.body:
        raise Trouble(
            "invalid_parameter",
            "a job that exists is paused by POST …/pause, and goes on by POST …/resume",
        )
    unknown = sorted(set(call.body) - {one.encode_name for one in EDITABLE})
    if unknown:
        convert({unknown[0]: None}, wire.NewJob)
    merged = merge_patch(asked_again(job), call.body)
    asked: wire.NewJob = convert(merged, wire.NewJob)
    if (asked.name, asked.group) != (job.name, job.group):
        raise Trouble("invalid_parameter", "a job cannot be renamed; create a new one")
    _check_kept(call, job, asked)
    pending = call.query.apply_to == "pending"
    return await _update(call, job, asked, event="job.updated", pending=pending)


def _check_kept(call: Call[wire.PatchOptions, Members], job: Job, asked: wire.NewJob) -> None:
    """Whoever sends elsewhere what they have not given themselves must be allowed to read it."""
    stored, patch = job.definition.target, call.body.get("target")
    given = patch if isinstance(patch, dict) else {}
    reference = job.definition.options.get("payload_ref")
    kept = {"payload": job.definition.payload, "payload_ref": reference}
    moved = [name for name, value in kept.items() if value is not None and name not in call.body]
    if isinstance(asked.target, WorkflowTarget):
        # Its nodes send what they are given to URLs of their own.
        if asked.target.workflow == stored.get("workflow"):
            return
    elif isinstance(asked.target, wire.HttpTarget) and asked.target.url != stored.get("url"):
        moved += [f"target/{name}" for name in HIDDEN if name in stored and name not in given]
    else:
        return
    if moved:
        require(call, Scope.PAYLOADS_READ, f"to send the {moved[0]} of a job elsewhere")


async def _update(
    call: Call[Any, Any], job: Job, asked: wire.NewJob, *, event: str, pending: bool = False
) -> Reply:
    reference = reference_of(asked)
    # A reference that stays may have expired meanwhile; that is no reason to refuse other edits.
    fresh = [] if reference == job.definition.options.get("payload_ref") else [reference]
    context = await context_of(call, asked.schedule, works=[asked], references=fresh, job=job)
    definition = await read_definition(Evaluations(), asked, context)
    if not (isinstance(asked.schedule, dict) and ANCHOR in asked.schedule):
        definition = kept_anchor(definition, job.definition)
    if definition.queue != job.definition.queue:
        await check_open(call, [definition.queue])
    if definition.handler != job.definition.handler:
        await check_open(call, [], [definition.handler])
    # Even without If-Match, what we merged into must still be there.
    revision = job.revision

    async def verb(desk: Desk) -> Job:
        return await update_job(
            desk,
            call.tenant,
            job.id,
            definition,
            expected_revision=revision,
            actor=call.caller.key,
            pending=pending,
        )

    return await perform(
        call,
        verb,
        lambda edited: told_of(
            call,
            edited,
            status=200,
            event=event if edited.revision != revision else None,
            before=revision,
        ),
        only_try=call.query.validate_only,
    )


async def delete(call: Call[wire.DeleteOptions, None]) -> Reply:
    """Forget a job; its history stays readable."""
    job = await find_job(call)
    require_match(call)
    revision = expected_revision(call.request, job.revision)

    async def verb(desk: Desk) -> Job:
        await delete_job(
            desk,
            call.tenant,
            job.id,
            runs=RunsOf(call.query.runs),
            actor=call.caller.key,
            expected_revision=revision,
        )
        return job

    return await perform(call, verb, lambda gone: _deleted(call, gone))


def _deleted(call: Call[Any, Any], job: Job) -> Told:
    told = told_of(call, job, status=204, event="job.deleted", before=job.revision)
    return Told(
        answer=answer(204),
        resource=told.resource,
        shard=told.shard,
        before=told.before,
        event=told.event,
        details=told.details,
    )


EDITABLE = tuple(
    one
    for one in msgspec.structs.fields(wire.NewJob)
    if one.name not in {"run_at", "cron", "payload_reference", "idempotency_key"}
    and one.name not in {"paused", "pause_reason"}
)
WRITE_PROBLEMS = (
    *("malformed_json", "unknown_field", "invalid_parameter", "payload_too_large"),
    *("unsupported_media_type", "invalid_schedule", "invalid_payload", "quota_exceeded"),
    *("queue_draining", "unknown_handler", "unknown_queue"),
)

ROUTES = (
    Route(
        method="POST",
        path="/v1/jobs",
        name="jobs.create",
        says="Create a job.",
        handler=create,
        scope=Scope.JOBS_WRITE,
        query=wire.CreateOptions,
        body=wire.NewJob,
        answers={201: wire.Job, 200: wire.Job},
        keyed=Keyed.REQUIRED,
        load=Load.CREATE,
        policy=Policy.CREATE,
        headers=("ETag", "Location"),
        problems=(*WRITE_PROBLEMS, "already_exists", "idempotency_key_reused"),
    ),
    Route(
        method="GET",
        path="/v1/jobs",
        name="jobs.list",
        says="List jobs.",
        handler=list_all,
        scope=Scope.JOBS_READ,
        query=wire.ListJobs,
        answers={200: Page[wire.Job]},
        problems=("invalid_parameter", "cursor_invalid"),
        headers=("Link",),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job}",
        name="jobs.get",
        says="Read one job.",
        handler=read,
        scope=Scope.JOBS_READ,
        query=wire.JobView,
        answers={200: wire.Job, 304: None},
        headers=("ETag",),
        problems=("not_found",),
    ),
    Route(
        method="PUT",
        path="/v1/jobs/{job}",
        name="jobs.replace",
        says="Create a job under a name, or replace its whole definition.",
        handler=replace,
        scope=Scope.JOBS_WRITE,
        query=wire.ReplaceOptions,
        body=wire.NewJob,
        answers={200: wire.Job, 201: wire.Job},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        headers=("ETag",),
        problems=(*WRITE_PROBLEMS, "invalid_state", "precondition_failed", "precondition_required"),
    ),
    Route(
        method="PATCH",
        path="/v1/jobs/{job}",
        name="jobs.update",
        says="Edit a job by a merge patch (RFC 7396).",
        handler=patch,
        scope=Scope.JOBS_WRITE,
        query=wire.PatchOptions,
        body=Members,
        media="application/merge-patch+json",
        answers={200: wire.Job},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        headers=("ETag",),
        problems=(*WRITE_PROBLEMS, "not_found", "invalid_state", "precondition_failed"),
    ),
    Route(
        method="DELETE",
        path="/v1/jobs/{job}",
        name="jobs.delete",
        says="Forget a job; its history stays readable until its retention ends.",
        handler=delete,
        scope=Scope.JOBS_WRITE,
        query=wire.DeleteOptions,
        answers={204: None},
        load=Load.VITAL,
        problems=("not_found", "precondition_failed"),
    ),
)
