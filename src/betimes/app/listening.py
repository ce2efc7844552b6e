"""Hearing hints, where that is possible."""

import asyncio
from collections.abc import Mapping, Sequence

from betimes.app.node import Node
from betimes.store.listen import Hear, Listener


def waking(duties: Mapping[str, asyncio.Event]) -> Hear:
    """Wakes duties by the names that are told; nothing told means that any of them may be meant."""

    def hear(_channel: str, payload: str) -> None:
        for duty in payload.splitlines() or duties:
            if (nudge := duties.get(duty)) is not None:
                nudge.set()

    return hear


def hears(node: Node) -> bool:
    """Whether there is a direct connection to listen on; behind a pooler polls must do."""
    return not node.database.address.pooled or node.listen_dsn != node.database.address.dsn


def listener(node: Node, channels: Sequence[str], hear: Hear) -> Listener | None:
    """A listener on a direct connection; None where there is none."""
    if not hears(node):
        return None
    return Listener(
        dsn=node.listen_dsn,
        settings=node.settings.database,
        channels=channels,
        hear=hear,
        clock=node.clock,
        roll=node.dice.roll,
    )
