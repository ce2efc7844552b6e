"""The desk of a node: what its verbs are given."""

from betimes.app.node import Node
from betimes.ops.desk import Desk
from betimes.ops.shelf import Shelf
from betimes.ops.vault import Vault
from betimes.store.hints import Hinter
from betimes.store.shards import Shards


async def desk_of(
    node: Node, hints: Hinter, *, vault: Vault | None = None, shelf: Shelf | None = None
) -> Desk:
    """A desk on the node's database; `hints` tells workers and planners of what it writes."""
    return Desk(
        database=node.database,
        clock=node.clock,
        hints=hints,
        entropy=node.dice.entropy,
        shards=await Shards(node.database, node.card.id).count(),
        tzdata=node.card.tzdata,
        margin=node.settings.coordinator.margin,
        vault=vault,
        seals=node.settings.vault.payloads == "sealed",
        shelf=shelf,
    )
