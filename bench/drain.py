"""How fast one worker process drains runs that are ready: lease, no-op handler, finish.

The database is the embedded one with fsync on, on the same machine. The raw limit of the same
machine at the same moment is measured beside it: plain COPY of the same rows, and plain UPDATE of
the same rows by id in batches of 256.

One JSON line for each figure on stdout; the table goes to stderr.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from uuid import UUID

import asyncpg

from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.config.settings import DatabaseSettings, WorkerSettings
from betimes.domain.ids import WorkerId, compose, random_ids, to_ms
from betimes.domain.parcel import RUNS_MAX, rank_of
from betimes.embedded import EmbeddedPostgres, find_binaries
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.migrate import migrate
from betimes.store.partitions import Partitions
from betimes.store.pool import Lane
from betimes.store.workers import WorkerCard
from betimes.telemetry import Telemetry
from betimes.worker import Chance, Worker, WorkerSignals
from betimes.worker.builtin import builtin_handlers

TENANT = UUID("00000000-0000-8000-8000-00000000000a")
RUN_COLUMNS = ("shard", "id", "tenant_id", "due_at", "state", "queue", "handler")
PARCEL_COLUMNS = (
    "shard",
    "id",
    "tenant_id",
    "queue",
    "rank",
    "visible_at",
    "run_ids",
)
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> int:
    """Measure, several rounds on one server."""
    parser = argparse.ArgumentParser(prog="bench drain", description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=2048)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--profile", default=None, help="file for a profile by cProfile")
    parser.add_argument("--quick", action="store_true", help="one small round")
    options = parser.parse_args(arguments)
    if options.quick:
        options.runs, options.rounds = min(options.runs, 1_000), 1
    return run_to_end(measure(options))


async def measure(options: argparse.Namespace) -> int:
    """All rounds."""
    clock, dice = SystemClock(), Dice()
    async with a_server(options.shards) as server:
        database = await Database.open(
            DatabaseSettings(), dsn=server.dsn(), clock=clock, roll=dice.roll
        )
        try:
            await Partitions(database).ensure(datetime.now(UTC).date(), ahead_days=2)
            for number in range(1, options.rounds + 1):
                await one_round(number, options, server, database)
        finally:
            await database.close()
    return 0


async def one_round(
    number: int, options: argparse.Namespace, server: EmbeddedPostgres, database: Database
) -> None:
    """Fill, measure the raw limits, drain."""
    dice = Dice()
    batches = list(make_batches(options.runs, options.shards, dice))
    copied = await copy_runs(server, batches)
    raw = await raw_updates(server, list(make_batches(options.runs // 4, options.shards, dice)))
    await put_parcels(server, batches)
    await execute(server, "ANALYZE betimes.parcels")
    await execute(server, "CHECKPOINT")
    figures = await drain(options, server, database)
    left = await value(server, "SELECT count(*) FROM betimes.parcels")
    done = await value(server, "SELECT count(*) FROM betimes.runs WHERE state = 4 AND fence > 0")
    assert (left, done) == (0, options.runs), (left, done)
    await execute(server, "TRUNCATE betimes.runs")
    tell(
        number,
        options,
        {
            "copy_rows_per_second": round(copied),
            "update_rows_per_second": round(raw),
            **figures,
            "ratio_to_copy": round(figures["runs_per_second"] / copied, 2),
            "ratio_to_update": round(figures["runs_per_second"] / raw, 2),
        },
    )


async def drain(
    options: argparse.Namespace, server: EmbeddedPostgres, database: Database
) -> dict[str, float]:
    """One worker, from its start to the last finished run."""
    clock, dice, stopping = SystemClock(), Dice(), Stopping()
    written = 0

    def flushed(count: int) -> None:
        nonlocal written
        written += count
        if written >= options.runs:
            stopping.request("done")

    (identifier,) = random_ids(to_ms(clock.now()), 0, dice.entropy(8))
    worker = Worker(
        card=WorkerCard(
            id=WorkerId(identifier),
            node=None,
            name="bench",
            version="0",
            queues=("*",),
            handlers=(),
            slots=1,
        ),
        database=database,
        open_database=opener(server),
        handlers=builtin_handlers(clock),
        clock=clock,
        chance=Chance(roll=dice.roll, entropy=dice.entropy),
        settings=WorkerSettings(slots=options.slots),
        drain_timeout=timedelta(seconds=5),
        telemetry=Telemetry(clock=clock),
        signals=WorkerSignals(flushed=flushed),
    )
    python, postgres, began = process_time(), postgres_seconds(server), perf_counter()
    profiler = start_profile(options)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stopping))
        await stopping.wait()
        seconds = perf_counter() - began
    stop_profile(profiler, options)
    return {
        "runs_per_second": round(options.runs / seconds),
        "python_us_per_run": round((process_time() - python) / options.runs * 1e6, 1),
        "postgres_us_per_run": round((postgres_seconds(server) - postgres) / options.runs * 1e6, 1),
    }


def start_profile(options: argparse.Namespace) -> Any:
    """Profile the main thread, if asked to."""
    if not options.profile:
        return None
    import cProfile  # noqa: PLC0415 -- only when asked for

    profiler = cProfile.Profile()
    profiler.enable()
    return profiler


def stop_profile(profiler: Any, options: argparse.Namespace) -> None:
    """Write the profile."""
    if profiler is not None:
        profiler.disable()
        profiler.dump_stats(options.profile)


def make_batches(runs: int, shards: int, dice: Dice) -> Iterator[tuple[int, datetime, list[UUID]]]:
    """Ids in handfuls of one parcel each, shard after shard."""
    now = datetime.now(UTC)
    for place, first in enumerate(range(0, runs, RUNS_MAX)):
        size = min(RUNS_MAX, runs - first)
        shard = place % shards
        yield shard, now, list(random_ids(to_ms(now), shard, dice.entropy(8 * size)))


async def copy_runs(
    server: EmbeddedPostgres, batches: list[tuple[int, datetime, list[UUID]]]
) -> float:
    """Insert the runs with COPY; rows per second, building the rows not included."""
    seconds, rows = 0.0, 0
    async with as_owner(server) as connection:
        for first in range(0, len(batches), 16):
            records = [
                (shard, run, TENANT, now, 1, "default", "noop")
                for shard, now, runs in batches[first : first + 16]
                for run in runs
            ]
            began = perf_counter()
            await connection.copy_records_to_table(
                "runs", schema_name="betimes", columns=RUN_COLUMNS, records=records
            )
            seconds += perf_counter() - began
            rows += len(records)
    return rows / seconds


async def raw_updates(
    server: EmbeddedPostgres, batches: list[tuple[int, datetime, list[UUID]]]
) -> float:
    """Finish other runs with the plainest statement there is; rows per second."""
    await copy_runs(server, batches)
    began = perf_counter()
    async with as_owner(server) as connection:
        for shard, now, runs in batches:
            await connection.execute(
                "UPDATE betimes.runs SET state = 4, finished_at = $3"
                " WHERE shard = $1 AND id = ANY($2)",
                shard,
                runs,
                now,
            )
    return sum(len(runs) for _, _, runs in batches) / (perf_counter() - began)


async def put_parcels(
    server: EmbeddedPostgres, batches: list[tuple[int, datetime, list[UUID]]]
) -> None:
    """One parcel for each handful."""
    async with as_owner(server) as connection:
        await connection.copy_records_to_table(
            "parcels",
            schema_name="betimes",
            columns=PARCEL_COLUMNS,
            records=[
                (
                    shard,
                    compose(to_ms(now), shard, runs[0].int),
                    TENANT,
                    "default",
                    rank_of(now, 5),
                    now,
                    runs,
                )
                for shard, now, runs in batches
            ],
        )


@asynccontextmanager
async def as_owner(server: EmbeddedPostgres) -> AsyncIterator[Any]:
    """A connection that row security does not concern: COPY needs that."""
    connection = await asyncpg.connect(server.dsn())
    try:
        yield connection
    finally:
        await connection.close()


async def execute(server: EmbeddedPostgres, statement: str) -> None:
    """Something without an answer."""
    async with as_owner(server) as connection:
        await connection.execute(statement)


async def value(server: EmbeddedPostgres, statement: str) -> Any:
    """One value."""
    async with as_owner(server) as connection:
        return await connection.fetchval(statement)


@asynccontextmanager
async def a_server(shards: int) -> AsyncIterator[EmbeddedPostgres]:
    """A durable PostgreSQL of our own, migrated, gone afterwards."""
    clock, dice = SystemClock(), Dice()
    with tempfile.TemporaryDirectory(prefix="betimes-bench-") as folder:
        os.chmod(folder, 0o711)  # noqa: PTH101, S103 -- the account of the server must get through
        server = EmbeddedPostgres(
            data=Path(folder, "server"),
            clock=clock,
            password_factory=dice.secret,
            binaries=find_binaries(None),
        )
        async with server:
            await migrate(server.dsn(), DatabaseSettings(), shards=shards, clock=clock)
            yield server


def opener(server: EmbeddedPostgres) -> Any:
    """A database for the heartbeat's thread."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Database]:
        database = await Database.open(
            DatabaseSettings(),
            dsn=server.dsn(),
            clock=SystemClock(),
            roll=Dice().roll,
            lanes=(Lane.LEASE,),
        )
        try:
            yield database
        finally:
            await database.close()

    return opened


def postgres_seconds(_: EmbeddedPostgres) -> float:
    """CPU seconds of all server processes that we started, the ended ones included."""
    total = 0
    ours = descendants(os.getpid())
    for pid in ours:
        try:
            fields = (
                Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            )
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / TICKS_PER_SECOND


def descendants(root: int) -> set[int]:
    """Every process below one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def tell(number: int, options: argparse.Namespace, figures: dict[str, float]) -> None:
    """One line for machines, one for people."""
    settings = {"runs": options.runs, "slots": options.slots, "shards": options.shards}
    print(json.dumps({"bench": "drain", "round": number, **settings, **figures}), flush=True)
    words = "  ".join(f"{name} {value:,}" for name, value in figures.items())
    print(f"round {number}: {words}", file=sys.stderr, flush=True)
