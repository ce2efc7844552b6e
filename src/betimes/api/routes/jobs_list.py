"""Lists of jobs: filters, order, both directions."""

from dataclasses import replace as replace_fields
from typing import Any

from betimes.api.call import Call, Reply
from betimes.api.definitions import shown_job
from betimes.api.paging import above, below, read_place, scope_of, turn
from betimes.api.problem import Trouble
from betimes.api.searching import search_into
from betimes.api.shaping import coerced, maybe_instant, page, paged
from betimes.domain.errors import Forbidden
from betimes.domain.scopes import Scope
from betimes.domain.states import JobState
from betimes.ops.listing import JobFilter, estimate_jobs, find_jobs
from betimes.wire import jobs as wire

TAG_SEPARATOR = ":"
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
    if view != "basic" and Scope.PAYLOADS_READ not in call.caller.scopes:
        raise Forbidden(f"the view {view} needs the scope {Scope.PAYLOADS_READ}")


async def list_all(call: Call[wire.ListJobs, None]) -> Reply:
    """A page of jobs."""
    query, cursors = call.query, call.service.cursors
    check_view(call, query.view)
    scope = scope_of("jobs", call.tenant, query)
    place = read_place(cursors, scope, query.cursor)
    text = search_into(query, query.q, SEARCHED, call.service.now())
    chosen = replace_fields(job_filter(query), text=text)
    ascending, limit = not query.sort.startswith("-"), coerced(query.limit)
    upwards = ascending is not place.backwards
    jobs = await find_jobs(
        call.service.desk,
        call.tenant,
        chosen,
        after=below(place.at) if upwards and place.at else place.at,
        newest_first=not upwards,
        limit=limit,
    )
    more = None
    if len(jobs) == limit:
        more = above(jobs[-1].id) if upwards else jobs[-1].id
    if place.backwards:
        jobs.reverse()
    ids = [job.id for job in jobs]
    turned = turn(cursors, scope, place, ids, more=more, ascending=ascending)
    estimate = None
    if query.count is not None:
        whole = place.at is None and more is None
        guess = 0 if whole else await estimate_jobs(call.service.desk, call.tenant, chosen)
        estimate = max(len(jobs), guess)
    items = [shown_job(job, view=query.view) for job in jobs]
    return paged(
        call,
        page(items, cursor=turned.next, back=turned.prev, fields=query.fields, estimate=estimate),
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
