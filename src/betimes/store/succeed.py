"""Plain successes: lock what we hold, then one statement; the bare line's fast path."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from betimes.domain.ids import Fence, JobId, ParcelId, ShardId, WorkerId
from betimes.store.admit import Offered
from betimes.store.ending import Streak
from betimes.store.failures import AutoPaused
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.release import Freed

SQL = load("finish")
NOBODY = UUID(int=0)


@dataclass(slots=True)
class Held:
    """Which parcels a flush is about, and which of them it empties."""

    fences: dict[ParcelId, Fence]
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


@dataclass(frozen=True, slots=True)
class Succeeding:
    """One transaction of plain successes."""

    connection: Connection
    worker: WorkerId
    shard: ShardId

    async def write(self, held: Held, streaks: Sequence[Streak]) -> int:
        """Finish what is still ours; how many runs."""
        ours = await self._lock(held)
        if len(ours) < len(held.fences):
            streaks = [one for one in streaks if one.parcel in ours]
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
        going_on = held.counted & ours - {*held.emptied}
        if going_on:
            gone = [run for one in streaks if one.parcel in going_on for run in one.runs]
            await SQL["shrink_parcels"].execute(
                self.connection, shard=self.shard, ids=list(going_on), gone=gone
            )
        return written

    async def _lock(self, held: Held) -> set[ParcelId]:
        query = SQL["lock_parcels"]
        arguments = query.arguments(
            {
                "shard": self.shard,
                "worker": self.worker,
                "parcels": list(held.fences),
                "fences": list(held.fences.values()),
            }
        )
        return {row["id"] for row in await self.connection.fetch(query.text, *arguments)}


def _results(streaks: Sequence[Streak]) -> list[bytes | None] | None:
    """None when there is none at all: most handlers return nothing, and nothing is sent for it."""
    if all(one.results is None for one in streaks):
        return None
    return [
        result
        for one in streaks
        for result in (one.results or itertools.repeat(None, len(one.runs)))
    ]
