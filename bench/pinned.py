"""Torture: recurring work goes on while somebody's forgotten transaction pins a snapshot.

Nothing that dies meanwhile can be removed. Three windows of the same load: before, at the end of
the pinned time, and after it. A queue that deletes a row for every run degrades with the length of
the pin; ours should not by much, because a run is updated in place and a parcel carries many.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import time

from bench.kit.processes import Noted, a_node, noting_workers, used
from bench.kit.report import Report, lags_ms
from bench.kit.rows import copy_rate
from bench.kit.server import a_server, as_owner, value
from bench.recurring import Load, fill
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres

SETTLE_SECONDS = 5.0
TOUCH_SECONDS = 30.0
Span = tuple[float, float]

HOT = """
SELECT round(100.0 * sum(n_tup_hot_upd) / greatest(sum(n_tup_upd), 1), 1)::float8
  FROM pg_stat_user_tables WHERE schemaname = 'betimes' AND relname LIKE 'runs%'
"""


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench pinned", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--pin", type=float, default=60.0, help="seconds; 600 for the long torture")
    parser.add_argument("--window", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """One load, three windows."""
    report = Report("pinned")
    if options.quick:
        options.schedules, options.pin, options.window = 100, 2.0, 2.0
    load = Load(
        schedules=options.schedules,
        phases=options.phases,
        seconds=options.window,
        period=1.0 if options.quick else 10.0,
        horizon=24.0 if options.quick else 60.0,
        workers=options.workers,
        shards=options.shards,
    )
    async with a_server(load.shards) as server:
        raw = await copy_rate(server, rows=2_000 if options.quick else 50_000, shards=load.shards)
        report.tell("raw copy", {"rows_per_transaction": 500}, rows_per_second=raw)
        first = await fill(server, load)
        with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
            async with noting_workers(
                server, Path(folder), count=load.workers, slots=load.slots
            ) as files:
                windows = await run(server, report, load, first, pin=options.pin)
            noted = Noted.read(files)
        for name, span, costs in windows:
            tell(report, load, name, noted.between(*span), costs)
    report.table()
    return 0


async def run(
    server: EmbeddedPostgres, report: Report, load: Load, first: float, *, pin: float
) -> list[tuple[str, Span, dict[str, float]]]:
    """The load, from the first window to the last."""
    windows = []
    async with a_node(server, "coordinator,janitor", coordinator__horizon=f"{load.horizon:g}s"):
        await asyncio.sleep(max(0.0, first - time()))
        windows.append(("before", *await watch(server, load)))
        async with a_pin(server):
            report.progress(f"a snapshot is pinned for {pin:g} s")
            await asyncio.sleep(max(0.0, pin - load.seconds))
            windows.append((f"pinned for {pin:g} s", *await watch(server, load)))
        await asyncio.sleep(SETTLE_SECONDS)
        windows.append(("after", *await watch(server, load)))
        await asyncio.sleep(2.0)
    return windows


async def watch(server: EmbeddedPostgres, load: Load) -> tuple[Span, dict[str, float]]:
    """One window, and what it cost."""
    began, before = time(), used()
    await asyncio.sleep(load.seconds)
    spent = used().since(before)
    size = await value(server, "SELECT pg_total_relation_size('betimes.parcels')")
    return (began, began + load.seconds), {
        **spent.per(round(load.rate * load.seconds)),
        "parcels_mb": round(size / 2**20, 1),
        "hot_percent": await value(server, HOT),
    }


@asynccontextmanager
async def a_pin(server: EmbeddedPostgres) -> AsyncIterator[None]:
    """A transaction that somebody forgot, touched often enough that no timeout ends it."""

    async def touch() -> None:
        while True:
            await connection.execute("SELECT 1")
            await asyncio.sleep(TOUCH_SECONDS)

    async with (
        as_owner(server) as connection,
        connection.transaction(isolation="repeatable_read"),
        asyncio.TaskGroup() as group,
    ):
        touching = group.create_task(touch())
        yield
        touching.cancel()


def tell(report: Report, load: Load, name: str, lags: list[float], costs: dict[str, float]) -> None:
    """One window."""
    share = round(len(lags) / (load.rate * load.seconds), 4)
    report.tell(name, load.settings(), share=share, **lags_ms(lags), **costs)
