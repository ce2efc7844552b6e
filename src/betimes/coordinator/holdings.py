"""The shards this node holds right now, as far as it may still believe so.

One object shared by the elector, the planner and the publisher of a node, all on one event loop.
The database decides who owns; here is only what we may trust and how far we have come.

Whoever notices that a shard is no longer ours says so here, with the claim it held: a newer grant
of the same shard stays. What else was kept for it (the publisher's wheel) is dropped by whoever
keeps it, because the claim is gone.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from betimes.coordinator.term import LeaseTerm
from betimes.domain.ids import ShardId, floor_of, to_ms
from betimes.store.shards import Claim, Grant
from betimes.telemetry import Telemetry


@dataclass(slots=True)
class Held:
    """One shard we hold.

    Every run due up to `published_through_ms` has its parcel, in the database. Every run due up to
    `loaded_through_ms` has been read; what of it is not published yet lies in the wheel.
    """

    claim: Claim
    term: LeaseTerm
    published_through_ms: int
    loaded_through_ms: int
    next_low: UUID
    tzdata: str | None
    swept_through: datetime | None
    planned_at: float
    published_at: float
    acquired_at: float = float("-inf")
    renewed_at: float = float("-inf")
    """When we asked for the renewal that was granted last, on the monotonic clock."""
    served: bool = False
    """The publisher has passed over it since it is ours."""
    under_way: bool = False
    """Its planning has begun and not ended; still true after a turn that failed."""
    recovered: bool = False
    """What was planned and missed before it was ours has been taken back."""
    in_doubt: bool = False
    """A commit may have moved the cursor in the database without our knowing."""
    writing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False, compare=False)
    """Taken by the planner or the publisher while it writes for the shard. In the database they
    would wait for each other as well, but there the publisher waits with other shards in its hands,
    and meets the planner again at the next one."""

    @classmethod
    def of(cls, grant: Grant, term: LeaseTerm, *, now: float) -> "Held":
        """A shard that was just granted, standing where its last owner stopped."""
        # A shard that was never published begins at the beginning: nothing may be overlooked.
        through = -1 if grant.published_through is None else to_ms(grant.published_through)
        return cls(
            claim=Claim(grant.shard, grant.epoch),
            term=term,
            published_through_ms=through,
            loaded_through_ms=through,
            next_low=floor_of(through + 1),
            tzdata=grant.tzdata,
            swept_through=grant.swept_through,
            planned_at=now,
            published_at=now,
            acquired_at=now,
        )

    def learn_cursor(self, through: datetime | None) -> None:
        """The database has told where it stands; go on from there."""
        self.published_through_ms = -1 if through is None else to_ms(through)
        self.in_doubt = False
        self.rewind()

    def rewind(self) -> None:
        """Forget what was read and not published; it will be read again."""
        self.loaded_through_ms = self.published_through_ms
        self.next_low = floor_of(self.published_through_ms + 1)


class Holdings:
    """All shards of this node, by number."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._held: dict[ShardId, Held] = {}
        self._telemetry = telemetry
        self._leader = telemetry.gauge("betimes_shard_leader")
        self._fence = telemetry.gauge("betimes_shard_fence")
        self._lost = telemetry.counter("betimes_lease_lost_total")

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(list(self._held.values()))

    def __contains__(self, shard: ShardId) -> bool:
        return shard in self._held

    def get(self, shard: ShardId) -> Held | None:
        """The shard, if we hold it."""
        return self._held.get(shard)

    def add(self, held: Held) -> None:
        """We were granted a shard."""
        claim = held.claim
        self._held[claim.shard] = held
        self._leader.set(1, shard=claim.shard)
        self._fence.set(claim.epoch, shard=claim.shard)
        self._telemetry.event("shard.acquired", level="debug", shard=claim.shard, epoch=claim.epoch)

    def lose(self, claim: Claim, *, why: str) -> bool:
        """Somebody found out that it is ours no longer; whether we still held it."""
        if not self.give_up(claim):
            return False
        self._lost.add(kind="shard")
        self._telemetry.event("shard.lost", level="warning", shard=claim.shard, why=why)
        return True

    def give_up(self, claim: Claim) -> bool:
        """We hold it no longer, by our own will; whether we did."""
        held = self._held.get(claim.shard)
        if held is None or held.claim != claim:
            return False
        del self._held[claim.shard]
        self._leader.set(0, shard=claim.shard)
        return True

    def trusted(self, now: float) -> list[Held]:
        """Those worth writing for at this monotonic time."""
        return [held for held in self._held.values() if held.term.is_trusted(now)]
