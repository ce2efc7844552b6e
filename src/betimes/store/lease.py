"""Leasing: the one seam between whoever wants work and the queue, for our workers and for HTTP."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from betimes.domain.ids import ShardId, TenantId, WorkerId
from betimes.domain.leased import LeasedParcel, Source
from betimes.domain.parcel import SUSPECT_AFTER, Lane
from betimes.domain.terms import BARE, Terms
from betimes.store.ceilings import Ledger, Place
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("parcels")


NO_BOUNDS: Mapping[Source, datetime] = {}
BEFORE_ALL = Source(ShardId(-1), "", TenantId(UUID(int=0)), -1)
"""A place before every place."""


class Lot(NamedTuple):
    """What was leased, and when it is worth asking again where a limit stands in the way."""

    leased: list[LeasedParcel]
    later: dict[Source, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOrder:
    """How somebody wants to lease; `now` is None in production: the database clock rules."""

    worker: WorkerId
    parcels_max: int
    suspects: bool
    ttl: timedelta
    now: datetime | None
    handlers: Sequence[str] | None = None
    """What the worker can do; None: everything but what only our own workers do."""

    async def lease(
        self,
        connection: Connection,
        sources: Sequence[Source],
        slots: int,
        ledger: Ledger,
        limited: Collection[Source],
        bounds: Mapping[Source, datetime] = NO_BOUNDS,
    ) -> Lot:
        """Lease from one place after the other; from limited ones what their ledger allows.

        A place that has a bound gives nothing with a later rank.
        """
        lot = Lot([], {})
        free = slots
        for source in sources:
            if free <= 0:
                break
            granted, place = free, place_of(source)
            if source in limited:
                granted, later = ledger.room(place, free)
                if later is not None:
                    lot.later[source] = later
                if granted <= 0:
                    continue
            given = self.arguments(source, granted, before=bounds.get(source))
            rows = await SQL["lease_parcels"].fetch(connection, **given)
            here = [leased_of(source.shard, row, counted=source in limited) for row in rows]
            lot.leased.extend(here)
            runs = sum(len(parcel.runs) for parcel in here)
            free -= runs
            if runs < granted and source not in bounds:
                lot.later.pop(source, None)  # not the limit: there is no more
            if source in limited:
                ledger.take(place, runs)
        return lot

    def arguments(
        self, source: Source, slots: int, *, before: datetime | None = None
    ) -> dict[str, Any]:
        """What the leasing statement is given."""
        return {
            "shard": source.shard,
            "queue": source.queue,
            "tenant": source.tenant,
            "fair": source.fair,
            "worker": self.worker,
            "slots": slots,
            "before": before,
            "parcels_max": self.parcels_max,
            "suspects": self.suspects,
            "suspect_after": SUSPECT_AFTER,
            "ttl": self.ttl,
            "now": self.now,
            "handlers": self.handlers,
        }


def place_of(source: Source) -> Place:
    """What ceilings and rates are about."""
    return source.tenant, source.queue


def leased_of(shard: ShardId, row: asyncpg.Record, *, counted: bool = False) -> LeasedParcel:
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
        counted=counted,
    )


def terms_in(row: asyncpg.Record) -> Terms:
    """The terms in a row of a parcel; nearly all share one value."""
    if not row["fair"] and row["gate"] is None and row["line"] is None and row["rate_key"] is None:
        return BARE
    return Terms(row["fair"], row["gate"], row["when_full"], row["line"], row["rate_key"])
