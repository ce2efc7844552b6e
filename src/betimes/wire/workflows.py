"""Workflows and their runs as they are asked for and shown."""

from typing import Annotated, Any, Literal

import msgspec

from betimes.wire.base import Asked, Duration, DurationText, Instant, Json, Members, Shown
from betimes.wire.jobs import Handler, NodeTarget, Priority, Queue, Reason, Retry, Tags
from betimes.wire.runs import Failure

WorkflowName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
NodeName = Annotated[
    str, msgspec.Meta(min_length=1, max_length=100, pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]*$")
]
When = Literal["all_success", "all_done", "any_success", "any_failed"]
FailurePolicy = Literal["fail_fast", "continue"]
WorkflowState = Literal["running", "succeeded", "failed", "cancelled"]
NodeState = Literal["waiting", "ready", "running", "succeeded", "failed", "skipped", "cancelled"]
View = Literal["basic", "full"]


class Map(Asked):
    """One run for each item of a list."""

    over: Annotated[
        Json, msgspec.Meta(description='A list, or a reference such as `{"$output": "node"}`.')
    ]
    max_parallel: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None


class Gate(Asked):
    """What a node waits for when nothing else is missing."""

    type: Literal["approval", "timer", "signal"]
    delay: Annotated[Duration, msgspec.Meta(description="Of a timer: how long.")] | None = None
    timeout: (
        Annotated[
            Duration, msgspec.Meta(description="The node fails when its gate stays closed so long.")
        ]
        | None
    ) = None


class NewNode(Asked):
    """One piece of work, and what must come before it."""

    handler: Handler | None = None
    target: NodeTarget | None = None
    payload: Annotated[
        Json,
        msgspec.Meta(
            description='May refer to `{"$output": node, "path"?: pointer}`, '
            '`{"$input": pointer}`, `{"$item": pointer}` and `{"$signal": pointer}`, at any '
            'depth; `{"$literal": …}` stands for exactly what is in it.'
        ),
    ] = None
    needs: Annotated[list[NodeName], msgspec.Meta(max_length=1_000)] = []
    when: When = "all_success"
    retry: Retry | None = None
    timeout: Duration | None = None
    queue: Queue = "default"
    priority: Priority = 5
    map: Map | None = None
    gate: Gate | None = None


class PutWorkflow(Asked):
    """A workflow as a whole; what differs from the newest version becomes the next one."""

    nodes: Annotated[dict[NodeName, NewNode], msgspec.Meta(min_length=1, max_length=1_000)]
    failure_policy: FailurePolicy = "fail_fast"
    timeout: Duration | None = None
    input_schema: Members | None = None


class ReadWorkflow(Asked):
    """How much of a workflow is shown; `full` has payloads and needs the scope for them."""

    view: View = "basic"


class ListWorkflows(Asked):
    """A page of workflows."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None


class Workflow(Shown):
    """One version of a workflow. `nodes` is as it was given, in the basic view without payloads."""

    name: str
    version: int
    etag: str
    nodes: dict[str, Any]
    failure_policy: FailurePolicy
    timeout: DurationText | None
    input_schema: Members | None
    created_at: Instant
    created_by: str | None


class StartWorkflow(Asked):
    """What a workflow is started with."""

    input: Json = None
    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    tags: Tags = {}


class ListWorkflowRuns(Asked):
    """Which workflow runs, newest first."""

    workflow: WorkflowName | None = None
    state: list[WorkflowState] = []
    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None


class ReadWorkflowRun(Asked):
    """What is shown beside the run itself; `full` has its input and needs the scope for it."""

    include: list[Literal["graph"]] = []
    view: View = "basic"


class CancelWorkflowRun(Asked):
    """How a workflow run is stopped."""

    reason: Reason = ""
    cleanup: Annotated[
        bool,
        msgspec.Meta(description="Whether nodes with `all_done` or `any_failed` still run."),
    ] = True


class RetryWorkflowRun(Asked):
    """Where to begin again."""

    origin: Literal["failed", "node", "start"] = msgspec.field(default="failed", name="from")
    node: NodeName | None = None


class SkipNode(Asked):
    """Why a node is not wanted."""

    reason: Reason = ""


class SignalNode(Asked):
    """What a node is told; its payload refers to it by `{"$signal": ""}`."""

    data: Json = None


class ShownGate(Shown):
    """A gate, and until when it waits by itself."""

    type: Literal["approval", "timer", "signal"]
    is_open: bool
    until: Instant | None


class ShownItems(Shown):
    """How far a mapped node is."""

    total: int
    started: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class ShownNode(Shown):
    """A node of a workflow run."""

    node: str
    state: NodeState
    needs: list[str]
    needs_left: int
    when: When
    handler: str | None
    run_id: str | None
    gate: ShownGate | None
    items: ShownItems | None
    ready_at: Instant | None
    started_at: Instant | None
    finished_at: Instant | None
    wait_ms: float | None
    run_ms: float | None
    reason: str | None
    error: Failure | None
    is_critical: bool


class WorkflowGraph(Shown):
    """The nodes of a workflow run in an order in which they can run, and what decided its time."""

    nodes: list[ShownNode]
    critical_path: list[str]


class WorkflowRun(Shown):
    """One run of a workflow."""

    id: str
    workflow: str
    version: int
    state: WorkflowState
    stopping: Literal["failure", "timeout", "cancel", "abandon"] | None
    job_id: str | None
    run_id: str | None
    tags: dict[str, str]
    retries: int
    error: Failure | None
    started_at: Instant
    deadline_at: Instant | None
    finished_at: Instant | None
    run_ms: float | None
    created_by: str | None
    input: Json | msgspec.UnsetType = msgspec.UNSET
    graph: WorkflowGraph | msgspec.UnsetType = msgspec.UNSET
