"""Recurring fires end to end: planned, published, leased, executed, finished, for a while.

A coordinator and workers as processes of their own, on the embedded PostgreSQL with fsync on.
Every schedule has the same period; their phases are spread evenly over it (`--phases 10` and a
period of ten seconds is what intervals get by default: whole seconds). A figure holds for a window
of some seconds after a lead-in: fires achieved of those expected, percentiles of the start lag by
the clock of this machine, CPU seconds of Python and of PostgreSQL.

`--peak` looks for the highest rate that is sustained: 99 % of the fires executed by the end of the
window, p99 under a second. The raw limit beside it is plain COPY of run rows.
"""

import argparse
import asyncio
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

from bench.kit.processes import (
    Noted,
    a_node,
    noting_workers,
    resident_mb,
    until_ready,
    used,
)
from bench.kit.report import Report, lags_ms
from bench.kit.rows import copy_jobs, copy_rate, interval_jobs
from bench.kit.server import a_server, empty
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres

TZDATA = "bench"
GRACE_SECONDS = 2.0
SUSTAINED_SHARE, SUSTAINED_P99_MS = 0.99, 1_000.0
STEPS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many schedules, fired for so long."""

    schedules: int
    period: float = 10.0
    phases: int = 1_000
    seconds: float = 60.0
    horizon: float = 60.0
    workers: int = 1
    slots: int = 1_024
    shards: int = 64
    overlap: str = "skip"

    @property
    def rate(self) -> float:
        """Fires per second."""
        return self.schedules / self.period

    def settings(self) -> dict[str, object]:
        """As they are told with each figure."""
        return {name: getattr(self, name) for name in self.__slots__}


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench recurring", description=__doc__)
    parser.add_argument("--schedules", type=int, nargs="*", default=[5_000, 10_000])
    parser.add_argument("--period", type=float, default=10.0)
    parser.add_argument("--phases", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--horizon", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slots", type=int, default=1_024)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--overlap", default="skip", help="policy of the jobs")
    parser.add_argument("--peak", action="store_true", help="look for the highest rate as well")
    parser.add_argument("--peak-from", type=int, default=8_000, help="first rate tried, fires/s")
    parser.add_argument("--quick", action="store_true", help="short windows, small sizes")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """All loads on one server."""
    report = Report("recurring")
    base = Load(
        schedules=0,
        period=options.period,
        phases=options.phases,
        seconds=min(options.seconds, 6.0) if options.quick else options.seconds,
        horizon=24.0 if options.quick else options.horizon,
        workers=options.workers,
        slots=options.slots,
        shards=options.shards,
        overlap=options.overlap,
    )
    async with a_server(options.shards) as server:
        raw = await copy_rate(
            server, rows=2_000 if options.quick else 50_000, shards=options.shards
        )
        report.tell("raw copy", {"rows_per_transaction": 500}, rows_per_second=raw)
        for schedules in options.schedules:
            await one_load(server, report, changed(base, schedules), raw=raw)
        if options.peak:
            await find_peak(server, report, base, first=options.peak_from, raw=raw)
    report.table()
    return 0


async def find_peak(
    server: EmbeddedPostgres, report: Report, base: Load, *, first: int, raw: int
) -> None:
    """Raise the rate by a quarter until it is not sustained; then the lag at 70 % of the best."""
    best, rate = 0.0, float(first)
    for _ in range(STEPS_MAX):
        figures = await one_load(server, report, changed(base, int(rate * base.period)), raw=raw)
        share, p99 = figures["share"], figures["p99_ms"]
        if share < SUSTAINED_SHARE or p99 > SUSTAINED_P99_MS:
            break
        best, rate = rate, rate * 1.25
    if not best:
        report.progress(f"{first} fires/s are not sustained")
        return
    report.tell(
        "peak", base.settings(), fires_per_second=round(best), ratio_to_copy=round(best / raw, 2)
    )
    await one_load(server, report, changed(base, int(best * 0.7 * base.period)), raw=raw)


def changed(base: Load, schedules: int) -> Load:
    """The same with another number of schedules, and with no more phases than schedules."""
    said = {name: getattr(base, name) for name in base.__slots__}
    return Load(**{**said, "schedules": schedules, "phases": max(1, min(base.phases, schedules))})


async def one_load(
    server: EmbeddedPostgres, report: Report, load: Load, *, raw: int
) -> dict[str, float]:
    """Let everybody come up, fill, let it run, count."""
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with (
            noting_workers(server, Path(folder), count=load.workers, slots=load.slots) as files,
            a_node(
                server, "coordinator,janitor", coordinator__horizon=f"{load.horizon:g}s"
            ) as coordinator,
        ):
            await until_ready(server, workers=load.workers)
            first = await fill(server, load)
            last = first + load.seconds
            report.progress(f"{load.rate:,.0f} fires/s expected in {first - time():.0f} s")
            figures = await _window(load, first, last)
            figures["coordinator_mb"] = resident_mb(coordinator.pid)
            await asyncio.sleep(GRACE_SECONDS)
        lags = Noted.read(files).between(first, last)
    expected = round(load.rate * load.seconds)
    found: dict[str, float] = {
        "fires_per_second": round(len(lags) / load.seconds),
        "share": round(len(lags) / expected, 4),
        **lags_ms(lags),
        **figures,
        "ratio_to_copy": round(len(lags) / load.seconds / raw, 3),
    }
    report.tell(f"{load.rate:,.0f} fires/s", load.settings(), **found)
    return found


async def fill(server: EmbeddedPostgres, load: Load) -> float:
    """Put the schedules of a load into an empty database; when its first window may begin."""
    await empty(server)
    start = _start_of(load)
    jobs = interval_jobs(
        load.schedules,
        period=timedelta(seconds=load.period),
        start=start,
        phases=load.phases,
        shards=load.shards,
        tzdata=TZDATA,
        overlap=load.overlap,
    )
    await copy_jobs(server, jobs, count=load.schedules)
    return start.timestamp() + load.period


async def _window(load: Load, first: float, last: float) -> dict[str, float]:
    """What the window cost."""
    await asyncio.sleep(max(0.0, first - time()))
    before = used()
    await asyncio.sleep(max(0.0, last - time()))
    spent = used().since(before)
    return {
        **spent.per(round(load.rate * load.seconds)),
        "python_seconds": round(spent.python, 1),
        "postgres_seconds": round(spent.postgres, 1),
        "cores": round((spent.python + spent.postgres) / load.seconds, 2),
    }


def _start_of(load: Load) -> datetime:
    """The first fire: after the rows are in, and after one half horizon of planning ahead."""
    filling = load.schedules / 20_000
    ahead = 3.0 + filling + (load.horizon / 2 if load.seconds > load.horizon / 4 else 0.0)
    return (datetime.now(UTC) + timedelta(seconds=ahead)).replace(microsecond=0)
