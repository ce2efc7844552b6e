"""After an outage: does work that is on time stay on time while what was missed drains?

Two sets of schedules. The lively ones (`--lively` per second) have missed nothing; they are due
at half seconds. The others (`--schedules`, every ten minutes, due at whole seconds) are measured
twice: once as if nothing had happened, once with their next fires set back by `--hours`. A
coordinator, a janitor and workers as processes of their own, on the embedded PostgreSQL with fsync
on.

The window begins five seconds after the coordinator was started. Told are the start lags of lively
runs and of the fires of now of the others, how fast the backlog drained, how long the planner
needed to reach the fires of now and to settle every gap, and whether each fire of the outage became
a run or a decision.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Any

from bench.kit.processes import Noted, a_node, noting_workers, used
from bench.kit.report import Report, lags_ms
from bench.kit.rows import copy_jobs, interval_jobs
from bench.kit.server import a_server, as_owner, empty
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres

TZDATA = "bench"
LIVELY_PERIOD = timedelta(seconds=10)
PERIOD = timedelta(minutes=10)
PHASES = 600
SETTLE_SECONDS = 5.0
PATIENCE_SECONDS = 200.0
OWNED = "SELECT EXISTS (SELECT FROM betimes.shards WHERE owner IS NOT NULL)"
WORKING = "SELECT EXISTS (SELECT FROM betimes.workers)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What there is, and how fast the backlog may drain."""

    schedules: int
    lively: int
    hours: float
    pace: int
    seconds: float
    workers: int
    shards: int

    def settings(self) -> dict[str, object]:
        """As they are told with each figure."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Progress:
    """When shards had an owner, its planner the fires of now, and every gap its end."""

    began: float = 0.0
    reached: float = 0.0
    settled: float = 0.0


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench catchup", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--lively", type=int, default=200, help="fires per second that are on time")
    parser.add_argument("--hours", type=float, default=10.0)
    parser.add_argument("--pace", type=int, default=1_000, help="coordinator.catchup_per_second")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--only-behind", action="store_true", help="not the load without a gap")
    parser.add_argument("--quick", action="store_true", help="short windows, small sizes")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Without a backlog, and with it."""
    report = Report("catchup")
    load = Load(
        schedules=200 if options.quick else options.schedules,
        lively=5 if options.quick else options.lively,
        hours=options.hours,
        pace=50 if options.quick else options.pace,
        seconds=5.0 if options.quick else options.seconds,
        workers=options.workers,
        shards=options.shards,
    )
    async with a_server(options.shards) as server:
        if not options.only_behind:
            await one_load(server, report, load, behind=False)
        await one_load(server, report, load, behind=True)
    report.table()
    return 0


async def one_load(server: EmbeddedPostgres, report: Report, load: Load, *, behind: bool) -> None:
    """Fill, start everything, look."""
    start = await fill(server, load, behind=behind)
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with noting_workers(server, Path(folder), count=load.workers, slots=1_024) as files:
            cost = await _run(server, load, progress)
        noted = Noted.read(files)
    began, first = progress.began, progress.began + SETTLE_SECONDS
    last = first + load.seconds
    lively = [lag for due, lag in _of(noted, first, last) if due % 1 > 0]
    others = [lag for due, lag in _of(noted, first, last) if due % 1 == 0]
    name = f"{load.hours:g} h behind" if behind else "nothing missed"
    report.tell(f"{name}: lively", load.settings(), fires=len(lively), **lags_ms(lively), **cost)
    if behind:
        # While the planner still comes to jobs that are behind, and while the backlog drains.
        reached = max(progress.reached, first)
        for part, since, until in (("at first", first, reached), ("then", reached, last)):
            lags = [lag for due, lag in _of(noted, since, until) if due % 1 > 0]
            if lags:
                report.tell(f"{name}: {part}", load.settings(), fires=len(lags), **lags_ms(lags))
    if others:
        report.tell(f"{name}: fires of now", load.settings(), fires=len(others), **lags_ms(others))
    if behind:
        figures = drained(noted, began)
        report.tell(
            "backlog",
            load.settings(),
            **figures,
            fires_of_now_reached_s=round(progress.reached - began, 1),
            gaps_settled_s=round(progress.settled - began, 1) if progress.settled else None,
        )
        report.tell("accounting", load.settings(), **await accounts(server, load, start))


def _of(noted: Noted, first: float, last: float) -> list[tuple[float, float]]:
    pairs = zip(noted.due, noted.lag, strict=True)
    return [(round(due, 3), lag) for due, lag in pairs if first <= due < last]


