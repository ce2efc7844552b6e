"""Runs: moving one that waits, and actions over many."""

from datetime import timedelta

from betimes.api.acting import perform
from betimes.api.call import Call, Reply
from betimes.api.finding import run_in_path
from betimes.api.operating import begin, check_count, chosen_id
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.runs_control import told_view
from betimes.api.routes.runs_list import WAITING
from betimes.api.shaping import maybe_instant, missing, read_id
from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId, RunId
from betimes.domain.scopes import Scope
from betimes.domain.states import RunState, Shown, Trigger
from betimes.ops.bulk import ITEMS_MAX
from betimes.ops.bulk_runs import BULK_RUNS, RUNS
from betimes.ops.change_run import Change, change_run
from betimes.ops.desk import Desk
from betimes.ops.listing import RunFilter, find_all_runs
from betimes.ops.operations import new_operation
from betimes.ops.runs import RunView
from betimes.wire import operations as wire
from betimes.wire.problem import FieldError
from betimes.wire.runs import Run

SPAN = timedelta(days=7)


async def patch(call: Call[NoQuery, wire.PatchRun]) -> Reply:
    """Give a run that waits another time, queue or priority."""
    run = run_in_path(call)
    change = Change(
        due_at=maybe_instant(call.body.due_at, pointer="/due_at"),
        queue=call.body.queue,
        priority=call.body.priority,
    )

    async def verb(desk: Desk) -> RunView:
        try:
            return await change_run(desk, call.tenant, run, change)
        except NotFound:
            raise missing("run", call.path["run"]) from None

    return await perform(call, verb, lambda view: told_view(view, event=None))


async def bulk(call: Call[NoQuery, wire.BulkRuns]) -> Reply:
    """Cancel, retry, replay or reprioritise what is named or what a filter means."""
    body = call.body
    if (body.filter is None) == (body.ids is None):
        raise _wrong("expected a filter or ids, got both or neither", "/filter")
    if (body.action == "set_priority") != (body.priority is not None):
        raise _wrong("expected a priority with set_priority and only there", "/priority")
    runs = await _chosen(call)
    if body.dry_run:
        return Reply(value=wire.Matched(matched=len(runs), dry_run=True))
    if body.ids is None:
        check_count(len(runs), body.confirm_count, noun="runs")
    request = BULK_RUNS.request(
        body.action,
        runs,
        reason=body.reason,
        priority=body.priority,
        rate_per_second=body.rate_per_second,
    )
    operation = new_operation(
        call.service.desk,
        call.tenant,
        RUNS,
        request,
        total=len(runs),
        by=call.caller.key,
        identity=chosen_id(call, body.operation_id),
    )
    return await begin(call, operation)


async def _chosen(call: Call[NoQuery, wire.BulkRuns]) -> list[RunId]:
    desk, body = call.service.desk, call.body
    if body.ids is not None:
        return [RunId(read_id(desk, "run", text, "run")) for text in dict.fromkeys(body.ids)]
    asked = body.filter or wire.RunChoice()
    shown = frozenset(Shown(state) for state in asked.state)
    until = maybe_instant(asked.due_before, pointer="/filter/due_before")
    since = maybe_instant(asked.due_after, pointer="/filter/due_after")
    chosen = RunFilter(
        job=None if asked.job is None else JobId(read_id(desk, "job", asked.job, "job")),
        states=() if shown & WAITING else tuple(RunState[state.name] for state in shown),
        queues=asked.queue,
        handlers=asked.handler,
        triggers=[Trigger[name.upper()] for name in asked.trigger],
        tags=asked.tags or None,
    )
    found = await find_all_runs(
        desk,
        call.tenant,
        chosen,
        shown=shown,
        since=since or (until or call.service.now()) - SPAN,
        until=until,
        most=ITEMS_MAX + 1,
    )
    if len(found) > ITEMS_MAX:
        raise Trouble("batch_too_large", f"this means more than {ITEMS_MAX} runs; narrow it down")
    return found


def _wrong(sentence: str, pointer: str) -> Trouble:
    return Trouble(
        "invalid_parameter",
        sentence,
        errors=[FieldError(pointer=pointer, code="invalid_parameter", detail=sentence)],
    )


ROUTES = (
    Route(
        method="PATCH",
        path="/v1/runs/{run}",
        name="runs.update",
        says="Give a run that waits another time, queue or priority.",
        handler=patch,
        scope=Scope.RUNS_WRITE,
        body=wire.PatchRun,
        answers={200: Run},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        problems=("invalid_state",),
        example={"due_at": "2026-01-01T09:00:00Z", "priority": 2},
    ),
    Route(
        method="POST",
        path="/v1/runs/bulk",
        name="runs.bulk",
        says="Cancel, retry, replay or reprioritise many runs, as an operation.",
        handler=bulk,
        scope=Scope.RUNS_WRITE,
        body=wire.BulkRuns,
        answers={200: wire.Matched, 202: wire.Operation},
        keyed=Keyed.OPTIONAL,
        load=Load.VITAL,
        policy=Policy.BULK,
        problems=("confirm_count_mismatch", "batch_too_large", "already_exists"),
        headers=("Location",),
        example={"action": "cancel", "filter": {"queue": ["mail"]}, "confirm_count": 12},
    ),
)
