"""Export and import of our own format: jobs, and the calendars they name."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.admitting import admitted_demand
from betimes.api.call import Call, Reply
from betimes.api.context import context_of
from betimes.api.definitions import Context, asked_again, read_one_of_many, reference_of
from betimes.api.problem import Trouble, trouble_of
from betimes.api.reading import convert
from betimes.api.route import BATCH_BYTES_MAX, Keyed, Load, Policy, Route
from betimes.api.routes.jobs_list import read_tags
from betimes.api.shaping import coerced, maybe_instant
from betimes.domain.errors import Refused
from betimes.domain.ids import to_text
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.domain.states import JobState
from betimes.importers.writing import write_cron_jobs, write_crontab
from betimes.ops.acting import Told
from betimes.ops.calendars import CalendarRow, find_calendars, new_calendar, put_calendar
from betimes.ops.create import NewJob
from betimes.ops.desk import Desk
from betimes.ops.each import create_each
from betimes.ops.evaluating import Evaluations
from betimes.ops.listing import JobFilter, find_job_page
from betimes.ops.meter import Demand
from betimes.schedule import Calendar
from betimes.wire import jobs as wire
from betimes.wire import queues as more
from betimes.wire.base import shown_instant

FORMAT = "betimes/1"
OURS = "betimes"
FOREIGN_MAX = 25
"""Jobs of a page in a format of others: each is read back, and its fires are compared."""


async def export(call: Call[more.Export, None]) -> Reply:
    """Definitions of jobs in our own format, as import takes them."""
    query = call.query
    scope = ("export", call.tenant, query.format, query.group, sorted(query.tag))
    after = None
    if query.cursor is not None:
        after = msgspec.convert(call.service.cursors.read(scope, query.cursor)[0], type=UUID)
    foreign = query.format != OURS
    limit = min(coerced(query.limit), FOREIGN_MAX) if foreign else coerced(query.limit)
    chosen = JobFilter(group=query.group, tags=read_tags(query.tag))
    found = await find_job_page(
        call.service.desk, call.tenant, chosen, after=after, newest_first=False, limit=limit
    )
    jobs, cursor = found.jobs, None
    if found.more is not None:
        cursor = call.service.cursors.write(scope, [str(found.more)])
    definitions = [{**asked_again(job), **_pause_of(job)} for job in jobs]
    told = more.Exported(
        format=query.format if foreign else FORMAT,
        exported_at=shown_instant(call.service.now()),
        calendars=[] if foreign else await _calendars_of(call, jobs),
        jobs=[] if foreign else definitions,
        next_cursor=cursor,
    )
    if foreign:
        # Comparing fires takes a while, and others shall be served meanwhile.
        await asyncio.to_thread(_write, told, definitions)
    return Reply(value=told)


def _write(told: more.Exported, definitions: Sequence[Mapping[str, Any]]) -> None:
    """The same in the words of others; what cannot be said there is left out."""
    if told.format == "crontab":
        written = write_crontab(definitions)
        told.text = "".join(f"{line}\n" for line in written.lines)
    else:
        written = write_cron_jobs(definitions)
        told.manifests = {"apiVersion": "v1", "kind": "List", "items": written.documents}
    told.left_out = [more.LeftOut(name=name, reason=reason) for name, reason in written.refused]


def _pause_of(job: Job) -> dict[str, Any]:
    """A job that somebody has paused is paused where it is imported, too."""
    if job.state is not JobState.PAUSED:
        return {}
    reason = job.state_reason.get("reason")
    return {"paused": True, "pause_reason": reason} if reason else {"paused": True}


async def _calendars_of(call: Call[Any, Any], jobs: list[Job]) -> list[more.CalendarText]:
    names = {name for job in jobs for name in job.definition.options.get("calendars") or ()}
    rows = await find_calendars(call.service.desk, call.tenant, names)
    return [_written(rows[name]) for name in sorted(rows)]


def _written(row: CalendarRow) -> more.CalendarText:
    return more.CalendarText(
        name=row.name,
        dates=list(row.dates),
        weekdays=list(row.weekdays),
        description=row.description,
    )


async def import_jobs(call: Call[more.ImportOptions, more.Import]) -> Reply:
    """Create the calendars and jobs of an export; what exists or cannot be read is told."""
    if call.body.format != FORMAT:
        raise Trouble("invalid_parameter", f"expected the format {FORMAT}")
    body = call.body
    maybe_instant(body.exported_at, pointer="/exported_at")
    if not call.query.dry_run:
        told = await admitted_demand(call, Demand.of(jobs=[None] * len(body.jobs)))
        if told is not None:
            return told
    fresh = await _new_calendars(call)
    asked, refused = _read(body.jobs)
    # Before the transaction: who holds a connection must not wait for a second one.
    context = await _context(call, asked.values(), fresh)

    async def verb(inner: Desk) -> more.Imported:
        for row in fresh:
            await put_calendar(inner, call.tenant, row, replaces=None, by=call.caller.key)
        done = more.Imported(
            created=[],
            skipped=[],
            dry_run=call.query.dry_run,
            calendars=[row.name for row in fresh],
        )
        await _create(call, inner, context, asked, dict(refused), done)
        return done

    return await perform(
        call,
        verb,
        lambda done: Told(
            answer=answer(200 if done.dry_run else 201, done),
            resource=f"jobs:{len(done.created)}",
            after={"created": len(done.created), "calendars": len(done.calendars)},
        ),
        only_try=call.query.dry_run,
    )


async def _new_calendars(call: Call[Any, more.Import]) -> list[CalendarRow]:
    """Those of the export that do not exist; one that does stays as it is."""
    texts = {one.name: one for one in call.body.calendars}
    known = await find_calendars(call.service.desk, call.tenant, texts)
    fresh = []
    for place, one in enumerate(call.body.calendars):
        if one.name in known or texts[one.name] is not one:
            continue
        try:
            dates = Calendar.of(one.name, one.dates, one.weekdays)
            fresh.append(
                new_calendar(
                    call.service.desk, one.name, calendar=dates, description=one.description
                )
            )
        except Refused as refused:
            refused.pointer = f"/calendars/{place}"
            raise
    return fresh


def _read(
    sources: Sequence[Mapping[str, Any]],
) -> tuple[dict[int, wire.NewJob], dict[int, Refused | Trouble]]:
    """The jobs of an export by their places, and those that are none."""
    asked: dict[int, wire.NewJob] = {}
    refused: dict[int, Refused | Trouble] = {}
    for place, source in enumerate(sources):
        try:
            asked[place] = convert(source, wire.NewJob)
        except (Refused, Trouble) as error:
            refused[place] = error
    return asked, refused


async def _context(
    call: Call[Any, more.Import], asked: Collection[wire.NewJob], fresh: list[CalendarRow]
) -> Context:
    context = await context_of(
        call,
        *(one.schedule for one in asked),
        works=asked,
        references=[reference_of(one) for one in asked],
    )
    return replace(context, calendars={**context.calendars, **{row.name: row for row in fresh}})


async def _create(
    call: Call[Any, more.Import],
    desk: Desk,
    context: Context,
    asked: Mapping[int, wire.NewJob],
    skipped: dict[int, Refused | Trouble],
    done: more.Imported,
) -> None:
    new: dict[int, NewJob] = {}
    evaluations = Evaluations()
    for place, one in asked.items():
        try:
            new[place] = await read_one_of_many(evaluations, one, context)
        except (Refused, Trouble) as error:
            skipped[place] = error
    made = await create_each(desk, call.tenant, list(new.values()))
    for place, result in zip(new, made, strict=True):
        if isinstance(result, Refused):
            skipped[place] = result
        else:
            done.created.append(to_text("job", result.job.id))
    for place in sorted(skipped):
        done.skipped.append({"place": place, "reason": trouble_of(skipped[place]).detail})


ROUTES = (
    Route(
        method="GET",
        path="/v1/export",
        name="export.read",
        says="Definitions of jobs, and the calendars they name, in our own format.",
        handler=export,
        scope=Scope.PAYLOADS_READ,
        query=more.Export,
        load=Load.AGGREGATE,
        answers={200: more.Exported},
        policy=Policy.BULK,
        problems=("cursor_invalid",),
    ),
    Route(
        method="POST",
        path="/v1/import/betimes",
        name="import.betimes",
        says="Create the calendars and jobs of an export.",
        handler=import_jobs,
        scope=Scope.JOBS_WRITE,
        query=more.ImportOptions,
        body=more.Import,
        body_max=BATCH_BYTES_MAX,
        answers={201: more.Imported, 200: more.Imported},
        keyed=Keyed.OPTIONAL,
        load=Load.CREATE,
        policy=Policy.BULK,
        example={
            "format": "betimes/1",
            "jobs": [{"name": "report", "schedule": "0 9 * * *", "handler": "report"}],
        },
    ),
)