def drained(noted: Noted, began: float) -> dict[str, object]:
    """How many late runs there were, and how many of them started in each second."""
    starts = sorted(
        due + lag for due, lag in zip(noted.due, noted.lag, strict=True) if due < began - 60
    )
    if not starts:
        return {"late_runs": 0}
    seconds = Counter(int(at - starts[0]) for at in starts)
    return {
        "late_runs": len(starts),
        "drained_s": round(starts[-1] - starts[0], 1),
        "per_second": round(len(starts) / max(1.0, starts[-1] - starts[0])),
        "most_in_a_second": max(seconds.values()),
    }


async def fill(server: EmbeddedPostgres, load: Load, *, behind: bool) -> datetime:
    """Both sets of schedules; returns when the first fire of the second set was due."""
    await empty(server)
    now = datetime.now(UTC).replace(microsecond=0)
    ahead = timedelta(seconds=10 + load.schedules / 10_000)
    start = now - timedelta(hours=load.hours) if behind else now + ahead
    shared: dict[str, Any] = {"shards": load.shards, "tzdata": TZDATA}
    phases = min(PHASES, load.schedules)
    jobs = interval_jobs(load.schedules, period=PERIOD, start=start, phases=phases, **shared)
    await copy_jobs(server, jobs, count=load.schedules)
    return start


async def _add_lively(server: EmbeddedPostgres, load: Load) -> None:
    """Schedules that have missed nothing, as if they were created just now."""
    count = int(load.lively * LIVELY_PERIOD.total_seconds())
    half = datetime.now(UTC).replace(microsecond=500_000) + timedelta(seconds=2)
    jobs = interval_jobs(
        count, period=LIVELY_PERIOD, start=half, phases=10, shards=load.shards, tzdata=TZDATA
    )
    await copy_jobs(server, jobs, count=count)


async def _until(connection: Any, question: str) -> None:
    while not await connection.fetchval(question):  # noqa: ASYNC110 -- other processes do it
        await asyncio.sleep(0.05)


async def _run(server: EmbeddedPostgres, load: Load, progress: Progress) -> dict[str, float]:
    """The coordinator until the window is over and nothing late is left."""
    async with (
        as_owner(server) as connection,
        a_node(
            server,
            "coordinator,janitor",
            coordinator__catchup_per_second=str(load.pace),
            coordinator__catchup_unapproved="100000000",
        ),
    ):
        await _until(connection, OWNED)
        await _until(connection, WORKING)
        await _add_lively(server, load)
        before, began = used(), time()
        progress.began = began
        last = began + SETTLE_SECONDS + load.seconds
        while time() < last or (await _left(connection) and time() < last + PATIENCE_SECONDS):
            await _look(connection, progress)
            await asyncio.sleep(1.0)
        spent = used().since(before)
    return {"cores": round((spent.python + spent.postgres) / (time() - began), 2)}


async def _look(connection: Any, progress: Progress) -> None:
    if not progress.reached and not await connection.fetchval(
        "SELECT EXISTS (SELECT FROM betimes.jobs WHERE next_fire_at < now() - interval '11 s')"
    ):
        progress.reached = time()
    elif (
        progress.reached
        and not progress.settled
        and not await connection.fetchval("SELECT EXISTS (SELECT FROM betimes.gaps)")
    ):
        progress.settled = time()


async def _left(connection: Any) -> bool:
    return bool(
        await connection.fetchval("SELECT EXISTS (SELECT FROM betimes.parcels WHERE lane = 2)")
    )


async def accounts(server: EmbeddedPostgres, load: Load, start: datetime) -> dict[str, object]:
    """Every fire from the beginning of the outage up to a minute ago: a run or a decision."""
    until = datetime.now(UTC) - timedelta(minutes=1)
    phases = min(PHASES, load.schedules)
    expected = 0
    for number in range(load.schedules):
        anchor = start + PERIOD * (number % phases) / phases
        expected += (until - anchor) // PERIOD + 1
    async with as_owner(server) as connection:
        runs = await connection.fetchval(
            "SELECT count(*) FROM betimes.runs WHERE fire_at <= $1 AND job_id IN (SELECT id FROM "
            "betimes.jobs WHERE schedule ->> 'every' = 'PT600S')",
            until,
        )
        dropped = await connection.fetchval("SELECT coalesce(sum(fires), 0) FROM betimes.decisions")
    return {
        "expected": expected,
        "runs": int(runs),
        "decided": int(dropped),
        "unaccounted": expected - int(runs) - int(dropped),
    }
