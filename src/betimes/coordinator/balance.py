"""Which shards should a node want? Pure arithmetic over what everybody can see.

Every live coordinator has its quota: an equal part, and one more for as many nodes, in the order of
their ids, as there is a remainder. A node that has said how many shards it can serve gets no more
than that while the others can serve the rest; where all together cannot, everybody gets in
proportion, because a shard that is served slowly is better off than one that nobody has. A node
takes what is free or expired up to its quota and gives away what it has above it, a few per pass,
so that a newcomer is served soon and a rebalance is never a storm. Nobody takes from the living:
only the owner gives away. Two nodes that see different lists of the living may both want a shard;
the database gives it to one.

What stays free is an orphan: those whose part it would be died, froze or are not there yet, and
are still on the list. Whoever sees an orphan takes it, whatever its quota.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from betimes.domain.ids import NodeId, ShardId


@dataclass(frozen=True, slots=True)
class Seen:
    """One shard: its owner, if the lease has not run out."""

    shard: ShardId
    owner: NodeId | None
    orphan: bool = False
    """It has been free for longer than anybody who is there would have needed to take it."""


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
    capacities: Mapping[NodeId, int] | None = None,
) -> Moves:
    """The moves of one node in one pass; `live` are the coordinators that are not leaving."""
    nodes = sorted({*live, me})
    mine = [seen.shard for seen in shards if seen.owner == me]
    free = [seen.shard for seen in shards if seen.owner is None]
    orphans = {seen.shard for seen in shards if seen.orphan}
    quota = min(shards_max, quotas(nodes, capacities or {}, len(shards))[me])
    # Alone there is nobody to be gentle to, and everything that is free is late.
    most = acquire_max if len(nodes) > 1 else len(shards)
    room = max(0, quota - len(mine))
    # Nodes that wake together begin at different places instead of all reaching for the first.
    start = nodes.index(me) * len(free) // len(nodes)
    order = free[start:] + free[:start]
    wanted = order[: min(room, most)]
    left = max(0, min(shards_max - len(mine), acquire_max) - len(wanted))
    late = [shard for shard in order[len(wanted) :] if shard in orphans]
    # Nothing more is given away than is taken: what lies free is late, whoever shall have it.
    gift = max(0, release_max - len(free))
    return Moves((*wanted, *late[:left]), tuple(mine[quota:][:gift]))


def quotas(
    nodes: Sequence[NodeId], capacities: Mapping[NodeId, int], shards: int
) -> dict[NodeId, int]:
    """How many shards each of the living should own: together all, nobody above what it can."""
    limits = {node: min(shards, capacities.get(node, shards)) for node in nodes}
    total = sum(limits.values())
    if total < shards:
        limits = {node: limit * shards // total for node, limit in limits.items()}
        for node in list(limits)[: shards - sum(limits.values())]:
            limits[node] += 1
        return limits
    found: dict[NodeId, int] = {}
    while True:
        rest = [node for node in nodes if node not in found]
        left = shards - sum(found.values())
        full = [node for node in rest if limits[node] <= left // len(rest)]
        if not full or len(full) == len(rest):
            parts = ((node, quota_of(at, len(rest), left)) for at, node in enumerate(rest))
            return dict(chain(found.items(), parts))
        found |= {node: limits[node] for node in full}


def quota_of(position: int, nodes: int, shards: int) -> int:
    """How many shards the node at a position among the living should own."""
    part, remainder = divmod(shards, nodes)
    return part + (position < remainder)
