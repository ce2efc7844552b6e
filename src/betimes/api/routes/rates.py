"""Rates by key."""

from datetime import timedelta
from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import Load, NoQuery, Route
from betimes.api.shaping import coerced, page, paged, read_span
from betimes.domain.scopes import Scope
from betimes.domain.spec import to_ms
from betimes.ops import rates as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import queues as wire
from betimes.wire.base import Page, shown_duration
from betimes.wire.keys import PageOnly

PER_LEAST, PER_MOST = timedelta(milliseconds=1), timedelta(days=366)


def read_per(rate: wire.RateLimit, *, pointer: str) -> int:
    """The time of a rate in milliseconds."""
    per = read_span(rate.per, pointer=pointer)
    if not PER_LEAST <= per <= PER_MOST:
        raise Trouble(
            "invalid_parameter",
            f"expected a time from {shown_duration(PER_LEAST)} to {shown_duration(PER_MOST)}, "
            f"got {shown_duration(per)}",
        )
    return to_ms(per)


def _shown(rate: ops.KeyRate) -> wire.KeyRate:
    per = shown_duration(timedelta(milliseconds=rate.per_ms))
    return wire.KeyRate(key=rate.key, limit=rate.limit, per=per)


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of rates by key."""
    scope = ("rates", call.tenant)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    found = await ops.list_rates(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [found[-1].key])
    return paged(call, page([_shown(one) for one in found], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """What was said about one key."""
    return Reply(value=_shown(await ops.get_rate(call.service.desk, call.tenant, call.path["key"])))


async def put(call: Call[NoQuery, wire.RateLimit]) -> Reply:
    """Say how many runs of a key may start in a time."""
    per_ms = read_per(call.body, pointer="/per")
    wanted = ops.KeyRate(key=call.path["key"], limit=call.body.limit, per_ms=per_ms)

    async def verb(desk: Desk) -> ops.KeyRate:
        return await ops.put_rate(desk, call.tenant, wanted)

    return await perform(
        call,
        verb,
        lambda rate: Told(
            answer=answer(200, _shown(rate)),
            resource=f"rate:{rate.key}",
            after={"limit": rate.limit, "per_ms": rate.per_ms},
        ),
    )


async def delete(call: Call[NoQuery, None]) -> Reply:
    """Say nothing about a key any more."""
    key = call.path["key"]

    async def verb(desk: Desk) -> str:
        await ops.forget_rate(desk, call.tenant, key)
        return key

    return await perform(call, verb, lambda gone: Told(answer=answer(204), resource=f"rate:{gone}"))


def _route(method: str, path: str, name: str, says: str, handler: Any, **more: Any) -> Route:
    given: dict[str, Any] = {
        "scope": Scope.QUEUES_READ if method == "GET" else Scope.QUEUES_WRITE,
        "answers": {200: wire.KeyRate},
        "load": Load.READ if method == "GET" else Load.WRITE,
        **more,
    }
    return Route(
        method=method,
        path=f"/v1/rate-limits{path}",
        name=f"rate_limits.{name}",
        says=says,
        handler=handler,
        **given,
    )


ROUTES = (
    _route(
        "GET",
        "",
        "list",
        "List the rate limit keys about which something was said.",
        list_all,
        query=PageOnly,
        answers={200: Page[wire.KeyRate]},
        problems=("cursor_invalid",),
    ),
    _route("GET", "/{key}", "get", "Read the rate of one key.", read),
    _route(
        "PUT",
        "/{key}",
        "put",
        "Say how many runs of a rate limit key may start in a time.",
        put,
        body=wire.RateLimit,
        example={"limit": 100, "per": "PT1S"},
    ),
    _route(
        "DELETE",
        "/{key}",
        "delete",
        "Say nothing about a rate limit key any more.",
        delete,
        answers={204: None},
    ),
)
