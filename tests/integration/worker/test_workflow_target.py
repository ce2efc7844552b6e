"""Runs whose target is a workflow: they end as it does, and nobody waits with anything in hand."""

import os
from typing import Any

import pytest

from betimes.domain.ids import JobId, RunId, from_text, shard_of
from betimes.domain.run import NewRun
from betimes.domain.states import RunState, Shown
from betimes.domain.workflow import WorkflowState
from betimes.ops import enqueue_run
from betimes.ops.create import NewJob, create_job
from betimes.ops.manual import Overlap, Wish, run_now
from betimes.ops.runs import cancel_run, get_run
from betimes.ops.workflow_control import approve_node
from betimes.ops.workflow_runs import get_workflow_run
from betimes.ops.workflow_target import LOOK_AGAIN, follow_workflow, workflow_run_of
from betimes.ops.workflows import prepare, put_workflow
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker.builtin import builtin_handlers
from betimes.worker.context import Context
from ops_kit import TENANT, every, fetch, make_desk, run_row
from workflow_kit import Flow, a_flow, definition, work_for

TARGET = {"type": "workflow", "workflow": "flow"}


async def a_following(database: Database, clock: ManualClock) -> Any:
    """A flow whose worker can do such runs."""
    # Ids of the worker and of the desk must not meet.
    desk, busy = make_desk(database, clock, entropy=os.urandom), set[str]()

    async def follow(context: Context) -> object:
        busy.add(context.run_id)
        try:
            job = context.job_id
            return await follow_workflow(
                desk,
                context.tenant,
                RunId(from_text("run", context.run_id)),
                attempt=context.attempt,
                job=None if job is None else JobId(from_text("job", job)),
                target=context.target,
                payload=context.payload,
            )
        finally:
            busy.discard(context.run_id)

    handlers = builtin_handlers(clock).also("workflow", follow)
    return a_flow(database, clock, handlers=handlers, desk=desk, busy=busy)


async def put(flow: Flow, nodes: dict[str, Any], **more: Any) -> None:
    written = definition(nodes, **more)
    await put_workflow(flow.desk, TENANT, "flow", prepare(written, lambda: work_for(written)))


async def test_a_run_waits_for_its_workflow_without_holding_anything(
    database: Database, clock: ManualClock
) -> None:
    """It starts it in its own shard, sleeps, and is woken by its end."""
    async with await a_following(database, clock) as flow:
        await put(flow, {"a": {"payload": {"$input": ""}, "gate": {"type": "approval"}}})
        new = NewRun(target=TARGET, payload=b'{"day":1}')
        run = await enqueue_run(flow.desk, TENANT, new)
        await flow.work()
        flow.id = workflow_run_of(run, 1)
        view = await flow.view()
        assert (view.run.run, view.run.shard) == (run, shard_of(run))
        (parcel,) = await fetch(database, "SELECT * FROM betimes.parcels")
        assert parcel["worker_id"] is None
        assert parcel["visible_at"] == clock.now() + LOOK_AGAIN
        assert (await get_run(flow.desk, TENANT, run)).state is Shown.RETRY_WAIT
        clock.advance(60)
        await flow.work()  # it has looked, and sleeps again
        assert len(await fetch(database, "SELECT FROM betimes.workflow_runs")) == 1

        await approve_node(flow.desk, TENANT, flow.id, "a")
        await flow.work()
        row = await run_row(database, run)
        assert row is not None
        assert (row["state"], row["attempt"]) == (RunState.SUCCEEDED, 1)
        assert b"wfr_" in row["result"]
        assert (await flow.results())["a"] == {"day": 1}


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [({"a": {"handler": "fail"}}, "the node 'a' failed"), (None, "no workflow 'flow'")],
)
async def test_a_run_fails_as_its_workflow_does(
    database: Database, clock: ManualClock, nodes: dict[str, Any] | None, reason: str
) -> None:
    """At once, without attempts that would only fail again: nodes have their own."""
    async with await a_following(database, clock) as flow:
        if nodes is not None:
            await put(flow, nodes)
        run = await enqueue_run(flow.desk, TENANT, NewRun(target=TARGET))
        await flow.work()
        row = await run_row(database, run)
        assert row is not None
        assert row["state"] == RunState.DEAD
        assert reason in row["error"]
        assert len(await fetch(database, "SELECT FROM betimes.dead_letters WHERE job_id IS NULL"))


async def test_an_input_that_does_not_fit_fails_the_run(
    database: Database, clock: ManualClock
) -> None:
    """With the sentence of the schema."""
    async with await a_following(database, clock) as flow:
        await put(flow, {"a": {}}, input_schema={"type": "object"})
        run = await enqueue_run(flow.desk, TENANT, NewRun(target=TARGET, payload=b"5"))
        await flow.work()
        row = await run_row(database, run)
        assert row is not None
        assert "WorkflowInput" in row["error"]


async def test_a_cancelled_run_stops_its_workflow(database: Database, clock: ManualClock) -> None:
    """Whoever waited for it has gone: it is not wanted any more."""
    async with await a_following(database, clock) as flow:
        await put(flow, {"a": {"gate": {"type": "approval"}}})
        run = await enqueue_run(flow.desk, TENANT, NewRun(target=TARGET))
        await flow.work()
        flow.id = workflow_run_of(run, 1)
        await cancel_run(flow.desk, TENANT, run)
        await flow.work()
        view = await get_workflow_run(flow.desk, TENANT, flow.id)
        assert view.run.state is WorkflowState.CANCELLED
        assert await flow.states() == {"a": "CANCELLED"}


async def test_the_fires_of_a_job_start_workflows(database: Database, clock: ManualClock) -> None:
    """The workflow run knows the job; its payload is the input."""
    async with await a_following(database, clock) as flow:
        await put(flow, {"a": {"payload": {"$input": "/n"}}})
        new = NewJob(
            name="nightly",
            definition=every(3600, handler=None, target=TARGET, payload=b'{"n":7}'),
        )
        job = await create_job(flow.desk, TENANT, new)
        run = await run_now(flow.desk, TENANT, job.id, Wish(overlap=Overlap.ALLOW))
        await flow.work()
        flow.id = workflow_run_of(run, 1)
        view = await flow.view()
        assert (view.run.job, view.run.state) == (job.id, WorkflowState.SUCCEEDED)
        assert (await flow.results())["a"] == 7
        row = await run_row(database, run)
        assert row is not None
        assert (row["state"], row["workflow_run_id"]) == (RunState.SUCCEEDED, flow.id)
