"""Workers that speak HTTP at work: asking for it, reporting about it, signs of life."""

import asyncio
from typing import Any

from betimes.api import heartbeats, parcels
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import BATCH_BYTES_MAX, Load, NoQuery, Policy, Route
from betimes.api.routes.leases import seals_of
from betimes.api.routes.workers import allowed, worker_of, worker_route
from betimes.api.shaping import missing
from betimes.domain.errors import NotFound
from betimes.domain.ids import WorkerId
from betimes.domain.scopes import Scope
from betimes.ops import workers as ops
from betimes.wire import parcels as shapes
from betimes.wire import workers as wire

POLL_SECONDS = 1.0


async def heartbeat(call: Call[NoQuery, wire.Heartbeat]) -> Reply:
    """A sign of life: renews every lease it names."""
    service = call.service
    try:
        told = await heartbeats.heartbeat(
            service.desk,
            worker_of(call),
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


async def lease_parcels(call: Call[NoQuery, shapes.LeaseParcels]) -> Reply:
    """Whole parcels, as soon as there are some or patience ends."""
    leased = await _leased(call)
    shown = parcels.shown_parcels(leased, seals_of(call), now=call.service.now())
    return Reply(value=shown)


async def report(call: Call[NoQuery, shapes.ParcelReports]) -> Reply:
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
    call: Call[NoQuery, wire.LeaseRuns] | Call[NoQuery, shapes.LeaseParcels],
) -> list[ops.LeasedBatch]:
    """What waits for a worker, or what comes within its patience."""
    service, body, worker = call.service, call.body, worker_of(call)
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


ROUTES = (
    worker_route(
        "POST",
        "/{worker}/heartbeat",
        "heartbeat",
        "A sign of life: renews every lease it names.",
        heartbeat,
        body=wire.Heartbeat,
        body_optional=True,
        answers={200: wire.HeartbeatAnswer},
    ),
    worker_route(
        "POST",
        "/{worker}/parcels",
        "lease_parcels",
        "Whole parcels of work, each under one lease, as soon as there are some or patience ends.",
        lease_parcels,
        body=shapes.LeaseParcels,
        body_optional=True,
        answers={200: shapes.LeasedParcels},
        problems=("worker_draining",),
        seconds=60.0,
        waits=True,
    ),
    Route(
        method="POST",
        path="/v1/leases/reports",
        name="leases.report",
        says="What became of runs of parcels: successes as sets, everything else one by one.",
        handler=report,
        scope=Scope.WORKERS_LEASE,
        body=shapes.ParcelReports,
        body_max=BATCH_BYTES_MAX,
        answers={200: shapes.ParcelsReported},
        load=Load.VITAL,
        policy=Policy.LEASE,
        problems=("batch_too_large",),
    ),
    worker_route(
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
