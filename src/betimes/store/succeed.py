"""Plain successes: lock what we hold, then one statement; the bare line's fast path."""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from betimes.domain.ids import JobId, ParcelId, RunId, ShardId, WorkerId
from betimes.domain.leased import Lease, Streak
from betimes.store.admit import Offered
from betimes.store.ending import Ending
from betimes.store.failures import AutoPaused
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.release import Freed

SQL = load("finish")
NOBODY = UUID(int=0)
Told = TypeVar("Told", Streak, Ending)


@dataclass(slots=True)
class Held:
    """Which leases a flush is about, and which parcels it empties."""

    leases: Collection[Lease]
    """As their holders claim; of one parcel there may be several, and one of them is good."""
    emptied: list[ParcelId] = field(default_factory=list)
    freed: Freed = field(default_factory=Freed)
    """The gates and lines of those that end; learned from the rows for the slower endings."""
    offered: list[Offered] = field(default_factory=list)
    """Who may come next, once it is written."""
    counted: frozenset[ParcelId] = frozenset()
    """Those under a ceiling or rate: what is done of them makes room before all of it is, and
    whatever did not start has used no token."""
    pausing: frozenset[JobId] | None = None
    """Those of the jobs whose runs die that pause after some failures; None: not asked yet. Asked
    for, and locked, before any parcel."""
    paused: list[AutoPaused] = field(default_factory=list)
    """Jobs that failed too often in a row."""
    given_up: frozenset[RunId] = frozenset()
    """Runs that were cancelled because somebody had asked for it, however their attempts ended."""

    @staticmethod
    def valid(told: Iterable[Told], good: Collection[Lease]) -> list[Told]:
        """What was told under leases that are good. The one place where a report is judged.

        By its own fence, not by its parcel: what an older holder says travels in the same flush as
        what the newer one says, when both are the same worker.
        """
        return [one for one in told if one.lease in good]


@dataclass(frozen=True, slots=True)
class Succeeding:
    """One transaction of plain successes."""

    connection: Connection
    worker: WorkerId
    shard: ShardId

    async def write(self, held: Held, streaks: Sequence[Streak]) -> int:
        """Finish what is still ours; how many runs."""
        good = await self._lock(held)
        return await self.finish(held, held.valid(streaks, good), {parcel for parcel, _ in good})

    async def finish(
        self, held: Held, streaks: Sequence[Streak], ours: Collection[ParcelId]
    ) -> int:
        """Finish runs of parcels that are locked; how many there were to finish."""
        runs = [run for one in streaks for run in one.runs]
        arguments = SQL["finish_succeeded"].arguments(
            {
                "shard": self.shard,
                "worker": self.worker,
                "emptied": [parcel for parcel in held.emptied if parcel in ours],
                "runs": runs,
                "streaks": [n for n, one in enumerate(streaks, start=1) for _ in one.runs],
                "results": _results(streaks),
                "fences": [one.fence for one in streaks],
                "attempts": [one.attempt for one in streaks],
                "started": [one.started_at for one in streaks],
                "finished": [one.finished_at for one in streaks],
                "low": min(runs, default=NOBODY),
            }
        )
        written = int(await self.connection.fetchval(SQL["finish_succeeded"].text, *arguments))
        going_on = held.counted & {*ours} - {*held.emptied}
        if going_on:
            gone = [run for one in streaks if one.parcel in going_on for run in one.runs]
            await SQL["shrink_parcels"].execute(
                self.connection, shard=self.shard, ids=list(going_on), gone=gone
            )
        return written

    async def _lock(self, held: Held) -> set[Lease]:
        query = SQL["lock_parcels"]
        arguments = query.arguments(
            {
                "shard": self.shard,
                "worker": self.worker,
                "parcels": [parcel for parcel, _ in held.leases],
                "fences": [fence for _, fence in held.leases],
            }
        )
        rows = await self.connection.fetch(query.text, *arguments)
        return {(row["id"], row["fence"]) for row in rows}


def _results(streaks: Sequence[Streak]) -> list[bytes | None] | None:
    """None when there is none at all: most handlers return nothing, and nothing is sent for it."""
    if all(one.results is None for one in streaks):
        return None
    return [
        result
        for one in streaks
        for result in (one.results or itertools.repeat(None, len(one.runs)))
    ]
