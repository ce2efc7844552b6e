"""A million stored schedules (ten with `--ten-million`): what they cost a coordinator.

Each fires once a day, at one of the minutes of the day. Told are the time to store them with COPY,
the bytes of each, the first plan of all shards, their takeover by another coordinator, the passes
of its planner in its own rhythm (all of them, and those that found something to plan), and the
memory of a coordinator process. A small number is measured beside the large one: the figures should
not depend on it.
"""

import argparse
import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from bench.kit.processes import a_node, resident_mb
from bench.kit.report import Report, lags_ms
from bench.kit.rows import Row, copy_jobs, copy_rate
from bench.kit.server import TENANT, a_database, a_server, empty, value
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.config.settings import CoordinatorSettings, DatabaseSettings
from betimes.coordinator.service import Coordinator
from betimes.domain.ids import NodeId, TenantId, random_ids, to_ms
from betimes.embedded import EmbeddedPostgres
from betimes.ops.desk import Desk
from betimes.ops.forecast import Asked, forecast
from betimes.store import nodes
from betimes.store.database import Database
from betimes.store.hints import NoHints
from betimes.store.nodes import NodeCard
from betimes.telemetry import Telemetry

DAY_MINUTES = 24 * 60
PATIENCE_SECONDS = 120.0


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench stored", description=__doc__)
    parser.add_argument("--schedules", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--ten-million", action="store_true")
    parser.add_argument("--seconds", type=float, default=15.0, help="a coordinator is watched")
    parser.add_argument("--ticking", type=float, default=75.0, help="seconds of the planner's life")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Each number on one server."""
    report = Report("stored")
    if options.ten_million:
        options.schedules = [10_000, 10_000_000]
    if options.quick:
        options.schedules = [min(options.schedules[0], 500)]
        options.seconds = options.ticking = 1.0
    async with a_server(options.shards) as server:
        for schedules in options.schedules:
            await one_size(server, report, options, schedules)
    report.table()
    return 0


async def one_size(
    server: EmbeddedPostgres, report: Report, options: argparse.Namespace, schedules: int
) -> None:
    """Fill, then look at it from all sides."""
    raw = await copy_rate(server, rows=min(schedules, 50_000), shards=options.shards)
    await empty(server)
    settings: dict[str, Any] = {"schedules": schedules, "shards": options.shards}
    seconds = await copy_jobs(server, daily_jobs(schedules, options.shards), count=schedules)
    size = await value(server, "SELECT pg_total_relation_size('betimes.jobs')")
    report.tell(
        f"store {schedules:,}",
        settings,
        seconds=round(seconds, 1),
        schedules_per_second=round(schedules / seconds),
        bytes_per_schedule=round(size / schedules),
        ratio_to_copy=round(schedules / seconds / raw, 2),
    )
    async with a_database(server) as database:
        first = await a_coordinator(database)
        await take_over(report, settings, first, "first plan")
        await catch_up(report, settings, first)
        await leave(database, first)
        second = await a_coordinator(database)
        await take_over(report, settings, second, "takeover")
        await catch_up(report, settings, second)
        await time_ticks(report, settings, second, options.ticking)
        await leave(database, second)
        await look_ahead(report, settings, database, options.shards)
    async with a_node(server, "coordinator") as process:
        await asyncio.sleep(options.seconds)
        report.tell(f"memory at {schedules:,}", settings, coordinator_mb=resident_mb(process.pid))


async def take_over(
    report: Report, settings: dict[str, Any], coordinator: Coordinator, figure: str
) -> None:
    """From owning nothing to having planned and published every shard once."""
    began = perf_counter()
    while len(coordinator.holdings) < settings["shards"]:
        await coordinator.elector.tick()
    owned = perf_counter() - began
    runs = await coordinator.planner.tick()
    await coordinator.publisher.tick()
    seconds = perf_counter() - began
    report.tell(
        f"{figure} at {settings['schedules']:,}",
        settings,
        all_shards_owned_seconds=round(owned, 2),
        all_shards_ready_seconds=round(seconds, 2),
        ms_per_shard=round(seconds / settings["shards"] * 1e3, 1),
        runs_planned=runs,
    )


async def catch_up(report: Report, settings: dict[str, Any], coordinator: Coordinator) -> None:
    """What fell due while we stored, and the rest of the horizon."""
    began, late = perf_counter(), 0
    while (runs := await coordinator.planner.tick()) and perf_counter() - began < PATIENCE_SECONDS:
        late += runs
        await coordinator.publisher.tick()
    report.tell(
        f"caught up at {settings['schedules']:,}",
        settings,
        seconds=round(perf_counter() - began, 2),
        runs=late,
    )


async def leave(database: Database, coordinator: Coordinator) -> None:
    """Hand everything over and be gone."""
    await coordinator.elector.hand_over()
    await nodes.leave(database, coordinator.node)


async def time_ticks(
    report: Report, settings: dict[str, Any], coordinator: Coordinator, ticking: float
) -> None:
    """Passes of the planner in its own rhythm."""
    every = CoordinatorSettings().plan_every.total_seconds()
    passes: list[tuple[float, int]] = []
    ends = perf_counter() + ticking
    while (began := perf_counter()) < ends:
        planned = await coordinator.planner.tick()
        passes.append((perf_counter() - began, planned))
        await coordinator.publisher.tick()
        await asyncio.sleep(max(0.0, began + every - perf_counter()))
    at = f"at {settings['schedules']:,}"
    report.tell(f"planner tick {at}", settings, **lags_ms([seconds for seconds, _ in passes]))
    busy = [(seconds, planned) for seconds, planned in passes if planned]
    if busy:
        report.tell(
            f"planner tick with work {at}",
            settings,
            passes=len(busy),
            runs=sum(planned for _, planned in busy),
            **lags_ms([seconds for seconds, _ in busy]),
        )


async def look_ahead(
    report: Report, settings: dict[str, Any], database: Database, shards: int
) -> None:
    """A day of the load ahead by the minute, over all tenants and grouped by queue."""
    clock, dice = SystemClock(), Dice()
    desk = Desk(
        database=database,
        clock=clock,
        hints=NoHints(),
        entropy=dice.entropy,
        shards=shards,
        tzdata="bench",
    )
    start = clock.now()
    asked = Asked(start=start, end=start + timedelta(days=1), step=timedelta(minutes=1), by="queue")
    began = perf_counter()
    found = await forecast(desk, None, asked)
    seconds = perf_counter() - began
    fires = sum(sum(group.fires) for group in found.groups)
    report.tell(
        f"forecast at {settings['schedules']:,}",
        settings,
        seconds=round(seconds, 2),
        sampled=found.sampled or 1.0,
        fires_to_schedules=round(fires / settings["schedules"], 3),
    )


async def a_coordinator(database: Database) -> Coordinator:
    """One that has said that it is alive."""
    clock, dice = SystemClock(), Dice()
    (identifier,) = random_ids(to_ms(clock.now()), 0, dice.entropy(8))
    card = NodeCard(
        id=NodeId(identifier), name="bench", version="0", tzdata="bench", roles=("coordinator",)
    )
    await nodes.beat(database, card, skew_ms=None, draining=False, now=None)
    return Coordinator(
        node=card.id,
        database=database,
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=CoordinatorSettings(lease_ttl=timedelta(minutes=5)),
        database_settings=DatabaseSettings(),
        tzdata="bench",
    )


def daily_jobs(count: int, shards: int, tenant: TenantId = TENANT) -> Iterator[Row]:
    """Jobs that fire once a day, minute by minute over the day and in every shard alike."""
    dice, made = Dice(), datetime.now(UTC)
    today = made.replace(hour=0, minute=0, second=0, microsecond=0)
    crons = []
    for minute in range(DAY_MINUTES):
        fire = today + timedelta(minutes=minute)
        expression = f"{minute % 60} {minute // 60} * * *"
        schedule = json.dumps({"type": "cron", "expr": expression, "timezone": "UTC"})
        crons.append((fire if fire > made else fire + timedelta(days=1), schedule))
    for number in range(count):
        next_fire_at, schedule = crons[number % DAY_MINUTES]
        shard = number // DAY_MINUTES % shards
        (job,) = random_ids(to_ms(made), shard, dice.entropy(8))
        yield (shard, job, tenant, next_fire_at, made, made, "noop", "bench", schedule, "{}")
