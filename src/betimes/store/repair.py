"""Held parcels that nobody offered: a limit was raised, a parcel was taken away, a race was lost.

Found by walking the keys behind which something is held, a page at a time; the walk goes on where
it stopped, so with very many keys each has its turn.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from betimes.domain.ids import TenantId
from betimes.store.admit import GATE, LINE, OFFERED_MAX, RATE, SQL, Door, Offered, offer
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.rules import MILLISECOND, bucket_of, rate_of

NIL = UUID(int=0)
TURNED_MAX = 100
"""Most parcels of one rate that are found, in one look, to wait for something else by now."""
UNUSED_AFTER = timedelta(days=1)

GatePlace = tuple[UUID, str]
LinePlace = tuple[int, UUID]
FIRST_GATE: GatePlace = (NIL, "")
FIRST_LINE: LinePlace = (-1, NIL)


class HeldKinds(NamedTuple):
    """For what something is held."""

    rates: bool
    gates: bool
    lines: bool


@dataclass(frozen=True, slots=True)
class Repairing:
    """The repairer's side of the gates; `None` as the next place says that the walk is over."""

    database: Database
    most: int = 1_000

    async def held(self, *, keys: bool) -> HeldKinds:
        """One look at what there is to walk over; without `keys`, at rates alone."""
        (row,) = await self.database.many(SQL["look_for_held"], lane=Lane.ENGINE, keys=keys)
        return HeldKinds(**row)

    async def gates(
        self, after: GatePlace, *, now: datetime | None
    ) -> tuple[list[Offered], GatePlace | None]:
        """One page of concurrency keys."""

        async def work(connection: Connection) -> tuple[list[Offered], GatePlace | None]:
            rows = await SQL["find_held_gates"].fetch(
                connection, after_tenant=after[0], after_gate=after[1], most=self.most
            )
            mosts = {Door(row["tenant_id"], GATE, row["gate"]): row["room"] for row in rows}
            place = None if len(rows) < self.most else (rows[-1]["tenant_id"], rows[-1]["gate"])
            return await offer(connection, mosts, now=now), place

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def lines(
        self, after: LinePlace, *, now: datetime | None
    ) -> tuple[list[Offered], LinePlace | None]:
        """One page of lines."""

        async def work(connection: Connection) -> tuple[list[Offered], LinePlace | None]:
            rows = await SQL["find_held_lines"].fetch(
                connection, after_shard=after[0], after_line=after[1], most=self.most
            )
            # Nobody asks whose a line is: its id says where it lives.
            whose = TenantId(NIL)
            mosts = {Door(whose, LINE, str(row["line"])): 1 for row in rows if row["free"]}
            place = None if len(rows) < self.most else (rows[-1]["shard"], rows[-1]["line"])
            return await offer(connection, mosts, now=now), place

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def rates(
        self, after: GatePlace, *, now: datetime | None
    ) -> tuple[list[Offered], GatePlace | None]:
        """One page of rates by key: as many as have a token by now, and are not offered yet."""

        async def work(connection: Connection) -> tuple[list[Offered], GatePlace | None]:
            rows = await SQL["find_held_rates"].fetch(
                connection,
                after_tenant=after[0],
                after_key=after[1],
                offered_max=OFFERED_MAX,
                most=self.most,
                now=now,
            )
            mosts = {Door(row["tenant_id"], RATE, row["rate_key"]): _room(row) for row in rows}
            await _turn_to_gates(connection, mosts)
            place = None if len(rows) < self.most else (rows[-1]["tenant_id"], rows[-1]["rate_key"])
            return await offer(connection, mosts, now=now), place

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def forget(self, *, now: datetime) -> int:
        """Delete limits that nobody has needed for a day; how many."""
        before = now - UNUSED_AFTER

        async def work(connection: Connection) -> int:
            rows = await SQL["find_unused_limits"].fetch(connection, before=before, most=self.most)
            gone = await SQL["delete_limits"].fetch(
                connection,
                tenants=[row["tenant_id"] for row in rows],
                kinds=[row["kind"] for row in rows],
                keys=[row["key"] for row in rows],
                before=before,
            )
            return len(gone)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)


async def _turn_to_gates(connection: Connection, rates: Iterable[Door]) -> None:
    """Whoever waits for a token behind a gate that is full by now waits for the gate.

    Else younger ones would leave it tokens it can't use.
    """
    doors = list(rates)
    if not doors:
        return
    rows = await SQL["find_shut_out"].fetch(
        connection,
        tenants=[door.tenant for door in doors],
        keys=[door.key for door in doors],
        most=TURNED_MAX,
    )
    by_shard: dict[int, list[UUID]] = {}
    for row in rows:
        by_shard.setdefault(row["shard"], []).append(row["id"])
    for shard in sorted(by_shard):
        await SQL["turn_to_gates"].fetch(connection, shard=shard, ids=by_shard[shard])


def _room(row: Any) -> int:
    """How many parcels of a rate may be offered."""
    rate = rate_of(row["rate_limit"], (row["rate_per_ms"] or 0) * MILLISECOND)
    if rate is None:
        return OFFERED_MAX
    bucket = bucket_of(rate, row["tokens"], row["refilled_at"], row["now"])
    return int(bucket.refilled(rate, row["now"]).tokens) - int(row["offered"])
