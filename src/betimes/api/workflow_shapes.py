"""Workflows and their runs between domain and wire."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from betimes.api.etag import tag_of
from betimes.api.problem import Trouble
from betimes.api.run_shapes import new_run, shown_failure
from betimes.api.targets import Rules
from betimes.domain.errors import Refused
from betimes.domain.ids import to_text
from betimes.domain.workflow import NodeState
from betimes.ops.workflow_runs import (
    TAGS,
    NodeRow,
    WorkflowRun,
    WorkflowRunView,
    gate_until,
)
from betimes.ops.workflows import Prepared, Work, Workflow, prepare, read_span
from betimes.wire import runs as run_wire
from betimes.wire import workflows as wire
from betimes.wire.base import shown_duration, shown_instant, shown_maybe
from betimes.wire.problem import FieldError
from betimes.workflow.critical import Times, critical_path
from betimes.workflow.graph import FailurePolicy, Node
from betimes.workflow.reference import escaped

MILLISECOND = timedelta(milliseconds=1)
HIDDEN = ("payload", "map", "target")
"""Members of a node in which payloads and headers stand."""


def definition_of(asked: wire.PutWorkflow) -> dict[str, Any]:
    """A definition as it is kept: only what was said."""
    nodes = {name: _without_defaults(node) for name, node in asked.nodes.items()}
    told: dict[str, Any] = {"nodes": nodes, "failure_policy": asked.failure_policy}
    if asked.timeout is not None:
        told["timeout"] = asked.timeout
    if asked.input_schema is not None:
        told["input_schema"] = asked.input_schema
    return told


def _without_defaults(node: wire.NewNode) -> dict[str, Any]:
    told = msgspec.to_builtins(node)
    kept = {
        one.encode_name: told[one.encode_name]
        for one in msgspec.structs.fields(node)
        if getattr(node, one.name) != one.default and told[one.encode_name] not in (None, [])
    }
    for name in ("map", "gate"):
        if name in kept:
            kept[name] = {key: one for key, one in kept[name].items() if one is not None}
    return kept


def works_of(asked: wire.PutWorkflow, targets: Rules) -> dict[str, Work]:
    """What the runs of each node are like, checked as any run is."""
    return {name: _work(name, node, targets) for name, node in asked.nodes.items()}


def _work(name: str, node: wire.NewNode, targets: Rules) -> Work:
    run = run_wire.NewRun(
        handler=node.handler,
        target=node.target,
        queue=node.queue,
        priority=node.priority,
        retry=node.retry,
        timeout=node.timeout,
    )
    place = f"/nodes/{escaped(name)}"
    try:
        return Work.of(new_run(run, targets))
    except Refused as refused:
        refused.pointer = f"{place}{refused.pointer}"
        raise
    except Trouble as trouble:
        trouble.errors = [
            FieldError(pointer=place + one.pointer, code=one.code, detail=one.detail)
            for one in trouble.errors
        ] or [FieldError(pointer=place, code=trouble.code, detail=trouble.detail)]
        raise


def prepared(asked: wire.PutWorkflow, targets: Rules) -> Prepared:
    """A definition as it was asked for: checked, and written down."""
    # The graph is checked first: its refusals say more than those of single nodes.
    return prepare(definition_of(asked), lambda: works_of(asked, targets))


def shown_workflow(workflow: Workflow, *, full: bool = False) -> wire.Workflow:
    """A version of a workflow as it is shown."""
    told = workflow.definition
    timeout = told.get("timeout")
    return wire.Workflow(
        name=workflow.name,
        version=workflow.version,
        etag=tag_of(workflow.version),
        nodes={name: dict(node) if full else _basic(node) for name, node in told["nodes"].items()},
        failure_policy=told.get("failure_policy") or FailurePolicy.FAIL_FAST.value,
        timeout=None if timeout is None else shown_duration(read_span(timeout, "/timeout")),
        input_schema=told.get("input_schema"),
        created_at=shown_instant(workflow.created_at),
        created_by=workflow.created_by,
    )


def _basic(node: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: one for name, one in node.items() if name not in HIDDEN}
    if (target := node.get("target")) is not None:
        shown["target"] = {"type": target["type"]}
    if (fan := node.get("map")) is not None:
        shown["map"] = {name: one for name, one in fan.items() if name != "over"}
    return shown


def shown_workflow_run(run: WorkflowRun) -> wire.WorkflowRun:
    """A workflow run as it is shown."""
    return wire.WorkflowRun(
        id=to_text("wfr", run.id),
        workflow=run.workflow,
        version=run.version,
        state=run.state.name.lower(),  # type: ignore[arg-type]  # the names are those of the wire
        stopping=None if run.stop is None else run.stop.name.lower(),  # type: ignore[arg-type]  # the same
        job_id=None if run.job is None else to_text("job", run.job),
        run_id=None if run.run is None else to_text("run", run.run),
        tags=dict(run.options.get(TAGS) or {}),
        retries=run.retries,
        error=shown_failure(run.error),
        started_at=shown_instant(run.started_at),
        deadline_at=shown_maybe(run.deadline_at),
        finished_at=shown_maybe(run.finished_at),
        run_ms=_ms(run.started_at, run.finished_at),
        created_by=run.created_by,
    )


def shown_graph(view: WorkflowRunView) -> wire.WorkflowGraph:
    """Its nodes, and what decided how long it took."""
    graph = view.plan.graph
    times = {name: Times(row.started_at, row.finished_at) for name, row in view.nodes.items()}
    path = critical_path(graph, times)
    critical = frozenset(path)
    ended = {name for name, row in view.nodes.items() if row.state.is_final}
    return wire.WorkflowGraph(
        nodes=[
            _node(
                view,
                node,
                left=len(node.need_set - ended),
                is_critical=node.id in critical,
            )
            for node in graph.nodes.values()
        ],
        critical_path=list(path),
    )


def _node(view: WorkflowRunView, node: Node, *, left: int, is_critical: bool) -> wire.ShownNode:
    row = view.nodes[node.id]
    return wire.ShownNode(
        node=node.id,
        state=row.state.name.lower(),  # type: ignore[arg-type]  # the names are those of the wire
        needs=list(node.needs),
        needs_left=left,
        when=node.when.value,
        handler=view.plan.work[node.id].handler,
        run_id=None if row.run is None else to_text("run", row.run),
        gate=_gate(node, row),
        items=_items(row),
        ready_at=shown_maybe(row.ready_at),
        started_at=shown_maybe(row.started_at),
        finished_at=shown_maybe(row.finished_at),
        wait_ms=_ms(row.ready_at, row.started_at),
        run_ms=_ms(row.started_at, row.finished_at),
        reason=row.detail.get("reason"),
        error=shown_failure(row.detail.get("error")),
        is_critical=is_critical,
    )


def _gate(node: Node, row: NodeRow) -> wire.ShownGate | None:
    if node.gate is None:
        return None
    is_open = row.is_open or row.state not in {NodeState.WAITING, NodeState.READY}
    return wire.ShownGate(
        type=node.gate.type.value,
        is_open=is_open,
        until=None if is_open else shown_maybe(gate_until(node, row)),
    )


def _items(row: NodeRow) -> wire.ShownItems | None:
    if row.items_total is None:
        return None
    ended = row.items_succeeded + row.items_failed + row.items_cancelled
    return wire.ShownItems(
        total=row.items_total,
        started=row.items_started,
        running=row.items_started - ended,
        succeeded=row.items_succeeded,
        failed=row.items_failed,
        cancelled=row.items_cancelled,
    )


def _ms(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else (end - begin) / MILLISECOND
