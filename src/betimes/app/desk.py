"""The desk of a node: what its verbs are given."""

from datetime import timedelta

from betimes.app.node import Node
from betimes.config.settings import Settings
from betimes.ops.desk import Desk
from betimes.ops.shelf import Shelf
from betimes.ops.vault import Vault
from betimes.store.hints import Hinter
from betimes.store.shards import Shards

BEATS = 3
"""So many heartbeats a node may miss before it counts as gone."""


def seen_within(settings: Settings) -> timedelta:
    """How old the last heartbeat of a worker or a node may be: as old as a lease without one."""
    return max(
        settings.worker.lease_ttl, settings.api.lease_ttl, BEATS * settings.server.presence_every
    )


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
        seen_within=seen_within(node.settings),
        vault=vault,
        seals=node.settings.vault.payloads == "sealed",
        shelf=shelf,
    )
