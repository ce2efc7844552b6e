"""Midnight, the end of a year, and the day on which retention drops what has aged.

The database's clock starts a minute before the new year. Recurring jobs go through midnight. Then
runs that were acknowledged and cannot start wait while the clock is moved on, day by day, past the
age at which runs are dropped; after that whatever held them up is taken away, and each must be
executed, once.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from blackbox.api import Answer, Unclear
from blackbox.cluster import Cluster, Process, a_cluster
from blackbox.evidence import read_ledger
from blackbox.facts import id_of
from blackbox.postgres import faketime_library

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
BEFORE = timedelta(seconds=45)
AFTER = timedelta(seconds=20)
DAYS = 41
DROPPED_DAY = 36
"""Runs are kept for 30 days."""
PERIOD = 2
TICKERS = 10
PATIENCE_SECONDS = 120.0
DAY_SECONDS = 86_400.0


@dataclass
class Calendar:
    """One walk through the days."""

    cluster: Cluster
    say: Callable[[str], None]
    wrong: list[str] = field(default_factory=list)
    asked: int = 0

    def now(self) -> datetime:
        """The database's clock."""
        return datetime.fromtimestamp(time.time() + self.cluster.postgres.offset, UTC)

    async def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask until there is an answer that is not "later"."""
        self.asked += 1
        key = f"calendar-{self.asked}"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = await self.cluster.apis()[0].ask(method, path, body, idempotency_key=key)
            except Unclear as unclear:
                if time.monotonic() > deadline:
                    raise
                self.say(f"  calendar: {unclear}")
            else:
                if answer.status not in (429, 503) or time.monotonic() > deadline:
                    return answer
            await asyncio.sleep(0.5)

    async def make(self, method: str, path: str, body: Any = None) -> Any:
        """Ask for something that must be accepted."""
        answer = await self.ask(method, path, body)
        if not answer.ok:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body}")
        return answer.body

    def executed(self) -> Counter[UUID]:
        """How often each run was executed, by whoever did it."""
        return Counter(id_of(line["run"]) for line in read_ledger(self.cluster.ledger))

    async def until_executed(self, runs: dict[str, UUID]) -> None:
        """Wait for all of them; what does not come is wrong."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            times = self.executed()
            if all(times[run] for run in runs.values()):
                break
            await asyncio.sleep(0.5)
        for name, run in runs.items():
            if (often := self.executed()[run]) != 1:
                self.wrong.append(f"{name} was executed {often} times, not once")

    async def through_midnight(self) -> None:
        """Recurring jobs and one at midnight sharp, in the tables of both days."""
        target = {"type": "http", "url": f"http://127.0.0.1:{self.cluster.healthy_port}/ok"}
        every = {"type": "interval", "every": f"PT{PERIOD}S", "anchor": "1970-01-01T00:00:00Z"}
        tickers = [
            await self.make(
                "POST", "/v1/jobs", {"schedule": {**every, "overlap": "allow"}, "target": target}
            )
            for _ in range(TICKERS)
        ]
        created = self.now()
        midnight = await self.make("POST", "/v1/jobs", {"schedule": "0 0 1 1 *", "target": target})
        while self.now() < NEW_YEAR + AFTER:  # noqa: ASYNC110 -- another process has the clock
            await asyncio.sleep(0.5)
        for job in tickers:
            await self.make("POST", f"/v1/jobs/{job['id']}/pause", {})
        first = (int(created.timestamp()) // PERIOD + 1) * PERIOD
        last = int((NEW_YEAR + AFTER - timedelta(seconds=5)).timestamp())
        expected = set(range(first, last + 1, PERIOD))
        for job in tickers:
            rows = await self.cluster.fetch(
                "SELECT extract(epoch FROM fire_at)::bigint AS fire FROM betimes.runs"
                " WHERE job_id = $1",
                id_of(job["id"]),
            )
            fires = Counter(row["fire"] for row in rows)
            missing = [fire for fire in expected if fires[fire] != 1]
            if missing:
                self.wrong.append(f"{job['id']}: fires {missing[:5]} are not one run each")
        rows = await self.cluster.fetch(
            "SELECT fire_at FROM betimes.runs WHERE job_id = $1", id_of(midnight["id"])
        )
        if [row["fire_at"] for row in rows] != [NEW_YEAR]:
            self.wrong.append(f"the job of the new year has the fires {rows}")
        self.say(f"  calendar: {len(expected) * TICKERS + 1} fires went through midnight")

    async def leave_waiting(self) -> dict[str, str]:
        """Runs that are acknowledged and cannot start; their public ids by what holds them up."""
        target = {"type": "http", "url": f"http://127.0.0.1:{self.cluster.healthy_port}/ok"}
        await self.make("POST", "/v1/queues/closed/pause", {})
        paused = await self.make("POST", "/v1/runs", {"target": target, "queue": "closed"})
        nobody = await self.make("POST", "/v1/runs", {"handler": "later", "queue": "later"})
        moved = await self.make("POST", "/v1/runs", {"target": target, "delay": "PT1H"})
        day = (NEW_YEAR + timedelta(days=DAYS - 1)).isoformat()
        await self.make("PATCH", f"/v1/runs/{moved['id']}", {"due_at": day})
        far = await self.make("POST", "/v1/runs", {"target": target, "at": day})
        return {
            "the run in the paused queue": paused["id"],
            "the run without a worker": nobody["id"],
            "the run that was moved by PATCH": moved["id"],
            "the run of day 40": far["id"],
        }

    async def leave_behind_gate(self) -> str:
        """A workflow that waits for somebody's approval."""
        target = {"type": "http", "url": f"http://127.0.0.1:{self.cluster.healthy_port}/ok"}
        nodes = {
            "first": {"target": target},
            "second": {"target": target, "needs": ["first"], "gate": {"type": "approval"}},
        }
        await self.make("PUT", "/v1/workflows/gated", {"nodes": nodes})
        started = await self.make("POST", "/v1/workflows/gated/runs", {"input": {}})
        return str(started["id"])

    async def leave_dead(self) -> str:
        """A dead letter; the run behind it is kept for a shorter time."""
        self.cluster.mode.write_text("error")
        target = {"type": "http", "url": f"http://127.0.0.1:{self.cluster.faulty_port}/ok"}
        run = await self.make(
            "POST",
            "/v1/runs",
            {"target": target, "retry": {"max_attempts": 1}, "payload": {"n": 7}},
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (await self.make("GET", f"/v1/runs/{run['id']}"))["state"] != "dead":
            if time.monotonic() > deadline:
                raise RuntimeError("the run did not die")
            await asyncio.sleep(0.3)
        self.cluster.mode.write_text("ok")
        return str(run["id"])

    async def days_pass(self, days: int) -> None:
        """Move the clock on, a day at a time, with time for the janitor to notice."""
        for _ in range(days):
            self.cluster.postgres.step(self.cluster.postgres.offset + DAY_SECONDS)
            await asyncio.sleep(1.5)

    async def still_there(self, waiting: dict[str, str]) -> None:
        """Nothing that waits has gone."""
        for name, run in waiting.items():
            answer = await self.ask("GET", f"/v1/runs/{run}")
            if not answer.ok or answer.body["state"] not in ("queued", "scheduled"):
                state = answer.body.get("state") if answer.ok else answer.body.get("code")
                self.wrong.append(f"{name}: {answer.status} {state} on day {DROPPED_DAY}")

    async def redrive(self, run: str) -> None:
        """A dead letter that is still listed can be tried again."""
        letters = (await self.make("GET", "/v1/dead-letters"))["items"]
        mine = [letter for letter in letters if letter["run_id"] == run]
        if not mine:
            self.wrong.append(f"the dead letter of {run} is not listed on day {DROPPED_DAY}")
            return
        answer = await self.ask("POST", f"/v1/dead-letters/{mine[0]['id']}/redrive", {})
        if not answer.ok:
            self.wrong.append(f"redrive on day {DROPPED_DAY}: {answer.status} {answer.body}")
            return
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.executed()[id_of(run)] < 2:
            if time.monotonic() > deadline:
                self.wrong.append("the redriven run was never executed")
                return
            await asyncio.sleep(0.5)


@asynccontextmanager
async def _a_late_worker(cluster: Cluster) -> AsyncIterator[None]:
    """Somebody who serves the queue at last."""
    first = cluster.of("sdk")[0]
    command = [
        sys.executable, "-m", "betimes", "worker", "run", "blackbox.tasks:app", "-q", "later",
        "--url", f"http://127.0.0.1:{cluster.of('api')[0].port}",
    ]  # fmt: skip
    log = cluster.root / "late.log"
    worker = Process("late", "sdk", command, first.environment, log, first.proxy)
    worker.start()
    cluster.processes["late"] = worker
    yield


async def play_calendar(say: Callable[[str], None]) -> list[str]:
    """Walk through the days; returns what was wrong."""
    if faketime_library() is None:
        say("  calendar: left out, libfaketime is not installed")
        return []
    offset = (NEW_YEAR - BEFORE).timestamp() - time.time() - 20.0
    async with a_cluster(offset_seconds=offset, copies=1) as cluster:
        walk = Calendar(cluster, say)
        say(f"  calendar: it is {walk.now():%Y-%m-%d %H:%M:%S} for the database")
        await walk.through_midnight()
        waiting = await walk.leave_waiting()
        gated = await walk.leave_behind_gate()
        dead = await walk.leave_dead()
        await walk.days_pass(DROPPED_DAY)
        say(f"  calendar: day {DROPPED_DAY}")
        await walk.still_there(waiting)
        await walk.redrive(dead)
        await walk.days_pass(DAYS - DROPPED_DAY)
        answer = await walk.ask("POST", f"/v1/workflow-runs/{gated}/nodes/second/approve", {})
        if not answer.ok:
            walk.wrong.append(f"approval on day {DAYS}: {answer.status} {answer.body}")
        await walk.ask("POST", "/v1/queues/closed/resume", {})
        async with _a_late_worker(cluster):
            await walk.until_executed({name: id_of(run) for name, run in waiting.items()})
        deadline = time.monotonic() + PATIENCE_SECONDS
        state = "unknown"
        while time.monotonic() < deadline:
            state = (await walk.ask("GET", f"/v1/workflow-runs/{gated}")).body.get("state")
            if state == "succeeded":
                break
            await asyncio.sleep(0.5)
        else:
            walk.wrong.append(f"the workflow behind the gate is {state}")
        return walk.wrong


if __name__ == "__main__":
    for found in asyncio.run(play_calendar(lambda line: print(line, flush=True))):  # noqa: T201
        print("WRONG", found)  # noqa: T201
