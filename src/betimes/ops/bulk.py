"""Actions over many things, as an operation: each of them is an act of its own.

What the action means was decided and counted when it was asked for; the operation carries the list.
One thing a step: its act and the progress of the operation are one transaction, so everything is
done once, whoever dies in between. What its state refuses is left as it is and told in the result.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from betimes.domain.errors import Refused
from betimes.domain.ids import shard_of, to_text, to_us
from betimes.ops.acting import Answer, Deed, Intent, Told
from betimes.ops.desk import Desk
from betimes.ops.operating import Part, Step, forward
from betimes.store.operations import Operation

ITEMS_MAX = 10_000
ERRORS_MAX = 100
"""How many refusals the result tells one by one; all of them are counted."""
DONE = Answer(status=200, body=None, headers={})

Verb = Callable[[Desk, Operation, UUID], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """One kind of thing, and what may be done to many of it; each verb with the event it is."""

    prefix: str
    member: str
    """Where the request keeps the list."""
    verbs: Mapping[str, tuple[Verb, str | None]]
    checks: Mapping[str, Verb] = field(default_factory=dict)
    """What refuses a thing before its transaction begins, by the action."""

    async def step(self, desk: Desk, operation: Operation) -> Step:
        """The next thing."""
        items = operation.request[self.member]
        if operation.done >= len(items):
            return Step(operation=operation, wait=None)
        if operation.cursor is None:
            operation = replace(operation, cursor=str(to_us(desk.clock.now())))
        if wait := _pace(desk, operation):
            return Step(operation=operation, wait=wait)
        item = UUID(items[operation.done])
        try:
            if check := self.checks.get(operation.request["action"]):
                await check(desk, operation, item)
            moved = await forward(
                desk, _changed(operation), self._part(operation, item), tenant=operation.tenant
            )
        except Refused as refused:
            told = _refused(operation, to_text(self.prefix, item), refused)
            moved = await forward(desk, told, _nothing, tenant=operation.tenant)
        return Step(operation=moved)

    def _part(self, operation: Operation, item: UUID) -> Part:
        action = operation.request["action"]
        verb, event = self.verbs[action]

        async def act(inner: Desk) -> None:
            async def do(desk: Desk) -> object:
                return await verb(desk, operation, item)

            def tell(_: object) -> Told:
                text = to_text(self.prefix, item)
                return Told(
                    answer=DONE,
                    resource=text,
                    shard=shard_of(item),
                    after={"bulk": action},
                    event=event,
                    details={f"{self.prefix}_id": text},
                )

            await Deed(inner, intent_of(operation), do, tell).do(inner)

        return act

    def request(self, action: str, items: Sequence[UUID], **more: Any) -> dict[str, Any]:
        """What the operation is to do, as it is stored."""
        said = {"action": action, self.member: [str(item) for item in items], **more}
        return {name: value for name, value in said.items() if value not in (None, "", {})}


def intent_of(operation: Operation) -> Intent:
    """Whoever asked for the operation does all of it."""
    text = to_text("op", operation.id)
    return Intent(
        tenant=operation.tenant,
        actor={"type": "operation", "id": operation.created_by or "", "operation": text},
        action=operation.kind,
        request_id=text,
    )


def _pace(desk: Desk, operation: Operation) -> timedelta:
    """How long to wait for the next one: as many are done as the rate allows since the first."""
    rate = operation.request.get("rate_per_second")
    if not rate:
        return timedelta(0)
    due_us = int(operation.cursor or 0) + round(operation.done / rate * 1_000_000)
    return timedelta(microseconds=max(0, due_us - to_us(desk.clock.now())))


def _changed(operation: Operation) -> Operation:
    result = _result(operation)
    result["changed"] += 1
    return replace(operation, done=operation.done + 1, result=result)


def _refused(operation: Operation, item: str, refused: Refused) -> Operation:
    result = _result(operation)
    result["refused"] += 1
    told = result.get("errors", [])
    if len(told) < ERRORS_MAX:
        error = {"id": item, "code": refused.code, "detail": refused.sentence}
        result["errors"] = [*told, error]
    return replace(operation, done=operation.done + 1, result=result)


def _result(operation: Operation) -> dict[str, Any]:
    return {"changed": 0, "refused": 0, **operation.result}


async def _nothing(_: Desk) -> None:
    """What refuses is passed over."""
