"""Operations: long work that was asked for, its progress, and the wish to stop it."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.domain.errors import AlreadyExists, IllegalTransition, NotFound
from betimes.domain.ids import TenantId, random_ids, to_ms, to_text
from betimes.ops.contents import open_bytes
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store import operations as rows
from betimes.store.hints import OPERATE
from betimes.store.operations import Operation, OperationState
from betimes.store.pool import Connection

__all__ = [
    "Operation",
    "OperationState",
    "cancel_operation",
    "get_operation",
    "list_operations",
    "new_operation",
    "start_operation",
]

KEPT_FOR = timedelta(days=7)


def new_operation(
    desk: Desk,
    tenant: TenantId,
    kind: str,
    request: Mapping[str, Any],
    *,
    total: int | None = None,
    after: timedelta = timedelta(0),
    by: str | None = None,
    identity: UUID | None = None,
) -> Operation:
    """An operation nobody has stored yet; the caller may choose its id."""
    now = desk.clock.now()
    if identity is None:
        (identity,) = random_ids(to_ms(now), desk.next_shard(), desk.entropy(TAIL_BYTES))
    return Operation(
        id=identity,
        tenant=tenant,
        kind=kind,
        request=request,
        total=total,
        created_at=now,
        due_at=now + after,
        expires_at=now + after + KEPT_FOR,
        created_by=by,
    )


async def start_operation(desk: Desk, operation: Operation) -> Operation:
    """Ask for long work; asking again under the same id answers with what there is."""

    async def work(connection: Connection) -> Operation:
        if await rows.insert_operation(connection, operation):
            return operation
        found = await rows.read_operation(connection, operation.tenant, operation.id)
        same = found is not None and found.kind == operation.kind
        if found is None or not same or not await asks_the_same(connection, found):
            raise AlreadyExists(
                f"the operation {to_text('op', operation.id)} exists and does something else",
                pointer="/operation_id",
            )
        return found

    async def asks_the_same(connection: Connection, found: Operation) -> bool:
        asked = [await _opened(desk, connection, one) for one in (found, operation)]
        return asked[0] == asked[1]

    begun = await desk.transact(work, tenant=operation.tenant)
    desk.hints.wake(OPERATE)
    return begun


async def _opened(desk: Desk, connection: Connection, operation: Operation) -> dict[str, Any]:
    """What is asked for, with a payload that many jobs are to get as it was given.

    What is sealed twice is never the same.
    """
    request, change = dict(operation.request), operation.request.get("set")
    if isinstance(change, Mapping) and isinstance(change.get("payload"), str):
        kept = [b64decode(change["payload"])]
        request["set"] = {
            **change,
            "payload": await open_bytes(desk, connection, operation.tenant, kept),
        }
    return request


async def get_operation(desk: Desk, tenant: TenantId, operation: UUID) -> Operation:
    """One operation."""

    async def work(connection: Connection) -> Operation:
        return await _required(connection, tenant, operation)

    return await desk.transact(work, tenant=tenant)


async def list_operations(
    desk: Desk,
    tenant: TenantId,
    *,
    before: UUID,
    states: Sequence[OperationState],
    kinds: Sequence[str],
    most: int,
) -> list[Operation]:
    """A page of operations, newest first."""

    async def work(connection: Connection) -> list[Operation]:
        return await rows.list_operations(
            connection, tenant, before=before, states=states, kinds=kinds, most=most
        )

    return await desk.transact(work, tenant=tenant)


async def cancel_operation(desk: Desk, tenant: TenantId, operation: UUID) -> Operation:
    """Stop it where it is: what was done stays done, and cancelling again changes nothing."""

    async def work(connection: Connection) -> Operation:
        found = await _required(connection, tenant, operation)
        if found.state is OperationState.CANCELLED:
            return found
        now = await desk.now(connection)
        if not await rows.cancel_operation(connection, found, now=now):
            raise IllegalTransition(
                f"expected an operation under way, got one that is {found.state.name.lower()}"
            )
        return _stopped(found, now)

    return await desk.transact(work, tenant=tenant)


def _stopped(operation: Operation, now: datetime) -> Operation:
    return replace(operation, state=OperationState.CANCELLED, claim=None, finished_at=now)


async def _required(connection: Connection, tenant: TenantId, operation: UUID) -> Operation:
    found = await rows.read_operation(connection, tenant, operation)
    if found is None:
        raise NotFound(f"there is no operation {to_text('op', operation)}")
    return found
