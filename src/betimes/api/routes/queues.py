"""Queues."""

from collections.abc import Mapping
from typing import Any

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.definitions import policy_of, shown_policy
from betimes.api.operating import begin, check_count, chosen_id
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.insights import shown_percentiles
from betimes.api.routes.rates import read_per
from betimes.api.shaping import coerced, maybe_instant, page, paged, read_retention
from betimes.domain.scopes import Scope
from betimes.domain.spec import retry_to_json
from betimes.ops import queues as ops
from betimes.ops.acting import Told
from betimes.ops.bulk import ITEMS_MAX
from betimes.ops.bulk_runs import BULK_RUNS, PURGE
from betimes.ops.desk import Desk
from betimes.ops.insights import FLOW_SPAN, read_flow, read_waiting
from betimes.ops.operations import new_operation
from betimes.ops.quotas import check_queues
from betimes.wire import operations
from betimes.wire import queues as wire
from betimes.wire.base import Page, shown_maybe
from betimes.wire.keys import PageOnly


def shown_queue(call: Call[Any, Any], queue: ops.Queue) -> wire.Queue:
    """A queue as it is shown."""
    now = call.service.now()
    paused = queue.is_paused(now)
    draining = queue.is_draining(now)
    return wire.Queue(
        name=queue.name,
        paused=paused,
        paused_at=shown_maybe(queue.paused_at),
        paused_until=shown_maybe(queue.paused_until),
        reason=queue.paused_reason,
        draining=draining,
        draining_until=shown_maybe(queue.drain_until) if draining else None,
        draining_reason=queue.drain_reason if draining else None,
        settings=_shown_settings(queue.settings, paused=paused),
        updated_at=shown_maybe(queue.updated_at),
    )


def _shown_settings(settings: Mapping[str, Any], *, paused: bool) -> dict[str, Any]:
    """With what holds now, so that putting them back changes nothing."""
    retry = settings.get("default_retry")
    told = {"dead_letter": True, **settings, "paused": paused}
    return told if retry is None else told | {"default_retry": shown_policy(retry)}


def _settings(asked: wire.QueueSettings) -> dict[str, Any]:
    """As they are stored: only what was said."""
    said = msgspec.to_builtins(asked)
    said.pop("paused")  # Whether it is paused is a state, in columns of its own.
    if asked.default_retry is not None:
        said["default_retry"] = retry_to_json(policy_of(asked.default_retry)) or None
    return {name: value for name, value in said.items() if value is not None}


def _service(asked: wire.QueueSettings) -> ops.Service:
    rate, key_rate = asked.rate, asked.per_key_rate
    per = "/per_key_rate/per"
    return ops.Service(
        weight=asked.weight,
        fairness=asked.fairness,
        max_concurrency=asked.max_concurrency,
        rate_limit=None if rate is None else rate.limit,
        rate_per_ms=None if rate is None else read_per(rate, pointer="/rate/per"),
        key_rate_limit=None if key_rate is None else key_rate.limit,
        key_rate_per_ms=None if key_rate is None else read_per(key_rate, pointer=per),
        retain_ms=None
        if asked.retention is None
        else read_retention(asked.retention, pointer="/retention"),
        dead_letter=asked.dead_letter,
    )


