"""Drain of ready runs by one and by two worker processes: lease, no-op handler, finish.

First by the service's own workers with a built-in handler, then by workers of an app, started as
users start them: on the database and over HTTP, with async tasks and with plain ones in threads.

The runs are in the tables before the workers start, and are released when these are ready. Counted
is from the first start of a handler to the moment no parcel is left: everything is finished. The
raw limit beside it is plain COPY of the same rows. `bench drain` measures one worker in more
detail.
"""

import argparse
import tempfile
from datetime import datetime
from pathlib import Path
from time import time
from uuid import UUID

from bench.drain import RUN_COLUMNS, make_batches, put_parcels
from bench.kit.api import a_key, an_api
from bench.kit.app_workers import (
    ASYNC,
    PLAIN,
    TRANSPORTS,
    Costs,
    Service,
    app_workers,
    prepare,
    release,
)
from bench.kit.processes import Noted, noting_workers, until_known, used
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
    parser.add_argument("--concurrency", type=int, default=200, help="of each worker of an app")
    parser.add_argument("--transports", nargs="*", default=TRANSPORTS, choices=TRANSPORTS)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Every number of workers in every round, so that a noisy moment hits all."""
    report = Report("workers")
    if options.quick:
        options.runs, options.rounds = min(options.runs, 1_000), 1
    async with a_server(options.shards) as server, an_api(server) as (api, port):
        service = Service(server, f"http://127.0.0.1:{port}", await a_key(api))
        for _ in range(options.rounds):
            for workers in options.workers:
                await one_drain(server, report, options, workers)
                for transport in options.transports:
                    for task in (ASYNC, PLAIN):
                        await one_app_drain(service, report, options, workers, transport, task)
    report.table()
    return 0


async def one_drain(
    server: EmbeddedPostgres, report: Report, options: argparse.Namespace, workers: int
) -> None:
    """Fill, drain, count."""
    raw = await copy_rate(server, rows=min(options.runs, 50_000), shards=options.shards)
    await empty(server)
    await execute(server, "DELETE FROM betimes.workers")
    batches = await fill(server, options)
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with (
            as_owner(server) as connection,
            noting_workers(server, Path(folder), count=workers, slots=options.slots) as files,
        ):
            await until_known(server, workers=workers)
            before = used()
            await put_parcels(server, batches)
            await execute(server, "ANALYZE betimes.parcels")
            while await connection.fetchval(LEFT, LOOK_SECONDS):
                pass
            ended = time()
            spent = used().since(before)
        noted = Noted.read(files)
    rate = rate_of(noted, ended)
    report.tell(
        f"built-in handler, {workers} worker processes",
        {"runs": options.runs, "slots": options.slots, "shards": options.shards},
        executed=len(noted.lag),
        runs_per_second=rate,
        **spent.per(options.runs),
        copy_rows_per_second=raw,
        ratio_to_copy=round(rate / raw, 2),
    )


async def one_app_drain(
    service: Service,
    report: Report,
    options: argparse.Namespace,
    workers: int,
    transport: str,
    task: str,
) -> None:
    """Drain the same number of runs of a user's task."""
    server = service.server
    raw = await copy_rate(server, rows=min(options.runs, 50_000), shards=options.shards)
    await empty(server)
    await execute(server, "DELETE FROM betimes.workers")
    parcels = await prepare(server, task, runs=options.runs, shards=options.shards)
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with (
            as_owner(server) as connection,
            app_workers(
                service,
                Path(folder),
                transport=transport,
                count=workers,
                concurrency=options.concurrency,
            ) as crew,
        ):
            await until_known(server, workers=workers)
            before = Costs.now(crew.pids)
            await release(server, parcels)
            while await connection.fetchval(LEFT, LOOK_SECONDS):
                pass
            ended, costs = time(), Costs.now(crew.pids).per(before, options.runs)
        noted = Noted.read(crew.files)
    rate = rate_of(noted, ended)
    kind = "async" if task == ASYNC else "plain"
    report.tell(
        f"{kind} tasks, {transport}, {workers} worker processes",
        {"runs": options.runs, "concurrency": options.concurrency, "shards": options.shards},
        executed=len(noted.lag),
        runs_per_second=rate,
        **costs,
        copy_rows_per_second=raw,
        ratio_to_copy=round(rate / raw, 2),
    )


def rate_of(noted: Noted, ended: float) -> int:
    """Runs per second from the first start of a handler on."""
    began = min(due + lag for due, lag in zip(noted.due, noted.lag, strict=True))
    return round(len(noted.lag) / (ended - began))


async def fill(
    server: EmbeddedPostgres, options: argparse.Namespace
) -> list[tuple[int, datetime, list[UUID]]]:
    """Runs, and what their parcels are made of."""
    batches = list(make_batches(options.runs, options.shards, Dice()))
    async with as_owner(server) as connection:
        for shard, now, runs in batches:
            await connection.copy_records_to_table(
                "runs",
                schema_name="betimes",
                columns=RUN_COLUMNS,
                records=[(shard, run, TENANT, now, 1, "default", HANDLER) for run in runs],
            )
    await execute(server, "CHECKPOINT")
    return batches
