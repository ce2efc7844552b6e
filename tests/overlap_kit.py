"""One job with an overlap policy whose first run takes too long, and what became of its fires."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from betimes.domain.ids import RunId
from betimes.domain.job import Job
from betimes.domain.states import RunState, Trigger
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.ops import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.store.database import Database
from betimes.store.overlap import OVERLAP_CANCELLED
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import TENANT, every, fetch, make_desk, runs_of

PERIOD = 12
FINAL = RunState.SUCCEEDED


@dataclass
class Case:
    """One job with a policy, and a line that is moved by hand."""

    database: Database
    clock: ManualClock
    desk: Desk
    line: Line
    job: Job
    began: datetime
    ended: list[RunId] = field(default_factory=list)

    def at(self, seconds: float) -> datetime:
        return self.began + timedelta(seconds=seconds)

    async def until(self, seconds: float) -> None:
        """Let time pass up to so many seconds after the beginning; nobody leases."""
        await self.line.coordinate((self.at(seconds) - self.clock.now()).total_seconds())

    async def states(self) -> dict[float, str]:
        """What became of each fire that is due, by its second."""
        rows = await runs_of(self.database, self.job.id)
        held = {run for parcel in await self.parcels() for run in parcel["run_ids"]}
        return {
            (row["fire_at"] - self.began).total_seconds(): shown(row, held)
            for row in rows
            if row["fire_at"] is not None and row["fire_at"] <= self.clock.now()
        }

    async def parcels(self) -> list[asyncpg.Record]:
        return await fetch(self.database, "SELECT * FROM betimes.parcels ORDER BY visible_at, id")

    async def run_at(self, seconds: float) -> asyncpg.Record:
        (row,) = [
            row
            for row in await runs_of(self.database, self.job.id)
            if row["fire_at"] == self.at(seconds)
        ]
        return row

    async def accounted(self) -> None:
        """Every fire has a run; exactly the skipped ones have a decision as well."""
        rows = await runs_of(self.database, self.job.id)
        decided = await fetch(self.database, "SELECT fire_at, code FROM betimes.decisions")
        skipped = [
            row["fire_at"]
            for row in rows
            if row["reason"] == OVERLAP_SKIPPED and row["trigger"] == Trigger.SCHEDULE
        ]
        assert sorted(row["fire_at"] for row in decided) == sorted(skipped)
        assert {row["code"] for row in decided} <= {OVERLAP_SKIPPED}
        for row in rows:
            gave_way = row["reason"] in {OVERLAP_SKIPPED, OVERLAP_CANCELLED}
            assert (row["blocked_by"] is not None) == gave_way
            assert row["blocked_by"] != row["id"]


def shown(row: asyncpg.Record, held: set[RunId]) -> str:
    if row["state"] >= FINAL:
        return RunState(row["state"]).name.lower()
    return "waits" if row["id"] in held else "lost"


async def begin(
    database: Database, clock: ManualClock, policy: str, *, period: int = PERIOD, **more: Any
) -> Case:
    """A job whose first run is under way one second after its fire."""
    desk, began = make_desk(database, clock), clock.now()
    definition = every(period, schedule={"overlap": policy, **more})
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    line = await Line.make(database, clock)
    case = Case(database, clock, desk, line, job, began)
    await case.until(period + 1)
    assert await line.lease() == 1
    return case
