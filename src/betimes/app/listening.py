"""Hearing hints, where that is possible."""

from collections.abc import Sequence

from betimes.app.node import Node
from betimes.store.listen import Hear, Listener


def listener(node: Node, channels: Sequence[str], hear: Hear) -> Listener | None:
    """A listener on a direct connection; None behind a pooler, where polls must do."""
    if node.database.address.pooled and node.listen_dsn == node.database.address.dsn:
        return None
    return Listener(
        dsn=node.listen_dsn,
        settings=node.settings.database,
        channels=channels,
        hear=hear,
        clock=node.clock,
        roll=node.dice.roll,
    )
