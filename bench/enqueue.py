"""From the call that enqueues to the handler that starts, on a system with nothing else to do.

One run at a time through `ops.enqueue_run`, with pauses between; a worker process executes it. The
time counts from before the call, so its transaction, durable, is part of the figure. The raw limit
beside it: one row inserted and committed, then a NOTIFY that another connection hears.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, time

from bench.kit.processes import Noted, noting_workers
from bench.kit.report import Bar, Report, lags_ms
from bench.kit.server import TENANT, a_database, a_server, as_owner
from bench.kit.worker import HANDLER, STAMP
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.domain.run import NewRun
from betimes.embedded import EmbeddedPostgres
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_run
from betimes.store.hints import Hints

SETTLE_SECONDS = 2.0


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench enqueue", description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two calls")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Raw limit first, then the real thing."""
    report = Report("enqueue")
    runs = min(options.runs, 50) if options.quick else options.runs
    settings = {"runs": runs, "pause_seconds": options.pause, "shards": options.shards}
    async with a_server(options.shards) as server:
        raw = lags_ms(await raw_round_trips(server, min(runs, 300), options.pause))
        report.tell("insert, commit, notify", settings, **raw)
        with tempfile.TemporaryDirectory(prefix="betimes-notes-") as folder:
            async with noting_workers(server, Path(folder), count=1, slots=100) as files:
                await asyncio.sleep(SETTLE_SECONDS)
                calls = await enqueue(server, runs, options)
                await asyncio.sleep(SETTLE_SECONDS)
            lags = list(Noted.read(files).lag)
    found = lags_ms(lags)
    report.tell("enqueue call alone", settings, **lags_ms(calls))
    report.tell(
        "enqueue to start",
        settings,
        executed=len(lags),
        **found,
        ratio_to_raw=round(found["p50_ms"] / raw["p50_ms"], 1),
    )
    report.table()
    return 0


async def enqueue(server: EmbeddedPostgres, runs: int, options: argparse.Namespace) -> list[float]:
    """One run after the other; how long each call took."""
    bar, calls = Bar(runs, "runs"), []
    async with a_desk(server, options.shards) as desk:
        for number in range(runs):
            await asyncio.sleep(options.pause)
            began = time()
            await enqueue_run(desk, TENANT, NewRun(handler=HANDLER, payload=STAMP.pack(began)))
            calls.append(time() - began)
            bar.draw(number + 1)
    return calls


@asynccontextmanager
async def a_desk(server: EmbeddedPostgres, shards: int) -> AsyncIterator[Desk]:
    """What the verbs are given, hints included."""
    async with a_database(server) as database, asyncio.TaskGroup() as group:
        hints = Hints(database=database, clock=SystemClock())
        sending = group.create_task(hints.run())
        yield Desk(
            database=database,
            clock=SystemClock(),
            hints=hints,
            entropy=Dice().entropy,
            shards=shards,
            tzdata="bench",
        )
        sending.cancel()


async def raw_round_trips(server: EmbeddedPostgres, runs: int, pause: float) -> list[float]:
    """What the database alone needs to keep something and to tell somebody."""
    heard = asyncio.Event()
    seconds = []
    async with as_owner(server) as ear, as_owner(server) as mouth:
        await ear.add_listener("bench", lambda *_: heard.set())
        await mouth.execute("CREATE TABLE raw (id integer)")
        for number in range(runs):
            await asyncio.sleep(pause)
            began = perf_counter()
            await mouth.execute("INSERT INTO raw VALUES ($1)", number)
            await mouth.execute("NOTIFY bench")
            await heard.wait()
            heard.clear()
            seconds.append(perf_counter() - began)
        await mouth.execute("DROP TABLE raw")
    return seconds
