"""Actions over many runs, as an operation: every run is an act of its own."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from betimes.domain.errors import Refused
from betimes.domain.ids import RunId, shard_of, to_text, to_us
from betimes.ops.acting import Answer, Deed, Intent, Told
from betimes.ops.change_run import Change, change_run
from betimes.ops.desk import Desk
from betimes.ops.operating import Step, forward
from betimes.ops.runs import RUN_CANCELLED, cancel_run, replay_run, retry_run
from betimes.store.operations import Operation

ACTIONS = ("cancel", "retry", "replay", "set_priority")
RUNS_MAX = 10_000
BULK = "runs.bulk"
PURGE = "queues.purge"
DONE = Answer(status=200, body=None, headers={})

Verb = Callable[[Desk, Operation, RunId], Awaitable[object]]


async def _cancel(desk: Desk, operation: Operation, run: RunId) -> object:
    reason = operation.request.get("reason") or RUN_CANCELLED
    return await cancel_run(desk, operation.tenant, run, reason=reason)


async def _retry(desk: Desk, operation: Operation, run: RunId) -> object:
    return await retry_run(desk, operation.tenant, run)


async def _replay(desk: Desk, operation: Operation, run: RunId) -> object:
    return await replay_run(desk, operation.tenant, run)


async def _set_priority(desk: Desk, operation: Operation, run: RunId) -> object:
    change = Change(priority=int(operation.request["priority"]))
    return await change_run(desk, operation.tenant, run, change)


VERBS: Mapping[str, tuple[Verb, str | None]] = MappingProxyType(
    {
        "cancel": (_cancel, "run.cancelled"),
        "retry": (_retry, "run.queued"),
        "replay": (_replay, "run.queued"),
        "set_priority": (_set_priority, None),
    }
)


def request_of(
    action: str,
    runs: list[RunId],
    *,
    reason: str = "",
    priority: int | None = None,
    rate_per_second: float | None = None,
) -> dict[str, Any]:
    """What the operation is to do, as it is stored."""
    said: dict[str, Any] = {
        "action": action,
        "runs": [str(run) for run in runs],
        "reason": reason,
        "priority": priority,
        "rate_per_second": rate_per_second,
    }
    return {name: value for name, value in said.items() if value not in (None, "")}


async def step_runs(desk: Desk, operation: Operation) -> Step:
    """The next run; what its state refuses is counted and left as it is."""
    runs = operation.request["runs"]
    if operation.done >= len(runs):
        return Step(operation=operation, wait=None)
    if operation.cursor is None:
        operation = replace(operation, cursor=str(to_us(desk.clock.now())))
    if wait := _pace(desk, operation):
        return Step(operation=operation, wait=wait)
    run = RunId(UUID(runs[operation.done]))
    try:
        moved = await forward(
            desk, _counted(operation, "changed"), _part(operation, run), tenant=operation.tenant
        )
    except Refused:
        moved = await forward(
            desk, _counted(operation, "refused"), _nothing, tenant=operation.tenant
        )
    return Step(operation=moved)


def _pace(desk: Desk, operation: Operation) -> timedelta:
    """How long to wait for the next one: as many are done as the rate allows since the first."""
    rate = operation.request.get("rate_per_second")
    if not rate:
        return timedelta(0)
    due_us = int(operation.cursor or 0) + round(operation.done / rate * 1_000_000)
    return timedelta(microseconds=max(0, due_us - to_us(desk.clock.now())))


def _counted(operation: Operation, what: str) -> Operation:
    result = {"changed": 0, "refused": 0, **operation.result}
    result[what] += 1
    return replace(operation, done=operation.done + 1, result=result)


def _part(operation: Operation, run: RunId) -> Callable[[Desk], Awaitable[None]]:
    verb, event = VERBS[operation.request["action"]]

    async def act(inner: Desk) -> None:
        async def run_verb(desk: Desk) -> object:
            return await verb(desk, operation, run)

        def tell(_: object) -> Told:
            text = to_text("run", run)
            return Told(
                answer=DONE,
                resource=text,
                shard=shard_of(run),
                after={"bulk": operation.request["action"]},
                event=event,
                details={"run_id": text},
            )

        await Deed(inner, intent_of(operation), run_verb, tell).do(inner)

    return act


async def _nothing(_: Desk) -> None:
    """A run that refuses is passed over."""


def intent_of(operation: Operation) -> Intent:
    """Whoever asked for the operation does all of it."""
    text = to_text("op", operation.id)
    return Intent(
        tenant=operation.tenant,
        actor={"type": "operation", "id": operation.created_by or "", "operation": text},
        action=operation.kind,
        request_id=text,
    )
