"""Ceilings and rates of tenants and queues, kept in the transaction that leases.

A ledger is opened by locking the rows of `limits` that the sources of a claim fall under. What is
in flight is counted from leased parcels, so a crash frees it when its leases end; only tokens are
numbers of their own, and they are written when the ledger is closed, with the lease or not at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from betimes.domain.ids import TenantId
from betimes.fairness.bucket import Bucket, Rate
from betimes.fairness.room import Ceiling, Kind, room_for
from betimes.store.admit import SQL as LIMITS
from betimes.store.admit import Door
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.rules import MILLISECOND, bucket_of, rate_of

SQL = load("ceilings")
TENANT: Kind = "tenant"
QUEUE: Kind = "queue"
LOOK_AGAIN = timedelta(milliseconds=100)
"""How soon a full place is worth a look again."""

Place = tuple[TenantId, str]


@dataclass(slots=True)
class Account:
    """What one tenant or queue may have, and has."""

    door: Door
    kind: Kind
    most: int | None
    in_flight: int
    rate: Rate | None
    bucket: Bucket | None

    def has(self, now: datetime) -> int | None:
        """Whole tokens there are; None without a rate."""
        if self.rate is None or self.bucket is None:
            return None
        return int(self.bucket.refilled(self.rate, now).tokens)


@dataclass(slots=True)
class Ledger:
    """The accounts of one claim; how much each place may still lease."""

    now: datetime | None
    accounts: dict[Door, Account] = field(default_factory=dict)

    def room(self, place: Place, wanted: int) -> tuple[int, datetime | None]:
        """How many of the wanted runs may start, and when it is worth asking for more."""
        if self.now is None:
            return wanted, None
        mine = self._of(place)
        ceilings = [
            Ceiling(one.kind, one.door.key, one.most, one.in_flight)
            for one in mine
            if one.most is not None
        ]
        room = room_for(wanted, ceilings)
        granted = min(
            [room.granted, *(had for one in mine if (had := one.has(self.now)) is not None)]
        )
        if granted == wanted:
            return granted, None
        again = [self.now + LOOK_AGAIN] if room.granted < wanted else []
        again += [
            one.bucket.next_token_at(one.rate, self.now)
            for one in mine
            if one.rate is not None and one.bucket is not None and granted < room.granted
        ]
        return granted, max(again)

    def take(self, place: Place, runs: int) -> None:
        """So many were leased; a negative number gives tokens back for what did not start."""
        for one in self._of(place):
            one.in_flight += runs
            if self.now is None or one.rate is None or one.bucket is None:
                continue
            if runs < 0:
                one.bucket = one.bucket.give_back(one.rate, -runs)
            else:
                _, one.bucket = one.bucket.take(one.rate, runs, self.now)

    def _of(self, place: Place) -> list[Account]:
        doors = doors_of([place])
        return [self.accounts[door] for door in doors if door in self.accounts]


def doors_of(places: Iterable[Place]) -> list[Door]:
    """The rows that some places fall under, each once."""
    return sorted(
        {
            door
            for tenant, queue in places
            for door in (Door(tenant, TENANT, ""), Door(tenant, QUEUE, queue))
        }
    )


async def open_ledger(
    connection: Connection, places: Iterable[Place], *, now: datetime | None
) -> Ledger:
    """Lock what the places fall under and count; the rows are made where there are none."""
    doors = doors_of(places)
    if not doors:
        return Ledger(None)
    columns = {
        "tenants": [door.tenant for door in doors],
        "kinds": [door.kind for door in doors],
        "keys": [door.key for door in doors],
    }
    await LIMITS["ensure_limits"].execute(connection, **columns, mosts=[None] * len(doors), now=now)
    rows = await SQL["lock_ceilings"].fetch(connection, **columns, now=now)
    # A statement of its own: it must see what whoever had the lock before us has committed.
    counts = await SQL["count_in_flight"].fetch(
        connection,
        tenants=[row["tenant_id"] for row in rows],
        queues=[row["key"] if row["kind"] == QUEUE else None for row in rows],
    )
    in_flight = {row["number"]: row["runs"] for row in counts}
    ledger = Ledger(rows[0]["now"] if rows else None)
    for number, row in enumerate(rows, start=1):
        door = Door(row["tenant_id"], row["kind"], row["key"])
        rate = rate_of(row["rate_limit"], (row["rate_per_ms"] or 0) * MILLISECOND)
        kind = TENANT if row["kind"] == TENANT else QUEUE
        bucket = (
            None if rate is None else bucket_of(rate, row["tokens"], row["refilled_at"], row["now"])
        )
        ledger.accounts[door] = Account(door, kind, row["most"], in_flight[number], rate, bucket)
    return ledger


async def close_ledger(connection: Connection, ledger: Ledger) -> None:
    """Write what is left of the tokens."""
    rated = [one for one in ledger.accounts.values() if one.bucket is not None]
    if rated:
        await LIMITS["write_tokens"].execute(
            connection,
            tenants=[one.door.tenant for one in rated],
            kinds=[one.door.kind for one in rated],
            keys=[one.door.key for one in rated],
            tokens=[one.bucket.tokens for one in rated if one.bucket is not None],
            refilled=[one.bucket.at for one in rated if one.bucket is not None],
        )


async def return_tokens(
    connection: Connection, unused: Mapping[Place, int], *, now: datetime | None
) -> None:
    """Give tokens back for runs that were leased and did not start."""
    ledger = await open_ledger(connection, unused, now=now)
    for place, runs in unused.items():
        ledger.take(place, -runs)
    await close_ledger(connection, ledger)
