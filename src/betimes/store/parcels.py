"""The worker's side of the queue: find, lease, renew and give back parcels."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.domain.ids import (
    Fence,
    ParcelId,
    RunId,
    ShardId,
    TenantId,
    WorkerId,
    shard_of,
)
from betimes.domain.leased import Applicant, LeasedParcel, Renewed, Source, WantedRun
from betimes.domain.parcel import SUSPECT_AFTER
from betimes.store.admit import Admission, admit
from betimes.store.ceilings import close_ledger, open_ledger
from betimes.store.database import Database
from betimes.store.lease import BEFORE_ALL, NO_BOUNDS, LeaseOrder, Lot, leased_of, place_of
from betimes.store.pool import Connection
from betimes.store.pool import Lane as Pool
from betimes.store.queries import load
from betimes.store.release import Freed, release
from betimes.store.telling import News, tell

__all__ = ["BEFORE_ALL", "Lot", "Parcels"]

SQL = load("parcels")
FINISH = load("finish")
SERVER = load("server")


@dataclass(frozen=True, slots=True)
class Parcels:
    """The queue as one worker sees it; `now` is None in production: the database clock rules."""

    database: Database
    worker: WorkerId
    handlers: Sequence[str] | None = None
    """What the worker can do; None: everything but what only our own workers do."""
    tenant: TenantId | None = None
    """Whose work it does; None: everybody's."""

    async def read_clock(self) -> datetime:
        """The database's time."""
        rows = await self.database.many(SERVER["read_clock"], lane=Pool.ENGINE)
        answer: datetime = rows[0]["now"]
        return answer

    async def find_waiting(
        self,
        *,
        queues: Sequence[str] | None,
        suspects: bool,
        now: datetime | None,
        most: int,
        after: Source = BEFORE_ALL,
    ) -> list[Source]:
        """Where something visible waits, for some queues or, with None, for all of them.

        In the order of places, from after one of them on: who has seen `most` goes on there.
        """
        rows = await self.database.many(
            SQL["find_waiting"],
            lane=Pool.ENGINE,
            now=now,
            queues=None if queues is None else list(queues),
            tenant=self.tenant,
            suspects=suspects,
            suspect_after=SUSPECT_AFTER,
            most=most,
            after_shard=after.shard,
            after_queue=after.queue,
            after_tenant=after.tenant,
            after_fair=after.fair,
            handlers=self.handlers,
        )
        return [Source(row["shard"], row["queue"], row["tenant_id"], row["fair"]) for row in rows]

    async def best_ranks(
        self, sources: Sequence[Source], *, now: datetime | None
    ) -> dict[Source, datetime]:
        """The best rank of what is visible in some places; without those where nothing is."""
        rows = await self.database.many(
            SQL["read_best_ranks"],
            lane=Pool.ENGINE,
            shards=[source.shard for source in sources],
            queues=[source.queue for source in sources],
            tenants=[source.tenant for source in sources],
            fairs=[source.fair for source in sources],
            suspect_after=SUSPECT_AFTER,
            now=now,
            handlers=self.handlers,
        )
        return {sources[row["number"] - 1]: row["rank"] for row in rows}

    async def lease(
        self,
        sources: Sequence[Source],
        *,
        limited: Collection[Source] = (),
        bounds: Mapping[Source, datetime] = NO_BOUNDS,
        slots: int,
        parcels_max: int,
        suspects: bool = False,
        ttl: timedelta,
        now: datetime | None,
    ) -> Lot:
        """Lease from some places, in the order given, what fits into `slots`; split what is larger.

        One statement for each place, but one commit for all of them: waiting for the disk is most
        of what a lease costs where little waits in each place. Places that are `limited` are
        counted under a lock, in the same transaction. Those with `bounds` give nothing that comes
        after them.
        """
        order = LeaseOrder(
            worker=self.worker,
            parcels_max=parcels_max,
            suspects=suspects,
            ttl=ttl,
            now=now,
            handlers=self.handlers,
        )
        if len(sources) == 1 and not limited:
            (source,) = sources
            given = order.arguments(source, slots, before=bounds.get(source))
            rows = await self.database.many(SQL["lease_parcels"], lane=Pool.ENGINE, **given)
            return Lot([leased_of(source.shard, row) for row in rows], {})

        async def work(connection: Connection) -> Lot:
            ledger = await open_ledger(connection, map(place_of, limited), now=now)
            lot = await order.lease(connection, sources, slots, ledger, limited, bounds)
            await close_ledger(connection, ledger)
            return lot

        return await self.database.transact(work, lane=Pool.ENGINE, repeatable=False)

    async def refund(self, freed: Freed) -> None:
        """Give tokens back for runs that were leased and did not start."""
        if not freed:
            return

        async def work(connection: Connection) -> None:
            await release(connection, freed)

        await self.database.transact(work, lane=Pool.COMPLETE, repeatable=False)

    async def wanted(self, parcels: Sequence[LeasedParcel]) -> list[WantedRun]:
        """The runs of these parcels that are not final, in no particular order."""
        runs = [run for parcel in parcels for run in parcel.runs]
        shards = {parcel.shard for parcel in parcels}
        low, high = min(runs), max(runs)
        if len(shards) == 1:
            rows = await self.database.many(
                SQL["read_wanted_runs"],
                lane=Pool.ENGINE,
                shard=shards.pop(),
                ids=runs,
                low=low,
                high=high,
            )
        else:
            rows = await self.database.many(
                SQL["read_scattered_runs"],
                lane=Pool.ENGINE,
                shards=[parcel.shard for parcel in parcels for _ in parcel.runs],
                ids=runs,
                low=low,
            )
        return list(map(WantedRun._make, rows))

    async def tell(self, news: Sequence[News]) -> None:
        """Tell what happens to runs that were leased."""

        async def work(connection: Connection) -> None:
            await tell(connection, news)

        await self.database.transact(work, lane=Pool.COMPLETE, repeatable=False)

    async def admit(self, applicants: Sequence[Applicant], *, now: datetime | None) -> Admission:
        """Let leased parcels with gates or lines in, or put them back; before they are executed."""

        async def work(connection: Connection) -> Admission:
            return await admit(connection, self.worker, applicants, now=now)

        return await self.database.transact(work, lane=Pool.ENGINE, repeatable=True)

    async def renew(
        self, *, ttl: timedelta, now: datetime | None
    ) -> tuple[list[Renewed], datetime | None]:
        """Prolong every lease of this worker; also the database time, if there was any lease."""

        async def work(connection: Connection) -> list[Any]:
            await SQL["lock_own_parcels"].fetch(connection, worker=self.worker)
            return await SQL["renew_parcels"].fetch(
                connection, worker=self.worker, ttl=ttl, now=now
            )

        rows = await self.database.transact(work, lane=Pool.LEASE, repeatable=True)
        renewed = [Renewed(row["shard"], row["id"], row["fence"]) for row in rows]
        return renewed, rows[0]["now"] if rows else None

    async def give_back(self, shard: ShardId, held: Sequence[tuple[ParcelId, Fence]]) -> int:
        """Return parcels unfinished, without counting the delivery; how many were still ours."""
        rows = await self.database.many(
            SQL["return_parcels"],
            lane=Pool.COMPLETE,
            shard=shard,
            worker=self.worker,
            ids=[identifier for identifier, _ in held],
            fences=[fence for _, fence in held],
        )
        return len(rows)

    async def unwanted(self, held: Mapping[RunId, Fence]) -> set[UUID]:
        """Which of these runs, held with these fences, somebody wants ended or has ended."""
        rows = await self.database.many(
            FINISH["find_unwanted"],
            lane=Pool.COMPLETE,
            shards=[shard_of(run) for run in held],
            runs=list(held),
            fences=list(held.values()),
            low=min(held),
            high=max(held),
        )
        return {row["run_id"] for row in rows}
