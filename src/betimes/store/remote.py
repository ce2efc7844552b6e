"""Workers that speak HTTP, as they are stored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from betimes.domain.ids import Fence, ParcelId, RunId, ShardId, TenantId, WorkerId, shard_of
from betimes.domain.kept import Kept
from betimes.domain.leased import HeldLease, Lease, LeasedParcel, Source, WantedRun
from betimes.domain.parcel import SUSPECT_AFTER
from betimes.domain.spec import RunSpec
from betimes.domain.states import RunState
from betimes.store.admit import Offered
from betimes.store.ask import execute, many, maybe, one
from betimes.store.jobs import from_json, to_json, to_optional_json
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.specs import SPEC_BYTES, SpecKey, kept_ad_hoc_spec, spec_of

SQL = load("remote")
PARCELS = load("parcels")
RUNS = load("runs")
FINISH = load("finish")
PLACES_MAX = 4_096
SPECS_BYTES_MAX = 4 << 20
NOTHING: Mapping[str, Any] = MappingProxyType({})
KnownSpecs = Kept[SpecKey, RunSpec]
"""Definitions of the jobs of one database."""
Place = tuple[ShardId, ParcelId, Fence]
"""A lease, and where its parcel is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWorker:
    """A worker as it registered itself."""

    id: WorkerId
    tenant: TenantId
    name: str
    version: str
    queues: tuple[str, ...]
    handlers: tuple[str, ...]
    slots: int
    started_at: datetime
    heartbeat_at: datetime
    busy: int = 0
    draining: bool = False
    labels: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


class LeasingWorker(NamedTuple):
    """A worker that asks for work, and what it holds already."""

    queues: tuple[str, ...]
    handlers: tuple[str, ...]
    draining: bool
    parcels: int
    suspects: int
    """Those of the parcels that have cost several workers."""


async def insert_worker(connection: Connection, worker: RemoteWorker) -> None:
    """Register."""
    await maybe(
        connection,
        SQL["insert_worker"],
        id=worker.id,
        tenant=worker.tenant,
        name=worker.name,
        version=worker.version,
        queues=list(worker.queues),
        handlers=list(worker.handlers),
        slots=worker.slots,
        now=worker.started_at,
        labels=to_json(worker.labels),
        facts=to_json(worker.details),
    )


async def read_worker(
    connection: Connection, tenant: TenantId, worker: WorkerId
) -> RemoteWorker | None:
    """One worker."""
    row = await maybe(connection, SQL["read_worker"], id=worker, tenant=tenant)
    return None if row is None else worker_of(row)


async def read_leasing_worker(
    connection: Connection, tenant: TenantId, worker: WorkerId
) -> LeasingWorker | None:
    """A worker that asks for work; no other request of its is served before the commit."""
    row = await maybe(connection, SQL["read_leasing_worker"], id=worker, tenant=tenant)
    if row is None:
        return None
    held = await one(connection, SQL["count_held"], worker=worker, suspect_after=SUSPECT_AFTER)
    return LeasingWorker(
        tuple(row["queues"]),
        tuple(row["handlers"]),
        row["draining"],
        held["parcels"],
        held["suspects"],
    )


async def list_workers(
    connection: Connection, tenant: TenantId, *, after: UUID, most: int
) -> list[RemoteWorker]:
    """A page of workers."""
    rows = await many(connection, SQL["list_workers"], tenant=tenant, after=after, most=most)
    return [worker_of(row) for row in rows]


async def beat_worker(
    connection: Connection,
    tenant: TenantId,
    worker: WorkerId,
    *,
    busy: int,
    draining: bool,
    now: datetime,
    bound: Collection[str] | None = None,
    facts: Mapping[str, Any] = NOTHING,
) -> bool | None:
    """Note a sign of life; whether it is to drain, or None when it is not known.

    `bound` are queues beyond which a worker counts as not known.
    """
    row = await maybe(
        connection,
        SQL["beat_worker"],
        id=worker,
        tenant=tenant,
        busy=busy,
        draining=draining,
        now=now,
        facts=to_optional_json(facts),
        bound=None if bound is None else list(bound),
    )
    return None if row is None else bool(row["draining"])


