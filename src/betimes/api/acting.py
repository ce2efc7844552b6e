"""Handlers that change something: the verb, its answer and its traces, in one go."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from betimes.api.call import JSON, Call, Reply, encode
from betimes.api.problem import MEDIA_TYPE
from betimes.ops.acting import Answer, Intent, Told, act
from betimes.ops.desk import Desk
from betimes.ops.idempotency import Once

T = TypeVar("T")
REPLAYED = {"Idempotent-Replayed": "true"}


async def perform(
    call: Call[Any, Any],
    verb: Callable[[Desk], Awaitable[T]],
    tell: Callable[[T], Told],
    *,
    action: str | None = None,
    only_try: bool = False,
    as_system: bool = False,
) -> Reply:
    """Do it once, write it down, and answer; a repeated request gets its first answer."""
    intent = Intent(
        tenant=call.tenant,
        actor=call.actor,
        action=action or call.route.name,
        request_id=call.request.id,
        key=call.key,
        only_try=only_try or call.only_try,
        as_system=as_system,
    )
    done = await act(call.service.desk, intent, verb, tell)
    return replied(done)


def intent_of(call: Call[Any, Any], *, only_try: bool = False) -> Intent:
    """Who wants to do what."""
    return Intent(
        tenant=call.tenant,
        actor=call.actor,
        action=call.route.name,
        request_id=call.request.id,
        key=call.key,
        only_try=only_try or call.only_try,
    )


def replied(done: Once[Any]) -> Reply:
    """What was done, or had been done before, as a reply."""
    answer = done.answer
    headers = {str(name): str(value) for name, value in (answer.headers or {}).items()}
    return Reply(
        status=answer.status,
        content=answer.body or b"",
        media=JSON if answer.status < HTTPStatus.BAD_REQUEST else MEDIA_TYPE,
        headers=headers | (REPLAYED if done.replayed else {}),
    )


def answer(status: int, value: Any = None, *, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer that can be kept with an idempotency key."""
    body = None if value is None else encode(value)
    return Answer(status=status, body=body, headers=dict(headers or {}))
