"""What tests of workflows share: a desk, a real worker cranked by hand, and the advancer."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from betimes.coordinator.advancer import Advancer
from betimes.domain.workflow import WorkflowState
from betimes.ops.desk import Desk
from betimes.ops.workflow_runs import (
    NewWorkflowRun,
    WorkflowRunView,
    get_workflow_run,
    start_workflow,
)
from betimes.ops.workflows import Work, prepare, put_workflow
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker.handlers import Handlers
from ops_kit import TENANT, make_desk
from worker_kit import Bench, a_worker, settle_down

LANE = Lane.ENGINE
ONCE = {"retry": {"max_attempts": 1}}


def definition(nodes: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A definition whose nodes echo, unless they say something else."""
    written = {name: {"handler": "echo", **node} for name, node in nodes.items()}
    return {"nodes": written, **more}


def work_for(written: Mapping[str, Any]) -> dict[str, Work]:
    """What the runs of a definition are like; one attempt each."""
    return {
        name: Work(handler=node["handler"], options=dict(ONCE), queue=node.get("queue", "default"))
        for name, node in written["nodes"].items()
    }


@dataclass
class Flow:
    """A workflow run under way, moved by hand."""

    desk: Desk
    bench: Bench
    advancer: Advancer
    clock: ManualClock
    id: UUID | None = None
    busy: set[str] = field(default_factory=set)
    """Runs of handlers that wait for the database."""

    async def start(
        self, nodes: Mapping[str, Mapping[str, Any]], *, given: Any = None, **more: Any
    ) -> WorkflowRunView:
        """Put a workflow and start it."""
        written = definition(nodes, **more)
        put = await put_workflow(
            self.desk, TENANT, "flow", prepare(written, lambda: work_for(written))
        )
        content = None if given is None else msgspec.json.encode(given)
        new = NewWorkflowRun(workflow=put.workflow, input=content)
        view = await start_workflow(self.desk, TENANT, new)
        self.id = view.run.id
        return view

    async def live(self, seconds: int = 5) -> WorkflowRunView:
        """Let time pass with everybody at work, until it is over or the seconds are."""
        for _ in range(seconds):
            await self.work()
            view = await self.view()
            if view.run.state.is_final:
                return view
            self.clock.advance(1)
        return await self.view()

    async def work(self) -> None:
        """Everything that can be done without time passing."""
        while True:
            moved = await self.bench.poll_once()
            while self.busy:
                await settle_down()
            await self.bench.parts.reporter.flush()
            moved += await self.advancer.tick()
            if not moved:
                return

    async def view(self) -> WorkflowRunView:
        """How it stands."""
        assert self.id is not None
        return await get_workflow_run(self.desk, TENANT, self.id)

    async def states(self) -> dict[str, str]:
        """The states of its nodes."""
        return {name: row.state.name for name, row in (await self.view()).nodes.items()}

    async def results(self) -> dict[str, Any]:
        """What its nodes have returned."""
        async with self.bench.database.connection(LANE) as connection:
            rows = await connection.fetch(
                "SELECT node, output FROM betimes.workflow_nodes WHERE workflow_run_id = $1",
                self.id,
            )
        return {
            row["node"]: None if row["output"] is None else msgspec.json.decode(row["output"])
            for row in rows
        }


@asynccontextmanager
async def a_flow(
    database: Database,
    clock: ManualClock,
    *,
    handlers: Handlers | None = None,
    desk: Desk | None = None,
    busy: set[str] | None = None,
) -> AsyncIterator[Flow]:
    """A desk, a worker and an advancer over one database."""
    desk = desk or make_desk(database, clock)
    telemetry = Telemetry(clock=clock)
    advancer = Advancer(desk=desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1))
    async with a_worker(database, clock, handlers=handlers) as bench:
        yield Flow(desk, bench, advancer, clock, busy=set() if busy is None else busy)


def over(view: WorkflowRunView) -> WorkflowState:
    """How it ended."""
    return view.run.state
