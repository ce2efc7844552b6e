"""Whose turn it is: pure. Weights, limits and quotas of tenants will enter here."""

from collections.abc import Mapping, Sequence
from heapq import nsmallest

from betimes.domain.ids import TenantId
from betimes.store.parcels import Source

Pair = tuple[str, TenantId]
"""A queue and a tenant: what shares are counted by."""

DECAY_ABOVE = 1_000_000


def pick(due: Sequence[Source], served: Mapping[Pair, float], *, most: int) -> list[Source]:
    """Sources of the pairs that were served least; among the shards of a pair the first in line."""
    return nsmallest(most, due, key=lambda source: served.get((source.queue, source.tenant), 0.0))


def credit(
    served: Mapping[Pair, float], runs: Mapping[Source, int], *, due: Sequence[Source]
) -> dict[Pair, float]:
    """The shares after a turn, given how many runs came from where.

    Only pairs that wait now are remembered, and all are measured from the least served one: who
    comes back after a pause neither has saved up turns nor owes any.
    """
    waiting = {(one.queue, one.tenant) for one in due}
    floor = min((served.get(pair, 0.0) for pair in waiting), default=0.0)
    after = {pair: served.get(pair, floor) - floor for pair in waiting}
    for source, count in runs.items():
        pair = (source.queue, source.tenant)
        after[pair] = after.get(pair, 0.0) + count
    return after
