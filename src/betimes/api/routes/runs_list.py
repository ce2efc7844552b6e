"""Lists of runs: filters, times, both directions."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from betimes.api.call import Call, Reply
from betimes.api.finding import find_job, job_of
from betimes.api.paging import BY_ID, read_place, scope_of, turn
from betimes.api.routes.jobs_list import read_tags
from betimes.api.run_shapes import shown_run
from betimes.api.searching import search_into
from betimes.api.shaping import coerced, maybe_instant, maybe_span, page, paged, read_id
from betimes.domain.ids import JobId, WorkerId, to_text
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
SEARCHED_IN_JOB = {word: member for word, member in SEARCHED.items() if word != "job"}


async def list_all(call: Call[wire.ListRuns, None]) -> Reply:
    """A page of runs, latest due first, up to now unless what lies ahead is asked for."""
    return await _listed(call, SEARCHED)


async def list_of_job(call: Call[wire.ListRunsOfJob, None]) -> Reply:
    """A page of the runs of one job."""
    job = to_text("job", (await find_job(call)).id)
    return await _listed(call, SEARCHED_IN_JOB, job)


async def _listed(
    call: Call[Any, None], searched: Mapping[str, str], job: str | None = None
) -> Reply:
    query, cursors, now = call.query, call.service.cursors, call.service.now()
    scope = (*scope_of("runs", call.tenant, query), job)
    place = read_place(cursors, scope, query.cursor)
    text = search_into(query, query.q, searched, now)
    until = maybe_instant(query.due_before, pointer="/due_before")
    since = maybe_instant(query.due_after, pointer="/due_after") or (until or now) - SPAN
    wanted = job or getattr(query, "job", None)
    whose = None if wanted is None else await job_of(call, wanted)
    chosen, shown = _filter(call, whose, text)
    if until is None and Shown.SCHEDULED not in shown and since < now:
        until = now  # What lies ahead is for those who ask for it.
    span = Span(since=since, until=until, place=place.at, backwards=place.backwards)
    views, more = await find_runs(
        call.service.desk, call.tenant, chosen, shown=shown, span=span, limit=coerced(query.limit)
    )
    if place.backwards:
        views.reverse()
    spots = [(BY_ID, view.run.id) for view in views]
    onwards = None if more is None else (BY_ID, more)
    turned = turn(cursors, scope, place, spots, more=onwards, ascending=False)
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
    call: Call[Any, None], job: JobId | None, text: str | None
) -> tuple[RunFilter, frozenset[Shown]]:
    query, desk = call.query, call.service.desk
    shown = frozenset(Shown(state) for state in query.state if state != FAILED)
    if FAILED in query.state:
        shown |= {Shown.RETRY_WAIT, Shown.DEAD}
    # States that are written in parcels are looked at one by one; the rest the database can tell.
    stored = () if shown & WAITING else tuple(RunState[state.name] for state in shown)
    worker = None
    if query.worker is not None:
        worker = WorkerId(read_id(desk, "wrk", query.worker, "worker"))
    chosen = RunFilter(
        job=job,
        workflow_run=_workflow_run(call),
        states=stored,
        queues=query.queue,
        handlers=query.handler,
        triggers=[Trigger[name.upper()] for name in query.trigger],
        worker=worker,
        tags=read_tags(query.tag),
        text=text,
        fire_after=maybe_instant(query.scheduled_after, pointer="/scheduled_after"),
        fire_before=maybe_instant(query.scheduled_before, pointer="/scheduled_before"),
        finished_after=maybe_instant(query.finished_after, pointer="/finished_after"),
        finished_before=maybe_instant(query.finished_before, pointer="/finished_before"),
        lag=maybe_span(query.min_lag, pointer="/min_lag"),
        fingerprint=query.error_fingerprint,
    )
    return chosen, shown


def _workflow_run(call: Call[Any, None]) -> UUID | None:
    text = getattr(call.query, "workflow_run", None)
    return None if text is None else read_id(call.service.desk, "wfr", text, "workflow run")
