"""Deliveries: what was sent to endpoints, what came of it, and sending it again."""

from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply, encode
from betimes.api.operating import begin, chosen_id
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.endpoints import ONE as ENDPOINT
from betimes.api.routes.endpoints import found_endpoint
from betimes.api.shaping import coerced, missing, page, paged, read_instant
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import from_text, shard_of, to_text
from betimes.domain.scopes import Scope
from betimes.ops import deliveries as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.operations import new_operation
from betimes.ops.redelivery import REDELIVER, redelivery_of
from betimes.wire import endpoints as wire
from betimes.wire.base import Page, shown_instant, shown_maybe
from betimes.wire.operations import Operation

LAST = UUID(int=(1 << 128) - 1)
TEST_WAIT_SECONDS, TEST_POLL_SECONDS = 25.0, 0.1


def shown_delivery(delivery: ops.Delivery) -> wire.Delivery:
    """A delivery as it is shown."""
    return wire.Delivery(
        id=to_text("dlv", delivery.id),
        endpoint_id=to_text("ep", delivery.endpoint),
        event_id=to_text("evt", delivery.event),
        event_type=delivery.type,
        state=delivery.state.name.lower(),
        attempt=delivery.attempt,
        is_test=delivery.is_test,
        status=delivery.status,
        error=delivery.error,
        ms=delivery.response.get("ms"),
        response_snippet=delivery.response.get("snippet"),
        created_at=shown_instant(delivery.created_at),
        next_attempt_at=shown_maybe(delivery.due_at),
        attempted_at=shown_maybe(delivery.attempted_at),
        finished_at=shown_maybe(delivery.finished_at),
    )


async def list_all(call: Call[wire.ListDeliveries, None]) -> Reply:
    """A page of deliveries to an endpoint, newest first."""
    query, text = call.query, call.path["endpoint"]
    scope = ("deliveries", call.tenant, text, query.state, query.types)
    before = LAST
    if query.cursor is not None:
        before = msgspec.convert(call.leaves.read(scope, query.cursor)[0], type=UUID)
    limit = coerced(query.limit)
    try:
        found = await ops.list_deliveries(
            call.service.desk,
            call.tenant,
            from_text("ep", text),
            before=before,
            states=[ops.DeliveryState[state.upper()] for state in query.state],
            types=query.types,
            most=limit,
        )
    except (Invalid, NotFound):
        raise missing("endpoint", text) from None
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].id)])
    return paged(call, page([shown_delivery(one) for one in found], cursor=cursor))


def _read_id(call: Call[Any, Any]) -> UUID:
    text = call.path["delivery"]
    try:
        identity = from_text("dlv", text)
    except Invalid:
        raise missing("delivery", text) from None
    if shard_of(identity) >= call.service.desk.shards:
        raise missing("delivery", text)
    return identity


async def read(call: Call[NoQuery, None]) -> Reply:
    """One delivery."""
    identity = _read_id(call)
    try:
        found = await ops.get_delivery(call.service.desk, call.tenant, identity)
    except NotFound:
        raise missing("delivery", call.path["delivery"]) from None
    return Reply(value=shown_delivery(found))


async def redeliver(call: Call[NoQuery, None]) -> Reply:
    """Send a delivery that is over once more; its receiver sees the same id."""
    identity = _read_id(call)

    async def verb(desk: Desk) -> ops.Delivery:
        try:
            return await ops.redeliver(desk, call.tenant, identity)
        except NotFound:
            raise missing("delivery", call.path["delivery"]) from None

    def tell(delivery: ops.Delivery) -> Told:
        shown = shown_delivery(delivery)
        return Told(
            answer=answer(202, shown),
            resource=shown.id,
            shard=delivery.shard,
            after={"event": shown.event_id, "endpoint": shown.endpoint_id},
        )

    return await perform(call, verb, tell)


