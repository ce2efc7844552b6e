"""Runs whose target is a workflow: they start it, wait, and end as it does.

Such a run is leased for a moment only. It starts the workflow run, whose id follows from the run
and its attempt, and goes to sleep; asked again, it finds that workflow run and looks how it stands.
Its end wakes the run at once, and were that word lost, the run would look by itself a little later.
So nothing is held while people take a week to approve: no slot, no lease, no connection. Overlap,
history and notifications see a run that has not ended, and a run that is cancelled meanwhile stops
its workflow run.
"""

from collections.abc import Mapping
from datetime import timedelta
from hashlib import blake2b
from typing import Any, assert_never
from uuid import UUID

import msgspec

from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import (
    TAIL_BYTES,
    JobId,
    RunId,
    TenantId,
    compose,
    shard_of,
    time_ms_of,
    to_text,
)
from betimes.domain.outcome import Cancelled, ErrorFacts, Failed, Outcome, Snoozed, Succeeded
from betimes.domain.workflow import WorkflowState
from betimes.ops.desk import Desk
from betimes.ops.workflow_runs import NewWorkflowRun, get_workflow_run, start_workflow
from betimes.ops.workflows import get_workflow
from betimes.store.workflow_runs import WorkflowRun

TYPE = "workflow"
RUNNING, CANCELLED = "WORKFLOW_RUNNING", "WORKFLOW_CANCELLED"
LOOK_AGAIN = timedelta(seconds=15)


def workflow_run_of(run: RunId, attempt: int) -> UUID:
    """The workflow run that an attempt of a run starts, in the same shard."""
    digest = blake2b(run.bytes + attempt.to_bytes(4), digest_size=TAIL_BYTES).digest()
    return compose(time_ms_of(run), shard_of(run), int.from_bytes(digest))


async def follow_workflow(
    desk: Desk,
    tenant: TenantId,
    run: RunId,
    *,
    attempt: int,
    job: JobId | None,
    target: Mapping[str, Any],
    payload: bytes | None,
) -> Outcome:
    """Start the workflow if that has not been done, and say how it stands."""
    identifier = workflow_run_of(run, attempt)
    try:
        found = (await get_workflow_run(desk, tenant, identifier)).run
    except NotFound:
        try:
            name, version = str(target["workflow"]), target.get("version")
            new = NewWorkflowRun(
                workflow=await get_workflow(desk, tenant, name, version),
                input=payload,
                by=None if job is None else to_text("job", job),
                job=job,
                run=run,
                id=identifier,
                shard=shard_of(run),
            )
            found = (await start_workflow(desk, tenant, new)).run
        except NotFound as missing:
            return Failed(ErrorFacts("WorkflowMissing", missing.sentence), retryable=False)
        except (Invalid, msgspec.DecodeError) as refused:
            return Failed(ErrorFacts("WorkflowInput", str(refused)), retryable=False)
    return _outcome(found)


def _outcome(found: WorkflowRun) -> Outcome:
    text = to_text("wfr", found.id)
    match found.state:
        case WorkflowState.RUNNING:
            return Snoozed(until=LOOK_AGAIN, reason=RUNNING)
        case WorkflowState.SUCCEEDED:
            return Succeeded(msgspec.json.encode({"workflow_run_id": text}))
        case WorkflowState.CANCELLED:
            return Cancelled(CANCELLED)
        case WorkflowState.FAILED:
            said = (found.error or {}).get("message", "")
            return Failed(
                ErrorFacts("WorkflowFailed", f"{text} failed: {said}".rstrip(": ")),
                retryable=False,
            )
    assert_never(found.state)
