"""Import of what others run: crontabs, and CronJobs of Kubernetes.

Each line or manifest becomes a job that fires when it fired before, or is told with the reason why
not. What the sources suspend is made and paused.
"""

from collections.abc import Sequence
from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.admitting import admitted_demand
from betimes.api.call import Call, Reply
from betimes.api.context import context_of
from betimes.api.definitions import Context, read_one_of_many
from betimes.api.problem import Trouble, trouble_of
from betimes.api.reading import convert
from betimes.api.route import BATCH_BYTES_MAX, Keyed, Load, Policy, Route
from betimes.domain.errors import Refused
from betimes.domain.ids import to_text
from betimes.domain.scopes import Scope
from betimes.importers import Verdict, crontab, kubernetes
from betimes.ops.acting import Told
from betimes.ops.dedupe import create_made
from betimes.ops.desk import Desk
from betimes.ops.evaluating import Evaluations, beside
from betimes.ops.meter import Demand
from betimes.ops.pause import pause_job
from betimes.wire import jobs, queues

JOBS_MAX = 1_000
LINES_MAX = 2 * JOBS_MAX
SUSPENDED = "it was suspended where it comes from"


async def import_crontab(call: Call[queues.ImportCrontab, bytes]) -> Reply:
    """Make jobs of the lines of a crontab."""
    query = call.query
    where = crontab.Where(
        timezone=query.timezone or call.caller.timezone,
        system=query.system,
        user=query.user,
        flavour=query.flavour,
        handler=query.handler,
        queue=query.queue,
        prefix=query.prefix,
    )
    text = _text(call.body)
    _check_lines(text)
    return await _take_over(call, await beside(lambda: crontab.read_crontab(text, where)))


async def import_manifests(call: Call[queues.ImportManifests, queues.Manifests]) -> Reply:
    """Make jobs of CronJobs."""
    query = call.query
    where = kubernetes.Where(
        timezone=query.timezone or call.caller.timezone, handler=query.handler, queue=query.queue
    )
    items = call.body.items
    return await _take_over(call, await beside(lambda: kubernetes.read_manifests(items, where)))


def _text(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _no_text(f"byte {error.start} is not UTF-8") from None
    if "\x00" in text:
        raise _no_text("it has a NUL")
    return text


def _check_lines(text: str) -> None:
    """Reading a line costs half a millisecond, so there must not be too many to be read at all."""
    lines = sum(
        bool(line.strip()) and not line.lstrip().startswith("#") for line in text.split("\n")
    )
    if lines > LINES_MAX:
        raise Trouble("batch_too_large", f"expected at most {LINES_MAX} lines, got {lines}")


def _no_text(why: str) -> Trouble:
    return Trouble("invalid_parameter", f"expected a crontab as text, got something else: {why}")


async def _take_over(call: Call[Any, Any], verdicts: Sequence[Verdict]) -> Reply:
    wanted = [verdict for verdict in verdicts if verdict.job is not None]
    if len(wanted) > JOBS_MAX:
        raise Trouble("batch_too_large", f"expected at most {JOBS_MAX} jobs, got {len(wanted)}")
    dry = call.query.dry_run
    if not dry and wanted:
        told = await admitted_demand(call, Demand.of(jobs=[None] * len(wanted)))
        if told is not None:
            return told
    context = await context_of(call)

    async def verb(desk: Desk) -> queues.Imported:
        done = queues.Imported(created=[], skipped=[], dry_run=dry, calendars=[], warnings=[])
        evaluations = Evaluations()
        for verdict in verdicts:
            await _one(call, desk, context, evaluations, verdict, done)
        return done

    return await perform(
        call,
        verb,
        lambda done: Told(
            answer=answer(200 if dry else 201, done),
            resource=f"jobs:{len(done.created)}",
            after={"created": len(done.created)},
        ),
        only_try=dry,
    )


async def _one(
    call: Call[Any, Any],
    desk: Desk,
    context: Context,
    evaluations: Evaluations,
    verdict: Verdict,
    done: queues.Imported,
) -> None:
    done.warnings += [{"place": verdict.place, "detail": text} for text in verdict.warnings]
    if verdict.job is None:
        if verdict.reason:
            done.skipped.append({"place": verdict.place, "reason": verdict.reason})
        return
    try:
        asked: jobs.NewJob = convert(dict(verdict.job), jobs.NewJob)
        new = await read_one_of_many(evaluations, asked, context)
        ((job, _),) = await create_made(desk, call.tenant, [new])
    except (Refused, Trouble) as error:
        done.skipped.append({"place": verdict.place, "reason": trouble_of(error).detail})
        return
    if verdict.paused:
        await pause_job(desk, call.tenant, job.id, reason=SUSPENDED, actor=call.caller.key)
    done.created.append(to_text("job", job.id))


def _route(source: str, says: str, handler: Any, **more: Any) -> Route:
    return Route(
        method="POST",
        path=f"/v1/import/{source}",
        name=f"import.{source}",
        says=says,
        handler=handler,
        scope=Scope.JOBS_WRITE,
        body_max=BATCH_BYTES_MAX,
        answers={201: queues.Imported, 200: queues.Imported},
        keyed=Keyed.OPTIONAL,
        load=Load.CREATE,
        policy=Policy.BULK,
        problems=("batch_too_large", "quota_exceeded"),
        **more,
    )


ROUTES = (
    _route(
        "crontab",
        "Make jobs of the lines of a crontab.",
        import_crontab,
        query=queues.ImportCrontab,
        body=bytes,
        media="*/*",
    ),
    _route(
        "kubernetes",
        "Make jobs of the CronJobs of a Kubernetes cluster.",
        import_manifests,
        query=queues.ImportManifests,
        body=queues.Manifests,
        example={"kind": "List", "items": []},
    ),
)
