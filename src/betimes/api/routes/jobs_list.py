"""Lists of jobs: filters, order, both directions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from betimes.api.call import Call, Reply
from betimes.api.definitions import shown_job
from betimes.api.paging import BY_ID, Turned, above, below, read_place, scope_of, turn
from betimes.api.problem import Trouble
from betimes.api.rights import require
from betimes.api.searching import search_into
from betimes.api.shaping import coerced, maybe_instant, page, paged
from betimes.domain.ids import to_text
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.domain.states import JobState
from betimes.ops.listing import (
    JobFilter,
    LastRun,
    Spot,
    estimate_jobs,
    find_job_page,
    find_jobs_sorted,
    last_runs,
)
from betimes.wire import jobs as wire
from betimes.wire.base import shown_maybe

TAG_SEPARATOR = ":"
CREATION = "created_at"
SEARCHED = {
    "state": "state",
    "queue": "queue",
    "handler": "handler",
    "group": "group",
    "name": "name_prefix",
    "type": "schedule_type",
}


def check_view(call: Call[Any, Any], view: str) -> None:
    """Payloads are shown only to keys that may read them."""
    if view != "basic":
        require(call, Scope.PAYLOADS_READ, f"the view {view}")


@dataclass(frozen=True, slots=True)
class Found:
    """A page of jobs, and the cursors around it."""

    jobs: list[Job]
    turned: Turned


async def list_all(call: Call[wire.ListJobs, None]) -> Reply:
    """A page of jobs."""
    query = call.query
    check_view(call, query.view)
    scope = scope_of("jobs", call.tenant, query)
    text = search_into(query, query.q, SEARCHED, call.service.now())
    chosen = replace(job_filter(query), text=text)
    reading = _by_creation if query.sort.removeprefix("-") == CREATION else _by_key
    found = await reading(call, scope, chosen)
    estimate = None
    if query.count is not None:
        whole = found.turned.next is None and found.turned.prev is None
        guess = 0 if whole else await estimate_jobs(call.service.desk, call.tenant, chosen)
        estimate = max(len(found.jobs), guess)
    items = [shown_job(job, view=query.view) for job in found.jobs]
    await add_last_runs(call, items, found.jobs, query.include)
    turned = found.turned
    return paged(
        call,
        page(items, cursor=turned.next, back=turned.prev, fields=query.fields, estimate=estimate),
    )


async def _by_creation(
    call: Call[wire.ListJobs, None], scope: Sequence[Any], chosen: JobFilter
) -> Found:
    query, cursors = call.query, call.service.cursors
    place = read_place(cursors, scope, query.cursor)
    ascending, limit = not query.sort.startswith("-"), coerced(query.limit)
    upwards = ascending is not place.backwards
    found = await find_job_page(
        call.service.desk,
        call.tenant,
        chosen,
        after=below(place.at) if upwards and place.at else place.at,
        newest_first=not upwards,
        limit=limit,
        payloads=query.view != "basic",
    )
    jobs = found.jobs
    more: Spot | None = None
    if found.more is not None:
        last = (BY_ID, found.more)
        more = above(last) if upwards else last
    if place.backwards:
        jobs.reverse()
    spots = [(BY_ID, job.id) for job in jobs]
    return Found(jobs, turn(cursors, scope, place, spots, more=more, ascending=ascending))


async def _by_key(
    call: Call[wire.ListJobs, None], scope: Sequence[Any], chosen: JobFilter
) -> Found:
    query, cursors = call.query, call.service.cursors
    place = read_place(cursors, scope, query.cursor)
    ascending, limit = not query.sort.startswith("-"), coerced(query.limit)
    upwards = ascending is not place.backwards
    found = await find_jobs_sorted(
        call.service.desk,
        call.tenant,
        chosen,
        by=query.sort.removeprefix("-"),
        at=place.spot,
        upwards=upwards,
        limit=limit,
        payloads=query.view != "basic",
    )
    more: Spot | None = None
    if len(found) == limit:
        more = above(found[-1][0]) if upwards else found[-1][0]
    if place.backwards:
        found.reverse()
    spots = [spot for spot, _ in found]
    turned = turn(cursors, scope, place, spots, more=more, ascending=ascending)
    return Found([job for _, job in found], turned)


async def add_last_runs(
    call: Call[Any, Any], shown: Sequence[wire.Job], jobs: Sequence[Job], include: Sequence[str]
) -> None:
    """The latest run of each job, for those who ask for it: it is read from the runs."""
    if "last_run" not in include:
        return
    found = await last_runs(call.service.desk, call.tenant, [job.id for job in jobs])
    for one, job in zip(shown, jobs, strict=True):
        run = found.get(job.id)
        one.status.last_run = None if run is None else _last_run(run)


def _last_run(run: LastRun) -> wire.LastRun:
    return wire.LastRun(
        id=to_text("run", run.id),
        state=run.state.value,
        finished_at=shown_maybe(run.finished_at),
    )


def job_filter(query: wire.ListJobs) -> JobFilter:
    """The filter a query means."""
    return JobFilter(
        states=[JobState[state.upper()] for state in query.state],
        queues=query.queue,
        handlers=query.handler,
        group=query.group,
        prefix=query.name_prefix,
        targets=query.target_type,
        kinds=query.schedule_type,
        tags=read_tags(query.tag),
        fire_after=maybe_instant(query.next_fire_after, pointer="/next_fire_after"),
        fire_before=maybe_instant(query.next_fire_before, pointer="/next_fire_before"),
    )


def read_tags(tags: list[str]) -> dict[str, str] | None:
    """Tags as `name:value`."""
    found = {}
    for tag in tags:
        name, separator, value = tag.partition(TAG_SEPARATOR)
        if not separator or not name:
            raise Trouble("invalid_parameter", f"expected a tag as name:value, got {tag[:100]!r}")
        found[name] = value
    return found or None
