"""Gates and lines: who is let in, who is held, and who is offered next.

A gate is a concurrency key of a tenant, a line is a job whose runs go one after the other. Both are
served by the same code: a row of `limits` to lock, leased parcels with a slot to count.

    admit     after a lease, before anything is executed: slots for those that fit, the others held
    release   with the end of a parcel: the next held ones are offered
    repair    now and then: whatever was forgotten is offered

Offering is never truth, admitting is: an offered parcel is leased like any other and comes to the
same gate again. Freeing a slot needs no lock, because it can only make room; `release` takes it
nevertheless, so that it and a parcel that is being held at that moment do not miss each other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from betimes.domain.ids import Fence, JobId, ParcelId, ShardId, TenantId, WorkerId, shard_of
from betimes.domain.terms import SKIP, Terms
from betimes.fairness.admission import admit as decide
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("limits")
GATE, LINE = "key", "job"
CONCURRENCY_KEY_FULL = "CONCURRENCY_KEY_FULL"
LINE_MOST = 1


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


class Applicant(NamedTuple):
    """A leased parcel in front of its doors, and how many its run allows through its gate."""

    shard: ShardId
    id: ParcelId
    fence: Fence
    tenant: TenantId
    queue: str
    terms: Terms
    most: int | None


@dataclass(slots=True)
class Admission:
    """What became of applicants; those in no list are no longer ours."""

    admitted: set[ParcelId] = field(default_factory=set)
    held: set[ParcelId] = field(default_factory=set)
    refused: set[ParcelId] = field(default_factory=set)
    """Still ours, but they would rather not run than wait."""
    offered: list[Offered] = field(default_factory=list)


@dataclass(slots=True)
class Freed:
    """Doors through which somebody has left, how many, and from which queue."""

    counts: Counter[Door] = field(default_factory=Counter)
    queues: dict[Door, str] = field(default_factory=dict)

    def note(self, tenant: TenantId, queue: str, terms: Terms) -> None:
        """One parcel has ended."""
        for door in doors_of(tenant, terms):
            self.counts[door] += 1
            self.queues[door] = queue

    @classmethod
    def together(cls, several: "Iterable[Freed]") -> "Freed":
        """What was freed by several."""
        every = cls()
        for one in several:
            every.add(one)
        return every

    def add(self, other: "Freed") -> None:
        """Note what another one has noted."""
        self.counts.update(other.counts)
        self.queues |= other.queues

    def __bool__(self) -> bool:
        return bool(self.counts)


def doors_of(tenant: TenantId, terms: Terms) -> list[Door]:
    """What a parcel has to pass; in order."""
    doors = [] if terms.line is None else [Door(tenant, LINE, str(terms.line))]
    return doors if terms.gate is None else [*doors, Door(tenant, GATE, terms.gate)]


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
    wanting = [doors_of(one.tenant, one.terms) for one in line]
    room = await _lock(connection, line, now=now)
    decisions, left = decide(wanting, room)
    turned_away: Counter[Door] = Counter()
    for one, doors, fits in zip(line, wanting, decisions, strict=True):
        if fits:
            answer.admitted.add(one.id)
            continue
        skips = one.terms.gate is not None and one.terms.when_full == SKIP
        full = skips and left[Door(one.tenant, GATE, one.terms.gate or "")] <= 0
        (answer.refused if full else answer.held).add(one.id)
        turned_away.update(doors)
    await _write(connection, [one for one in line if one.id not in answer.refused], answer, now)
    # Somebody who was held at one door may have been offered for the sake of another.
    spare = {door: min(count, left[door]) for door, count in turned_away.items() if left[door] > 0}
    answer.offered = await offer(connection, spare)
    return answer


async def _lock(
    connection: Connection, line: Sequence[Applicant], *, now: datetime | None
) -> dict[Door, int]:
    """Lock every door of those who wait in front of it; how much room there is behind each."""
    mosts: dict[Door, int | None] = {}
    queues: dict[Door, str] = {}
    for one in line:
        for door in doors_of(one.tenant, one.terms):
            mosts[door] = LINE_MOST if door.kind == LINE else one.most
            queues[door] = one.queue
    doors = sorted(mosts)
    await SQL["ensure_limits"].execute(
        connection, **_columns(doors), mosts=[mosts[door] for door in doors], now=now
    )
    # A row that is gone again lets nobody in; the repair offers whoever was held because of it.
    return dict.fromkeys(doors, 0) | await _room(connection, queues)


async def _room(connection: Connection, queues: Mapping[Door, str]) -> dict[Door, int]:
    doors = sorted(queues)
    rows = await SQL["lock_limits"].fetch(
        connection, **_columns(doors), queues=[queues[door] for door in doors]
    )
    mosts = {Door(row["tenant_id"], row["kind"], row["key"]): row["most"] for row in rows}
    known = [door for door in doors if door in mosts]
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
            admitted=[one.id in answer.admitted for one in decided],
            now=now,
        )


async def release(connection: Connection, freed: Freed) -> list[Offered]:
    """Offer the next held parcels, as many as have left and as there is room for.

    The caller has written the ends already and locks no parcel afterwards.
    """
    if not freed:
        return []
    room = await _room(connection, freed.queues)
    # A limit that is forgotten stands in nobody's way; whoever is offered makes it anew.
    return await offer(
        connection,
        {door: min(count, room.get(door, count)) for door, count in freed.counts.items()},
    )


async def offer(connection: Connection, mosts: Mapping[Door, int]) -> list[Offered]:
    """Offer up to so many held parcels of each door."""
    rows: list[Any] = []
    gates = [door for door in mosts if door.kind == GATE and mosts[door] > 0]
    lines = [door for door in mosts if door.kind == LINE and mosts[door] > 0]
    if gates:
        rows += await SQL["find_next_gated"].fetch(
            connection,
            tenants=[door.tenant for door in gates],
            gates=[door.key for door in gates],
            mosts=[mosts[door] for door in gates],
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
            await SQL["offer_parcels"].fetch(connection, shard=shard, ids=by_shard[shard]),
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
