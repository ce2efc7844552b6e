"""Workers that speak HTTP: registering, leasing, signs of life."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from betimes.domain.errors import NotFound
from betimes.domain.ids import Fence, RunId, TenantId, WorkerId, random_ids, to_ms
from betimes.domain.leased import HeldLease, Lease, ParcelLease
from betimes.ops.checks import check_queue, check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.leasing import LeasedBatch, lease_parcels, required
from betimes.ops.sayings import sealed_note
from betimes.ops.schemas import declare
from betimes.ops.telling import tell_worker
from betimes.store import remote as rows
from betimes.store.admit import Offered
from betimes.store.pool import Connection, Lane
from betimes.store.remote import Place, RemoteWorker
from betimes.store.run_notes import Note, note_run
from betimes.store.schemas import Declared

__all__ = [
    "Beat",
    "HeldLease",
    "LeasedBatch",
    "Note",
    "ParcelLease",
    "RemoteWorker",
    "beat",
    "delete_worker",
    "drain_worker",
    "get_worker",
    "lease_parcels",
    "list_workers",
    "new_worker",
    "register",
]


NO_SCHEMAS: Mapping[str, Declared] = MappingProxyType({})
NO_NOTES: Mapping[HeldLease, Note] = MappingProxyType({})
NOTHING: Mapping[str, object] = MappingProxyType({})
NOTHING_RUNS: Mapping[RunId, Fence] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The answer to a sign of life."""

    extended: Mapping[Lease, datetime]
    """The leases that go on, and until when; the others are lost."""
    unwanted: set[RunId]
    """Runs whose end somebody wants."""
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


async def register(
    desk: Desk, worker: RemoteWorker, schemas: Mapping[str, Declared] = NO_SCHEMAS
) -> RemoteWorker:
    """Make a worker known, and what its handlers accept."""

    async def work(connection: Connection) -> RemoteWorker:
        await rows.insert_worker(connection, worker)
        await declare(connection, desk, worker.tenant, schemas)
        return worker

    return await desk.transact(work, tenant=worker.tenant)


async def get_worker(
    desk: Desk, tenant: TenantId, worker: WorkerId, *, bound: Collection[str] | None = None
) -> RemoteWorker:
    """One worker of the tenant; a key that is bound to queues knows only those within them."""

    async def work(connection: Connection) -> RemoteWorker:
        found = await required(connection, tenant, worker)
        if bound is not None and not set(found.queues) <= set(bound):
            raise NotFound("there is no such worker")
        return found

    return await desk.transact(work, tenant=tenant)


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
        found = await required(connection, tenant, worker)
        await rows.beat_worker(
            connection, tenant, worker, busy=found.busy, draining=True, now=found.heartbeat_at
        )
        return await required(connection, tenant, worker)

    return await desk.transact(work, tenant=tenant)


async def delete_worker(
    desk: Desk, tenant: TenantId, worker: WorkerId, *, bound: Collection[str] | None = None
) -> None:
    """Forget a worker; what it holds is given to others at once.

    `bound` are the queues of a key that is bound to some: it knows only workers within them.
    """

    async def work(connection: Connection) -> list[Offered]:
        if not await rows.delete_worker(connection, tenant, worker, bound=bound):
            raise NotFound("there is no such worker")
        now = await desk.now(connection)
        await tell_worker(desk, connection, tenant, worker, "worker.offline", now=now)
        return await rows.free_worker(connection, tenant, worker)

    for one in await desk.transact(work, tenant=tenant):
        desk.hints.hint(*one.hint)


async def beat(
    desk: Desk,
    tenant: TenantId,
    worker: WorkerId,
    leases: Mapping[ParcelLease, timedelta],
    *,
    draining: bool,
    running: Mapping[RunId, Fence] = NOTHING_RUNS,
    bound: Collection[str] | None = None,
    facts: Mapping[str, object] = NOTHING,
    notes: Mapping[HeldLease, Note] = NO_NOTES,
    busy: int | None = None,
) -> Beat:
    """Prolong leases by what is said beside each; tell what was lost, and which runs are to end.

    `running` are runs under way, with the fences of their leases. `busy` counts the slots that are
    taken where that is not how many runs are named.
    """

    async def work(connection: Connection) -> Beat:
        told = await rows.beat_worker(
            connection,
            tenant,
            worker,
            busy=len(running) if busy is None else busy,
            draining=draining,
            now=desk.clock.now(),
            bound=bound,
            facts=facts,
        )
        if told is None:
            raise NotFound("there is no such worker")
        spans: dict[Place, timedelta] = {}
        for one, ttl in leases.items():
            if one.worker == worker:
                # Runs of one parcel in different attempts have a lease each.
                place = one.shard, one.parcel, one.fence
                spans[place] = max(spans.get(place, ttl), ttl)
        kept: dict[Lease, datetime] = {}
        if spans:
            kept = await rows.renew(connection, worker, spans, now=desk.clock.stated())
        for lease, note in notes.items():
            if (lease.parcel, lease.fence) in kept:
                said = await sealed_note(desk, connection, tenant, note)
                await note_run(connection, tenant, lease, said, now=desk.clock.now())
        unwanted = await rows.unwanted(connection, running)
        return Beat(extended=kept, unwanted=unwanted, draining=told)

    return await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)
