"""Deliveries to an HTTP target on this machine: signed, guarded, gated, with evidence.

    deliver      the delivery alone, without a database: what a core can do
    worker       a whole worker, from the parcel in the database to the finished run
    nginx        the same targets' work done by nginx, where it is installed
    beside       a fast origin while a slow one takes all it can get

The target runs in a process of its own and takes its share of the machine; `per_core` is one second
of CPU of the delivering process divided by what one delivery costs it.

One JSON line for each figure on stdout; the table goes to stderr.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import perf_counter, process_time
from typing import Any
from uuid import UUID

from bench.drain import (
    RUN_COLUMNS,
    TENANT,
    a_server,
    as_owner,
    make_batches,
    opener,
    postgres_seconds,
    put_parcels,
    value,
)
from bench.kit.nginx import an_nginx
from bench.kit.report import Report, lags_ms
from bench.kit.target import a_target
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.config.settings import DatabaseSettings, WorkerSettings
from betimes.domain.ids import WorkerId, random_ids, to_ms
from betimes.domain.outcome import Snoozed, Succeeded
from betimes.embedded import EmbeddedPostgres
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.partitions import Partitions
from betimes.store.workers import WorkerCard
from betimes.target.address import AddressPolicy
from betimes.target.answer import Patience
from betimes.target.client import Client
from betimes.target.delivery import Delivery
from betimes.target.gate import Rules
from betimes.target.gates import Gates
from betimes.target.resolve import Resolver, SystemLookup
from betimes.target.url import UrlPolicy
from betimes.telemetry import Telemetry
from betimes.worker import Chance, Worker, WorkerSignals
from betimes.worker.builtin import builtin_handlers

POLICY = UrlPolicy(addresses=AddressPolicy(loopback=True))
SECRET = bytes(range(32))
PAYLOAD = json.dumps({"order": 4711, "lines": ["a", "b", "c"], "note": "x" * 200}).encode()
LATENCIES_MS = (0, 1, 10, 100, 500)
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Errand:
    """An attempt as a worker would tell it."""

    started_at = due_at = AT
    fire_at = deadline = job_id = tracestate = None
    attempt = fence = 1
    traceparent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    cancelled = False
    payload = PAYLOAD
    tenant_id = str(TENANT)

    def __init__(self, target: dict[str, Any], number: int) -> None:
        self.target = target
        self.run_id = f"run_{number:026d}"

    def is_held(self) -> bool:
        """A bench loses no lease."""
        return True

    async def wait_cancelled(self) -> None:
        """Never."""
        await asyncio.Event().wait()

    def park(self) -> bool:
        """Never asked."""
        return False

    def snooze(self, pause: timedelta) -> Snoozed:
        """Later."""
        return Snoozed(until=AT + pause)


async def policies(_: UUID) -> UrlPolicy:
    """This machine may be called."""
    return POLICY


@asynccontextmanager
async def delivering(ceiling: int) -> AsyncIterator[Delivery]:
    """A delivery as a worker has it."""
    clock, lookup = SystemClock(), SystemLookup()
    client = Client(resolver=Resolver(lookup, clock=clock), clock=clock)
    try:
        yield Delivery(
            client=client,
            clock=clock,
            policies=policies,
            patience=Patience(),
            gates=Gates(
                rules=Rules(ceiling=ceiling), clock=clock, telemetry=Telemetry(clock=clock)
            ),
            secrets=lambda _: (SECRET,),
        )
    finally:
        client.close()
        lookup.close()


def main(arguments: list[str]) -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="bench deliver", description=__doc__)
    parser.add_argument("--deliveries", type=int, default=20_000)
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--no-worker", action="store_true", help="without the database")
    parser.add_argument("--quick", action="store_true", help="a few of each")
    options = parser.parse_args(arguments)
    if options.quick:
        options.deliveries = min(options.deliveries, 200)
    report = Report("deliver")
    with a_target() as port, an_nginx() as nginx:
        code = run_to_end(measure(options, report, port, nginx))
    report.table()
    return code


async def measure(options: argparse.Namespace, report: Report, port: int, nginx: int | None) -> int:
    """All figures."""
    for latency in LATENCIES_MS:
        await alone(options, report, port, latency, keep_alive=True)
    await alone(options, report, port, 0, keep_alive=False)
    if nginx is not None:
        await alone(options, report, nginx, 0, keep_alive=True, name="nginx")
        await alone(options, report, nginx, 0, keep_alive=False, name="nginx")
    await beside(options, report, port)
    if not options.no_worker:
        async with a_server(options.shards) as server:
            await with_worker(options, report, server, nginx or port)
    return 0


async def alone(
    options: argparse.Namespace,
    report: Report,
    port: int,
    latency: int,
    *,
    keep_alive: bool,
    name: str = "",
) -> None:
    """Deliveries of one process, so many at once."""
    at_once = options.at_once if latency < 100 else options.at_once * 4
    count = options.deliveries if latency < 100 else min(options.deliveries, at_once * 8)
    url = f"http://127.0.0.1:{port}/{latency}{'' if keep_alive else '/close'}"
    async with delivering(at_once) as delivery:
        await deliver_many(delivery, url, min(count, at_once * 2), at_once)
        python, began = process_time(), perf_counter()
        times = await deliver_many(delivery, url, count, at_once)
        seconds, python = perf_counter() - began, process_time() - python
    report.tell(
        f"{name or f'{latency} ms'}{'' if keep_alive else ', new connections'}",
        {
            "latency_ms": latency,
            "at_once": at_once,
            "keep_alive": keep_alive,
            "target": name or "python",
        },
        per_second=round(count / seconds),
        per_core=round(count / python),
        python_us=round(python / count * 1e6, 1),
        **lags_ms(times),
    )


async def deliver_many(delivery: Delivery, url: str, count: int, at_once: int) -> list[float]:
    """Deliver, and say how long each took."""
    target = {"type": "http", "url": url}
    numbers = iter(range(count))
    times: list[float] = []

    async def deliver() -> None:
        for number in numbers:
            began = perf_counter()
            outcome = await delivery.deliver(Errand(target, number))
            times.append(perf_counter() - began)
            assert isinstance(outcome, Succeeded), outcome

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, count)):
            group.create_task(deliver())
    return times


async def beside(options: argparse.Namespace, report: Report, port: int) -> None:
    """A fast origin, first alone and then beside a slow one that is asked for all it takes."""
    fast, slow = f"http://127.0.0.1:{port}/1", f"http://localhost:{port}/500"
    count = min(options.deliveries, 3_000)
    async with delivering(options.at_once) as delivery:
        await deliver_many(delivery, fast, min(count, 100), 8)
        quiet = await deliver_many(delivery, fast, count, 8)
        crowd = asyncio.create_task(
            deliver_many(delivery, slow, options.at_once * 8, options.at_once)
        )
        await asyncio.sleep(0.3)
        busy = await deliver_many(delivery, fast, count, 8)
        crowd.cancel()
        await asyncio.gather(crowd, return_exceptions=True)
    report.tell("fast origin alone", {"at_once": 8}, **lags_ms(quiet))
    report.tell("fast beside slow", {"at_once": 8, "slow": options.at_once}, **lags_ms(busy))


async def with_worker(
    options: argparse.Namespace, report: Report, server: EmbeddedPostgres, port: int
) -> None:
    """From parcels in the database to finished runs."""
    clock, dice = SystemClock(), Dice()
    database = await Database.open(
        DatabaseSettings(), dsn=server.dsn(), clock=clock, roll=dice.roll
    )
    try:
        await Partitions(database).ensure(datetime.now(UTC).date(), ahead_days=2)
        await fill(options, server, f"http://127.0.0.1:{port}/0", dice)
        figures = await drain(options, server, database)
    finally:
        await database.close()
    done = await value(server, "SELECT count(*) FROM betimes.runs WHERE state = 4 AND fence > 0")
    assert done == options.deliveries, done
    report.tell("worker", {"slots": options.at_once * 4}, **figures)


async def fill(options: argparse.Namespace, server: EmbeddedPostgres, url: str, dice: Dice) -> None:
    """Runs that are deliveries, ready in their parcels."""
    batches = list(make_batches(options.deliveries, options.shards, dice))
    options_text = json.dumps({"target": {"type": "http", "url": url}})
    async with as_owner(server) as connection:
        await connection.copy_records_to_table(
            "runs",
            schema_name="betimes",
            columns=(*RUN_COLUMNS, "payload", "options"),
            records=[
                (shard, run, TENANT, now, 1, "default", None, PAYLOAD, options_text)
                for shard, now, runs in batches
                for run in runs
            ],
        )
    await put_parcels(server, batches)
    async with as_owner(server) as connection:
        await connection.execute("ANALYZE betimes.parcels")


async def drain(
    options: argparse.Namespace, server: EmbeddedPostgres, database: Database
) -> dict[str, float]:
    """One worker, from its start to the last finished run."""
    clock, dice, stopping = SystemClock(), Dice(), Stopping()
    telemetry = Telemetry(clock=clock)

    def flushed(_: int) -> None:
        # Those that had to wait for the gate are written, too, and come again.
        if telemetry.reading("betimes_runs_total", outcome="succeeded") >= options.deliveries:
            stopping.request("done")

    (identifier,) = random_ids(to_ms(clock.now()), 0, dice.entropy(8))
    async with delivering(options.at_once // 2) as delivery:
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
            handlers=builtin_handlers(clock).also("http", delivery.deliver),
            clock=clock,
            chance=Chance(roll=dice.roll, entropy=dice.entropy),
            settings=WorkerSettings(slots=options.at_once * 4),
            drain_timeout=timedelta(seconds=5),
            telemetry=telemetry,
            signals=WorkerSignals(flushed=flushed),
        )
        python, postgres, began = process_time(), postgres_seconds(server), perf_counter()
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run(stopping))
            await stopping.wait()
            seconds = perf_counter() - began
    python = process_time() - python
    return {
        "per_second": round(options.deliveries / seconds),
        "per_core": round(options.deliveries / python),
        "python_us": round(python / options.deliveries * 1e6, 1),
        "postgres_us": round((postgres_seconds(server) - postgres) / options.deliveries * 1e6, 1),
    }
