"""Long work: looking at it, and stopping it."""

from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import perform
from betimes.api.call import Call, Reply
from betimes.api.operating import shown_operation, told_operation
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged, read_id
from betimes.domain.errors import NotFound
from betimes.domain.scopes import Scope
from betimes.ops import operations as ops
from betimes.ops.desk import Desk
from betimes.wire import operations as wire
from betimes.wire.base import Page

LAST = UUID(int=(1 << 128) - 1)


def _id(call: Call[Any, Any]) -> UUID:
    return read_id(call.service.desk, "op", call.path["operation"], "operation")


async def list_all(call: Call[wire.ListOperations, None]) -> Reply:
    """A page of operations, newest first."""
    query = call.query
    scope = ("operations", call.tenant, sorted(query.state), sorted(query.kind))
    before = LAST
    if query.cursor is not None:
        before = msgspec.convert(call.leaves.read(scope, query.cursor)[0], type=UUID)
    limit = coerced(query.limit)
    found = await ops.list_operations(
        call.service.desk,
        call.tenant,
        before=before,
        states=[ops.OperationState[state.upper()] for state in query.state],
        kinds=query.kind,
        most=limit,
    )
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].id)])
    return paged(call, page([shown_operation(one) for one in found], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """One operation."""
    try:
        found = await ops.get_operation(call.service.desk, call.tenant, _id(call))
    except NotFound:
        raise missing("operation", call.path["operation"]) from None
    return Reply(value=shown_operation(found))


async def cancel(call: Call[NoQuery, None]) -> Reply:
    """Stop an operation where it is."""
    operation = _id(call)

    async def verb(desk: Desk) -> ops.Operation:
        try:
            return await ops.cancel_operation(desk, call.tenant, operation)
        except NotFound:
            raise missing("operation", call.path["operation"]) from None

    return await perform(call, verb, lambda one: told_operation(one, status=200))


ROUTES = (
    Route(
        method="GET",
        path="/v1/operations",
        name="operations.list",
        says="List long work, newest first.",
        handler=list_all,
        scope=Scope.OPERATIONS_READ,
        query=wire.ListOperations,
        answers={200: Page[wire.Operation]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path="/v1/operations/{operation}",
        name="operations.get",
        says="How far an operation is, and what became of it.",
        handler=read,
        scope=Scope.OPERATIONS_READ,
        answers={200: wire.Operation},
    ),
    Route(
        method="POST",
        path="/v1/operations/{operation}/cancel",
        name="operations.cancel",
        says="Stop an operation where it is; what was done stays done.",
        handler=cancel,
        scope=Scope.OPERATIONS_WRITE,
        answers={200: wire.Operation},
        keyed=Keyed.OPTIONAL,
        load=Load.VITAL,
        problems=("invalid_state",),
    ),
)