def _told(call: Call[Any, Any], queue: ops.Queue, event: str | None = None) -> Told:
    return Told(
        answer=answer(200, shown_queue(call, queue)),
        resource=f"queue:{queue.name}",
        after={"paused": queue.paused_at is not None},
        event=event,
        details={"queue": queue.name},
    )


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of queues by name."""
    scope = ("queues", call.tenant)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    found = await ops.list_queues(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [found[-1].name])
    return paged(call, page([shown_queue(call, one) for one in found], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """One queue; any name is one, with the defaults."""
    found = await ops.get_queue(call.service.desk, call.tenant, call.path["queue"])
    return Reply(value=shown_queue(call, found))


async def put(call: Call[NoQuery, wire.QueueSettings]) -> Reply:
    """Store the settings of a queue."""
    settings, service = _settings(call.body), _service(call.body)
    await check_queues(call.service.desk, call.tenant, call.caller.quotas, name=call.path["queue"])

    async def verb(desk: Desk) -> ops.Put:
        return await ops.put_queue(
            desk, call.tenant, call.path["queue"], settings, service, paused=call.body.paused
        )

    def told(put: ops.Put) -> Told:
        event = None if put.paused is None else "queue.paused" if put.paused else "queue.resumed"
        return _told(call, put.queue, event)

    reply = await perform(call, verb, told)
    call.service.strictness.forget(call.tenant)
    if call.body.paused is False:
        call.service.waiters.wake(call.path["queue"], call.tenant)
    return reply


async def pause(call: Call[NoQuery, wire.PauseQueue]) -> Reply:
    """Nothing of the queue is leased until it is resumed."""
    until = maybe_instant(call.body.until, pointer="/until")

    async def verb(desk: Desk) -> ops.Queue:
        return await ops.pause_queue(
            desk, call.tenant, call.path["queue"], reason=call.body.reason, until=until
        )

    return await perform(call, verb, lambda queue: _told(call, queue, "queue.paused"))


async def resume(call: Call[NoQuery, None]) -> Reply:
    """Go on with a paused queue."""

    async def verb(desk: Desk) -> ops.Queue:
        queue = await ops.resume_queue(desk, call.tenant, call.path["queue"])
        if queue.draining:
            queue = await ops.drain_queue(desk, call.tenant, call.path["queue"], draining=False)
        return queue

    reply = await perform(call, verb, lambda queue: _told(call, queue, "queue.resumed"))
    call.service.gates.forget(call.tenant)
    call.service.waiters.wake(call.path["queue"], call.tenant)
    return reply


async def drain(call: Call[NoQuery, wire.DrainQueue]) -> Reply:
    """Accept nothing new for a queue, and finish what is there."""
    until = maybe_instant(call.body.until, pointer="/until")

    async def verb(desk: Desk) -> ops.Queue:
        return await ops.drain_queue(
            desk, call.tenant, call.path["queue"], reason=call.body.reason, until=until
        )

    reply = await perform(call, verb, lambda queue: _told(call, queue))
    call.service.gates.forget(call.tenant)
    return reply


async def purge(call: Call[NoQuery, operations.PurgeQueue]) -> Reply:
    """Cancel what waits in a queue, as an operation; what is under way goes on."""
    body, queue = call.body, call.path["queue"]
    runs = await read_waiting(
        call.service.desk, call.tenant, queue, places=body.states, most=ITEMS_MAX + 1
    )
    if len(runs) > ITEMS_MAX:
        raise Trouble("batch_too_large", f"more than {ITEMS_MAX} runs wait; purge by states")
    if body.dry_run:
        return Reply(value=operations.Matched(matched=len(runs), dry_run=True))
    check_count(len(runs), body.confirm_count, noun="runs")
    operation = new_operation(
        call.service.desk,
        call.tenant,
        PURGE,
        BULK_RUNS.request("cancel", runs),
        total=len(runs),
        by=call.caller.key,
        identity=chosen_id(call, body.operation_id),
    )
    return await begin(call, operation)


async def delete(call: Call[NoQuery, None]) -> Reply:
    """Forget the settings of a queue in which nothing is left."""
    name = call.path["queue"]

    async def verb(desk: Desk) -> str:
        await ops.delete_queue(desk, call.tenant, name)
        return name

    return await perform(
        call, verb, lambda gone: Told(answer=answer(204), resource=f"queue:{gone}")
    )


async def stats(call: Call[NoQuery, None]) -> Reply:
    """What waits in a queue and is under way."""
    name = call.path["queue"]
    depth = await ops.measure(call.service.desk, call.tenant, name)
    queue = await ops.get_queue(call.service.desk, call.tenant, name)
    age = None if depth.oldest is None else (depth.now - depth.oldest).total_seconds()
    flow = await read_flow(call.service.desk, call.tenant, name, now=depth.now, oldest=depth.oldest)
    seconds = FLOW_SPAN.total_seconds()
    shrinking = (flow.finished - flow.arrived) / seconds
    return Reply(
        value=wire.QueueStats(
            waiting=depth.waiting,
            running=depth.running,
            scheduled=depth.later,
            oldest_age_seconds=age,
            paused=queue.is_paused(depth.now),
            draining=queue.is_draining(depth.now),
            arrival_rate=round(flow.arrived / seconds, 3),
            service_rate=round(flow.finished / seconds, 3),
            drain_seconds=_drain_seconds(depth.waiting, shrinking),
            slots=flow.slots,
            busy_slots=flow.busy,
            lag_ms=shown_percentiles(flow.lag),
        )
    )


def _drain_seconds(waiting: int, shrinking: float) -> float | None:
    if not waiting:
        return 0.0
    return round(waiting / shrinking, 1) if shrinking > 0 else None


def _route(method: str, path: str, name: str, says: str, handler: Any, **more: Any) -> Route:
    given: dict[str, Any] = {
        "scope": Scope.QUEUES_READ if method == "GET" else Scope.QUEUES_WRITE,
        "answers": {200: wire.Queue},
        "load": Load.READ if method == "GET" else Load.VITAL,
        **more,
    }
    return Route(
        method=method,
        path=f"/v1/queues{path}",
        name=f"queues.{name}",
        says=says,
        handler=handler,
        **given,
    )


ROUTES = (
    _route(
        "GET",
        "",
        "list",
        "List queues that have settings or work.",
        list_all,
        query=PageOnly,
        answers={200: Page[wire.Queue]},
        problems=("cursor_invalid",),
    ),
    _route("GET", "/{queue}", "get", "Read one queue.", read),
    _route(
        "PUT",
        "/{queue}",
        "put",
        "Store the settings of a queue.",
        put,
        body=wire.QueueSettings,
        load=Load.WRITE,
    ),
    _route(
        "DELETE",
        "/{queue}",
        "delete",
        "Forget the settings of an empty queue.",
        delete,
        answers={204: None},
        load=Load.WRITE,
        problems=("queue_not_empty",),
    ),
    _route(
        "POST",
        "/{queue}/pause",
        "pause",
        "Lease nothing of a queue until it is resumed.",
        pause,
        body=wire.PauseQueue,
        body_optional=True,
        keyed=Keyed.OPTIONAL,
    ),
    _route(
        "POST",
        "/{queue}/resume",
        "resume",
        "Go on with a paused queue.",
        resume,
        keyed=Keyed.OPTIONAL,
    ),
    _route(
        "POST",
        "/{queue}/drain",
        "drain",
        "Accept nothing new for a queue, and finish what is there.",
        drain,
        body=wire.DrainQueue,
        body_optional=True,
        keyed=Keyed.OPTIONAL,
    ),
    _route(
        "POST",
        "/{queue}/purge",
        "purge",
        "Cancel what waits in a queue, as an operation.",
        purge,
        body=operations.PurgeQueue,
        body_optional=True,
        answers={200: operations.Matched, 202: operations.Operation},
        keyed=Keyed.OPTIONAL,
        policy=Policy.BULK,
        headers=("Location",),
        problems=("confirm_count_mismatch", "batch_too_large", "already_exists"),
        example={"states": ["queued"], "confirm_count": 12},
    ),
    _route(
        "GET",
        "/{queue}/stats",
        "stats",
        "What waits in a queue and is under way.",
        stats,
        answers={200: wire.QueueStats},
        load=Load.AGGREGATE,
    ),
)
