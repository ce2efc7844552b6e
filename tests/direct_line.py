"""The worker protocol without the network: the functions behind the routes, on a desk."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from betimes.api import parcels
from betimes.api.heartbeats import heartbeat
from betimes.api.parcels import Seals
from betimes.api.problem import Trouble
from betimes.api.routes.workers import HEARTBEATS_PER_LEASE, WORKER
from betimes.api.waiters import Waiters
from betimes.app.direct import DirectNotes
from betimes.domain.errors import FencedOut
from betimes.domain.ids import TenantId, WorkerId, from_text, to_text
from betimes.ops import leases, reports, workers
from betimes.ops.desk import Desk
from betimes.ops.leasing import LeasedBatch
from betimes.ops.suspects import Suspects
from betimes.ops.turns import Turns
from betimes.runtime.line import Grants
from betimes.wire import parcels as shapes
from betimes.wire import workers as wire
from betimes.wire.base import shown_duration, shown_instant

POLL_SECONDS = 1.0


class DirectLine:
    """A line on a desk; `waiters` wake it when work comes."""

    def __init__(
        self,
        *,
        desk: Desk,
        tenant: TenantId,
        waiters: Waiters,
        secret: bytes,
        roll: Callable[[], float],
        ttl: timedelta,
    ) -> None:
        self._desk = desk
        self._tenant = tenant
        self._waiters = waiters
        self._roll = roll
        self._ttl = ttl
        self._turns = Turns()
        self._suspects = Suspects()
        self._seals = Seals(tenant=tenant, lease_secret=secret)
        self._notes = DirectNotes(desk, tenant)

    async def register(self, worker: wire.NewWorker) -> wire.Registered:
        made = workers.new_worker(
            self._desk,
            self._tenant,
            name=worker.name,
            version=worker.version,
            queues=worker.queues,
            handlers=[one if isinstance(one, str) else one.name for one in worker.handlers],
            slots=worker.slots,
            labels=worker.labels,
            details={},
        )
        await workers.register(self._desk, made)
        return wire.Registered(
            worker_id=to_text(WORKER, made.id),
            heartbeat_interval=shown_duration(self._ttl / HEARTBEATS_PER_LEASE),
            lease_duration=shown_duration(self._ttl),
            server_time=shown_instant(await self._now()),
        )

    async def lease(self, worker: str, wanted: shapes.LeaseParcels) -> Grants:
        found = await self._leased(worker, wanted)
        shown = parcels.shown_parcels(found, self._seals, now=await self._now())
        return msgspec.json.decode(msgspec.json.encode(shown), type=Grants)

    async def lease_runs(self, worker: str, wanted: wire.LeaseRuns) -> list[wire.LeasedRun]:
        return parcels.shown_runs(await self._leased(worker, wanted), self._seals)

    async def _leased(
        self, worker: str, wanted: wire.LeaseRuns | shapes.LeaseParcels
    ) -> list[LeasedBatch]:
        identity, queues = _worker(worker), wanted.queues or []
        clock = self._desk.clock
        deadline = clock.monotonic() + wanted.wait
        while True:
            woken = self._waiters.enter(queues, self._tenant)
            try:
                found = await workers.lease_parcels(
                    self._desk,
                    self._tenant,
                    identity,
                    queues=queues,
                    handlers=wanted.handlers,
                    most=wanted.max,
                    ttl=self._ttl,
                    turns=self._turns,
                    suspects=self._suspects,
                )
                left = deadline - clock.monotonic()
                if found or left <= 0:
                    return found
                await _nap(woken, min(left, POLL_SECONDS))
            finally:
                self._waiters.leave(queues, self._tenant, woken)

    async def beat(self, worker: str, told: wire.Heartbeat) -> wire.HeartbeatAnswer:
        now = await self._now()
        identity = _worker(worker)
        return await heartbeat(self._desk, identity, told, self._seals, ttl=self._ttl, now=now)

    async def report(self, told: Sequence[shapes.ParcelReport]) -> list[shapes.ParcelReported]:
        found = await parcels.report_parcels(self._desk, told, self._seals, roll=self._roll)
        return found.parcels

    async def report_runs(self, told: Sequence[wire.ReportOne]) -> list[reports.Settled | None]:
        return await parcels.report_runs(self._desk, told, self._seals, roll=self._roll)

    async def progress(self, lease: str, told: wire.Progress) -> None:
        await self._notes.progress(self._held(lease), told)

    async def checkpoint(self, lease: str, data: bytes) -> None:
        await self._notes.checkpoint(self._held(lease), data)

    async def log(self, lease: str, lines: Sequence[wire.LogLine]) -> None:
        await self._notes.log(self._held(lease), lines)

    async def leave(self, worker: str) -> None:
        await workers.delete_worker(self._desk, self._tenant, _worker(worker))

    async def _now(self) -> datetime:
        return await self._desk.transact(self._desk.now, tenant=self._tenant)

    def _held(self, lease: str) -> leases.HeldLease:
        try:
            return self._seals.run(lease)
        except Trouble:
            raise FencedOut("the lease is none of this worker's") from None


def _worker(text: str) -> WorkerId:
    return WorkerId(from_text(WORKER, text))


async def _nap(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
