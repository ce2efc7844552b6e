"""A workflow run in the hands of whoever started it."""

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from betimes.sdk import ambient
from betimes.sdk.failures import ClientError
from betimes.sdk.shapes import to_plain

if TYPE_CHECKING:
    from betimes.sdk.application import App
    from betimes.wire.workflows import ShownNode, WorkflowGraph, WorkflowRun

FINAL = frozenset({"succeeded", "failed", "cancelled"})
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
GRAPH: list[Literal["graph"]] = ["graph"]


class WorkflowRunFailed(ClientError):
    """The workflow run did not succeed; `run` is what the service knows about it."""

    def __init__(self, run: "WorkflowRun") -> None:
        told = f": {run.error.message}" if run.error is not None else ""
        super().__init__(f"expected {run.id} of {run.workflow!r} to succeed, it {_is(run)}{told}")
        self.run = run


class EndedWorkflow:
    """A workflow run that is over."""

    def __init__(self, run: "WorkflowRun") -> None:
        self.run = run

    @property
    def id(self) -> str:
        """The workflow run."""
        return self.run.id

    @property
    def state(self) -> str:
        """How it ended: `succeeded`, `failed` or `cancelled`."""
        return self.run.state

    @property
    def succeeded(self) -> bool:
        """Whether it has done what it was to do."""
        return self.run.state == "succeeded"

    @property
    def nodes(self) -> "dict[str, ShownNode]":
        """Its nodes by name: their states, times and errors."""
        return {node.node: node for node in graph_of(self.run).nodes}

    def check(self) -> "EndedWorkflow":
        """Itself; raises `WorkflowRunFailed` unless it succeeded."""
        if not self.succeeded:
            raise WorkflowRunFailed(self.run)
        return self


class WorkflowHandle:
    """What `start` gives back."""

    def __init__(self, app: "App", made: "WorkflowRun") -> None:
        self._app = app
        self.id = made.id
        self.workflow = made.workflow
        self.version = made.version
        """Of the definition it runs by, whatever becomes of that meanwhile."""

    def __repr__(self) -> str:
        return f"WorkflowHandle({self.id!r}, workflow={self.workflow!r})"

    def wait(self, timeout: float = 60.0) -> EndedWorkflow:
        """Block until it is over.

        Raises:
            TimeoutError: it is not over after `timeout` seconds, perhaps since a gate waits for
                somebody; it goes on.

        """
        pauses = _Pauses(timeout)
        while (run := self.fetch()).state not in FINAL:
            ambient.pause(pauses.next(run))
        return EndedWorkflow(run)

    async def awaited(self, timeout: float = 60.0) -> EndedWorkflow:  # noqa: ASYNC109 -- as in `wait`
        """The same as `wait`, awaited."""
        pauses = _Pauses(timeout)
        while (run := await self.afetch()).state not in FINAL:
            await ambient.apause(pauses.next(run))
        return EndedWorkflow(run)

    def fetch(self) -> "WorkflowRun":
        """What the service knows about it now, with its graph."""
        return self._app.client.workflow_runs.get(self.id, include=GRAPH)

    async def afetch(self) -> "WorkflowRun":
        """The same, awaited."""
        return await self._app.async_client.workflow_runs.get(self.id, include=GRAPH)

    def graph(self) -> "WorkflowGraph":
        """Its nodes with states and times, and the critical path."""
        return graph_of(self.fetch())

    def output(self, node: str) -> Any:
        """What a node resulted in; `LookupError` unless it has succeeded and is not mapped."""
        run = _run_of(self.fetch(), node)
        return _result(self._app.client.runs.get(run, view="full").result)

    async def aoutput(self, node: str) -> Any:
        """The same, awaited."""
        run = _run_of(await self.afetch(), node)
        return _result((await self._app.async_client.runs.get(run, view="full")).result)

    def approve(self, node: str, reason: str = "") -> None:
        """Open the gate of a node that waits for approval."""
        self._app.client.workflow_runs.approve(self.id, node, reason=reason)

    async def aapprove(self, node: str, reason: str = "") -> None:
        """The same, awaited."""
        await self._app.async_client.workflow_runs.approve(self.id, node, reason=reason)

    def signal(self, node: str, data: Any = None) -> None:
        """Open the gate of a node that waits for a signal; `w.signal` stands for what is sent."""
        told = msgspec.to_builtins(data, enc_hook=to_plain)
        self._app.client.workflow_runs.signal(self.id, node, data=told)

    async def asignal(self, node: str, data: Any = None) -> None:
        """The same, awaited."""
        told = msgspec.to_builtins(data, enc_hook=to_plain)
        await self._app.async_client.workflow_runs.signal(self.id, node, data=told)

    def skip(self, node: str, reason: str = "") -> None:
        """Leave out a node that has not started."""
        self._app.client.workflow_runs.skip(self.id, node, reason=reason)

    def cancel(self, reason: str = "", *, cleanup: bool = True) -> None:
        """End it; nodes with `when="all_done"` or `"any_failed"` still run if `cleanup` is true."""
        self._app.client.workflow_runs.cancel(self.id, reason=reason, cleanup=cleanup)

    async def acancel(self, reason: str = "", *, cleanup: bool = True) -> None:
        """The same, awaited."""
        await self._app.async_client.workflow_runs.cancel(self.id, reason=reason, cleanup=cleanup)

    def retry(self, node: str | None = None, *, everything: bool = False) -> None:
        """Do again what failed; or a node and all that follows it; or everything."""
        origin: Literal["failed", "node", "start"] = "failed" if node is None else "node"
        if everything:
            origin = "start"
        self._app.client.workflow_runs.retry(self.id, origin=origin, node=node)


def graph_of(run: "WorkflowRun") -> "WorkflowGraph":
    """The graph that was asked for with a run."""
    if isinstance(run.graph, msgspec.UnsetType):
        raise LookupError(f"expected {run.id} with its graph, got it without one")  # noqa: TRY004 -- nobody's type
    return run.graph


def _run_of(run: "WorkflowRun", node: str) -> str:
    found = {one.node: one for one in graph_of(run).nodes}.get(node)
    if found is None:
        raise LookupError(f"expected a node of {run.workflow!r}, got {node!r}")
    if found.items is not None:
        raise LookupError(f"expected a node with one run, {node!r} has one for each element")
    if found.state != "succeeded" or found.run_id is None:
        raise LookupError(f"expected {node!r} to have succeeded, it is {found.state}")
    return found.run_id


def _result(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


def _is(run: "WorkflowRun") -> str:
    return "was cancelled" if run.state == "cancelled" else f"has {run.state}"


class _Pauses:
    """Between two looks: soon at first, then less often, until patience is at its end."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self._left = seconds
        self._pause = FIRST_PAUSE

    def next(self, run: "WorkflowRun") -> float:
        if self._left <= 0:
            waits = [node.node for node in graph_of(run).nodes if node.state == "ready"]
            at = f" (waits at {', '.join(waits)})" if waits else ""
            raise TimeoutError(f"{run.id} is still {run.state}{at} after {self._seconds:g} s")
        pause = min(self._pause, self._left)
        self._left -= pause
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
        return pause
