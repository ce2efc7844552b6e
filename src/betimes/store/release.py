"""With the end of parcels: who has made room, and which tokens were not used after all.

Whoever ends a parcel notes it, and releases once, after its last parcel: first the tokens of
tenants and queues, then the doors, all in their order, so nobody waits in a circle.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from betimes.domain.ids import TenantId
from betimes.domain.terms import Terms
from betimes.store.admit import RATE, Door, Offered, doors_of, lock_doors, offer
from betimes.store.ceilings import Place, return_tokens
from betimes.store.pool import Connection


@dataclass(slots=True)
class Freed:
    """Doors through which somebody has left, how many, and from which queue; unused tokens."""

    counts: Counter[Door] = field(default_factory=Counter)
    queues: dict[Door, str] = field(default_factory=dict)
    unstarted: Counter[Door] = field(default_factory=Counter)
    """Tokens of rates by key that were taken for what did not start."""
    unused: Counter[Place] = field(default_factory=Counter)
    """The same for rates of tenants and queues."""
    at: datetime | None = None
    """When that was found out."""

    def note(self, tenant: TenantId, queue: str, terms: Terms) -> None:
        """One parcel has ended."""
        for door in doors_of(tenant, terms):
            if door.kind != RATE:  # an end makes no token
                self.counts[door] += 1
                self.queues[door] = queue

    def refund(self, place: Place, terms: Terms, *, admitted: bool, counted: bool) -> None:
        """One run was not started after all."""
        tenant, queue = place
        if counted:
            self.unused[place] += 1
        if admitted and terms.rate is not None:
            door = Door(tenant, RATE, terms.rate)
            self.unstarted[door] += 1
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
        self.unstarted.update(other.unstarted)
        self.unused.update(other.unused)
        self.at = other.at or self.at

    def __bool__(self) -> bool:
        return bool(self.counts or self.unstarted or self.unused)


async def release(connection: Connection, freed: Freed) -> list[Offered]:
    """Give unused tokens back, and offer the next held parcels, as many as there is room for.

    The caller has written the ends already and locks no parcel afterwards.
    """
    if not freed:
        return []
    if freed.unused:
        await return_tokens(connection, freed.unused, now=freed.at)
    if not freed.queues:
        return []
    behind = await lock_doors(connection, freed.queues, now=freed.at)
    for door, runs in freed.unstarted.items():
        behind.give_back(door, runs)
    await behind.write(connection, freed.unstarted)
    # A limit that is forgotten stands in nobody's way; whoever is offered makes it anew.
    left = freed.counts + freed.unstarted
    mosts = {door: min(count, behind.room.get(door, count)) for door, count in left.items()}
    return await offer(connection, mosts, now=freed.at)
