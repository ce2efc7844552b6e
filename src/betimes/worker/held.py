"""The parcels this worker holds, and until when it may believe so.

The database decides who holds a parcel. What is kept here only decides when to stop believing it:
`trusted_until` counts from the moment the lease or its renewal was ASKED for, on the monotonic
clock, so a slow answer can shorten the trust but never stretch it.
"""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from betimes.domain.ids import Fence, ParcelId
from betimes.domain.leased import LeasedParcel, Renewed

TRUSTED_SHARE = 0.9
"""How much of a lease is believed; the rest is for clocks that run differently fast."""


def trust_seconds(ttl: timedelta) -> float:
    """How long a lease is believed, from the moment it was asked for."""
    return ttl.total_seconds() * TRUSTED_SHARE


class HeldParcel:
    """A leased parcel with what is left to do of it."""

    __slots__ = ("keys", "leased", "left", "lost", "since", "trusted_until")

    def __init__(
        self, leased: LeasedParcel, *, left: int, since: float, trusted_until: float
    ) -> None:
        self.leased = leased
        self.left = left
        """Runs without an outcome."""
        self.lost = False
        self.keys: Any = None
        """What seals results, where they are sealed."""
        self.since = since
        self.trusted_until = trusted_until

    def is_ours(self, now: float) -> bool:
        """Whether we may believe to hold it, by the monotonic clock; asked before anything begins.

        Who was frozen finds that its time is over before anybody has told it.
        """
        return not self.lost and now < self.trusted_until


class HeldParcels:
    """All of them, by id."""

    def __init__(self) -> None:
        self._by_id: dict[ParcelId, HeldParcel] = {}
        self._strays: dict[ParcelId, Renewed] = {}
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[HeldParcel]:
        return iter(list(self._by_id.values()))

    def add(self, parcel: HeldParcel) -> None:
        """Take note of a new lease; an older one of the same parcel can only have been lost."""
        before = self._by_id.get(parcel.leased.id)
        if before is not None:
            before.lost = True
        self._by_id[parcel.leased.id] = parcel
        self.empty.clear()

    def remove(self, parcel: HeldParcel) -> None:
        """It is done, or gone; a newer lease of the same parcel stays."""
        if self._by_id.get(parcel.leased.id) is parcel:
            del self._by_id[parcel.leased.id]
        if not self._by_id:
            self.empty.set()

    def lose(self, parcel: HeldParcel) -> None:
        """Somebody else has it, or may have: nothing of it is reported any more."""
        parcel.lost = True
        self.remove(parcel)

    def renewed(
        self, answer: Iterable[Renewed], *, asked_at: float, trust: float
    ) -> list[HeldParcel]:
        """Learn from a heartbeat; returns the parcels that turned out to be lost.

        A parcel that we held before the question was asked and that is not in the answer is no
        longer ours. One that came later says nothing.
        """
        fences: dict[ParcelId, Fence] = {lease.id: lease.fence for lease in answer}
        lost: list[HeldParcel] = []
        for parcel in self:
            if fences.get(parcel.leased.id) == parcel.leased.fence:
                parcel.trusted_until = max(parcel.trusted_until, asked_at + trust)
            elif parcel.since < asked_at:
                lost.append(parcel)
        return lost

    def strays(self, answer: Iterable[Renewed]) -> list[Renewed]:
        """Leases in our name that we do not know of, twice in a row: their grant got lost.

        Seen once it may be a lease whose answer is on its way. Nobody would work on such a parcel
        while the heartbeat keeps it, so it has to be given back.
        """
        unknown = {lease.id: lease for lease in answer if lease.id not in self._by_id}
        again = [lease for lease in unknown.values() if self._strays.get(lease.id) == lease]
        self._strays = unknown
        return again

    def untrusted(self, now: float) -> list[HeldParcel]:
        """Parcels whose lease may have run out."""
        return [parcel for parcel in self._by_id.values() if parcel.trusted_until <= now]
