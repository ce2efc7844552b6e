"""Runs: cancelling, trying again, doing over."""

from typing import Any

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.admitting import admitted_demand
from betimes.api.call import Call, Reply
from betimes.api.context import check_again
from betimes.api.finding import find_run, run_in_path
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.routes.jobs_control import told_run
from betimes.api.run_shapes import shown_run
from betimes.api.shaping import maybe_span, missing
from betimes.domain.errors import NotFound
from betimes.domain.ids import RunId
from betimes.domain.scopes import Scope
from betimes.domain.states import Shown
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.meter import Demand
from betimes.ops.runs import RunView, cancel_run, replay_run, retry_run
from betimes.ops.runs import cancel_by_key as cancel_run_by_key
from betimes.wire import runs as wire


def told_view(view: RunView, *, event: str | None, status: int | None = None) -> Told:
    """The answer and the traces of a run that was changed."""
    shown = shown_run(view)
    return Told(
        answer=answer(status or (202 if view.state is Shown.RUNNING else 200), shown),
        resource=shown.id,
        shard=view.run.shard,
        after={"state": shown.state},
        event=event,
        details={"run_id": shown.id, "job_id": shown.job_id, "state": shown.state},
    )


async def cancel(call: Call[NoQuery, wire.CancelRun]) -> Reply:
    """End a run; one that a worker holds is told with its next heartbeat."""
    run, body = run_in_path(call), call.body
    if body.force and body.grace is not None:
        raise Trouble("invalid_parameter", "expected a grace or force, got both")
    grace = maybe_span(body.grace, pointer="/grace")

    async def verb(desk: Desk) -> RunView:
        try:
            return await cancel_run(
                desk,
                call.tenant,
                run,
                reason=body.reason,
                grace=grace,
                force=body.force,
            )
        except NotFound:
            raise missing("run", call.path["run"]) from None

    return await perform(call, verb, lambda view: told_view(view, event=None))


async def cancel_by_key(call: Call[NoQuery, wire.CancelByKey]) -> Reply:
    """End the run that holds a dedupe key."""
    body = call.body

    async def verb(desk: Desk) -> RunView:
        try:
            return await cancel_run_by_key(desk, call.tenant, body.dedupe_key, reason=body.reason)
        except NotFound:
            raise missing("run", body.dedupe_key) from None

    return await perform(call, verb, lambda view: told_view(view, event=None))


async def retry(call: Call[NoQuery, wire.RetryRun]) -> Reply:
    """One more try now, in the same run."""
    run = run_in_path(call)

    async def verb(desk: Desk) -> RunView:
        try:
            return await retry_run(desk, call.tenant, run, reset_attempts=call.body.reset_attempts)
        except NotFound:
            raise missing("run", call.path["run"]) from None

    return await perform(call, verb, lambda view: told_view(view, event="run.queued", status=202))


async def replay(call: Call[NoQuery, wire.ReplayRun]) -> Reply:
    """Do it over, as a new run."""
    run = run_in_path(call)
    payload = None
    if call.body.payload_override is not msgspec.UNSET:
        payload = msgspec.json.encode(call.body.payload_override)
    found = (await find_run(call)).run
    await check_again(call, found, payload)
    if told := await admitted_demand(call, Demand.of(runs=[payload])):
        return told

    async def verb(desk: Desk) -> RunId:
        try:
            return await replay_run(desk, call.tenant, run, payload=payload)
        except NotFound:
            raise missing("run", call.path["run"]) from None

    return await perform(call, verb, told_run)


def _action(verb: str, handler: Any, body: Any, answers: Any, says: str, load: Load) -> Route:
    return Route(
        method="POST",
        path=f"/v1/runs/{{run}}/{verb}",
        name=f"runs.{verb}",
        says=says,
        handler=handler,
        scope=Scope.RUNS_WRITE,
        body=body,
        body_optional=True,
        answers=answers,
        keyed=Keyed.OPTIONAL,
        load=load,
        problems=("invalid_state", *(("invalid_payload",) if verb == "replay" else ())),
    )


ROUTES = (
    _action(
        "cancel",
        cancel,
        wire.CancelRun,
        {200: wire.Run, 202: wire.Run},
        "End a run; one under way is told with its worker's next heartbeat.",
        Load.VITAL,
    ),
    Route(
        method="POST",
        path="/v1/runs/cancel",
        name="runs.cancel_by_key",
        says="End the run that holds a dedupe key.",
        handler=cancel_by_key,
        scope=Scope.RUNS_WRITE,
        body=wire.CancelByKey,
        answers={200: wire.Run, 202: wire.Run},
        keyed=Keyed.OPTIONAL,
        load=Load.VITAL,
        problems=("invalid_state",),
    ),
    _action(
        "retry",
        retry,
        wire.RetryRun,
        {202: wire.Run},
        "One more try now, in the same run.",
        Load.WRITE,
    ),
    _action(
        "replay",
        replay,
        wire.ReplayRun,
        {202: wire.RunMade},
        "Do it over, as a new run.",
        Load.CREATE,
    ),
)
