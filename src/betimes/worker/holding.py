"""What a worker on the database asks about the parcels it holds."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.ids import Fence, ParcelId, RunId, ShardId
from betimes.domain.leased import Renewed
from betimes.store.parcels import Parcels
from betimes.store.release import Freed
from betimes.worker.held import HeldParcel
from betimes.worker.transport import Renewal


@dataclass(frozen=True, slots=True)
class DatabaseHolds:
    """Renewing, asking and giving back, by the statements of `store.parcels`."""

    parcels: Parcels
    clock: Clock

    async def renew(self, *, ttl: timedelta, now: datetime | None) -> Renewal:
        """Prolong every lease of this worker."""
        renewed, told = await self.parcels.renew(ttl=ttl, now=now)
        return Renewal(renewed, told)

    async def unwanted(self, held: Mapping[RunId, Fence]) -> Collection[UUID]:
        """Which of these runs, held with these fences, somebody wants ended or has ended."""
        return await self.parcels.unwanted(held)

    async def return_strays(self, strays: Sequence[Renewed]) -> None:
        """Give back leases in our name that we do not know of."""
        for stray in strays:
            await self.parcels.give_back(stray.shard, [(stray.id, stray.fence)])

    async def give_back(self, held: Sequence[HeldParcel]) -> int:
        """Return parcels unfinished, and the tokens of what did not start of them."""
        by_shard: dict[ShardId, list[tuple[ParcelId, Fence]]] = {}
        freed = Freed(at=self.clock.stated())
        for parcel in held:
            leased = parcel.leased
            by_shard.setdefault(leased.shard, []).append((leased.id, leased.fence))
            place = leased.tenant, leased.queue
            for _ in range(parcel.left):
                freed.refund(place, leased.terms, admitted=leased.admitted, counted=leased.counted)
        returned = [await self.parcels.give_back(shard, pairs) for shard, pairs in by_shard.items()]
        await self.parcels.refund(freed)
        return sum(returned)
