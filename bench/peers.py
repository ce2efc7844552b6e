"""Betimes beside other queues on PostgreSQL: the same server, the same steps, one sitting.

    drain      jobs that are ready, done by one and by two worker processes; a no-op each
    idle       from the call that enqueues one job to its start, on a system with nothing else to do
    burst      very many jobs that become due at the same second: how late they start

PgQueuer and graphile-worker come from their registries into a cache that git ignores, only when
this part is asked for by name; their versions are printed. Node is needed for the second one.
The rate counts from the first start of a handler until no job is left.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import time
from typing import NamedTuple

from bench.kit.api import a_key, an_api
from bench.kit.app_workers import TRANSPORTS, Costs, Service
from bench.kit.peers import installed
from bench.kit.peers.queues import Foreign, Ours, Queue, publishing, soon
from bench.kit.processes import Noted
from bench.kit.report import Report, lags_ms
from bench.kit.rows import copy_rate
from bench.kit.server import a_server, as_owner
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres

LOOK_SECONDS = 0.02
SETTLE_SECONDS = 2.0
PROGRAMS = Path(__file__).parent / "kit" / "peers"


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench peers", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="of each drain")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3, help="of each drain")
    parser.add_argument("--calls", type=int, default=500, help="on the idle system")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two calls")
    parser.add_argument("--burst", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=200, help="of each worker of ours")
    parser.add_argument("--peer-concurrency", type=int, default=24, help="of each worker of theirs")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for each step")
    parser.add_argument(
        "--only", nargs="*", default=[], help="queues with these words in their names"
    )
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick:
        options.runs, options.rounds, options.calls, options.burst = 1_000, 1, 20, 500
    return run_to_end(measure(options))


async def measure(options: argparse.Namespace) -> int:
    """Every queue in every round, so that a noisy moment hits all."""
    report = Report("peers")
    async with a_server(options.shards) as server, queues(server, report, options) as found:
        for _ in range(options.rounds):
            for workers in options.workers:
                for queue in found:
                    await drain(Step(queue, server, report, options), workers)
        for queue in found:
            await idle(Step(queue, server, report, options))
        for queue in found:
            await burst(Step(queue, server, report, options))
    report.table()
    return 0


class Step(NamedTuple):
    """What each step is given."""

    queue: Queue
    server: EmbeddedPostgres
    report: Report
    options: argparse.Namespace


@asynccontextmanager
async def queues(
    server: EmbeddedPostgres, report: Report, options: argparse.Namespace
) -> AsyncIterator[list[Queue]]:
    """Ours over both transports, and the others; only those that are asked for are installed."""
    async with an_api(server) as (api, port):
        service = Service(server, f"http://127.0.0.1:{port}", await a_key(api))
        found: list[Queue] = [
            Ours(
                service,
                transport=transport,
                shards=options.shards,
                concurrency=options.concurrency,
            )
            for transport in TRANSPORTS
        ]
        if is_wanted(installed.PGQUEUER, options):
            found.append(await pgqueuer(server, options))
        if is_wanted(installed.GRAPHILE, options) and installed.has_node():
            found.append(await graphile(server, options))
        elif is_wanted(installed.GRAPHILE, options):
            report.progress(f"without {installed.GRAPHILE}: there is no Node on this machine")
        chosen = [queue for queue in found if is_wanted(queue.name, options)]
        report.progress("; ".join(queue.name for queue in chosen))
        yield chosen


def is_wanted(name: str, options: argparse.Namespace) -> bool:
    """Whether a queue is asked for; without a choice all of them are."""
    return not options.only or any(part in name for part in options.only)


async def pgqueuer(server: EmbeddedPostgres, options: argparse.Namespace) -> Queue:
    """PgQueuer with its version."""
    python, version = await installed.install_pgqueuer()
    return Foreign(
        f"{installed.PGQUEUER} {version}",
        server=server,
        program=(str(python), str(PROGRAMS / "pgqueuer_peer.py")),
        table="pgqueuer",
        concurrency=options.peer_concurrency,
    )


async def graphile(server: EmbeddedPostgres, options: argparse.Namespace) -> Queue:
    """graphile-worker with its version."""
    home, version = await installed.install_graphile()
    return Foreign(
        f"{installed.GRAPHILE} {version}",
        server=server,
        program=("node", str(PROGRAMS / "graphile_peer.mjs")),
        table="graphile_worker._private_jobs",
        concurrency=options.peer_concurrency,
        environment={"BENCH_PEERS": str(home)},
    )


async def drain(step: Step, workers: int) -> None:
    """Fill, work off, count."""
    queue, server, report, options = step
    raw = await copy_rate(server, rows=min(options.runs, 50_000), shards=options.shards)
    await queue.begin()
    await queue.ready(options.runs)
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with queue.working(Path(folder), workers) as crew:
            before = Costs.now(crew.pids)
            await queue.go()
            ended = await until_empty(step)
            costs = Costs.now(crew.pids).per(before, options.runs)
        noted = Noted.read(crew.files)
    began = min(due + lag for due, lag in zip(noted.due, noted.lag, strict=True))
    report.tell(
        f"drain, {queue.name}, {workers} worker processes",
        {"runs": options.runs, "workers": workers},
        executed=len(noted.lag),
        runs_per_second=round(len(noted.lag) / (ended - began)),
        **costs,
        copy_rows_per_second=raw,
    )


async def idle(step: Step) -> None:
    """One at a time, with pauses."""
    queue, _, report, options = step
    await queue.begin()
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with queue.working(Path(folder), 1) as crew:
            await asyncio.sleep(SETTLE_SECONDS)
            await queue.enqueue(options.calls, options.pause)
            await until_empty(step)
        lags = list(Noted.read(crew.files).lag)
    report.tell(
        f"idle, {queue.name}",
        {"runs": options.calls, "pause_seconds": options.pause},
        executed=len(lags),
        **lags_ms(lags),
    )


async def burst(step: Step) -> None:
    """All due at one second, with one worker."""
    queue, server, report, options = step
    await queue.begin()
    with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
        async with queue.working(Path(folder), 1) as crew, publishing(queue, server):
            due = soon(5.0 if options.quick else 15.0)
            await queue.due_at(options.burst, due)
            await asyncio.sleep(max(0.0, due - time()))
            await until_empty(step)
        lags = list(Noted.read(crew.files).lag)
    report.tell(
        f"burst, {queue.name}",
        {"runs": options.burst, "workers": 1},
        executed=len(lags),
        **lags_ms(lags),
    )


async def until_empty(step: Step) -> float:
    """When nothing is left, or patience ends."""
    statement = f"SELECT pg_sleep($1) IS NOT NULL AND ({step.queue.left})"
    until = time() + step.options.patience
    async with as_owner(step.server) as connection:
        while await connection.fetchval(statement, LOOK_SECONDS) and time() < until:
            pass
    return time()
