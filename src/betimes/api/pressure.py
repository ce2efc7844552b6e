"""Signals of a system that falls behind: how late due work is, and how long requests wait for room.

Both are looked at once a second, so that deciding about a request costs a comparison. A signal that
cannot be read keeps nobody out: the requests themselves will notice an absent database.
"""

from collections.abc import Callable
from datetime import timedelta
from enum import IntEnum

from betimes.api.problem import Trouble
from betimes.config.api import ApiSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import SchedulerError
from betimes.ops.cluster import read_lag
from betimes.ops.desk import Desk
from betimes.telemetry import Telemetry

LOOK_SECONDS = 1.0
PRIORITY_USUAL = 5
SEVERE = 4
"""How many times a bound must be passed before even usual creations are refused."""


class Level(IntEnum):
    """How much is too much."""

    NONE = 0
    LOW_PRIORITY = 1
    ALL_CREATIONS = 2


class Pressure:
    """What the signals say; `run` is its loop and belongs into a TaskGroup."""

    def __init__(
        self,
        *,
        desk: Desk,
        settings: ApiSettings,
        clock: Clock,
        telemetry: Telemetry,
        pool_wait: Callable[[], float],
    ) -> None:
        self._desk = desk
        self._lag_bound = settings.shed_due_lag.total_seconds()
        self._wait_bound = settings.shed_pool_wait.total_seconds()
        self._clock = clock
        self._pool_wait = pool_wait
        self._shed = telemetry.counter("betimes_requests_shed_total")
        self.due_lag = 0.0

    @property
    def pool_wait(self) -> float:
        """How long requests waited for a connection lately."""
        return self._pool_wait()

    @property
    def level(self) -> Level:
        """What has to stay outside."""
        worst = max(self.due_lag / self._lag_bound, self.pool_wait / self._wait_bound)
        if worst > SEVERE:
            return Level.ALL_CREATIONS
        return Level.LOW_PRIORITY if worst > 1 else Level.NONE

    def check(self, priority: int) -> None:
        """Turn a creation away while the system is behind, unimportant ones first."""
        level = self.level
        if level is Level.NONE or (level is Level.LOW_PRIORITY and priority >= PRIORITY_USUAL):
            return
        behind = self.due_lag > self._lag_bound
        self._shed.add(signal="due_lag" if behind else "pool_wait")
        what = "due work is late" if behind else "requests wait for the database"
        raise Trouble(
            "overloaded",
            f"{what}; new work of priority {priority} has to wait",
            headers={"Retry-After": "5"},
        )

    async def run(self) -> None:
        """Look at the signals until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Read how late due work is."""
        try:
            self.due_lag = max(await read_lag(self._desk), timedelta(0)).total_seconds()
        except SchedulerError:
            self.due_lag = 0.0


def least_priority(body: object) -> int:
    """The priority of what a body asks for; of a batch the least."""
    items = getattr(body, "items", None)
    if isinstance(items, list):
        return min((getattr(item, "priority", PRIORITY_USUAL) for item in items), default=0)
    found = getattr(body, "priority", None)
    return PRIORITY_USUAL if found is None else int(found)
