"""Telling the other nodes that this one is alive, and measuring its clock against the database's.

Informative: leases live elsewhere. The one thing a node learns from its row is that somebody has
asked it to finish and go.
"""

from datetime import datetime, timedelta

from betimes.app.node import Node
from betimes.domain.errors import Unavailable
from betimes.ops.cluster import APART_MAX
from betimes.rhythm import Stopping, beat
from betimes.store import nodes
from betimes.telemetry import Outage

ALIVE_BEATS = 3
JITTER = 0.1


class Presence:
    """A role that every node plays."""

    def __init__(self, *, node: Node) -> None:
        self._node = node
        self._every = node.settings.server.presence_every
        self._skew_ms: float | None = None
        self._known: int | None = None
        self._asked_to_go = False
        self._clock_is_off = False
        self._outage = Outage(duty="presence", telemetry=node.telemetry)
        self._skew = node.telemetry.gauge("betimes_clock_skew_seconds")

    async def run(self, stopping: Stopping) -> None:
        """Report until asked to stop, then report the draining."""
        roll = self._node.dice.roll
        async for _ in beat(
            self._node.clock, every=self._every, jitter=JITTER, roll=roll, stopping=stopping
        ):
            await self._try_tick()
            if self._asked_to_go:
                stopping.request("asked to drain")
        await self._try_tick(draining=True)

    async def _try_tick(self, *, draining: bool = False) -> None:
        """While the database is away keep the rhythm: whoever backs off is missed on its return."""
        try:
            await self.tick(draining=draining)
            self._outage.ended()
        except Unavailable as error:
            self._outage.failed(error)

    async def tick(self, *, draining: bool = False) -> int:
        """Write our row, read everybody's; returns how many nodes are alive."""
        node = self._node
        with node.telemetry.span("presence.tick") as span:
            span.expect_errors()  # the outage tells them, once
            asked_at = node.clock.now()
            told = await nodes.beat(
                node.database,
                node.card,
                skew_ms=self._skew_ms,
                draining=draining,
                now=node.clock.stated(),
            )
            # The answer was made somewhere between asking and hearing; the middle halves the error.
            middle = asked_at + (node.clock.now() - asked_at) / 2
            self._skew_ms = (middle - told) / timedelta(milliseconds=1)
            self._skew.set(self._skew_ms / 1000)
            self._tell_clock(self._skew_ms / 1000, told)
            alive = await nodes.seen_since(node.database, told - ALIVE_BEATS * self._every)
            self._asked_to_go = any(
                seen.id == node.card.id and seen.drain_at is not None for seen in alive
            )
            span.add(nodes=len(alive))
        if self._known != len(alive):
            self._known = len(alive)
            names = [seen.name for seen in alive]
            node.telemetry.event("presence.changed", nodes=names, database_time=told)
        return len(alive)

    def _tell_clock(self, seconds: float, database_time: datetime) -> None:
        """Say once that our clock is wrong, and once that it is right again."""
        is_off = abs(seconds) > APART_MAX.total_seconds()
        if is_off is not self._clock_is_off:
            self._clock_is_off = is_off
            self._node.telemetry.event(
                "clock.wrong" if is_off else "clock.right",
                level="warning" if is_off else "info",
                skew_seconds=round(seconds, 1),
                database_time=database_time,
            )
