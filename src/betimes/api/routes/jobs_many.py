"""Many jobs at once: batches, revisions."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.admitting import admitted_demand, check_open
from betimes.api.call import Call, Reply
from betimes.api.context import check_stored, context_of
from betimes.api.definitions import (
    Context,
    payload_of,
    read_one_of_many,
    reference_of,
)
from betimes.api.etag import expected_revision
from betimes.api.finding import find_job
from betimes.api.problem import Trouble, body_of, trouble_of
from betimes.api.revising import shown_revisions
from betimes.api.route import BATCH_BYTES_MAX, Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.jobs import WRITE_PROBLEMS
from betimes.api.routes.jobs_list import check_view
from betimes.api.shaping import missing
from betimes.api.told_jobs import told_of
from betimes.domain.errors import Refused
from betimes.domain.ids import to_text
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.ops.acting import Told
from betimes.ops.calendars import find_calendars, refreshed
from betimes.ops.create import NewJob
from betimes.ops.dedupe import MadeJob, create_made
from betimes.ops.desk import Desk
from betimes.ops.each import create_each
from betimes.ops.evaluating import Evaluations
from betimes.ops.idempotency import shard_of_idempotency
from betimes.ops.meter import Demand
from betimes.ops.read import get_revisions
from betimes.ops.update import update_job
from betimes.wire import jobs as wire
from betimes.wire.revisions import ReadRevision, Revision, RevisionList, Rollback


async def create_many(call: Call[wire.CreateOptions, wire.NewJobs]) -> Reply:
    """Create many jobs, all or none, or each for itself."""
    body = call.body
    payloads = [payload_of(asked) for asked in body.items]
    if told := await _admitted(call, payloads, only_try=call.query.validate_only):
        return told
    if body.mode == "independent":
        return await _each_alone(call)
    context = await _context(call)
    evaluations = Evaluations()
    new = [
        await _read(evaluations, context, place, asked) for place, asked in enumerate(body.items)
    ]
    await check_open(
        call, {one.definition.queue for one in new}, {one.definition.handler for one in new}
    )

    async def verb(desk: Desk) -> list[MadeJob]:
        shard = shard_of_idempotency(desk, call.tenant, call.key.key) if call.key else None
        return await create_made(desk, call.tenant, new, shard=shard)

    only_try = call.query.validate_only
    return await perform(
        call, verb, lambda jobs: _told_many(jobs, validated=only_try), only_try=only_try
    )


async def _admitted(
    call: Call[Any, Any], payloads: Sequence[bytes | None], *, only_try: bool
) -> Reply | None:
    return None if only_try else await admitted_demand(call, Demand.of(jobs=payloads))


async def _context(call: Call[Any, wire.NewJobs]) -> Context:
    items = call.body.items
    return await context_of(
        call,
        *(asked.schedule for asked in items),
        works=items,
        references=[reference_of(asked) for asked in items],
    )


async def _read(
    evaluations: Evaluations, context: Context, place: int, asked: wire.NewJob
) -> NewJob:
    try:
        return await read_one_of_many(evaluations, asked, context)
    except Refused as refused:
        refused.pointer = f"/items/{place}{refused.pointer}"
        raise
    except Trouble as trouble:
        for error in trouble.errors:
            error.pointer = f"/items/{place}{error.pointer}"
        raise


def _told_many(jobs: list[MadeJob], *, validated: bool) -> Told:
    items = [_item(made) for made in jobs]
    return Told(
        answer=answer(201, wire.MadeJobs(items=items, validated=validated)),
        resource=f"jobs:{len(jobs)}",
        shard=jobs[0].job.shard,
        after={"count": len(jobs), "first": items[0].id},
        event="job.created",
        details={"count": len(jobs), "first": items[0].id},
    )


async def _each_alone(call: Call[wire.CreateOptions, wire.NewJobs]) -> Reply:
    """Each for itself inside one guarded act: what is refused leaves the others alone."""
    context = await _context(call)
    # Before the transaction, which would keep a connection from others meanwhile.
    new, refused = await _each_read(call, context)

    async def verb(desk: Desk) -> list[wire.BatchItem]:
        return await _each(call, desk, new, refused)

    return await perform(
        call,
        verb,
        lambda items: Told(
            answer=answer(207, wire.MadeJobs(items=items)),
            resource=f"jobs:{len(items)}",
            after={"created": sum(item.id is not None for item in items)},
            event="job.created",
            details={"count": len(items)},
        ),
        only_try=call.query.validate_only,
    )


async def _each_read(
    call: Call[Any, wire.NewJobs], context: Context
) -> tuple[dict[int, NewJob], dict[int, wire.BatchItem]]:
    """What can be created, and what was said of the others, by their places."""
    told = {place: _refused(call, trouble) for place, trouble in call.unread.items()}
    new: dict[int, NewJob] = {}
    evaluations = Evaluations()
    for place, item in call.placed(call.body.items):
        try:
            one = await _read(evaluations, context, place, item)
            await check_open(call, [one.definition.queue], [one.definition.handler])
        except (Refused, Trouble) as error:
            told[place] = _refused(call, error)
        else:
            new[place] = one
    return new, told


async def _each(
    call: Call[Any, wire.NewJobs],
    desk: Desk,
    new: Mapping[int, NewJob],
    refused: Mapping[int, wire.BatchItem],
) -> list[wire.BatchItem]:
    told = dict(refused)
    made = await create_each(desk, call.tenant, list(new.values()))
    for place, found in zip(new, made, strict=True):
        if isinstance(found, Refused):
            found.pointer = f"/items/{place}{found.pointer}"
            told[place] = _refused(call, found)
        else:
            told[place] = _item(found)
    return [told[place] for place in range(len(told))]


def _refused(call: Call[Any, Any], error: Refused | Trouble) -> wire.BatchItem:
    trouble = trouble_of(error)
    told = msgspec.json.decode(body_of(trouble, call.request.id))
    return wire.BatchItem(status=trouble.status, error=told)


def _item(made: MadeJob) -> wire.BatchItem:
    status = 200 if made.deduplicated else 201
    return wire.BatchItem(
        status=status, id=to_text("job", made.job.id), deduplicated=made.deduplicated
    )


async def revisions(call: Call[NoQuery, None]) -> Reply:
    """What a job was and is, newest first."""
    job = await find_job(call)
    kept = await get_revisions(call.service.desk, call.tenant, job.id)
    return Reply(value=RevisionList(items=list(shown_revisions(job, kept))))


async def revision(call: Call[ReadRevision, None]) -> Reply:
    """One of them, by its number."""
    check_view(call, call.query.view)
    job = await find_job(call)
    kept = await get_revisions(call.service.desk, call.tenant, job.id)
    shown = shown_revisions(job, kept, full=call.query.view == "full")
    number = call.path["revision"]
    found = next((one for one in shown if str(one.revision) == number), None)
    if found is None:
        raise missing("revision", number)
    return Reply(value=found, cacheable=not found.current)


async def rollback(call: Call[NoQuery, Rollback]) -> Reply:
    """Bring an old definition back, as a new revision."""
    job = await find_job(call)
    expected_revision(call.request, job.revision)
    old = await get_revisions(call.service.desk, call.tenant, job.id)
    wanted = next((one for one in old if one.revision == call.body.revision), None)
    if wanted is None:
        raise missing("revision", str(call.body.revision))
    await check_stored(call, wanted.definition.target, kept=[job.definition.target])

    carried = wanted.definition.options.get("calendars") or {}
    calendars = await find_calendars(call.service.desk, call.tenant, carried)
    definition = refreshed(wanted.definition, calendars)

    async def verb(desk: Desk) -> Job:
        return await update_job(
            desk,
            call.tenant,
            job.id,
            definition,
            expected_revision=job.revision,
            actor=call.caller.key,
        )

    return await perform(
        call,
        verb,
        lambda done: told_of(call, done, status=200, event="job.updated", before=job.revision),
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/jobs/batch",
        name="jobs.create_many",
        says="Create up to 1000 jobs, all or none, or each for itself.",
        handler=create_many,
        scope=Scope.JOBS_WRITE,
        query=wire.CreateOptions,
        body=wire.NewJobs,
        item=wire.NewJob,
        body_max=BATCH_BYTES_MAX,
        answers={201: wire.MadeJobs, 207: wire.MadeJobs},
        keyed=Keyed.REQUIRED,
        load=Load.CREATE,
        policy=Policy.BULK,
        problems=(*WRITE_PROBLEMS, "already_exists"),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job}/revisions",
        name="jobs.revisions",
        says="What a job was and is, newest first.",
        handler=revisions,
        scope=Scope.JOBS_READ,
        answers={200: RevisionList},
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job}/revisions/{revision}",
        name="jobs.revision",
        says="Read one definition of a job, as it was or is.",
        handler=revision,
        scope=Scope.JOBS_READ,
        query=ReadRevision,
        answers={200: Revision, 304: None},
        headers=("ETag",),
        problems=("not_found",),
    ),
    Route(
        method="POST",
        path="/v1/jobs/{job}/rollback",
        name="jobs.rollback",
        says="Bring an old definition back, as a new revision.",
        handler=rollback,
        scope=Scope.JOBS_WRITE,
        body=Rollback,
        answers={200: wire.Job},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        headers=("ETag",),
        problems=("invalid_state", "precondition_failed", "invalid_schedule", "url_not_allowed"),
    ),
)
