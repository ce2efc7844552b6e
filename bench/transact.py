"""Enqueueing inside one's own transactions, beside plain inserts of the same rows in the same run.

Each transaction inserts an order; then the same with a call of `betimes.enqueue_v1` beside it. Then
what a coordinator makes of the intake. Load and database share this machine.
"""

import argparse
import asyncio
from collections.abc import Sequence
from time import perf_counter

import asyncpg

from bench.kit.report import Report
from bench.kit.server import a_database, a_server, as_owner
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres
from betimes.ops.desk import Desk
from betimes.ops.intake import shards_to_take_in, take_in
from betimes.ops.producers import admit_producer
from betimes.store.hints import Hints

TABLE = "CREATE TABLE shop_orders (id bigserial PRIMARY KEY, payload jsonb NOT NULL)"
ORDER = "INSERT INTO shop_orders (payload) VALUES ($1::jsonb)"
CALL = "SELECT run_id FROM betimes.enqueue_v1('send_receipt', $1::jsonb, $2::jsonb)"
PAYLOAD = '{"order": 7, "customer": "c-1", "lines": [1, 2, 3]}'
PLAIN, QUEUED = "{}", '{"queue": "mail", "retry": {"max_attempts": 8, "initial": "5s"}}'


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench transact", description=__doc__)
    parser.add_argument("--commits", type=int, default=8_000, help="transactions per figure")
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick:
        options.commits, options.callers = 40, 2
    return run_to_end(measure(options))


async def measure(options: argparse.Namespace) -> int:
    """Plain rows first, then with runs beside them, then what becomes of these."""
    report = Report("transact")
    async with a_server(options.shards) as server:
        async with as_owner(server) as connection:
            await connection.execute(TABLE)
            role = str(await connection.fetchval("SELECT session_user"))
        for hints, name in ((True, "with hints"), (False, "without hints")):
            async with a_database(server) as database:
                await admit_producer(database, role, "default", hints=hints)
            for batch in (1, 100):
                settings = {"callers": options.callers, "rows_per_commit": batch}
                for figure, calls in (
                    ("plain inserts", [(ORDER, (PAYLOAD,))]),
                    (f"and a run each, {name}", [(ORDER, (PAYLOAD,)), (CALL, (PAYLOAD, PLAIN))]),
                    (f"and options, {name}", [(ORDER, (PAYLOAD,)), (CALL, (PAYLOAD, QUEUED))]),
                ):
                    rows = max(batch, options.commits if batch == 1 else 5 * options.commits)
                    took = await load(server, calls, rows, batch, options.callers)
                    report.tell(figure, settings, per_second=rows / took)
        made, took = await taken_in(server, options)
        report.tell("runs made of the intake", {"shards": options.shards}, per_second=made / took)
    report.table()
    return 0


async def load(
    server: EmbeddedPostgres,
    calls: Sequence[tuple[str, Sequence[str]]],
    rows: int,
    batch: int,
    callers: int,
) -> float:
    """Seconds for so many rows, a batch in each transaction."""
    left = rows // batch

    async def caller(connection: asyncpg.Connection) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            async with connection.transaction():
                for _ in range(batch):
                    for statement, given in calls:
                        await connection.execute(statement, *given)

    connections = [await asyncpg.connect(server.dsn()) for _ in range(callers)]
    try:
        began = perf_counter()
        await asyncio.gather(*(caller(one) for one in connections))
        return perf_counter() - began
    finally:
        for one in connections:
            await one.close()


async def taken_in(server: EmbeddedPostgres, options: argparse.Namespace) -> tuple[int, float]:
    """How many runs a coordinator made of what waits, and the seconds it took."""
    clock, dice = SystemClock(), Dice()
    async with a_database(server) as database:
        desk = Desk(
            database=database,
            clock=clock,
            entropy=dice.entropy,
            hints=Hints(database=database, clock=clock),
            shards=options.shards,
            tzdata="bench",
        )
        made, began = 0, perf_counter()
        while shards := await shards_to_take_in(database):
            for shard in shards:
                made += (await take_in(desk, shard)).total
        return made, perf_counter() - began
