"""Workers that speak HTTP: registering, asking for work, signs of life."""

from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.shaping import coerced, missing, page, paged, read_id
from betimes.api.worker_limits import worker_config
from betimes.domain.errors import Forbidden, NotFound
from betimes.domain.ids import WorkerId, to_text
from betimes.domain.scopes import Scope
from betimes.ops import workers as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.schemas import Declared, declared
from betimes.wire import workers as wire
from betimes.wire.base import Page, shown_duration, shown_instant

POLL_SECONDS = 1.0
HEARTBEATS_PER_LEASE = 3
WORKER = "wrk"


def worker_of(call: Call[Any, Any]) -> WorkerId:
    """The worker that a path names."""
    return WorkerId(read_id(call.service.desk, WORKER, call.path["worker"], "worker"))


def allowed(call: Call[Any, Any], queues: list[str] | None) -> list[str] | None:
    """The queues a key may serve, out of those it asks for."""
    bound = call.caller.queues
    if bound is None:
        return queues
    for queue in queues or ():
        if queue not in bound:
            raise Forbidden(f"the key may not serve the queue {queue!r}")
    return sorted(bound) if queues is None else queues


async def register(call: Call[NoQuery, wire.NewWorker]) -> Reply:
    """Make a worker known."""
    body, service = call.body, call.service
    schemas = _declared(body)
    worker = ops.new_worker(
        service.desk,
        call.tenant,
        name=body.name,
        version=body.version,
        queues=allowed(call, body.queues) or body.queues,
        handlers=[one if isinstance(one, str) else one.name for one in body.handlers],
        slots=body.slots,
        labels=body.labels,
        details={
            "host": body.host,
            "pid": body.pid,
            "sdk": body.sdk,
            "schemas": {name: one.digest for name, one in schemas.items()},
        },
    )

    async def verb(desk: Desk) -> ops.RemoteWorker:
        return await ops.register(desk, worker, schemas)

    reply = await perform(call, verb, lambda made: _registered(call, made))
    service.schemas.forget(call.tenant)
    service.strictness.forget(call.tenant)
    return reply


def _declared(body: wire.NewWorker) -> dict[str, Declared]:
    return {
        one.name: declared(one.name, one.schema, pointer=f"/handlers/{place}/schema")
        for place, one in enumerate(body.handlers)
        if not isinstance(one, str) and one.schema is not None
    }


def _registered(call: Call[Any, Any], worker: ops.RemoteWorker) -> Told:
    ttl = call.service.settings.lease_ttl
    text = to_text(WORKER, worker.id)
    shown = wire.Registered(
        worker_id=text,
        heartbeat_interval=shown_duration(ttl / HEARTBEATS_PER_LEASE),
        lease_duration=shown_duration(ttl),
        server_time=shown_instant(call.service.now()),
        config=worker_config(call.service.settings.long_poll_max),
    )
    return Told(
        answer=answer(201, shown, headers={"Location": f"/v1/workers/{text}"}),
        resource=text,
        event="worker.online",
        details={"worker_id": text, "name": worker.name},
    )


def shown_worker(call: Call[Any, Any], worker: ops.RemoteWorker) -> wire.Worker:
    """A worker as it is shown."""
    age = call.service.now() - worker.heartbeat_at
    stale = age >= call.service.desk.seen_within
    state = "stale" if stale else "draining" if worker.draining else "online"
    return wire.Worker(
        id=to_text(WORKER, worker.id),
        name=worker.name,
        version=worker.version,
        state=state,
        queues=list(worker.queues),
        handlers=list(worker.handlers),
        slots=worker.slots,
        busy=worker.busy,
        started_at=shown_instant(worker.started_at),
        heartbeat_at=shown_instant(worker.heartbeat_at),
        labels=dict(worker.labels),
        details=dict(worker.details),
    )


