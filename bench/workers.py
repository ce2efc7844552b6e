"""Drain of ready runs by one and by two worker processes: lease, no-op handler, finish.

The runs and their parcels are in the tables before the workers start. Counted is from the first
start of a handler to the moment no parcel is left, that is, until everything is finished. The raw
limit beside it is plain COPY of the same rows. `bench drain` measures one worker in more detail.
"""

import argparse
import tempfile
from pathlib import Path
from time import time

from bench.drain import RUN_COLUMNS, make_batches, put_parcels
from bench.kit.processes import Noted, noting_workers, used
from bench.kit.report import Report
from bench.kit.rows import copy_rate
from bench.kit.server import TENANT, a_server, as_owner, empty, execute
from bench.kit.worker import HANDLER
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres

LOOK_SECONDS = 0.02
LEFT = "SELECT pg_sleep($1) IS NOT NULL AND EXISTS (SELECT FROM betimes.parcels)"


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench workers", description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=2_048)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Every number of workers in every round, so that a noisy moment hits all."""
    report = Report("workers")
    if options.quick:
        options.runs, options.rounds = min(options.runs, 1_000), 1
    async with a_server(options.shards) as server:
        for _ in range(options.rounds):
            for workers in options.workers:
                await one_drain(server, report, options, workers)
    report.table()
    return 0


async def one_drain(
    server: EmbeddedPostgres, report: Report, options: argparse.Namespace, workers: int
) -> None:
    """Fill, drain, count."""
    raw = await copy_rate(server, rows=min(options.runs, 50_000), shards=options.shards)
    await empty(server)
    await fill(server, options)
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        before = used()
        async with (
            as_owner(server) as connection,
            noting_workers(server, Path(folder), count=workers, slots=options.slots) as files,
        ):
            while await connection.fetchval(LEFT, LOOK_SECONDS):
                pass
            ended = time()
            spent = used().since(before)
        noted = Noted.read(files)
    began = min(due + lag for due, lag in zip(noted.due, noted.lag, strict=True))
    rate = round(len(noted.lag) / (ended - began))
    report.tell(
        f"drain, {workers} worker processes",
        {"runs": options.runs, "slots": options.slots, "shards": options.shards},
        executed=len(noted.lag),
        runs_per_second=rate,
        **spent.per(options.runs),
        copy_rows_per_second=raw,
        ratio_to_copy=round(rate / raw, 2),
    )


async def fill(server: EmbeddedPostgres, options: argparse.Namespace) -> None:
    """Runs in parcels, ready now."""
    batches = list(make_batches(options.runs, options.shards, Dice()))
    async with as_owner(server) as connection:
        for shard, now, runs in batches:
            await connection.copy_records_to_table(
                "runs",
                schema_name="betimes",
                columns=RUN_COLUMNS,
                records=[(shard, run, TENANT, now, 1, "default", HANDLER) for run in runs],
            )
    await put_parcels(server, batches)
    await execute(server, "ANALYZE betimes.parcels")
    await execute(server, "CHECKPOINT")
