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
from betimes.domain.leased import Source, WantedRun
from betimes.domain.parcel import SUSPECT_AFTER
from betimes.domain.spec import RunSpec, spec_from_json
from betimes.store.admit import Offered
from betimes.store.ask import execute, many, maybe
from betimes.store.jobs import from_json, to_json, to_optional_json
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.specs import SpecKey, fixed_delay, weight_of

SQL = load("remote")
PARCELS = load("parcels")
RUNS = load("runs")
FINISH = load("finish")
PLACES_MAX = 4_096
SPECS_BYTES_MAX = 4 << 20
NOTHING: Mapping[str, Any] = MappingProxyType({})


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


class HeldLease(NamedTuple):
    """What a lease token stands for."""

    run: RunId
    parcel: ParcelId
    worker: WorkerId
    fence: Fence
    attempt: int
    started_us: int
    plain: bool


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
    connection: Connection, shard: ShardId, runs: Sequence[WantedRun]
) -> dict[RunId, RunSpec]:
    """How each of the runs is to be done."""
    keys = {
        run.id: SpecKey(run.job, run.revision)
        for run in runs
        if run.job is not None and run.revision is not None
    }
    found = await read_specs(connection, shard, set(keys.values()))
    return {
        run.id: (found.get(keys[run.id]) if run.id in keys else None) or _ad_hoc(run)
        for run in runs
    }


async def read_specs(
    connection: Connection, shard: ShardId, keys: Collection[SpecKey]
) -> dict[SpecKey, RunSpec]:
    """Definitions as they are, or were in revisions that are kept; what is gone is left out."""
    found: dict[SpecKey, RunSpec] = {}
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
            found |= {SpecKey(row["id"], row["revision"]): _spec(row) for row in rows}
    return found


def _spec(row: asyncpg.Record) -> RunSpec:
    if "definition" in row.keys():  # noqa: SIM118 -- a record is no mapping of its names
        told = from_json(row["definition"])
        return spec_from_json(
            handler=told.get("handler"),
            payload=row["payload"],
            target=told.get("target"),
            options=told.get("options"),
            fixed_delay=fixed_delay(told.get("schedule", {})),
        )
    return spec_from_json(
        handler=row["handler"],
        payload=row["payload"],
        target=from_json(row["target"]),
        options=from_json(row["options"]),
        fixed_delay=fixed_delay(from_json(row["schedule"])),
    )


def _ad_hoc(run: WantedRun) -> RunSpec:
    return _ad_hoc_spec(run.handler, run.options)


_kept: Kept[tuple[str | None, str | None], RunSpec] = Kept(SPECS_BYTES_MAX)


def _ad_hoc_spec(handler: str | None, stored: str | None) -> RunSpec:
    """Most ad-hoc runs of a handler say the same about themselves, so it is read once."""
    found = _kept.get((handler, stored))
    if found is not None:
        return found
    options = from_json(stored)
    spec = spec_from_json(
        handler=handler, payload=None, target=options.get("target"), options=options
    )
    return _kept.put((handler, stored), spec, weight_of(None, stored, None))


async def renew(
    connection: Connection,
    worker: WorkerId,
    leases: Sequence[HeldLease],
    *,
    ttl: timedelta,
    now: datetime | None,
) -> dict[tuple[ParcelId, Fence], datetime]:
    """Prolong what is still held, and shorten nothing; until when."""
    # By id, as a flush of the same worker does: the statement below locks in any order.
    await execute(connection, PARCELS["lock_own_parcels"], worker=worker)
    rows = await many(
        connection,
        SQL["renew_held"],
        worker=worker,
        shards=[shard_of(one.run) for one in leases],
        ids=[one.parcel for one in leases],
        fences=[one.fence for one in leases],
        ttl=ttl,
        now=now,
    )
    return {(row["id"], row["fence"]): row["lease_until"] for row in rows}


async def cancelled(
    connection: Connection, shard: ShardId, held: Mapping[RunId, Fence]
) -> set[RunId]:
    """Which of these runs, held with these fences, somebody wants ended or has ended."""
    rows = await many(
        connection,
        FINISH["find_cancelled"],
        shard=shard,
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
        shard=shard_of(lease.run),
        parcel=lease.parcel,
        fence=lease.fence,
        worker=lease.worker,
        run=lease.run,
    )
    return row is not None


async def finished_by(connection: Connection, lease: HeldLease) -> bool:
    """Whether the run already carries the worker and fence of a lease."""
    rows = await many(
        connection,
        FINISH["find_finished_by"],
        shard=shard_of(lease.run),
        worker=lease.worker,
        runs=[lease.run],
        low=lease.run,
        high=lease.run,
    )
    return any(row["fence"] == lease.fence for row in rows)


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
