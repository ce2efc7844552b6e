"""Which shards should a node want? Pure arithmetic over what everybody can see.

Every live coordinator has its quota: an equal part, and one more for as many nodes, in the order of
their ids, as there is a remainder. A node takes what is free or expired up to its quota and gives
away what it has above it, a few per pass, so that a newcomer is served soon and a rebalance is
never a storm. Nobody takes from the living: only the owner gives away. Two nodes that see
different lists of the living may both want a shard; the database gives it to one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from betimes.domain.ids import NodeId, ShardId


@dataclass(frozen=True, slots=True)
class Seen:
    """One shard: its owner, if the lease has not run out."""

    shard: ShardId
    owner: NodeId | None


@dataclass(frozen=True, slots=True)
class Moves:
    """What to take and what to give away in this pass."""

    acquire: tuple[ShardId, ...]
    release: tuple[ShardId, ...]


def balance(
    me: NodeId,
    shards: Sequence[Seen],
    live: Collection[NodeId],
    *,
    acquire_max: int,
    release_max: int,
    shards_max: int,
) -> Moves:
    """The moves of one node in one pass; `live` are the coordinators that are not leaving."""
    nodes = sorted({*live, me})
    mine = [seen.shard for seen in shards if seen.owner == me]
    free = [seen.shard for seen in shards if seen.owner is None]
    quota = min(shards_max, quota_of(nodes.index(me), len(nodes), len(shards)))
    # Alone there is nobody to be gentle to, and everything that is free is late.
    most = acquire_max if len(nodes) > 1 else len(shards)
    room = max(0, quota - len(mine))
    # Nodes that wake together begin at different places instead of all reaching for the first.
    start = nodes.index(me) * len(free) // len(nodes)
    order = free[start:] + free[:start]
    return Moves(tuple(order[: min(room, most)]), tuple(mine[quota:][:release_max]))


def quota_of(position: int, nodes: int, shards: int) -> int:
    """How many shards the node at a position among the living should own."""
    part, remainder = divmod(shards, nodes)
    return part + (position < remainder)
