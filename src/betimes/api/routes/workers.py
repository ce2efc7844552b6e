"""Workers that speak HTTP: registering, asking for work, signs of life."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec

from betimes.api import parcels
from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import BATCH_BYTES_MAX, Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.leases import seals_of
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


def _worker(call: Call[Any, Any]) -> WorkerId:
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
        found = await ops.get_worker(call.service.desk, call.tenant, _worker(call))
    except NotFound:
        raise missing("worker", call.path["worker"]) from None
    return Reply(value=shown_worker(call, found))


async def drain(call: Call[NoQuery, None]) -> Reply:
    """Tell a worker to finish."""
    worker = _worker(call)

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
    worker = _worker(call)

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
        await ops.delete_worker(call.service.desk, call.tenant, _worker(call), bound=bound)
    except NotFound:
        raise missing("worker", call.path["worker"]) from None
    return Reply(status=204)


async def heartbeat(call: Call[NoQuery, wire.Heartbeat]) -> Reply:
    """A sign of life: renews every lease it names."""
    service = call.service
    try:
        told = await parcels.heartbeat(
            service.desk,
            _worker(call),
            call.body,
            seals_of(call),
            ttl=service.settings.lease_ttl,
            now=service.now(),
        )
    except NotFound:
        raise missing("worker", call.path["worker"]) from None
    return Reply(value=told)


async def lease(call: Call[NoQuery, wire.LeaseRuns]) -> Reply:
    """Runs one by one, as soon as there are some or patience ends."""
    leased = await _leased(call)
    return Reply(value=wire.LeasedRuns(runs=parcels.shown_runs(leased, seals_of(call))))


async def lease_parcels(call: Call[NoQuery, wire.LeaseParcels]) -> Reply:
    """Whole parcels, as soon as there are some or patience ends."""
    leased = await _leased(call)
    shown = parcels.shown_parcels(leased, seals_of(call), now=call.service.now())
    return Reply(value=shown)


async def report(call: Call[NoQuery, wire.ParcelReports]) -> Reply:
    """What became of parcels."""
    service = call.service
    told = call.body.parcels
    count = sum(len(one.ended) + sum(len(some.runs) for some in one.succeeded) for one in told)
    if count > wire.PARCEL_RUNS_MAX:
        raise Trouble(
            "batch_too_large",
            f"expected the ends of at most {wire.PARCEL_RUNS_MAX} runs, got {count}",
        )
    done = await parcels.report_parcels(service.desk, told, seals_of(call), roll=service.roll)
    return Reply(value=done)


async def _leased(
    call: Call[NoQuery, wire.LeaseRuns] | Call[NoQuery, wire.LeaseParcels],
) -> list[ops.LeasedBatch]:
    """What waits for a worker, or what comes within its patience."""
    service, body, worker = call.service, call.body, _worker(call)
    queues = allowed(call, body.queues)
    patience = min(body.wait, service.settings.long_poll_max.total_seconds())
    deadline = service.clock.monotonic() + patience
    try:
        waited = queues or await _queues(call, worker)
        while True:
            woken = service.waiters.enter(waited, call.tenant)
            try:
                leased = await ops.lease_parcels(
                    service.desk,
                    call.tenant,
                    worker,
                    queues=queues,
                    handlers=body.handlers,
                    most=body.max,
                    ttl=service.settings.lease_ttl,
                    turns=service.shares,
                    suspects=service.suspects,
                    bound=call.caller.queues,
                )
                left = deadline - service.clock.monotonic()
                if leased or left <= 0 or service.draining.begun:
                    return leased
                await _nap(woken, min(left, POLL_SECONDS))
            finally:
                service.waiters.leave(waited, call.tenant, woken)
    except NotFound:
        raise missing("worker", call.path["worker"]) from None


async def _queues(call: Call[Any, Any], worker: WorkerId) -> list[str]:
    known = await ops.get_worker(call.service.desk, call.tenant, worker, bound=call.caller.queues)
    return list(known.queues)


async def _nap(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return


def _route(method: str, path: str, name: str, says: str, handler: Any, **more: Any) -> Route:
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
    _route(
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
    _route(
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
    _route(
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
    _route(
        "DELETE",
        "/{worker}",
        "delete",
        "Forget a worker; what it holds is given to others at once.",
        delete,
        scope=Scope.WORKERS_WRITE,
        answers={204: None},
    ),
    _route(
        "POST",
        "/{worker}/drain",
        "drain",
        "Tell a worker to finish; it hears of it with its next heartbeat.",
        drain,
        scope=Scope.WORKERS_WRITE,
        answers={202: wire.Worker},
    ),
    _route(
        "POST",
        "/{worker}/leave",
        "leave",
        "A worker goes; what it still holds comes back when its leases run out.",
        leave,
        answers={204: None},
    ),
    _route(
        "POST",
        "/{worker}/heartbeat",
        "heartbeat",
        "A sign of life: renews every lease it names.",
        heartbeat,
        body=wire.Heartbeat,
        body_optional=True,
        answers={200: wire.HeartbeatAnswer},
    ),
    _route(
        "POST",
        "/{worker}/parcels",
        "lease_parcels",
        "Whole parcels of work, each under one lease, as soon as there are some or patience ends.",
        lease_parcels,
        body=wire.LeaseParcels,
        body_optional=True,
        answers={200: wire.LeasedParcels},
        problems=("worker_draining",),
        seconds=60.0,
        waits=True,
    ),
    _route(
        "POST",
        "/{worker}/reports",
        "report",
        "What became of runs of parcels: successes as sets, everything else one by one.",
        report,
        body=wire.ParcelReports,
        body_max=BATCH_BYTES_MAX,
        answers={200: wire.ParcelsReported},
        problems=("batch_too_large",),
    ),
    _route(
        "POST",
        "/{worker}/lease",
        "lease",
        "Runs one by one, as soon as there are some or patience ends.",
        lease,
        body=wire.LeaseRuns,
        body_optional=True,
        answers={200: wire.LeasedRuns},
        problems=("worker_draining",),
        seconds=60.0,
        waits=True,
    ),
)
