"""Workflow runs: looking at them, and what people may do to them and their nodes."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.routes.jobs_list import check_view
from betimes.api.shaping import coerced, missing, page, paged, read_id
from betimes.api.workflow_shapes import shown_graph, shown_workflow_run
from betimes.domain.errors import NotFound
from betimes.domain.ids import to_text
from betimes.domain.scopes import Scope
from betimes.domain.workflow import WorkflowState
from betimes.ops import workflow_control as control
from betimes.ops import workflow_runs as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.workflow_runs import WorkflowRunView
from betimes.wire import workflows as wire
from betimes.wire.base import Page, shown_bytes
from betimes.workflow.policy import Origin

LAST = UUID(int=(1 << 128) - 1)
NOUN, NODE = "workflow run", "workflow node"


def in_path(call: Call[Any, Any]) -> UUID:
    """The id in the path."""
    return read_id(call.service.desk, "wfr", call.path["workflow_run"], NOUN)


async def list_all(call: Call[wire.ListWorkflowRuns, None]) -> Reply:
    """A page of workflow runs, newest first."""
    query = call.query
    scope = ("workflow-runs", call.tenant, query.workflow, *sorted(query.state))
    before = LAST
    if query.cursor is not None:
        (text,) = call.leaves.read(scope, query.cursor)
        before = UUID(text)
    limit = coerced(query.limit)
    found = await ops.list_workflow_runs(
        call.service.desk,
        call.tenant,
        before=before,
        workflow=query.workflow,
        states=[WorkflowState[name.upper()] for name in query.state],
        most=limit,
    )
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].id)])
    return paged(call, page([shown_workflow_run(one) for one in found], cursor=cursor))


async def read(call: Call[wire.ReadWorkflowRun, None]) -> Reply:
    """One workflow run, with its graph if that is wanted."""
    check_view(call, call.query.view)
    full = call.query.view == "full"
    try:
        view = await ops.get_workflow_run(
            call.service.desk, call.tenant, in_path(call), opened=full
        )
    except NotFound:
        raise missing(NOUN, call.path["workflow_run"]) from None
    shown = shown_workflow_run(view.run)
    if "graph" in call.query.include:
        shown.graph = shown_graph(view)
    if full:
        shown.input = shown_bytes(view.run.input)
    return Reply(value=shown)


async def _changed(
    call: Call[Any, Any],
    verb: Callable[[Desk, UUID], Awaitable[WorkflowRunView]],
    *,
    status: int,
    after: dict[str, Any] | None = None,
) -> Reply:
    run = in_path(call)

    async def act(desk: Desk) -> WorkflowRunView:
        try:
            return await verb(desk, run)
        except NotFound as error:
            node = call.path.get("workflow_node")
            if node is not None and "no node" in error.sentence:
                raise missing(NODE, node) from None
            raise missing(NOUN, call.path["workflow_run"]) from None

    def told(view: WorkflowRunView) -> Told:
        shown = shown_workflow_run(view.run)
        shown.graph = shown_graph(view)
        return Told(
            answer=answer(status, shown),
            resource=to_text("wfr", run),
            shard=view.run.shard,
            after={"state": shown.state, **(after or {})},
        )

    return await perform(call, act, told)


async def cancel(call: Call[NoQuery, wire.CancelWorkflowRun]) -> Reply:
    """Stop a workflow run."""
    body = call.body

    async def verb(desk: Desk, run: UUID) -> WorkflowRunView:
        return await control.cancel_workflow(
            desk, call.tenant, run, reason=body.reason, cleanup=body.cleanup
        )

    return await _changed(call, verb, status=202, after={"reason": body.reason})


async def retry(call: Call[NoQuery, wire.RetryWorkflowRun]) -> Reply:
    """Do a workflow run again, from somewhere."""
    body = call.body
    if (body.origin == "node") != (body.node is not None):
        raise Trouble("invalid_parameter", "expected a node with from: node, and with nothing else")

    async def verb(desk: Desk, run: UUID) -> WorkflowRunView:
        try:
            return await control.retry_workflow(
                desk, call.tenant, run, origin=Origin(body.origin), node=body.node
            )
        except NotFound as error:
            if "no node" in error.sentence:
                raise missing(NODE, body.node or "") from None
            raise

    return await _changed(call, verb, status=202, after={"from": body.origin, "node": body.node})


async def skip(call: Call[NoQuery, wire.SkipNode]) -> Reply:
    """Skip a node that has not started."""
    node, reason = call.path["workflow_node"], call.body.reason

    async def verb(desk: Desk, run: UUID) -> WorkflowRunView:
        return await control.skip_node(
            desk, call.tenant, run, node, reason=reason, by=call.caller.key
        )

    return await _changed(call, verb, status=200, after={"node": node, "reason": reason})


async def approve(call: Call[NoQuery, wire.SkipNode]) -> Reply:
    """Open the gate of a node that waits for an approval."""
    node = call.path["workflow_node"]

    async def verb(desk: Desk, run: UUID) -> WorkflowRunView:
        return await control.approve_node(desk, call.tenant, run, node, by=call.caller.key)

    return await _changed(call, verb, status=200, after={"node": node, "reason": call.body.reason})


async def signal(call: Call[NoQuery, wire.SignalNode]) -> Reply:
    """Open the gate of a node that waits for a signal."""
    node = call.path["workflow_node"]
    data = None if call.body.data is None else msgspec.json.encode(call.body.data)

    async def verb(desk: Desk, run: UUID) -> WorkflowRunView:
        return await control.signal_node(desk, call.tenant, run, node, data, by=call.caller.key)

    return await _changed(call, verb, status=200, after={"node": node})


ONE = "/v1/workflow-runs/{workflow_run}"
ONE_NODE = f"{ONE}/nodes/{{workflow_node}}"


def _verb(name: str, path: str, says: str, handler: Any, body: Any, status: int) -> Route:
    return Route(
        method="POST",
        path=path,
        name=f"workflow_runs.{name}",
        says=says,
        handler=handler,
        scope=Scope.RUNS_WRITE,
        body=body,
        body_optional=True,
        answers={status: wire.WorkflowRun},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        problems=("invalid_state",),
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/workflow-runs",
        name="workflow_runs.list",
        says="List workflow runs, newest first.",
        handler=list_all,
        scope=Scope.RUNS_READ,
        query=wire.ListWorkflowRuns,
        answers={200: Page[wire.WorkflowRun]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path=ONE,
        name="workflow_runs.get",
        says="Read one workflow run; with `include=graph` its nodes, their times and the critical "
        "path.",
        handler=read,
        scope=Scope.RUNS_READ,
        query=wire.ReadWorkflowRun,
        answers={200: wire.WorkflowRun},
    ),
    _verb(
        "cancel",
        f"{ONE}/cancel",
        "Stop a workflow run; what cleans up still runs unless that is not wanted.",
        cancel,
        wire.CancelWorkflowRun,
        202,
    ),
    _verb(
        "retry",
        f"{ONE}/retry",
        "Do a workflow run again from where it failed, from a node, or from its start.",
        retry,
        wire.RetryWorkflowRun,
        202,
    ),
    _verb(
        "skip", f"{ONE_NODE}/skip", "Skip a node that has not started.", skip, wire.SkipNode, 200
    ),
    _verb(
        "approve",
        f"{ONE_NODE}/approve",
        "Open the gate of a node that waits for an approval.",
        approve,
        wire.SkipNode,
        200,
    ),
    _verb(
        "signal",
        f"{ONE_NODE}/signal",
        "Open the gate of a node that waits for a signal, with what it is told.",
        signal,
        wire.SignalNode,
        200,
    ),
)
