"""From files and tables to a history."""

import asyncio
import json
import time
from typing import Any
from uuid import UUID

from betimes.testing.checker import expected_fires
from betimes.testing.history import (
    Bounds,
    CompletionFact,
    DeathFact,
    EndFact,
    History,
    JobFact,
    LeaseFact,
    PlanFact,
    RunFact,
    ShardFact,
    SkipFact,
    StartFact,
)
from chaos.load import PATIENT, POISON_ATTEMPTS, Client
from chaos.stage import Stage

ATTEMPTS = int(PATIENT["retry"]["max_attempts"])  # type: ignore[call-overload]
REFUSED_OWNER = {"fenced out", "taken by another node"}
SNAPSHOT = """
    SELECT jobs.id, created_at, next_fire_at,
           (SELECT max(fire_at) FROM betimes.runs
             WHERE runs.shard = jobs.shard AND runs.job_id = jobs.id) AS latest,
           (SELECT count(*) FROM betimes.runs
             WHERE runs.shard = jobs.shard AND runs.job_id = jobs.id) AS runs,
           (SELECT coalesce(sum(fires), 0) FROM betimes.decisions
             WHERE decisions.shard = jobs.shard AND decisions.job_id = jobs.id
               -- What gave way to an earlier run has a run as well.
               AND code <> 'OVERLAP_SKIPPED') AS skipped,
           ARRAY(SELECT ARRAY[extract(epoch FROM from_at), extract(epoch FROM until_at)]
                   FROM betimes.gaps
                  WHERE gaps.shard = jobs.shard AND gaps.job_id = jobs.id) AS gaps
      FROM betimes.jobs
"""


class Snapshots:
    """Looks at jobs and runs in one snapshot, again and again."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self._stage = stage
        self._client = client
        self.plans: list[PlanFact] = []

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0.7)
            try:
                rows = await self._stage.fetch(SNAPSHOT)
            except Exception:  # noqa: BLE001, S112 -- the database is away: nothing to be seen
                continue
            self.plans += [
                self._plan(row)
                for row in rows
                if row["latest"] is not None and row["next_fire_at"] is not None
            ]

    def _plan(self, row: Any) -> PlanFact:
        following = row["next_fire_at"].timestamp()
        every = self._client.every.get(row["id"], 1)
        expected = expected_fires(every, row["created_at"].timestamp(), following - 0.5)
        missing = len(expected) - row["runs"] - int(row["skipped"])
        # A gap is recorded with the advance and settled later, fire by fire.
        for first, last in row["gaps"]:
            missing -= len(expected_fires(every, float(first) - 0.5, float(last)))
        return PlanFact(row["id"], following, row["latest"].timestamp(), missing)


async def until_quiet(stage: Stage, until: float, seconds: float = 60.0) -> None:
    """Wait until everything that was due has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        rows = await stage.fetch(
            "SELECT count(*) AS left FROM betimes.runs WHERE state < 4"
            " AND due_at <= to_timestamp($1)",
            until,
        )
        if rows[0]["left"] == 0:
            return
        await asyncio.sleep(0.3)


async def collect(
    stage: Stage, client: Client, plans: list[PlanFact], *, until: float, bounds: Bounds
) -> History:
    """Everything that was recorded, after the drain."""
    history = History(
        bounds=bounds,
        acknowledged=set(client.acknowledged),
        unknown=set(client.unknown),
        plans=plans,
        cancelled=dict(client.cancelled),
        paused=list(client.paused),
        faults=list(stage.faults),
    )
    # The nodes go on working: effects are read before the intents that must precede them.
    _witnessed(stage, history)
    await _final(stage, client, history, until)
    await _commits(stage, history)
    _refusals(stage, history)
    return history


async def _final(stage: Stage, client: Client, history: History, until: float) -> None:
    for row in await stage.fetch("SELECT id, created_at FROM betimes.jobs"):
        every = client.every.get(row["id"], 1)
        history.jobs.append(JobFact(row["id"], every, row["created_at"].timestamp()))
    for row in await stage.fetch("SELECT * FROM betimes.runs"):
        due_at, fire_at = row["due_at"].timestamp(), row["fire_at"]
        if row["job_id"] is not None and due_at > until:
            continue  # planned ahead
        attempts = POISON_ATTEMPTS if row["handler"] == "poison" else ATTEMPTS
        history.runs.append(
            RunFact(
                row["id"],
                row["job_id"],
                None if fire_at is None else fire_at.timestamp(),
                due_at,
                row["state"],
                row["attempt"],
                attempts,
                row["reason"],
            )
        )
    for row in await stage.fetch("SELECT * FROM betimes.decisions"):
        first = row["fire_at"].timestamp()
        last = first if row["until_at"] is None else row["until_at"].timestamp()
        history.skips.append(SkipFact(row["job_id"], first, last, row["code"]))
    letters = await stage.fetch("SELECT run_id FROM betimes.dead_letters")
    history.dead_letters = {row["run_id"] for row in letters}


async def _commits(stage: Stage, history: History) -> None:
    for row in await stage.fetch("SELECT * FROM evidence.shards ORDER BY place"):
        through = row["published_through"]
        history.shards.append(
            ShardFact(
                row["place"],
                row["shard"],
                row["owner"],
                row["epoch"],
                None if through is None else through.timestamp(),
                row["at"].timestamp(),
            )
        )
    for row in await stage.fetch("SELECT * FROM evidence.leases ORDER BY place"):
        seen, visible = row["at"].timestamp(), row["visible_at"].timestamp()
        history.leases.append(LeaseFact(_moment(row), row["run"], row["fence"], visible, seen))
    for row in await stage.fetch("SELECT * FROM evidence.changes ORDER BY place"):
        history.completions.append(
            CompletionFact(
                _moment(row),
                row["run"],
                row["before"],
                row["after"],
                row["fence"],
                row["at"].timestamp(),
            )
        )


def _moment(row: Any) -> int:
    """Leases and changes have counters of their own; the database's clock orders both."""
    return int(row["at"].timestamp() * 1_000_000)


def _witnessed(stage: Stage, history: History) -> None:
    for line in stage.witness_path.read_text().splitlines():
        said = json.loads(line)
        run = UUID(said["run"])
        job = None if said["job"] is None else UUID(said["job"])
        match said["what"]:
            case "start":
                history.starts.append(
                    StartFact(
                        run,
                        said["attempt"],
                        said["fence"],
                        said["process"],
                        said["at"],
                        job,
                        said["fire_at"],
                    )
                )
            case "end":
                history.ends.append(EndFact(run, said["fence"], said["at"]))
            case _:
                history.deaths.append(DeathFact(run, said["at"]))


def _refusals(stage: Stage, history: History) -> None:
    history.coordinator_refusals = stage.refused
    history.stale_accepted = list(stage.accepted)
    for event in stage.events():
        if event.get("event") == "shard.lost" and event.get("why") in REFUSED_OWNER:
            history.coordinator_refusals += 1
        if event.get("event") == "worker.lease_lost":
            history.worker_refusals += 1
