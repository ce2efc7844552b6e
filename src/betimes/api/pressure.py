"""Signals of a system that falls behind: how late due work is, and how long requests wait for room.

Both are looked at once a second, so that deciding about a request costs a comparison. A signal that
cannot be read keeps nobody out: the requests themselves will notice an absent database.
"""

from collections.abc import Callable
from datetime import timedelta

from betimes.api.problem import Trouble
from betimes.api.route import Load
from betimes.config.api import ApiSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import SchedulerError
from betimes.ops.cluster import read_lag
from betimes.ops.desk import Desk
from betimes.telemetry import Telemetry

LOOK_SECONDS = 1.0
REST_SECONDS = 5.0
"""The same while no requests come: so old is what the first ones are judged by at most."""
PRIORITY_USUAL = 5
LOW, READS, ALL = 1, 2, 4
"""How many times a bound must be passed before new work of low priority, reads, all new work go."""
SHED = frozenset({Load.CREATE, Load.READ, Load.AGGREGATE})


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
        self._is_asked = True
        self._looked_at = float("-inf")

    @property
    def pool_wait(self) -> float:
        """How long requests waited for a connection lately."""
        return self._pool_wait()

    def check(self, load: Load, body: object) -> None:
        """Turn a request away while the system is behind, what matters least first.

        Reads do not make due work late, so only their own waiting for connections counts for them.
        """
        self._is_asked = True
        lag, wait = self.due_lag / self._lag_bound, self.pool_wait / self._wait_bound
        if max(lag, wait) <= LOW:
            return
        if load is Load.CREATE:
            worst, bound = max(lag, wait), ALL
            if least_priority(body) < PRIORITY_USUAL:
                bound = LOW
        else:
            worst, bound = wait, LOW if load is Load.AGGREGATE else READS
        if worst <= bound:
            return
        behind = load is Load.CREATE and lag > LOW
        self._shed.add(signal="due_lag" if behind else "pool_wait")
        what = "due work is late" if behind else "requests wait for the database"
        raise Trouble(
            "overloaded", f"{what}; this kind of request has to wait", headers={"Retry-After": "5"}
        )

    async def run(self) -> None:
        """Look at the signals until cancelled."""
        while True:
            if self._is_asked or self._clock.monotonic() - self._looked_at >= REST_SECONDS:
                await self.look()
            await self._clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Read how late due work is."""
        self._is_asked, self._looked_at = False, self._clock.monotonic()
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
