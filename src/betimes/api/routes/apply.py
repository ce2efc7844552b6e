"""Declared sets of jobs."""

from collections.abc import Callable

from betimes.api.acting import answer, intent_of, perform
from betimes.api.admitting import check_accepting, check_open
from betimes.api.call import Call, Reply
from betimes.api.context import context_of
from betimes.api.definitions import read_one_of_many, reference_of
from betimes.api.finding import SEPARATOR
from betimes.api.problem import Trouble
from betimes.api.route import BATCH_BYTES_MAX, Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.jobs import WRITE_PROBLEMS
from betimes.domain.errors import Refused
from betimes.domain.ids import to_text
from betimes.domain.job import GROUP_DEFAULT, Job
from betimes.domain.scopes import Scope
from betimes.ops.acting import Deed, Told
from betimes.ops.apply import ANCHOR, Applied, Wanted, apply_jobs
from betimes.ops.desk import Desk
from betimes.ops.evaluating import Evaluations
from betimes.ops.quotas import check_jobs
from betimes.wire import apply as wire
from betimes.wire.jobs import NewJob

DONE = answer(200)


async def apply(call: Call[NoQuery, wire.ApplyJobs]) -> Reply:
    """Bring the jobs of a set to what is declared, all or none."""
    body = call.body
    context = await context_of(
        call,
        *(asked.schedule for asked in body.jobs),
        works=body.jobs,
        references=[reference_of(asked) for asked in body.jobs],
    )
    wanted, evaluations = [], Evaluations()
    for place, asked in enumerate(body.jobs):
        try:
            new = await read_one_of_many(evaluations, asked, context)
            wanted.append(Wanted(new=new, anchored=_says_anchor(asked)))
        except Refused as refused:
            refused.pointer = f"/jobs/{place}{refused.pointer}"
            raise
        except Trouble as trouble:
            for error in trouble.errors:
                error.pointer = f"/jobs/{place}{error.pointer}"
            raise

    definitions = [one.new.definition for one in wanted]
    await check_open(call, {one.queue for one in definitions}, {one.handler for one in definitions})

    async def verb(desk: Desk) -> Applied:
        done = await apply_jobs(
            desk,
            call.tenant,
            wanted,
            tags=body.selector.tags,
            prune=body.prune,
            adopt=body.adopt,
            actor=call.caller.key,
        )
        if done.created:
            check_accepting(call)
        await check_jobs(desk, call.tenant, call.caller.quotas, more=0)
        await _note(call, desk, done)
        return done

    return await perform(
        call, verb, lambda done: _told(done, dry_run=body.dry_run), only_try=body.dry_run
    )


def _says_anchor(asked: NewJob) -> bool:
    return isinstance(asked.schedule, dict) and ANCHOR in asked.schedule


async def _note(call: Call[NoQuery, wire.ApplyJobs], desk: Desk, done: Applied) -> None:
    """An act for every job, in the order of shards, in which everybody locks chains."""
    changed = [
        *((job, "job.created") for job in done.created),
        *((one.job, "job.updated") for one in done.updated),
        *((job, "job.deleted") for job in done.deleted),
    ]
    for job, event in sorted(changed, key=lambda pair: (pair[0].shard, pair[0].id)):
        await Deed(desk, intent_of(call), _nothing, _teller(job, event)).do(desk)


async def _nothing(_: Desk) -> None:
    """The set has been applied already."""


def _teller(job: Job, event: str) -> Callable[[None], Told]:
    text = to_text("job", job.id)

    def tell(_: None) -> Told:
        return Told(
            answer=DONE,
            resource=text,
            shard=job.shard,
            after={"revision": job.revision, "applied": event},
            event=event,
            details={"job_id": text, "name": job.name},
        )

    return tell


def _name(job: Job) -> str:
    name = job.name or to_text("job", job.id)
    return name if job.group == GROUP_DEFAULT else f"{job.group}{SEPARATOR}{name}"


def _told(done: Applied, *, dry_run: bool) -> Told:
    shown = wire.Applied(
        created=[_name(job) for job in done.created],
        updated=[_name(one.job) for one in done.updated],
        unchanged=[_name(job) for job in done.unchanged],
        deleted=[_name(job) for job in done.deleted],
        diff=[
            wire.Difference(
                name=_name(one.job), id=to_text("job", one.job.id), members=list(one.members)
            )
            for one in done.updated
        ],
        dry_run=dry_run,
    )
    return Told(answer=answer(200, shown), resource="jobs", changed=False)


ROUTES = (
    Route(
        method="POST",
        path="/v1/jobs/apply",
        name="jobs.apply",
        says="Bring a declared set of jobs about: create, change, and with prune delete.",
        handler=apply,
        scope=Scope.JOBS_WRITE,
        body=wire.ApplyJobs,
        body_max=BATCH_BYTES_MAX,
        answers={200: wire.Applied},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        policy=Policy.BULK,
        problems=(*WRITE_PROBLEMS, "already_exists", "batch_too_large"),
        seconds=60.0,
        example={
            "jobs": [
                {
                    "name": "report",
                    "schedule": "0 9 * * mon-fri",
                    "handler": "report",
                    "tags": {"set": "reports"},
                }
            ],
            "selector": {"tags": {"set": "reports"}},
            "prune": True,
        },
    ),
)
