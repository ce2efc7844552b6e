"""Planner and publisher alone, cranked by hand in this process, as fast as they can.

Schedules with a period of ten seconds are planned for a whole horizon, then the clock is moved in
quarters of a second and what comes near is published. The clock is a manual one; the database is
real and durable. The raw limit beside it is plain COPY of run rows.
"""

import argparse
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter, process_time

from bench.kit.processes import used
from bench.kit.report import Report
from bench.kit.rows import copy_jobs, copy_rate, interval_jobs
from bench.kit.server import a_server, empty
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.config.settings import CoordinatorSettings, DatabaseSettings
from betimes.coordinator.service import Coordinator
from betimes.domain.ids import NodeId, random_ids
from betimes.embedded import EmbeddedPostgres
from betimes.store import nodes
from betimes.store.database import Database
from betimes.store.nodes import NodeCard
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock

PERIOD = timedelta(seconds=10)
STEP_SECONDS = 0.25


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench coordinate", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--phases", type=int, nargs="*", default=[10, 1_000])
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of the manual clock, published"
    )
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Each number of phases on one server."""
    report = Report("coordinate")
    if options.quick:
        options.schedules, options.seconds = min(options.schedules, 100), 2.0
    async with a_server(options.shards) as server:
        for phases in options.phases:
            rows = 2_000 if options.quick else 50_000
            raw = await copy_rate(server, rows=rows, shards=options.shards)
            report.tell("raw copy", {"rows_per_transaction": 500}, rows_per_second=raw)
            await empty(server)
            await one_world(server, report, options, phases=phases, raw=raw)
    report.table()
    return 0


async def one_world(
    server: EmbeddedPostgres,
    report: Report,
    options: argparse.Namespace,
    *,
    phases: int,
    raw: int,
) -> None:
    """Fill, plan, publish."""
    clock = ManualClock(datetime.now(UTC).replace(microsecond=0))
    settings = {"schedules": options.schedules, "phases": phases, "shards": options.shards}
    jobs = interval_jobs(
        options.schedules,
        period=PERIOD,
        start=clock.now() + PERIOD + timedelta(seconds=1),
        phases=min(phases, options.schedules),
        shards=options.shards,
        tzdata="bench",
    )
    await copy_jobs(server, jobs, count=options.schedules)
    database = await Database.open(
        DatabaseSettings(), dsn=server.dsn(), clock=clock, roll=Dice().roll
    )
    try:
        coordinator = await a_coordinator(database, clock)
        while len(coordinator.holdings) < options.shards:
            await coordinator.elector.tick()
        await coordinator.publisher.tick()

        async def plan() -> int:
            return await coordinator.planner.tick()

        async def publish() -> int:
            published = 0
            for _ in range(int(options.seconds / STEP_SECONDS)):
                clock.advance(STEP_SECONDS)
                await coordinator.elector.tick()
                published += await coordinator.publisher.tick()
            return published

        await timed(report, "plan", settings, plan, raw=raw)
        clock.advance(10.0 - STEP_SECONDS)
        await coordinator.publisher.tick()
        await timed(report, "publish", settings, publish, raw=raw)
        await coordinator.elector.hand_over()
        await nodes.leave(database, coordinator.node)
    finally:
        await database.close()


async def a_coordinator(database: Database, clock: ManualClock) -> Coordinator:
    """One that has said that it is alive."""
    (identifier,) = random_ids(1, 0, Dice().entropy(8))
    card = NodeCard(
        id=NodeId(identifier), name="bench", version="0", tzdata="bench", roles=("coordinator",)
    )
    await nodes.beat(database, card, skew_ms=None, draining=False, now=clock.stated())
    return Coordinator(
        node=card.id,
        database=database,
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=CoordinatorSettings(lease_ttl=timedelta(minutes=5)),
        database_settings=DatabaseSettings(),
        tzdata="bench",
    )


async def timed(
    report: Report,
    figure: str,
    settings: dict[str, object],
    work: Callable[[], Awaitable[int]],
    *,
    raw: int,
) -> None:
    """One figure: how many runs in how many seconds, and what they cost."""
    before, python, began = used(), process_time(), perf_counter()
    runs = await work()
    seconds = perf_counter() - began
    spent = used().since(before)._replace(python=process_time() - python)
    report.tell(
        figure,
        settings,
        runs=runs,
        seconds=round(seconds, 2),
        runs_per_second=round(runs / seconds),
        **spent.per(runs),
        ratio_to_copy=round(runs / seconds / raw, 3),
    )