async def list_all(call: Call[wire.ListWorkers, None]) -> Reply:
    """A page of workers."""
    scope = ("workers", call.tenant)
    after = UUID(int=0)
    if call.query.cursor is not None:
        after = msgspec.convert(call.leaves.read(scope, call.query.cursor)[0], type=UUID)
    limit = coerced(call.query.limit)
    found = await ops.list_workers(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].id)])
    return paged(call, page([shown_worker(call, one) for one in found], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """One worker."""
    try:
        found = await ops.get_worker(call.service.desk, call.tenant, worker_of(call))
    except NotFound:
        raise missing("worker", call.path["worker"]) from None
    return Reply(value=shown_worker(call, found))


async def drain(call: Call[NoQuery, None]) -> Reply:
    """Tell a worker to finish."""
    worker = worker_of(call)

    async def verb(desk: Desk) -> ops.RemoteWorker:
        try:
            return await ops.drain_worker(desk, call.tenant, worker)
        except NotFound:
            raise missing("worker", call.path["worker"]) from None

    return await perform(
        call,
        verb,
        lambda told: Told(
            answer=answer(202, shown_worker(call, told)), resource=to_text(WORKER, told.id)
        ),
    )


async def delete(call: Call[NoQuery, None]) -> Reply:
    """Forget a worker; what it holds is given to others at once."""
    worker = worker_of(call)

    async def verb(desk: Desk) -> WorkerId:
        try:
            await ops.delete_worker(desk, call.tenant, worker)
        except NotFound:
            raise missing("worker", call.path["worker"]) from None
        return worker

    return await perform(
        call,
        verb,
        lambda gone: Told(
            answer=answer(204),
            resource=to_text(WORKER, gone),
        ),
    )


async def leave(call: Call[NoQuery, None]) -> Reply:
    """A worker goes; it has given back what it held."""
    try:
        bound = call.caller.queues
        await ops.delete_worker(call.service.desk, call.tenant, worker_of(call), bound=bound)
    except NotFound:
        raise missing("worker", call.path["worker"]) from None
    return Reply(status=204)


def worker_route(method: str, path: str, name: str, says: str, handler: Any, **more: Any) -> Route:
    """An operation about workers."""
    given: dict[str, Any] = {
        "scope": Scope.WORKERS_LEASE,
        "load": Load.VITAL,
        "policy": Policy.LEASE,
        **more,
    }
    return Route(
        method=method,
        path=f"/v1/workers{path}",
        name=f"workers.{name}",
        says=says,
        handler=handler,
        **given,
    )


ROUTES = (
    worker_route(
        "POST",
        "",
        "register",
        "Make a worker known.",
        register,
        body=wire.NewWorker,
        answers={201: wire.Registered},
        keyed=Keyed.OPTIONAL,
        headers=("Location",),
    ),
    worker_route(
        "GET",
        "",
        "list",
        "List workers.",
        list_all,
        scope=Scope.WORKERS_READ,
        load=Load.READ,
        policy=Policy.DEFAULT,
        query=wire.ListWorkers,
        answers={200: Page[wire.Worker]},
        problems=("cursor_invalid",),
    ),
    worker_route(
        "GET",
        "/{worker}",
        "get",
        "Read one worker.",
        read,
        scope=Scope.WORKERS_READ,
        load=Load.READ,
        policy=Policy.DEFAULT,
        answers={200: wire.Worker},
    ),
    worker_route(
        "DELETE",
        "/{worker}",
        "delete",
        "Forget a worker; what it holds is given to others at once.",
        delete,
        scope=Scope.WORKERS_WRITE,
        answers={204: None},
    ),
    worker_route(
        "POST",
        "/{worker}/drain",
        "drain",
        "Tell a worker to finish; it hears of it with its next heartbeat.",
        drain,
        scope=Scope.WORKERS_WRITE,
        answers={202: wire.Worker},
    ),
    worker_route(
        "POST",
        "/{worker}/leave",
        "leave",
        "A worker goes; what it still holds comes back when its leases run out.",
        leave,
        answers={204: None},
    ),
)
