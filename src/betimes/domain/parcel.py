"""Parcels: handfuls of runs of one (shard, queue, tenant) that are leased together."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, unique

from betimes.domain.ids import Fence, ParcelId, RunId, ShardId, TenantId

RUNS_MAX = 256
"""Most runs in one parcel."""

SUSPECT_AFTER = 2
"""A parcel abandoned this often is a suspect: leased alone, split when it is abandoned again."""

SPLIT_INTO = 16
"""Pieces of an abandoned suspect: 256 runs stand alone after two splits."""

PRIORITY_LOWEST, PRIORITY_DEFAULT, PRIORITY_HIGHEST = 0, 5, 9
BOOST_PER_PRIORITY = timedelta(seconds=10)
"""How much earlier one step of priority makes a run act; low priority ages past it."""


NEVER_LEASED = Fence(0)


@unique
class Lane(IntEnum):
    """Why a parcel waits; the numbers are stored."""

    ON_TIME = 0
    RETRY = 1
    CATCH_UP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A parcel as it goes into the queue."""

    shard: ShardId
    id: ParcelId
    tenant: TenantId
    queue: str
    priority: int
    visible_at: datetime
    runs: tuple[RunId, ...]
    lane: Lane = Lane.ON_TIME
    fence: Fence = NEVER_LEASED
    deliveries: int = 0

    @property
    def rank(self) -> datetime:
        """The order among visible parcels of a tenant."""
        return rank_of(self.visible_at, self.priority)


def rank_of(visible_at: datetime, priority: int) -> datetime:
    """A high priority acts as if visible earlier, so low priority ages and cannot starve."""
    return visible_at - priority * BOOST_PER_PRIORITY
