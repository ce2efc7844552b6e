"""Very many runs due at the same second: how late the last ones start.

The runs wait in the table without parcels; a coordinator publishes them, worker processes execute
a no-op. The raw limit beside it is plain COPY of the same rows.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

from bench.kit.processes import Noted, a_node, noting_workers, used
from bench.kit.report import Report, lags_ms
from bench.kit.rows import Row, copy_rate, copy_runs
from bench.kit.server import TENANT, a_server, as_owner, empty
from bench.kit.worker import HANDLER
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.domain.ids import random_ids, to_ms
from betimes.embedded import EmbeddedPostgres

ROWS_PER_SECOND = 30_000
SETTLE_SECONDS = 12.0

DONE = """
SELECT min(published_through) > $1 AND NOT EXISTS (SELECT FROM betimes.parcels) AND now() > $1
  FROM betimes.shards
"""


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench burst", description=__doc__)
    parser.add_argument("--runs", type=int, nargs="*", default=[20_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--patience", type=float, default=30.0, help="seconds to wait for the last")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Each size with each number of workers."""
    report = Report("burst")
    if options.quick:
        options.runs, options.workers, options.patience = [500], [1], 20.0
    async with a_server(options.shards) as server:
        for runs in options.runs:
            for workers in options.workers:
                await one_burst(server, report, options, runs=runs, workers=workers)
    report.table()
    return 0


async def one_burst(
    server: EmbeddedPostgres,
    report: Report,
    options: argparse.Namespace,
    *,
    runs: int,
    workers: int,
) -> None:
    """Fill, wait for the second, count."""
    raw = await copy_rate(server, rows=min(runs, 50_000), shards=options.shards)
    await empty(server)
    wait = (4.0 if options.quick else SETTLE_SECONDS) + runs / ROWS_PER_SECOND
    due = (datetime.now(UTC) + timedelta(seconds=wait)).replace(microsecond=0)
    await copy_runs(server, waiting(runs, due, options.shards))
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with (
            noting_workers(server, Path(folder), count=workers, slots=2_048) as files,
            a_node(server, "coordinator,janitor"),
        ):
            await asyncio.sleep(max(0.0, due.timestamp() - time() - 3.0))
            before = used()
            await all_done(server, due, patience=options.patience)
            spent = used().since(before)
        lags = list(Noted.read(files).lag)
    report.tell(
        f"{runs:,} at once, {workers} worker",
        {"runs": runs, "workers": workers, "slots": 2_048, "shards": options.shards},
        executed=len(lags),
        **lags_ms(lags),
        **spent.per(runs),
        copy_rows_per_second=raw,
        ratio_to_copy=round(len(lags) / max(lags) / raw, 3) if lags else 0.0,
    )


async def all_done(server: EmbeddedPostgres, due: datetime, *, patience: float) -> None:
    """Return when everything due then was published and no parcel is left."""
    async with as_owner(server) as connection:
        while time() < due.timestamp() + patience:
            await asyncio.sleep(0.5)
            if await connection.fetchval(DONE, due):
                return


def waiting(count: int, due: datetime, shards: int) -> Iterator[Row]:
    """Runs that the publisher will find."""
    dice = Dice()
    for number in range(count):
        shard = number % shards
        (run,) = random_ids(to_ms(due), shard, dice.entropy(8))
        yield (shard, run, TENANT, due, 0, "default", HANDLER)
