"""Operations between domain and wire, and the answer to a request that begins one."""

from typing import Any
from uuid import UUID

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.shaping import read_id
from betimes.domain.ids import to_text
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.operations import Operation, start_operation
from betimes.wire import operations as wire
from betimes.wire.base import shown_instant, shown_maybe


def shown_operation(operation: Operation) -> wire.Operation:
    """An operation as it is shown."""
    return wire.Operation(
        id=to_text("op", operation.id),
        kind=operation.kind,
        state=operation.state.name.lower(),
        progress=wire.Progress(done=operation.done, total=operation.total),
        result=dict(operation.result) or None,
        error=dict(operation.error) or None,
        created_at=shown_instant(operation.created_at),
        created_by=operation.created_by,
        due_at=shown_instant(operation.due_at),
        finished_at=shown_maybe(operation.finished_at),
        expires_at=shown_instant(operation.expires_at),
    )


def told_operation(operation: Operation, *, status: int = 202) -> Told:
    """The answer and the traces of an operation that was asked for."""
    shown = shown_operation(operation)
    return Told(
        answer=answer(status, shown, headers={"Location": f"/v1/operations/{shown.id}"}),
        resource=shown.id,
        shard=operation.shard,
        after={"kind": shown.kind, "state": shown.state, "total": operation.total},
    )


async def begin(call: Call[Any, Any], operation: Operation, *, as_system: bool = False) -> Reply:
    """Ask for long work and answer with where to watch it."""

    async def verb(desk: Desk) -> Operation:
        return await start_operation(desk, operation)

    return await perform(call, verb, told_operation, as_system=as_system)


def chosen_id(call: Call[Any, Any], text: str | None) -> UUID | None:
    """The id the caller has chosen."""
    return None if text is None else read_id(call.service.desk, "op", text, "operation")


def check_count(found: int, confirmed: int | None, *, noun: str) -> None:
    """Refuse to touch another number of things than was confirmed."""
    if confirmed != found:
        raise Trouble(
            "confirm_count_mismatch",
            f"this would touch {found} {noun}, {'none' if confirmed is None else confirmed} "
            "are confirmed in confirm_count",
        )
