"""Hints that leave after a commit and never inside one; losing every one of them only costs time.

NOTIFY takes a lock that is global to the server until after its commit, so it has no place in a
transaction that writes. The first hint leaves at once; what follows within the pause leaves
together, one line for each (shard, queue, tenant) and bucket of fairness keys, with the times when
something becomes visible:

    7:default:6b3f…:1767225600000,40,250        the first in ms since 1970, the others after it
    7/12:default:6b3f…:1767225600000            in bucket 12

A worker that knows the times wakes up for each of them; one that knew only the first would find the
others by its poll.
"""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol

from betimes.domain.clock import Clock
from betimes.domain.errors import SchedulerError
from betimes.domain.ids import ShardId, TenantId, to_us
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("server")
READY, PLAN, WAKE = "betimes_ready", "betimes_plan", "betimes_wake"
ADVANCE, BALANCE, DELIVER, OPERATE, ROUTE = "advance", "balance", "deliver", "operate", "route"
"""Duties that rest while there is nothing to do; their names are the lines on `WAKE`."""
PAUSE_SECONDS = 0.01
TIMES_MAX = 256
"""Most times remembered for one place; what comes later is found by polls."""
PAYLOAD_BYTES_MAX = 7_900
"""NOTIFY takes less than 8000."""

Place = tuple[ShardId, str, TenantId, int]


class Hinter(Protocol):
    """Whoever wrote something tells it here, after the commit."""

    def hint(
        self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime, fair: int = 0
    ) -> None:
        """A parcel waits, or will from an instant on."""
        ...

    def replan(self, shard: ShardId) -> None:
        """A job of the shard has a fire that may be near."""
        ...

    def wake(self, duty: str) -> None:
        """There is work for a duty that may be resting."""
        ...


class NoHints:
    """Says nothing, for those who need nobody to hurry."""

    def hint(
        self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime, fair: int = 0
    ) -> None:
        """Nothing."""

    def replan(self, shard: ShardId) -> None:
        """Nothing."""

    def wake(self, duty: str) -> None:
        """Nothing."""


NO_HINTS = NoHints()


class LaterHints:
    """Keeps hints until the transaction they belong to has ended."""

    def __init__(self) -> None:
        self._ready: list[tuple[ShardId, str, TenantId, datetime, int]] = []
        self._plans: list[ShardId] = []
        self._duties: list[str] = []

    def hint(
        self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime, fair: int = 0
    ) -> None:
        """Remember it."""
        self._ready.append((shard, queue, tenant, visible_at, fair))

    def replan(self, shard: ShardId) -> None:
        """Remember it."""
        self._plans.append(shard)

    def wake(self, duty: str) -> None:
        """Remember it."""
        self._duties.append(duty)

    def clear(self) -> None:
        """Forget everything: the transaction is done over."""
        self._ready.clear()
        self._plans.clear()
        self._duties.clear()

    def pass_on(self, hints: Hinter) -> None:
        """Tell it all to somebody who sends."""
        for ready in self._ready:
            hints.hint(*ready)
        for shard in self._plans:
            hints.replan(shard)
        for duty in self._duties:
            hints.wake(duty)


class Hints:
    """Collects hints and sends them from a loop of its own; failures are only counted."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        lane: Lane = Lane.ENGINE,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._database = database
        self._clock = clock
        self._lane = lane
        self._pause_seconds = pause_seconds
        self._waiting: dict[Place, set[int]] = {}
        self._plans: set[ShardId] = set()
        self._duties: set[str] = set()
        self._quiet_until = float("-inf")
        self._changed = asyncio.Event()
        self.sent = 0
        self.failures = 0

    def hint(
        self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime, fair: int = 0
    ) -> None:
        """Remember the time until it is sent."""
        times = self._waiting.setdefault((shard, queue, tenant, fair), set())
        if len(times) < TIMES_MAX:
            # Rounded up: whoever looks then finds it.
            times.add(-(-to_us(visible_at) // 1_000))
        self._changed.set()

    def replan(self, shard: ShardId) -> None:
        """Remember that a planner should look."""
        self._plans.add(shard)
        self._changed.set()

    def wake(self, duty: str) -> None:
        """Remember that a duty should look."""
        self._duties.add(duty)
        self._changed.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if (pause := await self.tick()) is not None:
                await self._clock.sleep(pause)
                self._changed.set()

    async def tick(self) -> float | None:
        """Send what may leave now; how long to wait for the rest, or None when nothing is left."""
        wait = self._quiet_until - self._clock.monotonic()
        if wait > 0:
            return wait
        waiting, self._waiting = self._waiting, {}
        plans, self._plans = self._plans, set()
        duties, self._duties = self._duties, set()
        if waiting or plans or duties:
            self._quiet_until = self._clock.monotonic() + self._pause_seconds
        lines = [_line(place, sorted(times)) for place, times in waiting.items()]
        for payload in payloads(lines):
            await self._send(READY, payload)
        for payload in payloads([str(shard) for shard in sorted(plans)]):
            await self._send(PLAN, payload)
        for payload in payloads(sorted(duties)):
            await self._send(WAKE, payload)
        return None

    async def _send(self, channel: str, payload: str) -> None:
        try:
            await self._database.many(
                SQL["send_hint"], lane=self._lane, channel=channel, payload=payload
            )
            self.sent += 1
        except SchedulerError:
            # Whoever waits for it polls; a queue of undelivered hints would be worth less.
            self.failures += 1


def _line(place: Place, times: list[int]) -> str:
    shard, queue, tenant, fair = place
    where = f"{shard}/{fair}" if fair else str(shard)
    first = times[0]
    later = "".join(f",{time - first}" for time in times[1:])
    return f"{where}:{queue}:{tenant}:{first}{later}"


def payloads(lines: Iterable[str]) -> Iterator[str]:
    """Lines put together as long as they fit into one notification."""
    chosen: list[str] = []
    size = 0
    for line in lines:
        length = len(line.encode()) + 1
        if chosen and size + length > PAYLOAD_BYTES_MAX:
            yield "\n".join(chosen)
            chosen, size = [], 0
        chosen.append(line)
        size += length
    if chosen:
        yield "\n".join(chosen)