async def delete_worker(
    connection: Connection,
    tenant: TenantId,
    worker: WorkerId,
    *,
    bound: Collection[str] | None = None,
) -> bool:
    """Forget a worker; one with queues beyond `bound` counts as not known."""
    row = await maybe(
        connection,
        SQL["delete_worker"],
        id=worker,
        tenant=tenant,
        bound=None if bound is None else list(bound),
    )
    return row is not None


async def free_worker(connection: Connection, tenant: TenantId, worker: WorkerId) -> list[Offered]:
    """Give back what a worker holds; where it waits now."""
    rows = await many(connection, SQL["free_worker"], worker=worker, tenant=tenant)
    return [
        Offered(row["shard"], row["queue"], row["tenant_id"], row["fair"], row["visible_at"])
        for row in rows
    ]


async def find_ready(
    connection: Connection,
    tenant: TenantId,
    queues: Sequence[str],
    *,
    handlers: Sequence[str] | None,
    suspects: bool,
    now: datetime | None,
) -> dict[Source, datetime]:
    """Where something waits for such a worker, best first, with the best rank of each place."""
    rows = await many(
        connection,
        SQL["find_ready"],
        tenant=tenant,
        queues=list(queues),
        suspects=suspects,
        suspect_after=SUSPECT_AFTER,
        now=now,
        handlers=handlers,
        most=PLACES_MAX,
    )
    return {
        Source(row["shard"], row["queue"], row["tenant_id"], row["fair"]): row["rank"]
        for row in rows
    }


async def drop_parcel(connection: Connection, shard: ShardId, parcel: ParcelId) -> None:
    """Take a parcel out of the queue that holds nothing anybody wants."""
    await execute(connection, PARCELS["delete_parcels"], shard=shard, ids=[parcel])


async def wanted(
    connection: Connection, shard: ShardId, runs: Sequence[RunId]
) -> dict[RunId, WantedRun]:
    """Those of the runs that are not over."""
    rows = await many(
        connection,
        PARCELS["read_wanted_runs"],
        shard=shard,
        ids=list(runs),
        low=min(runs),
        high=max(runs),
    )
    return {row["id"]: WantedRun._make(row) for row in rows}


async def wanted_in(
    connection: Connection,
    parcels: Sequence[LeasedParcel],
    without: Collection[RunId] = frozenset(),
) -> dict[RunId, WantedRun]:
    """Those of the runs of leased parcels that are not over; one statement for all of them."""
    places = [
        (parcel.shard, run) for parcel in parcels for run in parcel.runs if run not in without
    ]
    rows = await many(
        connection,
        PARCELS["read_scattered_runs"],
        shards=[shard for shard, _ in places],
        ids=[run for _, run in places],
        low=min(run for _, run in places),
    )
    return {row["id"]: WantedRun._make(row) for row in rows}


async def queues_of(
    connection: Connection, shard: ShardId, runs: Sequence[RunId]
) -> dict[RunId, tuple[str, int]]:
    """Where runs wait, and how urgent they are."""
    if not runs:
        return {}
    found = await many(
        connection,
        RUNS["read_queues_of"],
        shard=shard,
        ids=list(runs),
        low=min(runs),
        high=max(runs),
    )
    return {row["id"]: (row["queue"], row["priority"]) for row in found}


async def specs(
    connection: Connection,
    shard: ShardId,
    runs: Sequence[WantedRun],
    *,
    known: KnownSpecs | None = None,
) -> dict[RunId, RunSpec]:
    """How each of the runs is to be done."""
    keys = {
        run.id: SpecKey(run.job, run.revision)
        for run in runs
        if run.job is not None and run.revision is not None
    }
    found = await read_specs(connection, shard, set(keys.values()), known=known)
    return {
        run.id: (found.get(keys[run.id]) if run.id in keys else None)
        or kept_ad_hoc_spec(run.handler, run.options)
        for run in runs
    }


