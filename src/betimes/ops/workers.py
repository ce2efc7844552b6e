"""Workers that speak HTTP: registering, leasing, signs of life."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.errors import Conflict, NotFound
from betimes.domain.ids import RunId, TenantId, WorkerId, random_ids, shard_of, to_ms, to_us
from betimes.domain.spec import RunSpec
from betimes.domain.states import RunState
from betimes.ops.checks import check_queue, check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store import remote as rows
from betimes.store.finish import Ending, Held, write_endings
from betimes.store.parcels import LeasedParcel, WantedRun
from betimes.store.pool import Connection, Lane
from betimes.store.remote import HeldLease, RemoteWorker
from betimes.store.run_notes import Note, read_notes

__all__ = [
    "Beat",
    "HeldLease",
    "Leased",
    "Note",
    "RemoteWorker",
    "beat",
    "delete_worker",
    "drain_worker",
    "get_worker",
    "lease_runs",
    "list_workers",
    "new_worker",
    "register",
]

RUN_CANCELLED = "RUN_CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A run that a remote worker holds now."""

    lease: HeldLease
    run: WantedRun
    spec: RunSpec
    queue: str
    priority: int
    expires_at: datetime
    note: Note | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The answer to a sign of life."""

    extended: dict[HeldLease, datetime]
    lost: list[HeldLease]
    cancelled: list[HeldLease]
    draining: bool


def new_worker(
    desk: Desk,
    tenant: TenantId,
    *,
    name: str,
    version: str,
    queues: Sequence[str],
    handlers: Sequence[str],
    slots: int,
    labels: dict[str, str],
    details: dict[str, object],
) -> RemoteWorker:
    """A worker nobody has stored yet."""
    check_text(name, what="a name", most=200, pointer="/name")
    for queue in queues:
        check_queue(queue)
    now = desk.clock.now()
    (identity,) = random_ids(to_ms(now), 0, desk.entropy(TAIL_BYTES))
    return RemoteWorker(
        id=WorkerId(identity),
        tenant=tenant,
        name=name,
        version=version,
        queues=tuple(queues),
        handlers=tuple(handlers),
        slots=slots,
        started_at=now,
        heartbeat_at=now,
        labels=labels,
        details=details,
    )


async def register(desk: Desk, worker: RemoteWorker) -> RemoteWorker:
    """Make a worker known."""

    async def work(connection: Connection) -> RemoteWorker:
        await rows.insert_worker(connection, worker)
        return worker

    return await desk.transact(work, tenant=worker.tenant)


async def get_worker(desk: Desk, tenant: TenantId, worker: WorkerId) -> RemoteWorker:
    """One worker of the tenant."""

    async def work(connection: Connection) -> RemoteWorker:
        return await _required(connection, tenant, worker)

    return await desk.transact(work, tenant=tenant)


async def _required(connection: Connection, tenant: TenantId, worker: WorkerId) -> RemoteWorker:
    found = await rows.read_worker(connection, tenant, worker)
    if found is None:
        raise NotFound("there is no such worker")
    return found


async def list_workers(
    desk: Desk, tenant: TenantId, *, after: UUID, most: int
) -> list[RemoteWorker]:
    """A page of workers."""

    async def work(connection: Connection) -> list[RemoteWorker]:
        return await rows.list_workers(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def drain_worker(desk: Desk, tenant: TenantId, worker: WorkerId) -> RemoteWorker:
    """Tell a worker to finish; it hears of it with its next heartbeat."""

    async def work(connection: Connection) -> RemoteWorker:
        found = await _required(connection, tenant, worker)
        await rows.beat_worker(
            connection, tenant, worker, busy=found.busy, draining=True, now=found.heartbeat_at
        )
        return await _required(connection, tenant, worker)

    return await desk.transact(work, tenant=tenant)


async def delete_worker(desk: Desk, tenant: TenantId, worker: WorkerId) -> None:
    """Forget a worker; what it holds comes back when its leases run out."""

    async def work(connection: Connection) -> None:
        if not await rows.delete_worker(connection, tenant, worker):
            raise NotFound("there is no such worker")

    await desk.transact(work, tenant=tenant)


async def lease_runs(
    desk: Desk,
    tenant: TenantId,
    worker: WorkerId,
    *,
    queues: Sequence[str] | None,
    most: int,
    ttl: timedelta,
) -> list[Leased]:
    """Lease up to `most` runs from the worker's queues; nothing when nothing waits.

    Parcels whose workers died repeatedly are leased alone, and only when nothing else waits.
    """

    async def work(connection: Connection) -> list[Leased]:
        found = await _required(connection, tenant, worker)
        if found.draining:
            raise Conflict("the worker was told to finish", code="worker_draining")
        wanted = [queue for queue in (queues or found.queues) if queue in found.queues]
        for suspects in (False, True):
            free = 1 if suspects else most
            holder = (tenant, worker)
            taken = await _take(desk, connection, holder, wanted, free, suspects=suspects, ttl=ttl)
            if taken:
                return taken
        return []

    return await desk.database.transact(work, lane=Lane.API, repeatable=True, tenant=tenant)


async def _take(
    desk: Desk,
    connection: Connection,
    holder: tuple[TenantId, WorkerId],
    queues: Sequence[str],
    most: int,
    *,
    suspects: bool,
    ttl: timedelta,
) -> list[Leased]:
    """Lease from one place after the other until the worker has what it can carry."""
    tenant, worker = holder
    now = desk.clock.stated()
    taken: list[Leased] = []
    for place in await rows.find_ready(connection, tenant, queues, suspects=suspects, now=now):
        free = most - len(taken)
        if free <= 0:
            break
        parcels = await rows.lease(
            connection, tenant, worker, place, slots=free, suspects=suspects, ttl=ttl, now=now
        )
        if parcels:
            told = parcels[0].lease_until - ttl
            taken += await _unpack(connection, worker, parcels, now=told)
    return taken


async def _unpack(
    connection: Connection, worker: WorkerId, parcels: Sequence[LeasedParcel], *, now: datetime
) -> list[Leased]:
    shard = parcels[0].shard
    runs = await rows.wanted(connection, shard, [run for one in parcels for run in one.runs])
    specs = await rows.specs(connection, shard, list(runs.values()))
    notes = await read_notes(connection, shard, list(runs)) if runs else {}
    found: list[Leased] = []
    for parcel in parcels:
        mine = [runs[run] for run in parcel.runs if run in runs]
        if not mine:
            await rows.drop_parcel(connection, parcel.shard, parcel.id)
            continue
        over = [run for run in mine if run.cancel_at is not None]
        await _end_unwanted(connection, worker, parcel, over, now=now)
        found += [
            _leased(worker, parcel, run, specs[run.id], notes.get(run.id), now)
            for run in mine
            if run.cancel_at is None
        ]
    return found


async def _end_unwanted(
    connection: Connection,
    worker: WorkerId,
    parcel: LeasedParcel,
    over: Sequence[WantedRun],
    *,
    now: datetime,
) -> None:
    """Runs that somebody wants ended are ended instead of handed out; an empty parcel goes."""
    endings = [
        Ending(
            run=run.id,
            parcel=parcel.id,
            fence=parcel.fence,
            tenant=parcel.tenant,
            queue=parcel.queue,
            priority=parcel.priority,
            job=run.job,
            handler=run.handler,
            state=RunState.CANCELLED,
            attempt=run.attempt,
            started_at=None,
            ended_at=now,
            reason=RUN_CANCELLED,
        )
        for run in over
    ]
    if endings:
        held = Held({parcel.id: parcel.fence})
        await write_endings(connection, worker, parcel.shard, held, endings)


def _leased(
    worker: WorkerId,
    parcel: LeasedParcel,
    run: WantedRun,
    spec: RunSpec,
    note: Note | None,
    now: datetime,
) -> Leased:
    return Leased(
        lease=HeldLease(
            run=run.id,
            parcel=parcel.id,
            worker=worker,
            fence=parcel.fence,
            attempt=run.attempt + parcel.deliveries,
            started_us=to_us(now),
            plain=spec.fixed_delay is None,
        ),
        run=run,
        spec=spec,
        queue=parcel.queue,
        priority=parcel.priority,
        expires_at=parcel.lease_until,
        note=note,
    )


async def beat(
    desk: Desk,
    tenant: TenantId,
    worker: WorkerId,
    leases: Sequence[HeldLease],
    *,
    draining: bool,
    ttl: timedelta,
) -> Beat:
    """Prolong every lease that is named and still held; tell what was lost or is to end."""

    async def work(connection: Connection) -> Beat:
        told = await rows.beat_worker(
            connection,
            tenant,
            worker,
            busy=len(leases),
            draining=draining,
            now=desk.clock.now(),
        )
        if told is None:
            raise NotFound("there is no such worker")
        mine = [one for one in leases if one.worker == worker]
        kept = (
            await rows.renew(connection, worker, mine, ttl=ttl, now=desk.clock.stated())
            if mine
            else {}
        )
        extended = {
            one: kept[one.parcel, one.fence] for one in mine if (one.parcel, one.fence) in kept
        }
        ended: set[RunId] = set()
        for shard in sorted({shard_of(one.run) for one in extended}):
            runs = [one.run for one in extended if shard_of(one.run) == shard]
            ended |= await rows.cancelled(connection, shard, runs)
        return Beat(
            extended=extended,
            lost=[one for one in leases if one not in extended],
            cancelled=[one for one in extended if one.run in ended],
            draining=told,
        )

    return await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)
