"""Lists of runs: filters, times, both directions."""

from datetime import timedelta

from betimes.api.call import Call, Reply
from betimes.api.paging import read_place, scope_of, turn
from betimes.api.routes.jobs_list import read_tags
from betimes.api.run_shapes import shown_run
from betimes.api.searching import search_into
from betimes.api.shaping import coerced, maybe_instant, page, paged, read_id
from betimes.domain.ids import JobId, WorkerId
from betimes.domain.states import RunState, Shown, Trigger
from betimes.ops.listing import RunFilter, Span, estimate_runs, find_runs
from betimes.wire import runs as wire

SPAN = timedelta(days=7)
WAITING = frozenset({Shown.SCHEDULED, Shown.QUEUED, Shown.RUNNING, Shown.RETRY_WAIT})
FAILED = "failed"
SEARCHED = {
    "state": "state",
    "queue": "queue",
    "handler": "handler",
    "trigger": "trigger",
    "job": "job",
    "worker": "worker",
    "since": "due_after",
    "until": "due_before",
}


async def list_all(call: Call[wire.ListRuns, None]) -> Reply:
    """A page of runs, latest due first."""
    query, cursors, now = call.query, call.service.cursors, call.service.now()
    scope = scope_of("runs", call.tenant, query)
    place = read_place(cursors, scope, query.cursor)
    text = search_into(query, query.q, SEARCHED, now)
    until = maybe_instant(query.due_before, pointer="/due_before")
    since = maybe_instant(query.due_after, pointer="/due_after") or (until or now) - SPAN
    chosen, shown = _filter(call, text)
    span = Span(since=since, until=until, place=place.at, backwards=place.backwards)
    views, more = await find_runs(
        call.service.desk, call.tenant, chosen, shown=shown, span=span, limit=coerced(query.limit)
    )
    if place.backwards:
        views.reverse()
    ids = [view.run.id for view in views]
    turned = turn(cursors, scope, place, ids, more=more, ascending=False)
    estimate = None
    if query.count is not None:
        whole = Span(since=since, until=until)
        guess = (
            0
            if place.at is None and more is None
            else await estimate_runs(call.service.desk, call.tenant, chosen, whole)
        )
        estimate = max(len(views), guess)
    items = [shown_run(view) for view in views]
    return paged(
        call,
        page(items, cursor=turned.next, back=turned.prev, fields=query.fields, estimate=estimate),
    )


def _filter(
    call: Call[wire.ListRuns, None], text: str | None
) -> tuple[RunFilter, frozenset[Shown]]:
    query, desk = call.query, call.service.desk
    shown = frozenset(Shown(state) for state in query.state if state != FAILED)
    if FAILED in query.state:
        shown |= {Shown.RETRY_WAIT, Shown.DEAD}
    # States that are written in parcels are looked at one by one; the rest the database can tell.
    stored = () if shown & WAITING else tuple(RunState[state.name] for state in shown)
    job = worker = None
    if query.job is not None:
        job = JobId(read_id(desk, "job", query.job, "job"))
    if query.worker is not None:
        worker = WorkerId(read_id(desk, "wrk", query.worker, "worker"))
    chosen = RunFilter(
        job=job,
        states=stored,
        queues=query.queue,
        handlers=query.handler,
        triggers=[Trigger[name.upper()] for name in query.trigger],
        worker=worker,
        tags=read_tags(query.tag),
        text=text,
    )
    return chosen, shown
