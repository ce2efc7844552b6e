"""Schedules, looked at before they are used; what is due soon; fires of the past."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.context import context_of
from betimes.api.definitions import Context, read_schedule, timetable_of
from betimes.api.finding import find_job, job_of
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.shaping import (
    coerced,
    maybe_instant,
    page,
    paged,
    read_instant,
    read_span,
)
from betimes.domain.errors import AmbiguousText
from betimes.domain.ids import from_text, to_text
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.ops import backfill as ops
from betimes.ops.acting import Told
from betimes.ops.checks import check_instant
from betimes.ops.desk import Desk
from betimes.ops.evaluating import evaluated
from betimes.ops.manual import Overlap
from betimes.ops.upcoming import EVERY_KIND, LeftOut, Soon, SoonKind, list_upcoming
from betimes.schedule import Budget, Schedule, preview
from betimes.wire import schedules as wire
from betimes.wire.base import Incomplete, Page, shown_instant, shown_maybe

PARSED_FIRES = 5
LEFT_OUT_SHOWN = 20
ENGLISH = ("en", "en-", "en_")
KINDS = {"fires": SoonKind.FIRE, "runs": SoonKind.RUN, "retries": SoonKind.RETRY}


async def _context(call: Call[Any, Any], timezone: str | None, schedule: object = None) -> Context:
    context = await context_of(call, schedule)
    return context if timezone is None else replace(context, timezone=timezone)


async def look_ahead(call: Call[NoQuery, wire.PreviewSchedule]) -> Reply:
    """The next fires of a schedule, and what may surprise about it."""
    body = call.body
    context = await _context(call, body.timezone, body.schedule)
    begin = maybe_instant(body.from_, pointer="/from") or call.service.now()
    end = _end(body, begin)

    def work(budget: Budget) -> Reply:
        schedule = read_schedule(body.schedule, replace(context, budget=budget))
        return _preview(schedule, budget, begin=begin, end=end, count=body.count)

    return await evaluated(work)


def _end(body: wire.PreviewSchedule, begin: datetime) -> datetime | None:
    if body.horizon is None:
        return maybe_instant(body.until, pointer="/until")
    if body.until is not None:
        raise Trouble("invalid_parameter", "expected `until` or `horizon`, got both")
    end = begin + read_span(body.horizon, pointer="/horizon")
    check_instant(end, pointer="/horizon")
    return end


def _preview(
    schedule: Schedule, budget: Budget, *, begin: Any, end: Any, count: int, excluded: bool = True
) -> Reply:
    if end is not None and end <= begin:
        raise Trouble("invalid_parameter", "expected an end later than the beginning")
    shown = preview(schedule, begin, count, end, excluded=excluded, budget=budget)
    return Reply(value=wire.Preview(**shown))


async def understand(call: Call[NoQuery, wire.ParseSchedule]) -> Reply:
    """What a line of words means as a schedule."""
    if call.body.locale.lower()[:3] not in ENGLISH:
        raise Trouble(
            "invalid_parameter",
            f"expected words in English (locale en), got the locale {call.body.locale}",
        )
    context = await _context(call, call.body.timezone)
    return await evaluated(
        lambda budget: _understood(call.body.text, replace(context, budget=budget))
    )


def _understood(text: str, context: Context) -> Reply:
    schedule, *others = _readings(text, context)
    fires = schedule.fires(context.now, limit=PARSED_FIRES, budget=context.budget)
    return Reply(
        value=wire.Parsed(
            schedule=schedule.to_dict(),
            canonical=schedule.canonical,
            description=schedule.describe(),
            next_fires=[shown_instant(fire.nominal) for fire in fires],
            confidence=round(1 / (1 + len(others)), 2),
            alternatives=[
                wire.Reading(
                    schedule=other.to_dict(),
                    canonical=other.canonical,
                    description=other.describe(),
                )
                for other in others
            ],
        )
    )


def _readings(text: str, context: Context) -> list[Schedule]:
    """What words may mean; those that only have examples in their place are refused."""
    try:
        return [read_schedule(text, context, pointer="/text")]
    except AmbiguousText as refused:
        if not refused.are_readings:
            raise
        return [read_schedule(one, context, pointer="/text") for one in refused.alternatives]


async def next_of_job(call: Call[wire.NextFires, None]) -> Reply:
    """The next fires of a job."""
    job = await find_job(call)
    query = call.query
    begin = maybe_instant(query.from_, pointer="/from") or call.service.now()
    end = maybe_instant(query.to, pointer="/to")

    def work(budget: Budget) -> Reply:
        timetable, most, excluded = timetable_of(job, budget), query.count, query.excluded
        return _preview(timetable, budget, begin=begin, end=end, count=most, excluded=excluded)

    return await evaluated(work)


async def upcoming(call: Call[wire.Upcoming, None]) -> Reply:
    """What is due soon: runs that exist or are tried again, and fires that will become some."""
    query, desk = call.query, call.service.desk
    scope = ("upcoming", call.tenant, query.within, query.queue, query.job, query.include)
    after = until = None
    if query.cursor is not None:
        at, run, end = call.leaves.read(scope, query.cursor)
        after = (read_instant(at, pointer="/cursor"), from_text("run", run))
        until = read_instant(end, pointer="/cursor")
    within = read_span(query.within, pointer="/within")
    found = await list_upcoming(
        desk,
        call.tenant,
        within=within,
        queue=query.queue,
        job=None if query.job is None else await job_of(call, query.job),
        after=after,
        limit=coerced(query.limit),
        until=until,
        kinds={KINDS[one] for one in query.include} or EVERY_KIND,
    )
    cursor = None
    if found.next is not None:
        end_text = shown_instant(until or call.service.now() + within)
        place = [shown_instant(found.next[0]), to_text("run", found.next[1]), end_text]
        cursor = call.leaves.write(scope, place)
    shown = page([_soon(item) for item in found.items], cursor=cursor)
    if found.left_out:
        shown.incomplete = [
            Incomplete(
                reason=why.value,
                job_ids=[to_text("job", job) for job in jobs[:LEFT_OUT_SHOWN]],
                jobs=None if why is LeftOut.JOBS else len(jobs),
            )
            for why, jobs in found.left_out.items()
        ]
    return paged(call, shown)


def _soon(item: Soon) -> wire.Soon:
    return wire.Soon(
        kind=item.kind.value,
        run_id=to_text("run", item.id),
        due_at=shown_instant(item.due_at),
        scheduled_for=shown_maybe(item.fire_at),
        job_id=None if item.job is None else to_text("job", item.job),
        job_group=None if item.title is None else item.title.group,
        job_name=None if item.title is None else item.title.name,
        handler=item.handler,
        queue=item.queue,
        priority=item.priority,
        predicted_start=shown_maybe(item.predicted_start),
        will_run=item.will_run,
        reason_code=item.reason,
    )


async def backfill(call: Call[NoQuery, wire.Backfill]) -> Reply:
    """Run the fires of a span in the past after all."""
    job, body = await find_job(call), call.body

    async def verb(desk: Desk) -> ops.Backfilled:
        return await ops.backfill_job(
            desk,
            call.tenant,
            job.id,
            begin=read_instant(body.from_, pointer="/from"),
            end=read_instant(body.to, pointer="/to"),
            max_runs=body.max_runs,
            order=ops.Order(body.order),
            only_missing=body.only_missing,
            rate_per_second=body.rate_per_second,
            overlap=Overlap(body.overlap),
            max_concurrency=body.max_concurrency,
            dry_run=body.dry_run,
            operation=call.key.key if call.key else "",
        )

    return await perform(call, verb, lambda done: _backfilled(job, done, dry=body.dry_run))


def _backfilled(job: Job, done: ops.Backfilled, *, dry: bool) -> Told:
    text = to_text("job", job.id)
    shown = wire.Backfilled(
        count=len(done.times),
        times=[shown_instant(time) for time in done.times],
        runs=[to_text("run", run) for run in done.runs],
        dry_run=dry,
    )
    return Told(
        answer=answer(200 if dry else 202, shown),
        resource=text,
        shard=job.shard,
        after={"count": shown.count},
        event="run.queued",
        details={"job_id": text, "count": shown.count},
        changed=not dry,
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/schedules/preview",
        name="schedules.preview",
        says="The next fires of a schedule, and what may surprise about it.",
        handler=look_ahead,
        scope=Scope.JOBS_READ,
        body=wire.PreviewSchedule,
        answers={200: wire.Preview},
        problems=("invalid_schedule",),
    ),
    Route(
        method="POST",
        path="/v1/schedules/parse",
        name="schedules.parse",
        says="What a line of words means as a schedule.",
        handler=understand,
        scope=Scope.JOBS_READ,
        body=wire.ParseSchedule,
        answers={200: wire.Parsed},
        problems=("invalid_schedule",),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job}/next",
        name="jobs.next",
        says="The next fires of a job.",
        handler=next_of_job,
        scope=Scope.JOBS_READ,
        query=wire.NextFires,
        answers={200: wire.Preview},
    ),
    Route(
        method="GET",
        path="/v1/upcoming",
        name="upcoming.list",
        says="What is due soon: runs, those that are tried again, and fires that become some.",
        handler=upcoming,
        scope=Scope.RUNS_READ,
        query=wire.Upcoming,
        answers={200: Page[wire.Soon]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="POST",
        path="/v1/jobs/{job}/backfill",
        name="jobs.backfill",
        says="Run the fires of a span in the past after all, at a bounded pace.",
        handler=backfill,
        scope=Scope.RUNS_WRITE,
        body=wire.Backfill,
        answers={202: wire.Backfilled, 200: wire.Backfilled},
        keyed=Keyed.REQUIRED,
        load=Load.CREATE,
        policy=Policy.BULK,
        problems=("invalid_state", "backfill_too_large"),
    ),
)
