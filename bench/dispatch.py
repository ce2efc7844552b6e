"""Events to endpoints on this machine: from rows of the outbox to deliveries that are marked.

    one endpoint      everything goes to one mailbox, with as many requests at once as it may have
    many endpoints    every event concerns each of them, a few requests at once

A router and a courier work in this process, the target and PostgreSQL beside it; `per_core` is one
second of CPU of the dispatching process divided by what one delivery costs it.

One JSON line for each figure on stdout; the table goes to stderr.
"""

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from time import perf_counter, process_time
from uuid import UUID

from bench.drain import postgres_seconds
from bench.kit.report import Report
from bench.kit.server import TENANT, a_database, a_server, as_owner, value
from bench.kit.target import a_target
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.config.notify import NotifySettings
from betimes.dispatcher.send import Sender
from betimes.dispatcher.service import Dispatcher
from betimes.domain.ids import random_ids, shard_of, to_ms
from betimes.embedded import EmbeddedPostgres
from betimes.rhythm import Stopping
from betimes.target.address import AddressPolicy
from betimes.target.answer import Patience
from betimes.target.client import Client
from betimes.target.resolve import Resolver, SystemLookup
from betimes.target.url import UrlPolicy
from betimes.telemetry import Telemetry

POLICY = UrlPolicy(addresses=AddressPolicy(loopback=True))
SECRET = bytes(range(32))
BODY = json.dumps(
    {
        "run_id": "run_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
        "state": "dead",
        "queue": "default",
        "handler": "report",
        "attempt": 5,
        "reason": "RETRIES_EXHAUSTED",
    }
)
CONCURRENCY_ONE, CONCURRENCY_MANY, MANY = 32, 4, 16


async def policies(_: UUID) -> UrlPolicy:
    """This machine may be called."""
    return POLICY


def main(arguments: list[str]) -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="bench dispatch", description=__doc__)
    parser.add_argument("--deliveries", type=int, default=8_000)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true", help="a few of each")
    options = parser.parse_args(arguments)
    if options.quick:
        options.deliveries = 160
    report = Report("dispatch")
    with a_target() as port:
        run_to_end(measure(options, report, port))
    report.table()
    return 0


async def measure(options: argparse.Namespace, report: Report, port: int) -> None:
    """Both figures."""
    for endpoints, concurrency in ((1, CONCURRENCY_ONE), (MANY, CONCURRENCY_MANY)):
        async with a_server(options.shards) as server:
            await listen(server, options, f"http://127.0.0.1:{port}/0", endpoints, concurrency)
            await happen(server, options, options.deliveries // endpoints)
            figures = await dispatch(options, server)
        report.tell(
            "one endpoint" if endpoints == 1 else "many endpoints",
            {"endpoints": endpoints, "concurrency": concurrency},
            **figures,
        )


async def listen(
    server: EmbeddedPostgres,
    options: argparse.Namespace,
    url: str,
    endpoints: int,
    concurrency: int,
) -> None:
    """A tenant, and those who want to be told of everything."""
    now = datetime.now(UTC)
    async with as_owner(server) as connection:
        await connection.execute(
            "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'bench', 'bench')"
            " ON CONFLICT DO NOTHING",
            TENANT,
        )
        await connection.execute(
            "INSERT INTO betimes.routings (tenant_id, routed_through) VALUES ($1, $2)", TENANT, now
        )
        for number in range(endpoints):
            (identity,) = random_ids(to_ms(now), number % options.shards, os.urandom(8))
            await connection.execute(
                "INSERT INTO betimes.endpoints"
                " (tenant_id, id, kind, address, event_types, settings, listens_since)"
                " VALUES ($1, $2, 'webhook', $3, '{*}', $4, $5)",
                TENANT,
                identity,
                url,
                json.dumps({"concurrency": concurrency}),
                now,
            )


async def happen(server: EmbeddedPostgres, options: argparse.Namespace, events: int) -> None:
    """Events in the outbox, as whoever makes something true leaves them."""
    now = datetime.now(UTC)
    ids = [
        next(random_ids(to_ms(now), number % options.shards, os.urandom(8)))
        for number in range(events)
    ]
    async with as_owner(server) as connection:
        await connection.copy_records_to_table(
            "outbox",
            schema_name="betimes",
            columns=("shard", "id", "tenant_id", "type", "subject", "body", "created_at"),
            records=[
                (shard_of(one), one, TENANT, "run.dead", "run_bench", BODY, now) for one in ids
            ],
        )
        await connection.execute("ANALYZE betimes.outbox")


async def dispatch(options: argparse.Namespace, server: EmbeddedPostgres) -> dict[str, float]:
    """One dispatcher, from its start to the last delivery that is marked."""
    clock, stopping = SystemClock(), Stopping()
    telemetry = Telemetry(clock=clock)
    wanted = options.deliveries // MANY * MANY if options.deliveries >= MANY else options.deliveries
    async with a_database(server) as database, sending() as sender:
        dice = Dice()
        dispatcher = Dispatcher(
            database=database,
            sender=sender,
            clock=clock,
            telemetry=telemetry,
            settings=NotifySettings(),
            shards=options.shards,
            roll=dice.roll,
            entropy=dice.entropy,
            vault=None,
        )
        python, postgres, began = process_time(), postgres_seconds(server), perf_counter()
        async with asyncio.TaskGroup() as group:
            group.create_task(dispatcher.run(stopping))
            while telemetry.reading("betimes_webhook_deliveries_total", outcome="ok") < wanted:  # noqa: ASYNC110 -- others count
                await asyncio.sleep(0.01)
            seconds, python = perf_counter() - began, process_time() - python
            postgres = postgres_seconds(server) - postgres
            stopping.request("done")
    done = await value(server, "SELECT count(*) FROM betimes.deliveries WHERE state = 1")
    return {
        "delivered": done,
        "per_second": round(done / seconds),
        "per_core": round(done / python),
        "python_us": round(python / done * 1e6, 1),
        "postgres_us": round(postgres / done * 1e6, 1),
    }


@asynccontextmanager
async def sending() -> AsyncIterator[Sender]:
    """What a dispatcher sends with."""
    clock, lookup = SystemClock(), SystemLookup()
    client = Client(resolver=Resolver(lookup, clock=clock), clock=clock)
    try:
        yield Sender(
            client=client,
            clock=clock,
            policies=policies,
            secrets=lambda _: (SECRET,),
            patience=Patience(),
            mailer=None,
        )
    finally:
        client.close()
        lookup.close()
