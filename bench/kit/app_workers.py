"""Workers of an app as users start them: `betimes worker run`, on the database or over HTTP."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import NamedTuple

from bench.kit.processes import cpu_seconds, running, used
from bench.kit.rows import Row
from bench.kit.server import as_owner
from betimes.app.demo import TENANT
from betimes.app.dice import Dice
from betimes.domain.ids import compose, random_ids, to_ms
from betimes.domain.parcel import RUNS_MAX, rank_of
from betimes.embedded import EmbeddedPostgres

APP = "bench.kit.noting_app:app"
ASYNC, PLAIN = "note", "note_plain"
TRANSPORTS = ("database", "http")
PAYLOAD = b"{}"
RUN_COLUMNS = ("shard", "id", "tenant_id", "due_at", "state", "queue", "handler", "payload")
PARCEL_COLUMNS = (
    *("shard", "id", "tenant_id", "queue", "rank", "visible_at", "run_ids", "handler"),
)


@dataclass(frozen=True, slots=True)
class Service:
    """Where workers of an app find their work."""

    server: EmbeddedPostgres
    url: str
    key: str


class Costs(NamedTuple):
    """CPU seconds of the workers, of the server (this process), of PostgreSQL and of all."""

    workers: float
    server: float
    postgres: float
    machine: float

    @classmethod
    def now(cls, workers: Sequence[int]) -> "Costs":
        """So far."""
        everything = used()
        return cls(
            sum(map(cpu_seconds, workers)),
            process_time(),
            everything.postgres,
            everything.machine,
        )

    def per(self, before: "Costs", count: int) -> dict[str, float]:
        """Microseconds for each of so many, and which part of the CPU time was not ours."""
        spent = Costs(*(now - then for now, then in zip(self, before, strict=True)))
        count = max(count, 1)
        others = max(0.0, spent.machine - spent.workers - spent.server - spent.postgres)
        return {
            "worker_us": round(spent.workers / count * 1e6, 1),
            "server_us": round(spent.server / count * 1e6, 1),
            "postgres_us": round(spent.postgres / count * 1e6, 1),
            "others_share": round(others / spent.machine, 2) if spent.machine else 0.0,
        }


@dataclass(frozen=True, slots=True)
class Crew:
    """Workers at work."""

    files: list[Path]
    pids: list[int]


@asynccontextmanager
async def app_workers(
    service: Service, folder: Path, *, transport: str, count: int, concurrency: int
) -> AsyncIterator[Crew]:
    """So many worker processes; their notes are complete after the block."""
    files = [folder / f"notes-{number}" for number in range(count)]
    pids: list[int] = []
    command = ("-m", "betimes", "worker", "run", APP, "-c", str(concurrency))
    where = ("--dsn", service.server.dsn()) if transport == "database" else ()
    async with AsyncExitStack() as stack:
        for file in files:
            environment = {
                **os.environ,
                "BETIMES_URL": service.url,
                "BETIMES_API_KEY": service.key,
                "BENCH_NOTES": str(file),
            }
            process = await stack.enter_async_context(
                running(*command, *where, "--log-level", "warning", environment=environment)
            )
            pids.append(process.pid)
        yield Crew(files, pids)


async def prepare(server: EmbeddedPostgres, task: str, *, runs: int, shards: int) -> list[Row]:
    """Runs of a task, without their parcels: nobody finds them yet. The parcels, full ones."""
    dice, now = Dice(), datetime.now(UTC)
    rows: list[Row] = []
    parcels: list[Row] = []
    for place, first in enumerate(range(0, runs, RUNS_MAX)):
        size, shard = min(RUNS_MAX, runs - first), place % shards
        ids = list(random_ids(to_ms(now), shard, dice.entropy(8 * size)))
        rows += [(shard, run, TENANT, now, 1, "default", task, PAYLOAD) for run in ids]
        name = compose(to_ms(now), shard, ids[0].int)
        parcels.append((shard, name, TENANT, "default", rank_of(now, 5), now, ids, task))
    async with as_owner(server) as connection:
        await connection.copy_records_to_table(
            "runs", schema_name="betimes", columns=RUN_COLUMNS, records=rows
        )
        await connection.execute("CHECKPOINT")
    return parcels


async def release(server: EmbeddedPostgres, parcels: list[Row]) -> None:
    """All parcels in one transaction: the work is there from one moment to the next."""
    async with as_owner(server) as connection:
        await connection.copy_records_to_table(
            "parcels", schema_name="betimes", columns=PARCEL_COLUMNS, records=parcels
        )
        await connection.execute("ANALYZE betimes.parcels")
