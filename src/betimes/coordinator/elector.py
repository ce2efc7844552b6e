"""Getting, keeping and giving away shards.

What is authoritative: the row in `shards`. A node owns a shard while the row names it and carries
the epoch it was granted. What a node believes is its `LeaseTerm`, which ends earlier than the lease
by a margin and counts from the moment it asked.

    nobody ── acquire (epoch + 1) ──▶ ours ── renewed by the publisher's passes ──▶ ours
      ▲                                 │
      ├── released: drain, rebalance ◀──┤
      └── expired: died, froze, cut ◀───┘   (the next owner's epoch fences whatever wakes up later)

What may go wrong: we freeze past our lease and wake up. Then our terms are no longer trusted, and
a write that was under way meets the new epoch inside its own transaction and changes nothing.

A lease means progress: the elector does not renew. The publisher does, after a pass, and only for
shards on which both it and the planner have passed lately.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.balance import Moves, Seen, balance
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.term import LeaseTerm
from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import NodeId, ShardId
from betimes.rhythm import DatabaseTime, Stopping, attend, beat
from betimes.store.shards import Shards, ShardSeen
from betimes.telemetry import Outage, Telemetry

TRUST_MARGIN = 0.2
"""Share of the lease that is never trusted: room for a slow clock and a slow network."""

ACQUIRED_TOGETHER = 256
"""Most shards taken by one statement: a node that is alone takes all there are."""

Living = Callable[[], Awaitable[Collection[NodeId]]]
"""Which coordinators are alive and not leaving; a hint for fairness, never for safety."""


class Elector:
    """Keeps this node's holdings at its fair share."""

    def __init__(
        self,
        *,
        shards: Shards,
        holdings: Holdings,
        living: Living,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
    ) -> None:
        self._shards = shards
        self._holdings = holdings
        self._living = living
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._leader = telemetry.gauge("betimes_shard_leader")
        self._fence = telemetry.gauge("betimes_shard_fence")
        self._lost = telemetry.counter("betimes_lease_lost_total")
        self._outage = Outage(duty="coordinator.elector", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Balance until asked to stop."""
        beats = beat(self._clock, every=self._settings.balance_every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> Moves:
        """One pass: drop what we may not trust, see everybody, take and give a few."""
        self._drop_untrusted()
        with self._telemetry.span("elector.tick") as span:
            span.expect_errors()
            seen, now = await self._shards.read(now=self._clock.stated())
            self._time.observe(now)
            self._drop_taken(seen)
            moves = balance(
                self._shards.node,
                [self._view(shard) for shard in seen],
                await self._living(),
                acquire_max=self._settings.acquire_max,
                release_max=self._settings.acquire_max,
                shards_max=self._settings.shards_max,
            )
            for start in range(0, len(moves.acquire), ACQUIRED_TOGETHER):
                await self._acquire(moves.acquire[start : start + ACQUIRED_TOGETHER])
            await self._release(moves.release)
            span.add(held=len(self._holdings))
        return moves

    async def hand_over(self) -> None:
        """Give every shard back, so that the next owner need not wait for the leases to end."""
        held = [one.claim.shard for one in self._holdings]
        try:
            await self._release(held)
        except Unavailable as error:
            self._outage.failed(error)  # the leases run out by themselves

    async def _acquire(self, shards: Sequence[ShardId]) -> None:
        asked_at = self._clock.monotonic()
        ttl = self._settings.lease_ttl
        for grant in await self._shards.acquire(shards, ttl=ttl, now=self._clock.stated()):
            self._time.observe(grant.now)
            term = won(grant.shard, grant.epoch, asked_at=asked_at, ttl=ttl)
            self._holdings.add(Held.of(grant, term, now=self._clock.monotonic()))
            self._leader.set(1, shard=grant.shard)
            self._fence.set(grant.epoch, shard=grant.shard)
            self._telemetry.event(
                "shard.acquired", level="debug", shard=grant.shard, epoch=grant.epoch
            )

    async def _release(self, shards: Collection[ShardId]) -> None:
        # Forgotten first: from here on nothing of ours writes for them.
        claims = [held.claim for shard in shards if (held := self._forget(shard))]
        if claims:
            await self._shards.release(claims)

    def _drop_untrusted(self) -> None:
        now = self._clock.monotonic()
        for held in self._holdings:
            if not held.term.is_trusted(now):
                self._lose(held.claim.shard, why="not renewed in time")

    def _drop_taken(self, seen: list[ShardSeen]) -> None:
        for shard in seen:
            held = self._holdings.get(shard.shard)
            if held and held.claim.epoch != shard.epoch:
                self._lose(shard.shard, why="taken by another node")

    def _view(self, shard: ShardSeen) -> Seen:
        if shard.shard in self._holdings:
            return Seen(shard.shard, self._shards.node)
        # Ours by name but not held: from before we lost it. It is free once the lease has ended.
        return Seen(shard.shard, None if shard.expired else shard.owner)

    def _lose(self, shard: ShardId, *, why: str) -> None:
        self._forget(shard)
        self._lost.add(kind="shard")
        self._telemetry.event("shard.lost", level="warning", shard=shard, why=why)

    def _forget(self, shard: ShardId) -> Held | None:
        self._leader.set(0, shard=shard)
        return self._holdings.lose(shard)


def won(shard: ShardId, epoch: int, *, asked_at: float, ttl: timedelta) -> LeaseTerm:
    """The term that follows from a grant."""
    seconds = ttl.total_seconds()
    return LeaseTerm.won(
        shard, epoch, asked_at=asked_at, ttl=seconds, margin=seconds * TRUST_MARGIN
    )
