"""Outcomes of one shard that are written together."""

from collections.abc import Iterable

from betimes.domain.ids import Fence, ParcelId, RunId
from betimes.domain.leased import Lease, Streak
from betimes.domain.states import RunState
from betimes.store.ending import Ending
from betimes.store.finish import Held
from betimes.store.release import Freed
from betimes.worker.held import HeldParcel


class Box:
    """Outcomes of one shard that are written together."""

    __slots__ = ("bytes", "count", "emptied", "endings", "found", "parcels", "ripe", "streaks")

    def __init__(self) -> None:
        self.streaks: list[Streak] = []
        self.endings: list[Ending] = []
        self.parcels: dict[ParcelId, HeldParcel] = {}
        self.emptied: list[ParcelId] = []
        self.found: dict[RunId, RunState] = {}
        self.count = 0
        self.bytes = 0
        self.ripe = False

    def evict(self, parcel: ParcelId) -> int:
        """Drop what was done under an older lease of a parcel that is ours anew; how many."""
        before = self.count
        self.streaks = [one for one in self.streaks if one.parcel != parcel]
        self.endings = [one for one in self.endings if one.parcel != parcel]
        self.emptied = [one for one in self.emptied if one != parcel]
        self.count = sum(len(one.runs) for one in self.streaks) + len(self.endings)
        return before - self.count

    def fast(self) -> Held:
        """Parcels that the successes are about; those with other endings are emptied by them."""
        slow = {one.parcel for one in self.endings}
        about = {one.parcel for one in self.streaks}
        emptied = [parcel for parcel in self.emptied if parcel not in slow]
        ours = {*about, *emptied}
        counted = frozenset(one for one in ours if self.parcels[one].leased.counted)
        return Held(self._leases(ours), emptied, self._freed(emptied), counted=counted)

    def slow(self) -> Held:
        """Parcels that the other endings are about."""
        if not self.endings:
            return Held(())
        about = {one.parcel for one in self.endings}
        emptied = [parcel for parcel in self.emptied if parcel in about]
        counted = frozenset(one for one in about if self.parcels[one].leased.counted)
        return Held(self._leases(about), emptied, counted=counted)

    def _leases(self, parcels: Iterable[ParcelId]) -> list[Lease]:
        return [(parcel, self.fence(parcel)) for parcel in parcels]

    def _freed(self, emptied: list[ParcelId]) -> Freed:
        freed = Freed()
        for parcel in emptied:
            leased = self.parcels[parcel].leased
            if leased.terms.is_gated:
                freed.note(leased.tenant, leased.queue, leased.terms)
        return freed

    @property
    def is_light(self) -> bool:
        """Whether nothing in it has consequences beyond its own runs and parcels.

        Successes, and runs that only have to wait: such boxes of many shards go together.
        """
        return all(one.again is not None and one.attempted is None for one in self.endings)

    def outcomes(self) -> dict[RunId, ParcelId]:
        """Every run with its parcel."""
        found = {run: one.parcel for one in self.streaks for run in one.runs}
        return found | {one.run: one.parcel for one in self.endings}

    def fence(self, parcel: ParcelId) -> Fence:
        """Under which we hold a parcel."""
        return self.parcels[parcel].leased.fence
