"""Getting, keeping and giving away shards.

What is authoritative: the row in `shards`. A node owns a shard while the row names it and carries
the epoch it was granted. What a node believes is its `LeaseTerm`, which ends earlier than the lease
by a margin and counts from the moment it asked.

    nobody ── acquire (epoch + 1) ──▶ ours ── renewed by the publisher's passes ──▶ ours
      ▲                                 │
      ├── released: drain, rebalance ◀──┤
      └── expired: died, froze, cut ◀───┘   (the next owner's epoch fences whatever wakes up later)

A lease has run out when the clock of the database says so, or when we have watched it for as long
as it was to last: that clock may have been set back (see `observed`).

What may go wrong: we freeze past our lease and wake up. Then our terms are no longer trusted, and
a write that was under way meets the new epoch inside its own transaction and changes nothing.

A lease means progress: the elector does not renew. Planner and publisher do, between the steps of
their work, and only for shards on which both have passed lately; see `renewal`.

Passes follow each other with `balance_every` while anything is free, moves, or is about to. Where
everything has its owner, the next pass is called by the end of the first lease that is not ours
unless it is renewed, by whoever gives shards back (a hint), and otherwise after `REST`. A lease
that runs out is therefore seen as soon as before, and a coordinator that joins within a second.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.balance import Moves, Seen, balance
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.observed import ObservedLeases
from betimes.coordinator.pace import Pace
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

ORPHAN_AFTER_PASSES = 1.5
"""After so many periods of balancing everybody who is there has had a look at a free shard."""
SPURNED_MAX = 6
REST = timedelta(seconds=1)
ENDED_SLACK_SECONDS = 0.01
"""How long after its end a lease is looked at: before, it has not ended."""

Living = Callable[[], Awaitable[Mapping[NodeId, int | None]]]
"""Which coordinators are alive and not leaving, with how many shards each can serve if that is
fewer than all; a hint for fairness, never for safety."""


class Elector:
    """Keeps this node's holdings at its fair share."""

    def __init__(
        self,
        *,
        shards: Shards,
        holdings: Holdings,
        living: Living,
        note_capacity: Callable[[int | None], Awaitable[None]],
        pace: Pace,
        time: DatabaseTime,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
        given_back: Callable[[], None] = lambda: None,
        rest: timedelta | None = REST,
    ) -> None:
        self._given_back = given_back
        self._rest = rest
        self._next_end: float | None = None
        self._shards = shards
        self._holdings = holdings
        self._living = living
        self._note_capacity = note_capacity
        self._pace = pace
        self._free_since: dict[ShardId, float] = {}
        self._observed = ObservedLeases()
        self._keeps_until = float("-inf")
        self._spurned = 0
        self._known: AbstractSet[NodeId] = frozenset()
        self._told: int | None = None
        self.nudge = asyncio.Event()
        self._time = time
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._outage = Outage(duty="coordinator.elector", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Balance until asked to stop."""
        beats = beat(
            self._clock,
            every=self._settings.balance_every,
            stopping=stopping,
            nudge=self.nudge,
            rest=self._rest,
            due_in=self._due_in,
        )
        await attend(self._turn, beats=beats, troubles=self._outage)

    async def _turn(self) -> bool:
        """One pass; whether the next one has to follow soon."""
        moves = await self.tick()
        return bool(moves.acquire or moves.release or self._free_since)

    def _due_in(self) -> float | None:
        return None if self._next_end is None else self._next_end - self._clock.monotonic()

    async def tick(self) -> Moves:
        """One pass: drop what we may not trust, see everybody, take and give a few."""
        self._drop_untrusted()
        with self._telemetry.span("elector.tick") as span:
            span.expect_errors()
            asked_at = self._clock.monotonic()
            seen, now = await self._shards.read(now=self._clock.stated())
            heard_at = self._clock.monotonic()
            self._pace.answered(heard_at - asked_at)
            self._time.observe(now)
            # Others may believe in their leases for as long as these had to go when they were read,
            # which was at the latest when we heard of it.
            self._observed.observe(seen, now=now, at=heard_at)
            self._drop_taken(seen)
            self._note_ends(seen, now, asked_at)
            await self._weigh(len(seen))
            living = await self._living()
            if living.keys() != self._known:
                self._known, self._spurned = living.keys(), 0
            moves = balance(
                self._shards.node,
                self._views(seen, asked_at),
                living,
                acquire_max=self._settings.acquire_max,
                release_max=self._settings.acquire_max if asked_at >= self._keeps_until else 0,
                shards_max=self._settings.shards_max,
                capacities={node: most for node, most in living.items() if most is not None},
            )
            moves = self._paced(moves, len(seen), asked_at)
            for start in range(0, len(moves.acquire), ACQUIRED_TOGETHER):
                await self._acquire(moves.acquire[start : start + ACQUIRED_TOGETHER])
            await self._release(moves.release)
            span.add(held=len(self._holdings))
        return moves

    def _note_ends(self, seen: Sequence[ShardSeen], now: datetime, asked_at: float) -> None:
        """Remember when the first lease of somebody else ends, if nobody renews it."""
        ends = [
            (one.lease_until - now).total_seconds()
            for one in seen
            if one.lease_until is not None and not one.expired and one.shard not in self._holdings
        ]
        self._next_end = asked_at + min(ends) + ENDED_SLACK_SECONDS if ends else None

    async def _weigh(self, shards: int) -> None:
        """Tell the others how many shards we can serve, or may, when that has changed."""
        self._pace.weigh(held=len(self._holdings), shards=shards)
        most = min(self._settings.shards_max, shards, self._pace.capacity or shards)
        told = None if most == shards else most
        if told != self._told:
            await self._note_capacity(told)
            self._told = told

    def _paced(self, moves: Moves, shards: int, now: float) -> Moves:
        """No more at once than this node gets through; what is left over is seen to at once."""
        unserved = sum(not one.served for one in self._holdings)
        most = self._pace.takes(shards=shards, unserved=unserved)
        taken = moves.acquire[:most]
        orphans = [shard for shard in taken if self._is_orphan(shard, now)]
        if orphans:
            # Those for whom we would give away are not there: not before they are off the list,
            # and ever later if they stay on it and take nothing.
            self._keeps_until = now + self._settings.lease_ttl.total_seconds() * 2**self._spurned
            self._spurned = min(self._spurned + 1, SPURNED_MAX)
            if len(taken) == self._settings.acquire_max:
                self.nudge.set()
            return Moves(taken, ())
        return Moves(taken, moves.release)

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
        stale = self._observed.stale(at=asked_at)
        for grant in await self._shards.acquire(
            shards, ttl=ttl, now=self._clock.stated(), stale=stale
        ):
            self._time.observe(grant.now)
            term = won(grant.shard, grant.epoch, asked_at=asked_at, ttl=ttl)
            self._holdings.add(Held.of(grant, term, now=self._clock.monotonic()))

    async def _release(self, shards: Collection[ShardId]) -> None:
        # Forgotten first: from here on nothing of ours writes for them.
        held = [one.claim for shard in shards if (one := self._holdings.get(shard)) is not None]
        claims = [claim for claim in held if self._holdings.give_up(claim)]
        if claims:
            await self._shards.release(claims)
            self._given_back()

    def _drop_untrusted(self) -> None:
        now = self._clock.monotonic()
        for held in self._holdings:
            if not held.term.is_trusted(now):
                self._holdings.lose(held.claim, why="not renewed in time")

    def _drop_taken(self, seen: list[ShardSeen]) -> None:
        for shard in seen:
            held = self._holdings.get(shard.shard)
            if held and held.claim.epoch != shard.epoch:
                self._holdings.lose(held.claim, why="taken by another node")

    def _views(self, seen: Sequence[ShardSeen], now: float) -> list[Seen]:
        stale = self._observed.stale(at=now)
        return [self._view(one, now, is_over=one.expired or one.shard in stale) for one in seen]

    def _view(self, shard: ShardSeen, now: float, *, is_over: bool) -> Seen:
        if shard.shard in self._holdings:
            self._free_since.pop(shard.shard, None)
            return Seen(shard.shard, self._shards.node)
        # Ours by name but not held: from before we lost it. It is free once the lease has ended.
        if not is_over:
            self._free_since.pop(shard.shard, None)
            return Seen(shard.shard, shard.owner)
        self._free_since.setdefault(shard.shard, now)
        return Seen(shard.shard, None, orphan=self._is_orphan(shard.shard, now))

    def _is_orphan(self, shard: ShardId, now: float) -> bool:
        since = self._free_since.get(shard, now)
        patience = ORPHAN_AFTER_PASSES * self._settings.balance_every.total_seconds()
        return now - since >= patience


def won(shard: ShardId, epoch: int, *, asked_at: float, ttl: timedelta) -> LeaseTerm:
    """The term that follows from a grant."""
    seconds = ttl.total_seconds()
    return LeaseTerm.won(
        shard, epoch, asked_at=asked_at, ttl=seconds, margin=seconds * TRUST_MARGIN
    )
