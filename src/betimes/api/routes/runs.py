"""Runs: enqueueing, reading, waiting."""

from dataclasses import dataclass
from typing import Any

import msgspec

from betimes.api.acting import intent_of, perform, replied
from betimes.api.admitting import admitted, check_open
from betimes.api.call import Call, Reply
from betimes.api.callbacks import Listeners, listeners_of
from betimes.api.context import accepted_of, rules_of
from betimes.api.finding import find_run, missing_run, run_in_path
from betimes.api.problem import Trouble, body_of, trouble_of
from betimes.api.references import References, references_of
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.jobs import WRITE_PROBLEMS
from betimes.api.routes.jobs_list import check_view
from betimes.api.routes.runs_list import list_all, list_of_job
from betimes.api.run_shapes import last_attempt, new_run, shown_attempt, shown_run
from betimes.api.shaping import missing, selected
from betimes.api.targets import Rules, redaction_of
from betimes.api.told_runs import told_enqueued, told_runs
from betimes.api.waiting import prefer_wait, until_final
from betimes.domain.errors import NotFound, Refused
from betimes.domain.ids import to_text
from betimes.domain.run import NewRun
from betimes.domain.scopes import Scope
from betimes.domain.states import FINAL, RunState
from betimes.ops.dedupe import MadeRun, enqueue_made
from betimes.ops.desk import Desk
from betimes.ops.enqueue import check_new_run
from betimes.ops.history import get_history, with_payload
from betimes.ops.idempotency import shard_of_idempotency
from betimes.ops.making import Enqueued, make_runs
from betimes.ops.runs import RunView
from betimes.ops.schemas import Accepted
from betimes.wire import runs as wire
from betimes.wire.base import Page, shown_instant
from betimes.wire.jobs import BatchItem


async def enqueue(call: Call[NoQuery, wire.NewRun]) -> Reply:
    """Enqueue one run."""
    accepted = await accepted_of(call, [call.body])
    references = await references_of(call, [call.body.payload_ref])
    new = new_run(
        call.body,
        await rules_of(call, [call.body.target]),
        trace=call.request.trace,
        accepted=accepted,
        references=references,
        listeners=await listeners_of(call, [call.body]),
    )

    async def verb(desk: Desk) -> Enqueued:
        key = call.key.key if call.key else call.request.id
        shard = shard_of_idempotency(desk, call.tenant, key)
        return (await make_runs(desk, call.tenant, [new], shard))[0]

    if told := await admitted(call, runs=[new]):
        return told
    await check_open(call, [new.queue], [new.handler])
    now = call.service.now()
    done = await call.service.runs.act(
        new, intent_of(call), verb, lambda made: told_enqueued(made, new, now)
    )
    return await prefer_wait(call, replied(done))


async def enqueue_many(call: Call[NoQuery, wire.NewRuns]) -> Reply:
    """Enqueue many runs, all or none, or each for itself."""
    alone = call.body.mode == "independent"
    new, refused = await _read_all(call, stop=not alone)
    if not new:
        items = [refused[place] for place in range(len(refused))]
        return Reply(status=207, value=wire.RunsTold(items=items))

    async def verb(desk: Desk) -> list[MadeRun]:
        shard = shard_of_idempotency(desk, call.tenant, call.key.key) if call.key else None
        return await enqueue_made(desk, call.tenant, new, shard=shard)

    if told := await admitted(call, runs=new):
        return told
    now = call.service.now()
    return await perform(
        call, verb, lambda runs: told_runs(runs, new, refused if alone else None, now)
    )


