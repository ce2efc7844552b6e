"""What jobs have before them, as their runs say."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from betimes.domain.ids import JobId, shard_of
from betimes.store.ask import many
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("ahead")
NEWEST_MAX = 256
"""So many runs are looked at before a job without a next fire counts as done."""


class Ahead(NamedTuple):
    """The next fire of a job that is planned; where there is none, later ones that are over."""

    fire_at: datetime | None
    over: Sequence[datetime]


async def find_ahead(
    connection: Connection, jobs: Sequence[JobId], *, low: UUID
) -> dict[JobId, Ahead]:
    """What is planned of some jobs from an id on; those of which nothing is are missing."""
    if not jobs:
        return {}
    rows = await many(connection, SQL["find_ahead"], low=low, most=NEWEST_MAX, **_places(jobs))
    return {row["id"]: Ahead(row["fire_at"], row["over"] or ()) for row in rows}


async def find_unended(connection: Connection, jobs: Sequence[JobId]) -> set[JobId]:
    """Those of some jobs that have a fire which is not over."""
    if not jobs:
        return set()
    rows = await many(connection, SQL["find_unended"], most=NEWEST_MAX, **_places(jobs))
    return {row["id"] for row in rows}


def _places(jobs: Sequence[JobId]) -> dict[str, list[object]]:
    return {"shards": [shard_of(job) for job in jobs], "ids": list(jobs)}
