"""Gates, lines and rates by key: who is let in, who is held, and who is offered next.

A gate is a concurrency key of a tenant, a line is a job whose runs go one after the other. Both are
served by the same code: a row of `limits` to lock, leased parcels with a slot to count. A rate by
key has a row as well, with its tokens; whoever is let in takes one.

    admit     after a lease, before anything is executed: slots for those that fit, the others held
    release   with the end of a parcel: the next held ones are offered
    repair    now and then: whatever was forgotten is offered, and whoever has a token by now

Offering is never truth, admitting is: an offered parcel is leased like any other and comes to the
same door again. Whoever was offered has a claim for a while, and so has whoever waits for nothing
but its token: younger ones leave them the place. So a run that needs two things at once gets both.
Freeing a slot needs no lock, because it can only make room; `release` takes it nevertheless, so
that it and a parcel that is being held at that moment do not miss each other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from betimes.domain.ids import JobId, ParcelId, ShardId, TenantId, WorkerId, shard_of
from betimes.domain.leased import Applicant
from betimes.domain.parcel import Hold
from betimes.domain.terms import SKIP, Terms
from betimes.fairness.admission import admit as decide
from betimes.fairness.bucket import Bucket, Rate
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.rules import MILLISECOND, bucket_of, rate_of

SQL = load("limits")
GATE, LINE, RATE = "key", "job", "rate"
LINE_MOST = 1
NO_LIMIT = 1_000_000_000
OFFERED_MAX = 1_000
"""Most parcels of one rate that are offered at once."""


class Door(NamedTuple):
    """What a limit is about; in the order in which they are locked."""

    tenant: TenantId
    kind: str
    key: str


class Offered(NamedTuple):
    """Where a parcel waits for a worker again."""

    shard: ShardId
    queue: str
    tenant: TenantId
    fair: int
    visible_at: datetime

    @property
    def hint(self) -> tuple[ShardId, str, TenantId, datetime, int]:
        """It as hints tell it."""
        return self.shard, self.queue, self.tenant, self.visible_at, self.fair


@dataclass(slots=True)
class Admission:
    """What became of applicants; those in no list are no longer ours."""

    admitted: set[ParcelId] = field(default_factory=set)
    held: set[ParcelId] = field(default_factory=set)
    rated: set[ParcelId] = field(default_factory=set)
    """Those of the held that lack nothing but a token."""
    refused: set[ParcelId] = field(default_factory=set)
    """Still ours, but they would rather not run than wait."""
    offered: list[Offered] = field(default_factory=list)


def doors_of(tenant: TenantId, terms: Terms) -> list[Door]:
    """What a parcel has to pass; in order."""
    doors: list[Door] = []
    if terms.line is not None:
        doors.append(Door(tenant, LINE, str(terms.line)))
    if terms.gate is not None:
        doors.append(Door(tenant, GATE, terms.gate))
    if terms.rate is not None:
        doors.append(Door(tenant, RATE, terms.rate))
    return doors


async def declare(
    connection: Connection,
    tenant: TenantId,
    mosts: Mapping[str, int | None],
    *,
    now: datetime | None,
) -> None:
    """Say how many runs of some concurrency keys may be in flight; None leaves it to the queue."""
    if mosts:
        await SQL["declare_limits"].execute(
            connection, tenant=tenant, keys=list(mosts), mosts=list(mosts.values()), now=now
        )


async def admit(
    connection: Connection,
    worker: WorkerId,
    applicants: Sequence[Applicant],
    *,
    now: datetime | None,
) -> Admission:
    """Decide about parcels that the worker has just leased, best rank first. Safe to repeat."""
    rows = await SQL["lock_gated"].fetch(
        connection,
        worker=worker,
        shards=[one.shard for one in applicants],
        ids=[one.id for one in applicants],
        fences=[one.fence for one in applicants],
    )
    answer = Admission(admitted={row["id"] for row in rows if row["slot"]})
    ranks = {row["id"]: row["rank"] for row in rows if not row["slot"]}
    line = sorted((one for one in applicants if one.id in ranks), key=lambda one: ranks[one.id])
    if not line:
        return answer
    wanting = [(ranks[one.id], doors_of(one.tenant, one.terms)) for one in line]
    behind = await _lock(connection, line, now=now)
    claims = await _claims(connection, behind.room, now=now)
    decisions, left = decide(wanting, behind.room, claims)
    turned_away: Counter[Door] = Counter()
    spent: Counter[Door] = Counter()
    for one, (_, doors), full in zip(line, wanting, decisions, strict=True):
        if not full:
            answer.admitted.add(one.id)
            spent.update(door for door in doors if door.kind == RATE)
            continue
        turned_away.update(doors)
        kinds = {door.kind for door in doors if door in full or left[door] <= 0}
        skips = one.terms.when_full == SKIP and GATE in kinds
        (answer.refused if skips else answer.held).add(one.id)
        if kinds == {RATE}:
            answer.rated.add(one.id)
    await _write(connection, [one for one in line if one.id not in answer.refused], answer, now)
    for door, runs in spent.items():
        behind.take(door, runs)
    await behind.write(connection, spent)
    # Somebody who was held at one door may have been offered for the sake of another.
    spare = {door: min(count, left[door]) for door, count in turned_away.items() if left[door] > 0}
    answer.offered = await offer(connection, spare, now=now)
    return answer


@dataclass(slots=True)
class Behind:
    """How many more may pass each of some locked doors; the tokens of those that have a rate."""

    room: dict[Door, int] = field(default_factory=dict)
    buckets: dict[Door, tuple[Rate, Bucket]] = field(default_factory=dict)
    """As they are now."""

    def take(self, door: Door, runs: int) -> None:
        """So many have passed."""
        if door in self.buckets:
            rate, bucket = self.buckets[door]
            self.buckets[door] = rate, bucket.take(rate, runs, bucket.at)[1]

    def give_back(self, door: Door, runs: int) -> None:
        """So many have passed and did not start after all."""
        if door in self.buckets:
            rate, bucket = self.buckets[door]
            bucket = bucket.give_back(rate, runs)
            self.buckets[door] = rate, bucket
            self.room[door] = int(bucket.tokens)

    async def write(self, connection: Connection, doors: Iterable[Door]) -> None:
        """Write down the tokens of some of them."""
        rated = [door for door in doors if door in self.buckets]
        if rated:
            buckets = [self.buckets[door][1] for door in rated]
            await SQL["write_tokens"].execute(
                connection,
                **_columns(rated),
                tokens=[bucket.tokens for bucket in buckets],
                refilled=[bucket.at for bucket in buckets],
            )


async def _lock(
    connection: Connection, line: Sequence[Applicant], *, now: datetime | None
) -> Behind:
    """Lock every door of those who wait in front of it; how much room there is behind each."""
    mosts: dict[Door, int | None] = {}
    queues: dict[Door, str] = {}
    for one in line:
        for door in doors_of(one.tenant, one.terms):
            mosts[door] = {LINE: LINE_MOST, GATE: one.most}.get(door.kind)
            queues[door] = one.queue
    doors = sorted(mosts)
    await SQL["ensure_limits"].execute(
        connection, **_columns(doors), mosts=[mosts[door] for door in doors], now=now
    )
    behind = await lock_doors(connection, queues, now=now)
    # A row that is gone again lets nobody in; the repair offers whoever was held because of it.
    behind.room = dict.fromkeys(doors, 0) | behind.room
    return behind


async def lock_doors(
    connection: Connection, queues: Mapping[Door, str], *, now: datetime | None
) -> Behind:
    """Lock doors and look behind them; each with the queue whose settings count where it has none.

    Doors without a row are missing from the answer.
    """
    doors = sorted(queues)
    rows = await SQL["lock_limits"].fetch(
        connection, **_columns(doors), queues=[queues[door] for door in doors], now=now
    )
    behind, mosts = Behind(), dict[Door, int]()
    for row in rows:
        door = Door(row["tenant_id"], row["kind"], row["key"])
        if door.kind != RATE:
            mosts[door] = row["most"]
            continue
        rate = rate_of(row["rate_limit"], (row["rate_per_ms"] or 0) * MILLISECOND)
        behind.room[door] = NO_LIMIT
        if rate is not None:
            bucket = bucket_of(rate, row["tokens"], row["refilled_at"], row["now"])
            bucket = bucket.refilled(rate, row["now"])
            behind.buckets[door] = rate, bucket
            behind.room[door] = int(bucket.tokens)
    behind.room |= await _places(connection, mosts)
    return behind


async def _claims(
    connection: Connection, room: Mapping[Door, int], *, now: datetime | None
) -> dict[Door, list[datetime]]:
    """Who is on the way to doors that have room, by rank: younger ones leave them that."""
    doors = [door for door, places in room.items() if door.kind != LINE and 0 < places < NO_LIMIT]
    if not doors:
        return {}
    rows = await SQL["find_claims"].fetch(
        connection,
        tenants=[door.tenant for door in doors],
        gates=[door.key if door.kind == GATE else None for door in doors],
        rates=[door.key if door.kind == RATE else None for door in doors],
        mosts=[room[door] for door in doors],
        now=now,
    )
    claims: dict[Door, list[datetime]] = {}
    for row in rows:
        claims.setdefault(doors[row["number"] - 1], []).append(row["rank"])
    return claims


async def _places(connection: Connection, mosts: Mapping[Door, int]) -> dict[Door, int]:
    if not mosts:
        return {}
    known = list(mosts)
    # A statement of its own: it must see what whoever had the lock before us has committed.
    counts = await SQL["count_slots"].fetch(
        connection,
        tenants=[door.tenant for door in known],
        gates=[door.key if door.kind == GATE else None for door in known],
        shards=[_shard(door) for door in known],
        lines=[UUID(door.key) if door.kind == LINE else None for door in known],
    )
    slots = {row["number"]: row["slots"] for row in counts}
    return {door: mosts[door] - slots[number] for number, door in enumerate(known, start=1)}


async def _write(
    connection: Connection, decided: Sequence[Applicant], answer: Admission, now: datetime | None
) -> None:
    if decided:
        await SQL["admit_parcels"].execute(
            connection,
            shards=[one.shard for one in decided],
            ids=[one.id for one in decided],
            holds=[_hold(one.id, answer) for one in decided],
            now=now,
        )


def _hold(parcel: ParcelId, answer: Admission) -> Hold:
    if parcel in answer.admitted:
        return Hold.NONE
    return Hold.RATE if parcel in answer.rated else Hold.FULL


async def offer(
    connection: Connection, mosts: Mapping[Door, int], *, now: datetime | None
) -> list[Offered]:
    """Offer up to so many held parcels of each door; none whose place is kept for a better one."""
    rows: list[Any] = []
    gates = [door for door in mosts if door.kind == GATE and mosts[door] > 0]
    lines = [door for door in mosts if door.kind == LINE and mosts[door] > 0]
    if gates:
        rows += await SQL["find_next_gated"].fetch(
            connection,
            tenants=[door.tenant for door in gates],
            gates=[door.key for door in gates],
            mosts=[mosts[door] for door in gates],
            now=now,
        )
    rates = [door for door in mosts if door.kind == RATE and mosts[door] > 0]
    if rates:
        rows += await SQL["find_next_rated"].fetch(
            connection,
            tenants=[door.tenant for door in rates],
            keys=[door.key for door in rates],
            mosts=[min(mosts[door], OFFERED_MAX) for door in rates],
        )
    if lines:
        rows += await SQL["find_next_lined"].fetch(
            connection,
            shards=[_shard(door) for door in lines],
            lines=[UUID(door.key) for door in lines],
            mosts=[mosts[door] for door in lines],
        )
    by_shard: dict[ShardId, list[UUID]] = {}
    for row in rows:
        by_shard.setdefault(row["shard"], []).append(row["id"])
    offered: list[Offered] = []
    for shard in sorted(by_shard):
        offered += map(
            Offered._make,
            await SQL["offer_parcels"].fetch(connection, shard=shard, ids=by_shard[shard], now=now),
        )
    return offered


def _columns(doors: Iterable[Door]) -> dict[str, list[Any]]:
    listed = list(doors)
    return {
        "tenants": [door.tenant for door in listed],
        "kinds": [door.kind for door in listed],
        "keys": [door.key for door in listed],
    }


def _shard(door: Door) -> ShardId | None:
    return shard_of(JobId(UUID(door.key))) if door.kind == LINE else None