async def _read_all(
    call: Call[NoQuery, wire.NewRuns], *, stop: bool
) -> tuple[list[NewRun], dict[int, BatchItem]]:
    """What can be enqueued, and what not by its place in the batch."""
    items = call.body.items
    seen = _Seen(
        targets=await rules_of(call, (one.target for one in items)),
        accepted=await accepted_of(call, items),
        references=await references_of(call, (one.payload_ref for one in items)),
        listeners=await listeners_of(call, items),
    )
    new = list[NewRun]()
    refused = {place: _refused(call, trouble) for place, trouble in call.unread.items()}
    for place, asked in call.placed(items):
        try:
            new.append(await _read_one(call, asked, seen, checked=not stop))
        except (Refused, Trouble) as error:
            trouble = trouble_of(error)
            for one in trouble.errors:
                one.pointer = f"/items/{place}{one.pointer}"
            if stop:
                raise trouble from None
            refused[place] = _refused(call, trouble)
    return new, refused


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the items of a batch are held against, looked up once for all of them."""

    targets: Rules
    accepted: Accepted
    references: References
    listeners: Listeners


async def _read_one(
    call: Call[NoQuery, wire.NewRuns], asked: wire.NewRun, seen: _Seen, *, checked: bool
) -> NewRun:
    made = new_run(
        asked,
        seen.targets,
        trace=call.request.trace,
        accepted=seen.accepted,
        references=seen.references,
        listeners=seen.listeners,
    )
    if checked:
        check_new_run(made)
    await check_open(call, [made.queue], [made.handler])
    return made


def _refused(call: Call[Any, Any], trouble: Trouble) -> BatchItem:
    told = msgspec.json.decode(body_of(trouble, call.request.id))
    return BatchItem(status=trouble.status, error=told)


async def read(call: Call[wire.RunView, None]) -> Reply:
    """One run."""
    full = call.query.view == "full"
    if full:
        check_view(call, "full")
    if not call.query.include:
        view = await find_run(call)
        if full:
            view = await with_payload(call.service.desk, call.tenant, view)
        shown = shown_run(view, full=full, redaction=redaction_of(call))
    else:
        view, attempts = await _attempts(call)
        if full:
            view = await with_payload(call.service.desk, call.tenant, view)
        shown = shown_run(view, full=full, redaction=redaction_of(call))
        shown.attempts = attempts
    return Reply(value=selected(shown, call.query.fields), cacheable=view.run.state in FINAL)


async def _history(call: Call[Any, Any]) -> tuple[RunView, list[Any]]:
    run = run_in_path(call)
    try:
        return await get_history(call.service.desk, call.tenant, run)
    except NotFound:
        raise missing_run(call, run) from None


async def wait(call: Call[wire.WaitRun, None]) -> Reply:
    """One run, as soon as it has ended or patience has."""
    return Reply(value=shown_run(await until_final(call, call.query.timeout)))


async def attempts(call: Call[NoQuery, None]) -> Reply:
    """The attempts of a run, oldest first."""
    _, found = await _attempts(call)
    return Reply(value=Page(items=found))


async def attempt(call: Call[NoQuery, None]) -> Reply:
    """One attempt of a run, by its number."""
    number = call.path["number"]
    _, tried = await _attempts(call)
    found = [one for one in tried if str(one.number) == number]
    if not found:
        raise missing("attempt", number)
    return Reply(value=found[-1])


async def _attempts(call: Call[Any, Any]) -> tuple[RunView, list[wire.Attempt]]:
    """All of them: an attempt that succeeded is told by the run alone."""
    view, failed = await _history(call)
    hidden = redaction_of(call)
    items = [shown_attempt(one, hidden) for one in failed]
    if view.run.state is RunState.SUCCEEDED:
        items.append(last_attempt(view.run, "succeeded"))
    return view, items


async def timeline(call: Call[NoQuery, None]) -> Reply:
    """What happened to a run, in order."""
    view, failed = await _history(call)
    run = view.run
    entries = [_entry(run.created_at, "scheduled", run.trigger.name.lower())]
    for one in failed:
        shown = shown_attempt(one)
        entries.append(_entry(one.started_at, "running", None, shown.worker_id, one.number))
        detail = None if shown.error is None else shown.error.message
        entries.append(_entry(one.finished_at, shown.outcome, detail, shown.worker_id, one.number))
    worker = None if run.worker is None else to_text("wrk", run.worker)
    if run.state is RunState.SUCCEEDED:
        entries.append(_entry(run.started_at, "running", None, worker, run.attempt))
    if run.finished_at is not None:
        entries.append(_entry(run.finished_at, view.state.value, run.reason, worker, run.attempt))
    known = [entry for entry in entries if entry is not None]
    return Reply(value=wire.Timeline(items=sorted(known, key=lambda entry: entry.at)))


def _entry(
    at: Any, state: str, detail: str | None, worker: str | None = None, attempt: int | None = None
) -> wire.TimelineEntry | None:
    if at is None:
        return None
    return wire.TimelineEntry(
        at=shown_instant(at), state=state, detail=detail, worker_id=worker, attempt=attempt
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/runs",
        name="runs.create",
        says="Enqueue a run without a job.",
        handler=enqueue,
        scope=Scope.RUNS_WRITE,
        body=wire.NewRun,
        answers={202: wire.RunMade, 200: wire.Run},
        keyed=Keyed.REQUIRED,
        load=Load.CREATE,
        policy=Policy.CREATE,
        headers=("Location",),
        problems=(*WRITE_PROBLEMS, "idempotency_key_reused"),
    ),
    Route(
        method="POST",
        path="/v1/runs/batch",
        name="runs.create_many",
        says="Enqueue up to 1000 runs, all or none, or each for itself.",
        handler=enqueue_many,
        scope=Scope.RUNS_WRITE,
        body=wire.NewRuns,
        item=wire.NewRun,
        body_max=5 << 20,
        answers={202: wire.RunsMade, 207: wire.RunsTold},
        keyed=Keyed.REQUIRED,
        load=Load.CREATE,
        policy=Policy.BULK,
        problems=(*WRITE_PROBLEMS, "idempotency_key_reused"),
    ),
    Route(
        method="GET",
        path="/v1/runs",
        name="runs.list",
        says="List runs, latest due first.",
        handler=list_all,
        scope=Scope.RUNS_READ,
        query=wire.ListRuns,
        answers={200: Page[wire.Run]},
        headers=("Link",),
        problems=("invalid_parameter", "cursor_invalid", "not_found"),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}",
        name="runs.get",
        says="Read one run.",
        handler=read,
        scope=Scope.RUNS_READ,
        query=wire.RunView,
        answers={200: wire.Run, 304: None},
        headers=("ETag",),
        problems=("not_found", "retention_expired"),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/wait",
        name="runs.wait",
        says="Read one run when it has ended, or when patience has.",
        handler=wait,
        scope=Scope.RUNS_READ,
        query=wire.WaitRun,
        answers={200: wire.Run},
        problems=("retention_expired", "not_found", "invalid_parameter"),
        seconds=60.0,
        waits=True,
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/attempts",
        name="runs.attempts",
        says="List the attempts of a run.",
        handler=attempts,
        scope=Scope.RUNS_READ,
        answers={200: Page[wire.Attempt]},
        problems=("not_found", "retention_expired"),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/attempts/{number}",
        name="runs.attempt",
        says="Read one attempt of a run.",
        handler=attempt,
        scope=Scope.RUNS_READ,
        answers={200: wire.Attempt},
        problems=("not_found", "retention_expired"),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job}/runs",
        name="jobs.runs",
        says="List the runs of a job, latest due first.",
        handler=list_of_job,
        scope=Scope.RUNS_READ,
        query=wire.ListRunsOfJob,
        answers={200: Page[wire.Run]},
        headers=("Link",),
        problems=("invalid_parameter", "cursor_invalid", "not_found"),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/timeline",
        name="runs.timeline",
        says="What happened to a run, in order.",
        handler=timeline,
        scope=Scope.RUNS_READ,
        answers={200: wire.Timeline},
        problems=("not_found", "retention_expired"),
    ),
)
