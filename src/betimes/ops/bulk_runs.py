"""Actions over many runs and over many dead letters."""

from types import MappingProxyType
from uuid import UUID

from betimes.domain.ids import RunId
from betimes.ops.bulk import Bulk
from betimes.ops.change_run import Change, change_run
from betimes.ops.dead_letters import discard_one, redrive_one
from betimes.ops.desk import Desk
from betimes.ops.runs import cancel_run, get_run, replay_run, retry_run
from betimes.ops.schemas import Schemas, check_again
from betimes.store.operations import Operation

RUNS, LETTERS, PURGE = "runs.bulk", "dead_letters.bulk", "queues.purge"
QUEUE_PURGED = "QUEUE_PURGED"


async def _cancel(desk: Desk, operation: Operation, run: UUID) -> object:
    if operation.kind == PURGE:
        return await cancel_run(desk, operation.tenant, RunId(run), code=QUEUE_PURGED)
    reason = operation.request.get("reason") or ""
    return await cancel_run(desk, operation.tenant, RunId(run), reason=reason)


async def _retry(desk: Desk, operation: Operation, run: UUID) -> object:
    return await retry_run(desk, operation.tenant, RunId(run))


async def _replay(desk: Desk, operation: Operation, run: UUID) -> object:
    return await replay_run(desk, operation.tenant, RunId(run))


async def _set_priority(desk: Desk, operation: Operation, run: UUID) -> object:
    change = Change(priority=int(operation.request["priority"]))
    return await change_run(desk, operation.tenant, RunId(run), change)


async def _redrive(desk: Desk, operation: Operation, run: UUID) -> object:
    reset = operation.request.get("reset_attempts", True)
    return await redrive_one(desk, operation.tenant, RunId(run), reset_attempts=reset)


async def _discard(desk: Desk, operation: Operation, run: UUID) -> object:
    reason = operation.request.get("reason")
    return await discard_one(desk, operation.tenant, RunId(run), reason=reason)


async def _fits(desk: Desk, operation: Operation, run: UUID) -> None:
    """Somebody must be able to take it, as when a single one is done over."""
    found = (await get_run(desk, operation.tenant, RunId(run))).run
    accepted = await Schemas().of(desk, operation.tenant)
    await check_again(desk, operation.tenant, accepted, found)


BULK_RUNS = Bulk(
    prefix="run",
    member="runs",
    verbs=MappingProxyType(
        {
            "cancel": (_cancel, None),  # told where the end is written
            "retry": (_retry, "run.queued"),
            "replay": (_replay, "run.queued"),
            "set_priority": (_set_priority, None),
        }
    ),
    checks=MappingProxyType({"replay": _fits}),
)
BULK_LETTERS = Bulk(
    prefix="run",
    member="letters",
    verbs=MappingProxyType({"redrive": (_redrive, "run.queued"), "discard": (_discard, None)}),
    checks=MappingProxyType({"redrive": _fits}),
)