async def read_specs(
    connection: Connection,
    shard: ShardId,
    keys: Collection[SpecKey],
    *,
    known: KnownSpecs | None = None,
) -> dict[SpecKey, RunSpec]:
    """Definitions as they are, or were in revisions that are kept; what is gone is left out.

    Nothing changes under a job and revision, so what is `known` of this database is not read again.
    """
    known = KnownSpecs(0) if known is None else known
    found = {key: spec for key in keys if (spec := known.get(key)) is not None}
    for statement in ("read_specs", "read_old_specs"):
        left = [key for key in keys if key not in found]
        if left:
            rows = await many(
                connection,
                RUNS[statement],
                shard=shard,
                ids=[key.job for key in left],
                revisions=[key.revision for key in left],
            )
            for row in rows:
                key, spec = SpecKey(row["id"], row["revision"]), spec_of(row)
                found[key] = known.put(key, spec, SPEC_BYTES + len(spec.payload or b""))
    return found


async def renew(
    connection: Connection,
    worker: WorkerId,
    leases: Mapping[Place, timedelta],
    *,
    now: datetime | None,
) -> dict[Lease, datetime]:
    """Prolong what is still held, each by its own time, and shorten nothing; until when."""
    # By id, as a flush of the same worker does: the statement below locks in any order.
    await execute(connection, PARCELS["lock_own_parcels"], worker=worker)
    rows = await many(
        connection,
        SQL["renew_held"],
        worker=worker,
        shards=[shard for shard, _, _ in leases],
        ids=[parcel for _, parcel, _ in leases],
        fences=[fence for _, _, fence in leases],
        ttls=list(leases.values()),
        now=now,
    )
    return {(row["id"], row["fence"]): row["lease_until"] for row in rows}


async def unwanted(connection: Connection, held: Mapping[RunId, Fence]) -> set[RunId]:
    """Which of these runs, held with these fences, somebody wants ended or has ended."""
    if not held:
        return set()
    rows = await many(
        connection,
        FINISH["find_unwanted"],
        shards=[shard_of(run) for run in held],
        runs=list(held),
        fences=list(held.values()),
        low=min(held),
        high=max(held),
    )
    return {row["run_id"] for row in rows}


async def holds(connection: Connection, lease: HeldLease) -> bool:
    """Whether a lease is still good."""
    row = await maybe(
        connection,
        SQL["holds"],
        shard=lease.shard,
        parcel=lease.parcel,
        fence=lease.fence,
        worker=lease.worker,
        run=lease.run,
    )
    return row is not None


async def finished_by(
    connection: Connection, shard: ShardId, worker: WorkerId, runs: Collection[RunId]
) -> dict[tuple[RunId, Fence], RunState]:
    """Those of the runs that carry a worker, with the fence of its lease, and what they are."""
    rows = await many(
        connection,
        FINISH["find_finished_by"],
        shard=shard,
        worker=worker,
        runs=list(runs),
        low=min(runs),
        high=max(runs),
    )
    return {(row["run_id"], row["fence"]): RunState(row["state"]) for row in rows}


def worker_of(row: asyncpg.Record) -> RemoteWorker:
    """A row as a worker."""
    return RemoteWorker(
        id=row["id"],
        tenant=row["tenant_id"],
        name=row["name"],
        version=row["version"],
        queues=tuple(row["queues"]),
        handlers=tuple(row["handlers"]),
        slots=row["slots"],
        busy=row["busy"],
        started_at=row["started_at"],
        heartbeat_at=row["heartbeat_at"],
        draining=row["draining"],
        labels=from_json(row["labels"]),
        details=from_json(row["details"]),
    )
