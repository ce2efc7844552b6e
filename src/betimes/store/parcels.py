"""The worker's side of the queue: find, lease, renew and give back parcels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from betimes.domain.ids import Fence, JobId, ParcelId, RunId, ShardId, TenantId, WorkerId
from betimes.domain.parcel import SUSPECT_AFTER, Lane
from betimes.domain.terms import BARE, Terms
from betimes.store.admit import Admission, Applicant, admit
from betimes.store.database import Database
from betimes.store.pool import Connection
from betimes.store.pool import Lane as Pool
from betimes.store.queries import load

SQL = load("parcels")
FINISH = load("finish")
SERVER = load("server")


class Source(NamedTuple):
    """Where parcels wait: one queue of one tenant in one shard, and one bucket of fairness keys."""

    shard: ShardId
    queue: str
    tenant: TenantId
    fair: int = 0


BEFORE_ALL = Source(ShardId(-1), "", TenantId(UUID(int=0)), -1)
"""A place before every place."""


@dataclass(slots=True, kw_only=True)
class LeasedParcel:
    """A parcel that is ours until somebody else's fence is higher."""

    shard: ShardId
    id: ParcelId
    tenant: TenantId
    queue: str
    priority: int
    lane: Lane
    visible_at: datetime
    fence: Fence
    deliveries: int
    lease_until: datetime
    runs: list[RunId] = field(repr=False)
    terms: Terms = BARE

    @property
    def source(self) -> Source:
        """Where it came from."""
        return Source(self.shard, self.queue, self.tenant, self.terms.fair)

    def applicant(self, most: int | None) -> Applicant:
        """It in front of its doors; `most` is how many its run allows through its gate."""
        return Applicant(self.shard, self.id, self.fence, self.tenant, self.queue, self.terms, most)


class WantedRun(NamedTuple):
    """A run of a leased parcel as it is stored; a tuple because there are very many of them.

    Tenant, queue and priority are the parcel's. `attempt` counts those that were used up before.
    """

    id: RunId
    job: JobId | None
    revision: int | None
    due_at: datetime
    fire_at: datetime | None
    first_started_at: datetime | None
    cancel_at: datetime | None
    attempt: int
    trigger: int
    handler: str | None
    payload: bytes | None
    options: str | None


class Renewed(NamedTuple):
    """A lease that was prolonged, as the database knows it."""

    shard: ShardId
    id: ParcelId
    fence: Fence


@dataclass(frozen=True, slots=True)
class Parcels:
    """The queue as one worker sees it; `now` is None in production: the database clock rules."""

    database: Database
    worker: WorkerId

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
            suspects=suspects,
            suspect_after=SUSPECT_AFTER,
            most=most,
            after_shard=after.shard,
            after_queue=after.queue,
            after_tenant=after.tenant,
            after_fair=after.fair,
        )
        return [Source(row["shard"], row["queue"], row["tenant_id"], row["fair"]) for row in rows]

    async def lease(
        self,
        source: Source,
        *,
        slots: int,
        parcels_max: int,
        suspects: bool,
        ttl: timedelta,
        now: datetime | None,
    ) -> list[LeasedParcel]:
        """Lease what fits into `slots`; a parcel that is larger is split."""
        query = SQL["lease_parcels"]
        given = self._lease_arguments(source, slots, parcels_max, ttl, now, suspects=suspects)
        rows = await self.database.many(query, lane=Pool.ENGINE, **given)
        return [leased_of(source.shard, row) for row in rows]

    async def lease_scattered(
        self,
        sources: Sequence[Source],
        *,
        slots: int,
        parcels_max: int,
        ttl: timedelta,
        now: datetime | None,
    ) -> list[LeasedParcel]:
        """Lease from several places, in the order given, what fits into `slots`; no suspects.

        One statement for each place, as everywhere, but one commit for all of them: waiting for
        the disk is most of what a lease costs where little waits in each place.
        """

        async def work(connection: Connection) -> list[LeasedParcel]:
            leased: list[LeasedParcel] = []
            free = slots
            for source in sources:
                if free <= 0:
                    break
                given = self._lease_arguments(source, free, parcels_max, ttl, now, suspects=False)
                for row in await SQL["lease_parcels"].fetch(connection, **given):
                    leased.append(leased_of(source.shard, row))
                    free -= len(leased[-1].runs)
            return leased

        return await self.database.transact(work, lane=Pool.ENGINE, repeatable=False)

    def _lease_arguments(
        self,
        source: Source,
        slots: int,
        parcels_max: int,
        ttl: timedelta,
        now: datetime | None,
        *,
        suspects: bool,
    ) -> dict[str, Any]:
        return {
            "shard": source.shard,
            "queue": source.queue,
            "tenant": source.tenant,
            "fair": source.fair,
            "worker": self.worker,
            "slots": slots,
            "parcels_max": parcels_max,
            "suspects": suspects,
            "suspect_after": SUSPECT_AFTER,
            "ttl": ttl,
            "now": now,
        }

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

    async def cancelled(self, shard: ShardId, runs: Sequence[UUID]) -> set[UUID]:
        """Which of these runs somebody wants ended, or has ended already."""
        rows = await self.database.many(
            FINISH["find_cancelled"],
            lane=Pool.COMPLETE,
            shard=shard,
            runs=list(runs),
            low=min(runs),
            high=max(runs),
        )
        return {row["run_id"] for row in rows}


def leased_of(shard: ShardId, row: asyncpg.Record) -> LeasedParcel:
    """A row of the leasing statement as a parcel."""
    return LeasedParcel(
        shard=shard,
        id=row["id"],
        tenant=row["tenant_id"],
        queue=row["queue"],
        priority=row["priority"],
        lane=Lane(row["lane"]),
        visible_at=row["visible_at"],
        fence=row["fence"],
        deliveries=row["deliveries"],
        lease_until=row["lease_until"],
        runs=row["run_ids"],
        terms=terms_in(row),
    )


def terms_in(row: asyncpg.Record) -> Terms:
    """The terms in a row of a parcel; nearly all share one value."""
    if row["gate"] is None and row["line"] is None and not row["fair"]:
        return BARE
    return Terms(row["fair"], row["gate"], row["when_full"], row["line"])