async def redeliver_since(call: Call[NoQuery, wire.RedeliverSince]) -> Reply:
    """Tell an endpoint what it wants and has not got since an instant."""
    endpoint, _ = await found_endpoint(call)
    since = read_instant(call.body.since, pointer="/since")
    operation = new_operation(
        call.service.desk,
        call.tenant,
        REDELIVER,
        redelivery_of(endpoint.id, since=since, now=call.service.now()),
        by=call.caller.key,
        identity=chosen_id(call, call.body.operation_id),
    )
    return await begin(call, operation)


async def test(call: Call[NoQuery, None]) -> Reply:
    """Send a test and wait for what comes of it; also to an endpoint that is disabled."""
    endpoint, _ = await found_endpoint(call)
    key = call.key.key if call.key else call.request.id

    async def verb(desk: Desk) -> UUID:
        return await ops.put_test(desk, endpoint, request=key)

    def tell(delivery: UUID) -> Told:
        return Told(
            answer=answer(200, {"id": to_text("dlv", delivery)}),
            resource=to_text("ep", endpoint.id),
            shard=endpoint.shard,
        )

    reply = await perform(call, verb, tell)
    identity = from_text("dlv", msgspec.json.decode(reply.content or b"{}")["id"])
    reply.content = encode(shown_delivery(await _over(call, identity)))
    return reply


async def _over(call: Call[Any, Any], identity: UUID) -> ops.Delivery:
    """The delivery when it is over, or as it is when there is no time to wait any longer."""
    clock = call.service.clock
    patience = min(TEST_WAIT_SECONDS, call.service.settings.long_poll_max.total_seconds())
    until = clock.monotonic() + patience
    while True:
        try:
            found = await ops.get_delivery(call.service.desk, call.tenant, identity)
        except NotFound:
            raise Trouble("retention_expired", "the test is kept no longer") from None
        waits = found.state is ops.DeliveryState.WAITING and not call.service.draining.begun
        if not waits or clock.monotonic() > until:
            return found
        await clock.sleep(TEST_POLL_SECONDS)


ONE = "/v1/deliveries/{delivery}"
ROUTES = (
    Route(
        method="POST",
        path=f"{ENDPOINT}/redeliver",
        name="endpoints.redeliver",
        says="Send an endpoint what failed or was never sent since an instant, as an operation.",
        handler=redeliver_since,
        scope=Scope.NOTIFICATIONS_WRITE,
        body=wire.RedeliverSince,
        answers={202: Operation},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        policy=Policy.BULK,
        problems=("already_exists",),
        headers=("Location",),
        example={"since": "2026-01-01T00:00:00Z"},
    ),
    Route(
        method="POST",
        path=f"{ENDPOINT}/test",
        name="endpoints.test",
        says="Send a test and answer what came of it.",
        handler=test,
        scope=Scope.NOTIFICATIONS_WRITE,
        answers={200: wire.Delivery},
        keyed=Keyed.REQUIRED,
        load=Load.WRITE,
        policy=Policy.BULK,
        waits=True,
        problems=("retention_expired",),
    ),
    Route(
        method="GET",
        path=f"{ENDPOINT}/deliveries",
        name="endpoints.deliveries",
        says="List what was sent to an endpoint, newest first.",
        handler=list_all,
        scope=Scope.NOTIFICATIONS_READ,
        query=wire.ListDeliveries,
        answers={200: Page[wire.Delivery]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path=ONE,
        name="deliveries.get",
        says="Read one delivery, and what its last attempt was answered.",
        handler=read,
        scope=Scope.NOTIFICATIONS_READ,
        answers={200: wire.Delivery},
    ),
    Route(
        method="POST",
        path=f"{ONE}/redeliver",
        name="deliveries.redeliver",
        says="Send a delivery that is over once more, under the same id.",
        handler=redeliver,
        scope=Scope.NOTIFICATIONS_WRITE,
        answers={202: wire.Delivery},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
    ),
)
