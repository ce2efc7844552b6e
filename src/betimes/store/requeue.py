"""Runs that come again, on their way back into the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from betimes.domain.ids import ParcelId, ShardId
from betimes.domain.parcel import RUNS_MAX, Lane, Parcel, Waiting, pack
from betimes.domain.terms import Terms
from betimes.store.ending import Again, Ending


def packed_again(
    shard: ShardId,
    again: Sequence[tuple[Ending, Again]],
    terms: Mapping[ParcelId, Terms],
) -> list[Parcel]:
    """Parcels for runs that come again; those that only have to wait share them.

    What has failed travels alone: should it be what kills workers, it takes nobody with it. Who
    waits for the breaker of an origin shares with others who wait for the same.
    """
    names = {one.run: parcel.parcel for one, parcel in again}
    fences = {one.run: one.fence for one, _ in again}
    parcels: list[Parcel] = []
    groups: dict[tuple[bool, str | None], list[Waiting]] = {}
    for one, parcel in again:
        waiting = _waiting(one, parcel, terms[one.parcel])
        groups.setdefault((one.attempted is None, parcel.origin), []).append(waiting)
    for (together, _), alike in sorted(groups.items(), key=lambda group: not group[0][0]):
        most = RUNS_MAX if together else 1
        parcels += pack(shard, alike, lane=Lane.RETRY, most=most)
    return [
        replace(
            parcel,
            id=names[parcel.runs[0]],
            # Carried on, so that the fences of a run rise through all its parcels.
            fence=max(fences[run] for run in parcel.runs),
        )
        for parcel in parcels
    ]


def _waiting(ending: Ending, again: Again, terms: Terms) -> Waiting:
    return Waiting(
        id=ending.run,
        tenant=ending.tenant,
        due_at=again.visible_at,
        priority=ending.priority,
        queue=ending.queue,
        fair=terms.fair,
        gate=terms.gate,
        when_full=terms.when_full,
        line=terms.line,
        rate=terms.rate,
        handler=again.handler,
    )
