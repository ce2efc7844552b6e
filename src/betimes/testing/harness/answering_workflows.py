"""Operations on workflows as the Harness answers them."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from betimes.domain.errors import Conflict, Invalid
from betimes.sdk import operations as known
from betimes.sdk.errors import InvalidState
from betimes.sdk.exchange import Given
from betimes.sdk.workflow import AnyWorkflow
from betimes.testing.harness.client import missing, problem
from betimes.testing.harness.flows import Flows
from betimes.testing.harness.workflow_run import HarnessNode, HarnessWorkflowRun
from betimes.wire import workflows as wire
from betimes.wire.base import shown_instant, shown_maybe
from betimes.wire.runs import Failure
from betimes.workflow.critical import Times, critical_path
from betimes.workflow.policy import Origin

Answer = Callable[[Given], Any]


def workflow_answers(flows: Flows) -> Mapping[str, Answer]:
    """What is answered, by the name of the operation."""
    answering = _Answering(flows)
    return {
        known.WORKFLOWS_PUT.name: answering.put,
        known.WORKFLOWS_START.name: answering.start,
        known.WORKFLOW_RUNS_GET.name: answering.get,
        known.WORKFLOW_RUNS_CANCEL.name: answering.cancel,
        known.WORKFLOW_RUNS_RETRY.name: answering.retry,
        known.WORKFLOW_RUNS_APPROVE.name: answering.approve,
        known.WORKFLOW_RUNS_SIGNAL.name: answering.signal,
        known.WORKFLOW_RUNS_SKIP.name: answering.skip,
    }


class _Answering:
    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._repeated: dict[str, HarnessWorkflowRun] = {}

    def put(self, given: Given) -> wire.Workflow:
        """Workflows are those of the apps; nothing is left to do."""
        workflow = self._workflow(given)
        told = workflow.definition()
        return wire.Workflow(
            name=workflow.name,
            version=1,
            etag='"1"',
            nodes=told["nodes"],
            failure_policy=told["failure_policy"],
            timeout=told.get("timeout"),
            input_schema=told.get("input_schema"),
            created_at=shown_instant(self._flows.now),
            created_by=None,
        )

    def start(self, given: Given) -> wire.WorkflowRun:
        """A new run, or the one that was started with the same idempotency key."""
        key = given.idempotency_key
        if key is not None and key in self._repeated:
            return shown(self._repeated[key])
        body = given.body or {}
        data = body.get("input")
        run = self._flows.start(
            self._workflow(given),
            None if data is None else msgspec.json.encode(data),
            tags=body.get("tags"),
        )
        if key is not None:
            self._repeated[key] = run
        return shown(run)

    def get(self, given: Given) -> wire.WorkflowRun:
        """One run with its graph."""
        return shown(self._run(given))

    def cancel(self, given: Given) -> wire.WorkflowRun:
        """End one."""
        cleanup = _said(given, "cleanup", default=True)
        return self._do(given, lambda run: self._flows.cancel(run, cleanup=cleanup))

    def retry(self, given: Given) -> wire.WorkflowRun:
        """Do it again."""
        origin = Origin(_said(given, "from", default="failed"))
        node = _said(given, "node", default=None)
        return self._do(given, lambda run: self._flows.retry(run, origin, node))

    def approve(self, given: Given) -> wire.WorkflowRun:
        """Open a gate."""
        node = given.path["workflow_node"]
        return self._do(given, lambda run: self._flows.approve(run, node))

    def signal(self, given: Given) -> wire.WorkflowRun:
        """Open a gate, and bring something."""
        node, data = given.path["workflow_node"], _said(given, "data", default=None)
        return self._do(given, lambda run: self._flows.signal(run, node, data))

    def skip(self, given: Given) -> wire.WorkflowRun:
        """Leave out a node."""
        node = given.path["workflow_node"]
        return self._do(given, lambda run: self._flows.skip(run, node))

    def _do(self, given: Given, verb: Callable[[HarnessWorkflowRun], None]) -> wire.WorkflowRun:
        run = self._run(given)
        try:
            verb(run)
        except Conflict as conflict:
            raise InvalidState(problem(409, "invalid_state", conflict.sentence)) from None
        except Invalid as unknown:
            raise missing(unknown.sentence) from None
        return shown(run)

    def _workflow(self, given: Given) -> AnyWorkflow:
        name = given.path["workflow"]
        if name not in self._flows.workflows:
            raise missing(f"there is no workflow {name!r}")
        return self._flows.workflows[name]

    def _run(self, given: Given) -> HarnessWorkflowRun:
        wanted = given.path["workflow_run"]
        found = self._flows.get(wanted)
        if found is None:
            raise missing(f"there is no workflow run {wanted!r}")
        return found


def _said(given: Given, name: str, *, default: Any) -> Any:
    value = (given.body or {}).get(name, msgspec.UNSET)
    return default if value is msgspec.UNSET else value


def shown(run: HarnessWorkflowRun) -> wire.WorkflowRun:
    """A workflow run as the service shows it, with its graph."""
    times = {name: Times(node.started_at, node.finished_at) for name, node in run.nodes.items()}
    path = critical_path(run.graph, times)
    found = wire.WorkflowRun(
        id=run.id,
        workflow=run.name,
        version=1,
        state=run.state,  # type: ignore[arg-type]  # the names are those of the wire
        stopping=None if run.stop is None else run.stop.name.lower(),  # type: ignore[arg-type]  # as above
        job_id=None,
        run_id=None if run.carrier is None else run.carrier.id,
        tags=dict(run.tags),
        retries=run.round,
        error=_failure(run),
        started_at=shown_instant(run.created_at),
        deadline_at=None,
        finished_at=shown_maybe(run.finished_at),
        run_ms=None,
        created_by=None,
    )
    nodes = [_node(run, node, is_critical=node.id in path) for node in run.nodes.values()]
    found.input, found.graph = run.input, wire.WorkflowGraph(nodes=nodes, critical_path=list(path))
    return found


def _failure(run: HarnessWorkflowRun) -> Failure | None:
    failed = [node for node in run.nodes.values() if node.state == "failed"]
    if run.state != "failed" or not failed:
        return None
    return Failure(type="NODE_FAILED", message=f"the node {failed[0].id!r} failed")


def _node(run: HarnessWorkflowRun, node: HarnessNode, *, is_critical: bool) -> wire.ShownNode:
    asked = run.graph.nodes[node.id]
    gate, runs = asked.gate, node.runs
    items = node.standing().items
    return wire.ShownNode(
        node=node.id,
        state=node.state,  # type: ignore[arg-type]  # the names are those of the wire
        needs=list(asked.needs),
        needs_left=sum(not run.nodes[need].stored.is_final for need in asked.needs),
        when=asked.when.value,
        handler=asked.handler,
        run_id=runs[0].id if runs and items is None else None,
        gate=None
        if gate is None
        else wire.ShownGate(type=gate.type.value, is_open=node.is_open, until=None),
        items=None
        if items is None
        else wire.ShownItems(
            total=items.total,
            started=items.started,
            running=items.running,
            succeeded=items.succeeded,
            failed=items.failed,
            cancelled=items.cancelled,
        ),
        ready_at=shown_maybe(node.ready_at),
        started_at=shown_maybe(node.started_at),
        finished_at=shown_maybe(node.finished_at),
        wait_ms=None,
        run_ms=None,
        reason=None,
        error=Failure(type="Error", message=node.error) if node.error else None,
        is_critical=is_critical,
    )
