"""Workflows: graphs of work, in versions."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.context import rules_of
from betimes.api.etag import expected_revision, stale, tag_of, unchanged, wants_none
from betimes.api.rights import require
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.jobs_list import check_view
from betimes.api.shaping import coerced, missing, page, paged
from betimes.api.targets import secrets_named
from betimes.api.workflow_shapes import prepared, shown_workflow, shown_workflow_run
from betimes.domain.errors import NotFound
from betimes.domain.scopes import Scope
from betimes.ops import workflows as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.workflow_runs import NewWorkflowRun, WorkflowRunView, start_workflow
from betimes.rhythm import aside_if_large
from betimes.wire import workflows as wire
from betimes.wire.base import Page
from betimes.wire.jobs import Target
from betimes.wire.keys import PageOnly

FIRST = 1 << 30


async def list_all(call: Call[wire.ListWorkflows, None]) -> Reply:
    """A page of workflows by name, each in its newest version."""
    scope = ("workflows", call.tenant)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    found = await ops.list_workflows(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if ops.is_cut(found, limit):
        cursor = call.leaves.write(scope, [found[-1].name])
    return paged(call, page([shown_workflow(one) for one in found], cursor=cursor))


async def read(call: Call[wire.ReadWorkflow, None]) -> Reply:
    """The newest version of a workflow."""
    return await _shown(call, None)


async def read_version(call: Call[wire.ReadWorkflow, None]) -> Reply:
    """One version of a workflow; it never changes."""
    text = call.path["version"]
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) < FIRST):
        raise missing("workflow version", text)
    return await _shown(call, int(text[:10]))


async def _shown(call: Call[wire.ReadWorkflow, None], version: int | None) -> Reply:
    check_view(call, call.query.view)
    found = await _found(call, version)
    tag = tag_of(found.version)
    if unchanged(call.request, tag):
        return Reply(status=304, headers={"ETag": tag})
    shown = shown_workflow(found, full=call.query.view == "full")
    return Reply(value=shown, headers={"ETag": tag})


async def _found(call: Call[Any, Any], version: int | None) -> ops.Workflow:
    name = named(call)
    try:
        return await ops.get_workflow(call.service.desk, call.tenant, name, version)
    except NotFound:
        what = "workflow" if version is None else "workflow version"
        raise missing(what, name if version is None else str(version)) from None


def named(call: Call[Any, Any]) -> str:
    """The name in the path."""
    name = call.path["workflow"]
    if "\x00" in name:
        raise missing("workflow", name)
    return name


async def versions(call: Call[PageOnly, None]) -> Reply:
    """A page of versions, newest first."""
    name = named(call)
    scope = ("workflow-versions", call.tenant, name)
    before = FIRST
    if call.query.cursor is not None:
        (before,) = call.leaves.read(scope, call.query.cursor)
    else:
        await _found(call, None)
    limit = coerced(call.query.limit)
    found = await ops.list_versions(call.service.desk, call.tenant, name, before=before, most=limit)
    cursor = None
    if ops.is_cut(found, limit):
        cursor = call.leaves.write(scope, [found[-1].version])
    return paged(call, page([shown_workflow(one) for one in found], cursor=cursor))


async def put(call: Call[NoQuery, wire.PutWorkflow]) -> Reply:
    """Keep a workflow; what differs from its newest version becomes the next one."""
    name, body = named(call), call.body
    nodes = [node.target for node in body.nodes.values()]
    rules = await rules_of(call, nodes, kept=await _kept_targets(call, name, nodes))
    written = await aside_if_large(len(call.raw), prepared, body, rules)
    await _check_fed(call, name, written)
    replaces = await _replaces(call, name)

    async def verb(desk: Desk) -> ops.Put:
        return await ops.put_workflow(
            desk,
            call.tenant,
            name,
            written,
            replaces=replaces,
            by=call.caller.key,
        )

    return await perform(call, verb, _told)


async def _kept_targets(
    call: Call[Any, Any], name: str, nodes: Iterable[Target | None]
) -> list[Mapping[str, Any]]:
    """The targets of the newest version, where it matters that one of them stays as it is."""
    if not secrets_named(nodes):
        return []
    try:
        found = await ops.get_workflow(call.service.desk, call.tenant, name)
    except NotFound:
        return []
    plan = await ops.plan_of(found.content)
    return [work.target for work in plan.work.values()]


async def _check_fed(call: Call[Any, Any], name: str, written: ops.Prepared) -> None:
    """Whoever has others' inputs and results sent elsewhere must be allowed to read them.

    A name that is new has none. What a node is given and where it sends it are judged together, or
    a URL could come first and the payload later.
    """
    if Scope.PAYLOADS_READ in call.caller.scopes:
        return
    try:
        found = await ops.get_workflow(call.service.desk, call.tenant, name)
    except NotFound:
        return
    kept = {_sent(node) for node in found.definition["nodes"].values()}
    plan = await ops.plan_of(written.content)
    for node, told in written.definition["nodes"].items():
        uses = plan.graph.nodes[node].uses and "url" in plan.work[node].target
        if uses and _sent(told) not in kept:
            require(call, Scope.PAYLOADS_READ, f"to send what {node!r} is given elsewhere")


def _sent(node: Mapping[str, Any]) -> bytes:
    """What a node sends, and where, as something to compare."""
    told = [node.get(member) for member in ("target", "payload", "map")]
    return msgspec.json.encode(told, order="sorted")


async def _replaces(call: Call[Any, Any], name: str) -> int | None:
    """The version the caller has seen; None when it does not say."""
    if not wants_none(call.request) and call.request.header(b"if-match") is None:
        return None
    try:
        found = await ops.get_workflow(call.service.desk, call.tenant, name)
    except NotFound:
        expected_revision(call.request, None)
        return 0
    if wants_none(call.request):
        raise stale(found.version)
    return expected_revision(call.request, found.version)


def _told(put: ops.Put) -> Told:
    shown = shown_workflow(put.workflow)
    headers = {"ETag": shown.etag}
    if put.created:
        headers["Location"] = f"/v1/workflows/{shown.name}"
    return Told(
        answer=answer(201 if put.created else 200, shown, headers=headers),
        resource=f"workflow:{shown.name}",
        after={"version": shown.version},
        changed=put.created,
    )


async def delete(call: Call[NoQuery, None]) -> Reply:
    """Forget a workflow that no job starts; what runs of it goes on."""
    name = named(call)
    found = await _found(call, None)
    expected = expected_revision(call.request, found.version)

    async def verb(desk: Desk) -> int:
        try:
            return await ops.delete_workflow(desk, call.tenant, name, expected_version=expected)
        except NotFound:
            raise missing("workflow", name) from None

    return await perform(
        call,
        verb,
        lambda version: Told(
            answer=answer(204), resource=f"workflow:{name}", before={"version": version}
        ),
    )


async def start(call: Call[NoQuery, wire.StartWorkflow]) -> Reply:
    """Start a workflow; what needs nothing is queued at once."""
    body = call.body
    workflow = await _found(call, body.version)
    new = NewWorkflowRun(
        workflow=workflow,
        input=None if body.input is None else msgspec.json.encode(body.input),
        tags=body.tags,
        by=call.caller.key,
    )
    new.check(await ops.plan_of(workflow.content))

    async def verb(desk: Desk) -> WorkflowRunView:
        return await start_workflow(desk, call.tenant, new)

    return await perform(call, verb, _started)


def _started(view: WorkflowRunView) -> Told:
    shown = shown_workflow_run(view.run)
    return Told(
        answer=answer(202, shown, headers={"Location": f"/v1/workflow-runs/{shown.id}"}),
        resource=shown.id,
        shard=view.run.shard,
        after={"workflow": shown.workflow, "version": shown.version, "state": shown.state},
    )


ONE = "/v1/workflows/{workflow}"
ROUTES = (
    Route(
        method="GET",
        path="/v1/workflows",
        name="workflows.list",
        says="List workflows by name, each in its newest version.",
        handler=list_all,
        scope=Scope.JOBS_READ,
        query=wire.ListWorkflows,
        answers={200: Page[wire.Workflow]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path=ONE,
        name="workflows.get",
        says="Read the newest version of a workflow.",
        handler=read,
        scope=Scope.JOBS_READ,
        query=wire.ReadWorkflow,
        answers={200: wire.Workflow, 304: None},
        headers=("ETag",),
    ),
    Route(
        method="PUT",
        path=ONE,
        name="workflows.put",
        says="Keep a workflow; what differs from its newest version is the next one.",
        handler=put,
        scope=Scope.JOBS_WRITE,
        body=wire.PutWorkflow,
        answers={200: wire.Workflow, 201: wire.Workflow},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        headers=("ETag", "Location"),
        problems=(
            "precondition_failed",
            "workflow_cycle",
            "workflow_unknown_node",
            "workflow_version_conflict",
            "url_not_allowed",
        ),
        example={
            "nodes": {
                "list": {"handler": "list_files"},
                "parse": {
                    "handler": "parse",
                    "payload": {"file": {"$item": ""}},
                    "map": {"over": {"$output": "list"}, "max_parallel": 20},
                },
                "publish": {
                    "handler": "publish",
                    "payload": {"parts": {"$output": "parse"}},
                    "gate": {"type": "approval"},
                },
            }
        },
    ),
    Route(
        method="DELETE",
        path=ONE,
        name="workflows.delete",
        says="Forget a workflow that no job starts; what runs of it goes on.",
        handler=delete,
        scope=Scope.JOBS_WRITE,
        answers={204: None},
        load=Load.WRITE,
        problems=("precondition_failed", "dependency_in_use"),
    ),
    Route(
        method="GET",
        path=f"{ONE}/versions",
        name="workflows.versions",
        says="List the versions of a workflow, newest first.",
        handler=versions,
        scope=Scope.JOBS_READ,
        query=PageOnly,
        answers={200: Page[wire.Workflow]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path=f"{ONE}/versions/{{version}}",
        name="workflows.version",
        says="Read one version of a workflow.",
        handler=read_version,
        scope=Scope.JOBS_READ,
        query=wire.ReadWorkflow,
        answers={200: wire.Workflow, 304: None},
        headers=("ETag",),
    ),
    Route(
        method="POST",
        path=f"{ONE}/runs",
        name="workflows.start",
        says="Start a workflow.",
        handler=start,
        scope=Scope.RUNS_WRITE,
        body=wire.StartWorkflow,
        body_optional=True,
        answers={202: wire.WorkflowRun},
        keyed=Keyed.REQUIRED,
        load=Load.CREATE,
        policy=Policy.CREATE,
        headers=("Location",),
        problems=("invalid_payload",),
        example={"input": {"day": "2026-01-01"}},
    ),
)
