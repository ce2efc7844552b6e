"""Working on operations: one is claimed, brought forward in small steps, and let go.

Every step first moves the operation's own row, under its claim and from the place it was read at,
and then does its part in the same transaction. So a part is done once, whoever dies in between,
and a cancelled operation does nothing more.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.errors import Refused, Unavailable
from betimes.domain.ids import TenantId, random_ids, to_ms
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store import operations as rows
from betimes.store.hints import LaterHints
from betimes.store.operations import Operation, OperationState
from betimes.store.pool import Connection

STEPS_MAX = 50
AGAIN_AFTER = timedelta(0)


class Stopped(Exception):
    """The operation was cancelled, or belongs to somebody else by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where an operation is after a step; `wait` before the next one, None when it is done."""

    operation: Operation
    wait: timedelta | None = AGAIN_AFTER


Kind = Callable[[Desk, Operation], Awaitable[Step]]
Part = Callable[[Desk], Awaitable[None]]


async def forward(
    desk: Desk, operation: Operation, part: Part, *, tenant: TenantId | None
) -> Operation:
    """Move an operation, whose place is already the new one, together with a part of its work.

    Raises:
        Stopped: nobody wants it any more, or our own commit had its reply lost.

    """
    hints, was = LaterHints(), operation.done - 1  # one step at a time

    async def work(connection: Connection) -> None:
        hints.clear()
        now = desk.clock.stated()
        if not await rows.advance_operation(connection, operation, was=was, now=now):
            raise Stopped
        await part(desk.inside(connection, hints))

    await desk.transact(work, tenant=tenant)
    hints.pass_on(desk.hints)
    return operation


async def next_due_in(desk: Desk) -> float | None:
    """Seconds until an operation is due; None when there is nothing to wait for."""
    now = desk.clock.stated()
    return await rows.operations_due_in(desk.database, now=now, lane=desk.lane)


async def work_once(desk: Desk, kinds: Mapping[str, Kind]) -> bool:
    """Bring one operation forward; whether there was one."""
    operation = await _claim(desk)
    if operation is None:
        return False
    try:
        kind = kinds.get(operation.kind)
        if kind is None:
            await _settle(desk, _failed(operation, "unknown_kind", "this node does not know it"))
            return True
        await _advance(desk, operation, kind)
    except Stopped:
        pass
    except Refused as refused:
        await _settle(desk, _failed(operation, refused.code, refused.sentence))
    except Unavailable:
        raise
    except Exception:
        # Our mistake: it fails instead of crashing every janitor that claims it.
        await _settle(desk, _failed(operation, "internal", "something went wrong"))
        raise
    return True


async def _advance(desk: Desk, operation: Operation, kind: Kind) -> None:
    for _ in range(STEPS_MAX):
        step = await kind(desk, operation)
        operation = step.operation
        if step.wait is None:
            await _settle(desk, replace(operation, state=OperationState.SUCCEEDED))
            return
        if step.wait:
            break
    else:
        step = Step(operation=operation)
    await _release(desk, operation, wait=step.wait or AGAIN_AFTER)


async def _claim(desk: Desk) -> Operation | None:
    (claim,) = random_ids(to_ms(desk.clock.now()), 0, desk.entropy(TAIL_BYTES))

    async def work(connection: Connection) -> Operation | None:
        return await rows.claim_operation(connection, claim, now=desk.clock.stated())

    return await desk.transact(work, tenant=None)


async def _release(desk: Desk, operation: Operation, *, wait: timedelta) -> None:
    async def work(connection: Connection) -> None:
        now: datetime = await desk.now(connection)
        await rows.release_operation(connection, operation, due_at=now + wait)

    await desk.transact(work, tenant=None)


async def _settle(desk: Desk, operation: Operation) -> None:
    async def work(connection: Connection) -> bool:
        return await rows.settle_operation(connection, operation, now=desk.clock.stated())

    await desk.transact(work, tenant=None)


def _failed(operation: Operation, code: str, sentence: str) -> Operation:
    error: dict[str, Any] = {"code": code, "detail": sentence}
    return replace(operation, state=OperationState.FAILED, error=error)
