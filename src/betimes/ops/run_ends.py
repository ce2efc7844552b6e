"""Waiting for the ends of runs: one look for all that are awaited of a tenant."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import RunId, TenantId
from betimes.ops.desk import Desk
from betimes.rhythm import first_of
from betimes.store.pool import Connection
from betimes.store.runs import ended_runs

POLL_SECONDS = 0.2
RUNS_MAX = 1_000
"""Of one statement."""


@dataclass(slots=True)
class Awaited:
    """The runs of one tenant that somebody waits for."""

    tenant: TenantId
    runs: dict[RunId, list[asyncio.Event]] = field(default_factory=dict)


class RunEnds:
    """Tells those who wait for runs when these have ended."""

    def __init__(self, *, desk: Desk, clock: Clock) -> None:
        self._desk = desk
        self._clock = clock
        self._awaited: dict[TenantId, Awaited] = {}
        self._fresh: asyncio.Queue[Awaited] = asyncio.Queue()

    async def run(self) -> None:
        """Look for those who wait, until cancelled."""
        async with asyncio.TaskGroup() as lookers:
            while True:
                lookers.create_task(self._look_out(await self._fresh.get()))

    async def wait(self, tenant: TenantId, run: RunId, *, seconds: float) -> bool:
        """Wait for the end of a run; whether it has come."""
        awaited = self._awaited.get(tenant)
        if awaited is None:
            awaited = self._awaited[tenant] = Awaited(tenant)
            self._fresh.put_nowait(awaited)
        ended = asyncio.Event()
        awaited.runs.setdefault(run, []).append(ended)
        try:
            return await first_of(ended.wait(), self._clock.sleep(seconds)) == 0
        finally:
            waiting = awaited.runs[run]
            waiting.remove(ended)
            if not waiting:
                del awaited.runs[run]

    async def _look_out(self, awaited: Awaited) -> None:
        """Look every now and then, until nobody waits."""
        while True:
            await self._clock.sleep(POLL_SECONDS)
            runs = list(awaited.runs)
            if not runs:
                del self._awaited[awaited.tenant]
                return
            for first in range(0, len(runs), RUNS_MAX):
                try:
                    some = runs[first : first + RUNS_MAX]
                    ended = await read_ended_runs(self._desk, awaited.tenant, some)
                except Unavailable:
                    break  # those who wait go on waiting; it is told elsewhere
                for run in ended:
                    for event in awaited.runs.get(run, ()):
                        event.set()


async def read_ended_runs(desk: Desk, tenant: TenantId, runs: Sequence[RunId]) -> list[RunId]:
    """Those of some runs that are over."""

    async def read(connection: Connection) -> list[RunId]:
        return await ended_runs(connection, runs)

    return await desk.transact(read, tenant=tenant)
