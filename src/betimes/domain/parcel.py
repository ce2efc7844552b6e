"""Parcels: handfuls of runs of one (shard, queue, tenant) that are leased together."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum, unique
from typing import NamedTuple

from betimes.domain.ids import Fence, JobId, ParcelId, RunId, ShardId, TenantId, to_ms
from betimes.domain.terms import BARE, WAIT, Terms

RUNS_MAX = 256
"""Most runs in one parcel."""

SUSPECT_AFTER = 2
"""Handed out this often in vain, it is a suspect: only a worker that holds nothing leases it."""

SPLIT_INTO = 16
"""Pieces of an abandoned parcel: of 256 runs each stands alone after two splits."""

QUANTUM_MS = 10
"""Runs due within the same hundredth of a second may share a parcel, visible when all are due."""

PRIORITY_LOWEST, PRIORITY_DEFAULT, PRIORITY_HIGHEST = 0, 5, 9
BOOST_PER_PRIORITY = timedelta(seconds=10)
"""How much earlier one step of priority makes a run act; low priority ages past it."""


HIDDEN, HIDDEN_MAX = timedelta(milliseconds=50), timedelta(seconds=30)
ATTENDED_MAX = timedelta(milliseconds=200)
CATCH_UP_PENALTY = timedelta(minutes=5)
"""How much later what was missed acts: work that is on time goes first, but cannot starve it."""

PACE_QUANTUM_MS = 250
"""Late runs whose turns come within a quarter of a second share a parcel, visible at the last."""


NEVER_LEASED = Fence(0)


@unique
class Lane(IntEnum):
    """Why a parcel waits; the numbers are stored."""

    ON_TIME = 0
    RETRY = 1
    CATCH_UP = 2


@unique
class Hold(IntEnum):
    """Why a parcel is not offered to workers; the numbers are stored."""

    NONE = 0
    FULL = 1
    """Its gate or line is full."""
    VERDICT = 2
    """Overlap is decided when it is due."""
    APPROVAL = 3
    RATE = 4
    """Its rate is used up for now."""


class Waiting(NamedTuple):
    """A run that needs a parcel; a tuple because there are very many of them."""

    id: RunId
    tenant: TenantId
    due_at: datetime
    priority: int
    queue: str
    fair: int = 0
    gate: str | None = None
    when_full: int = WAIT
    line: JobId | None = None
    rate: str | None = None
    job: JobId | None = None
    overlap: int = 0
    """The number of its overlap policy."""
    held: Hold = Hold.NONE


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
    terms: Terms = BARE
    held: Hold = Hold.NONE

    @property
    def rank(self) -> datetime:
        """The order among visible parcels of a tenant."""
        return rank_of(self.visible_at, self.priority, self.lane)

    @property
    def hint(self) -> tuple[ShardId, str, TenantId, datetime, int]:
        """Where and when it waits, as hints tell it."""
        return self.shard, self.queue, self.tenant, self.visible_at, self.terms.fair


def rank_of(visible_at: datetime, priority: int, lane: Lane = Lane.ON_TIME) -> datetime:
    """A high priority acts as if visible earlier, so low priority ages and cannot starve.

    What is being caught up acts as if visible later, by a bounded time: it ages as well.
    """
    rank = visible_at - priority * BOOST_PER_PRIORITY
    return rank + CATCH_UP_PENALTY if lane is Lane.CATCH_UP else rank


def pack(
    shard: ShardId,
    waiting: Iterable[Waiting],
    *,
    lane: Lane = Lane.ON_TIME,
    quantum_ms: int = QUANTUM_MS,
    most: int = RUNS_MAX,
) -> list[Parcel]:
    """Put runs into as few parcels as may be.

    Runs share a parcel when tenant, queue, priority, fairness bucket and nearly the due time are
    the same; none becomes visible before it is due. Whoever has a gate, a line or a rate travels
    alone. A parcel is named after its first run, so packing the same runs again gives the same.
    """
    groups: dict[tuple[TenantId, str, int, int, int, RunId | None], list[Waiting]] = {}
    for run in waiting:
        shares = run.gate is None and run.line is None and run.rate is None and not run.held
        alone = None if shares else run.id
        quantum = to_ms(run.due_at) // quantum_ms
        key = (run.tenant, run.queue, run.priority, run.fair, quantum, alone)
        groups.setdefault(key, []).append(run)
    return [
        _parcel(shard, runs[start : start + most], lane)
        for runs in groups.values()
        for start in range(0, len(runs), most)
    ]


def _parcel(shard: ShardId, runs: list[Waiting], lane: Lane) -> Parcel:
    first = runs[0]
    return Parcel(
        shard=shard,
        id=ParcelId(first.id),
        tenant=first.tenant,
        queue=first.queue,
        priority=first.priority,
        visible_at=max(run.due_at for run in runs),
        runs=tuple(run.id for run in runs),
        lane=lane,
        terms=Terms(first.fair, first.gate, first.when_full, first.line, first.rate),
        held=first.held,
    )


def out_of_sight(fence: Fence, *, attended: bool = False) -> timedelta:
    """How long a run hides that was handed to somebody who cannot do it: 50 ms, 100 ms … 30 s.

    While somebody is there who can (`attended`), it stays with a moment: what was handed out often
    may just have been tried often.
    """
    most = ATTENDED_MAX if attended else HIDDEN_MAX
    return min(most, HIDDEN * (1 << min(max(0, fence - 1), 10)))


def split(parcel: Parcel, ids: Iterable[ParcelId]) -> list[Parcel]:
    """The pieces of an abandoned parcel; they inherit what it has cost so far.

    `ids` names the pieces after the first, which keeps the old name.
    """
    size = -(-len(parcel.runs) // SPLIT_INTO)
    names = iter((parcel.id, *ids))
    return [
        replace(parcel, id=next(names), runs=parcel.runs[start : start + size])
        for start in range(0, len(parcel.runs), size)
    ]
