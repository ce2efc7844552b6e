"""What order and limits cost: a drain bare and under each rule, and a hot tenant's neighbours.

    bare        one tenant, full parcels, no rules: the line everybody is compared with
    tenants     a thousand tenants with weights, a few of them with most of the work
    fair        fairness keys inside one queue
    ceilings    a ceiling and a rate, high enough never to stop anybody: the price of counting
    policies    weights, fairness keys, ceilings and rates together
    alone       one run in each parcel, without a gate
    gates       the same with a concurrency key of its own for each run
    rates       the same with a hundred rate limit keys, their rates high enough to stop nobody
    hot         start delays of small tenants, alone and beside one with a hundred times their load

One JSON line for each scenario on stdout; the table goes to stderr.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any, NamedTuple
from uuid import UUID

from bench.drain import a_server, as_owner, drain, execute, opener, value
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.run import run_to_end
from betimes.config.settings import DatabaseSettings, WorkerSettings
from betimes.domain.ids import WorkerId, compose, random_ids, to_ms
from betimes.domain.parcel import RUNS_MAX, rank_of
from betimes.embedded import EmbeddedPostgres
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.partitions import Partitions
from betimes.store.workers import WorkerCard
from betimes.telemetry import Telemetry
from betimes.worker import Chance, Worker
from betimes.worker.builtin import builtin_handlers

TENANTS_MAX = 1_000
KEYS = 50
RATE_KEYS = 100
SMALL_TENANTS, SMALL_PER_SECOND = 20, 5
RUN_COLUMNS = (
    "shard",
    "id",
    "tenant_id",
    "due_at",
    "state",
    "queue",
    "handler",
    "fair",
    "gate",
    "rate_key",
)
PARCEL_COLUMNS = (
    "shard",
    "id",
    "tenant_id",
    "queue",
    "rank",
    "visible_at",
    "run_ids",
    "fair",
    "gate",
    "rate_key",
)


class Scenario(NamedTuple):
    """How the runs of a drain differ, and what holds for them."""

    tenants: int = 1
    keys: int = 0
    size: int = RUNS_MAX
    gated: bool = False
    rated: bool = False
    weights: bool = False
    ceilings: bool = False


SCENARIOS = {
    "bare": Scenario(),
    "tenants": Scenario(tenants=TENANTS_MAX, weights=True),
    "fair": Scenario(keys=KEYS),
    "ceilings": Scenario(ceilings=True),
    "policies": Scenario(tenants=20, keys=5, weights=True, ceilings=True),
    "alone": Scenario(size=1),
    "gates": Scenario(size=1, gated=True),
    "rates": Scenario(size=1, rated=True),
}


class Handful(NamedTuple):
    """The runs of one parcel."""

    shard: int
    tenant: UUID
    fair: int
    gate: str | None
    rate: str | None
    runs: list[UUID]


def main(arguments: list[str]) -> int:
    """Measure every scenario on one server."""
    parser = argparse.ArgumentParser(prog="bench limits", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--slots", type=int, default=2048)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true", help="one small round")
    options = parser.parse_args(arguments)
    options.profile = None
    if options.quick:
        options.runs, options.rounds, options.seconds = min(options.runs, 1_000), 1, 1.0
    return run_to_end(measure(options))


async def measure(options: argparse.Namespace) -> int:
    """All scenarios, in turns, so that each round sees the same machine."""
    clock, dice = SystemClock(), Dice()
    async with a_server(options.shards) as server:
        database = await Database.open(
            DatabaseSettings(), dsn=server.dsn(), clock=clock, roll=dice.roll
        )
        try:
            await Partitions(database).ensure(datetime.now(UTC).date(), ahead_days=2)
            for number in range(1, options.rounds + 1):
                for name, scenario in SCENARIOS.items():
                    if name in (options.only or name):
                        await one(number, name, scenario, options, server, database)
            if "hot" in (options.only or "hot"):
                await hot(options, server, database)
        finally:
            await database.close()
    return 0


async def one(
    number: int,
    name: str,
    scenario: Scenario,
    options: argparse.Namespace,
    server: EmbeddedPostgres,
    database: Database,
) -> None:
    """Fill, drain, look whether all is done."""
    await agree(server, scenario)
    handfuls = list(make(scenario, options.runs, options.shards))
    await put(server, handfuls)
    await execute(server, "ANALYZE betimes.parcels")
    # As the janitor does: a partition without statistics is planned for as if it were empty.
    await Partitions(database).survey()
    await execute(server, "CHECKPOINT")
    figures = await drain(options, server, database)
    left = await value(server, "SELECT count(*) FROM betimes.parcels")
    done = await value(server, "SELECT count(*) FROM betimes.runs WHERE state = 4")
    assert (left, done) == (0, options.runs), (left, done)
    await execute(server, "TRUNCATE betimes.runs, betimes.parcels, betimes.limits")
    tell(name, {"round": number, "runs": options.runs, **figures})


async def agree(server: EmbeddedPostgres, scenario: Scenario) -> None:
    """Tenants and queues with their weights, ceilings and rates."""
    quotas = '{"max_in_flight": 1000000, "runs_per_minute": 1000000000}'
    async with as_owner(server) as connection:
        await connection.execute("DELETE FROM betimes.queues")
        await connection.execute("DELETE FROM betimes.tenants WHERE slug LIKE 't%'")
        await connection.executemany(
            "INSERT INTO betimes.tenants (id, slug, name, weight, quotas)"
            " VALUES ($1, $2, $2, $3, $4::text::jsonb)",
            [
                (
                    tenant_of(place),
                    f"t{place}",
                    float(1 + place % 4) if scenario.weights else 1.0,
                    quotas if scenario.ceilings else "{}",
                )
                for place in range(scenario.tenants)
            ],
        )
        await connection.executemany(
            "INSERT INTO betimes.queues"
            " (tenant_id, name, fairness, max_concurrency, rate_limit, rate_per_ms,"
            " key_rate_limit, key_rate_per_ms) VALUES ($1, 'default', $2, $3, $4, $5, $6, $7)",
            [
                (
                    tenant_of(place),
                    "key" if scenario.keys else "tenant",
                    1_000_000 if scenario.ceilings else None,
                    100_000_000 if scenario.ceilings else None,
                    1_000 if scenario.ceilings else None,
                    1_000_000 if scenario.rated else None,
                    1_000 if scenario.rated else None,
                )
                for place in range(scenario.tenants)
            ],
        )


def tenant_of(place: int) -> UUID:
    """Tenants by number."""
    return UUID(int=0x8000_8000_0000_0001_0000 + place)


def make(scenario: Scenario, runs: int, shards: int) -> Iterator[Handful]:
    """Parcels; with several tenants the first few have most of the work."""
    now, dice = to_ms(datetime.now(UTC)), Dice()
    for place, first in enumerate(range(0, runs, scenario.size)):
        size = min(scenario.size, runs - first)
        shard = place % shards
        # Nine in ten belong to a tenth of the tenants.
        crowd = scenario.tenants if place % 10 == 0 else max(1, scenario.tenants // 10)
        yield Handful(
            shard,
            tenant_of(place * 7 % crowd),
            1 + place % scenario.keys if scenario.keys else 0,
            f"key {place}" if scenario.gated else None,
            f"rate {place % RATE_KEYS}" if scenario.rated else None,
            [UUID(int=one.int) for one in random_ids(now, shard, dice.entropy(8 * size))],
        )


async def put(server: EmbeddedPostgres, handfuls: list[Handful]) -> None:
    """Runs and parcels, ready."""
    now = datetime.now(UTC)
    async with as_owner(server) as connection:
        await connection.copy_records_to_table(
            "runs",
            schema_name="betimes",
            columns=RUN_COLUMNS,
            records=[
                (
                    one.shard,
                    run,
                    one.tenant,
                    now,
                    1,
                    "default",
                    "noop",
                    one.fair,
                    one.gate,
                    one.rate,
                )
                for one in handfuls
                for run in one.runs
            ],
        )
        await connection.copy_records_to_table(
            "parcels",
            schema_name="betimes",
            columns=PARCEL_COLUMNS,
            records=[
                (
                    one.shard,
                    compose(to_ms(now), one.shard, one.runs[0].int),
                    one.tenant,
                    "default",
                    rank_of(now, 5),
                    now,
                    one.runs,
                    one.fair,
                    one.gate,
                    one.rate,
                )
                for one in handfuls
            ],
        )


async def hot(options: argparse.Namespace, server: EmbeddedPostgres, database: Database) -> None:
    """Start delays of small tenants, alone and beside a hundred times their load."""
    await agree(server, Scenario(tenants=1 + SMALL_TENANTS))
    solo = await delays(options, server, database, backlog=0)
    load = int(100 * SMALL_TENANTS * SMALL_PER_SECOND * options.seconds)
    beside = await delays(options, server, database, backlog=load)
    tell(
        "hot",
        {
            "backlog": load,
            "solo_p99_ms": solo,
            "beside_p99_ms": beside,
            "bound_ms": round(2 * solo + 1_000, 1),
        },
    )


async def delays(
    options: argparse.Namespace, server: EmbeddedPostgres, database: Database, *, backlog: int
) -> float:
    """The 99th percentile of what small tenants wait, in ms."""
    stopping = Stopping()
    if backlog:
        handfuls = [
            one._replace(tenant=tenant_of(0)) for one in make(Scenario(), backlog, options.shards)
        ]
        await put(server, handfuls)
        await execute(server, "ANALYZE betimes.parcels")
    async with asyncio.TaskGroup() as group:
        group.create_task(a_worker(options, server, database).run(stopping))
        await trickle(options, server)
        await asyncio.sleep(1.0)
        stopping.request("done")
    delay = await value(
        server,
        "SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY"
        " extract(epoch FROM coalesce(started_at, now()) - due_at) * 1000)"
        " FROM betimes.runs WHERE tenant_id IN (SELECT id FROM betimes.tenants WHERE slug <> 't0')",
    )
    await execute(server, "TRUNCATE betimes.runs, betimes.parcels, betimes.limits")
    return round(float(delay), 1)


async def trickle(options: argparse.Namespace, server: EmbeddedPostgres) -> None:
    """Small tenants ask for a little, all the time."""
    ends = perf_counter() + options.seconds
    place = 0
    while perf_counter() < ends:
        some = []
        for number in range(1, 1 + SMALL_TENANTS):
            (one,) = make(Scenario(), 1, 1)
            some.append(one._replace(tenant=tenant_of(number), shard=place % options.shards))
            place += 1
        await put(server, [_moved(one) for one in some])
        await asyncio.sleep(1 / SMALL_PER_SECOND)


def _moved(one: Handful) -> Handful:
    """With ids that say the shard it lies in."""
    runs = list(random_ids(to_ms(datetime.now(UTC)), one.shard, Dice().entropy(8)))
    return one._replace(runs=[UUID(int=run.int) for run in runs])


def a_worker(options: argparse.Namespace, server: EmbeddedPostgres, database: Database) -> Worker:
    """One worker with a poll every second and no hints: the worst it may be."""
    clock, dice = SystemClock(), Dice()
    (identifier,) = random_ids(to_ms(clock.now()), 0, dice.entropy(8))
    card = WorkerCard(
        id=WorkerId(identifier),
        node=None,
        name="bench",
        version="0",
        queues=("*",),
        handlers=(),
        slots=1,
    )
    return Worker(
        card=card,
        database=database,
        open_database=opener(server),
        handlers=builtin_handlers(clock),
        clock=clock,
        chance=Chance(roll=dice.roll, entropy=dice.entropy),
        settings=WorkerSettings(slots=min(256, options.slots)),
        drain_timeout=timedelta(seconds=5),
        telemetry=Telemetry(clock=clock),
    )


def tell(name: str, figures: dict[str, Any]) -> None:
    """One line for machines, one for people."""
    print(json.dumps({"bench": "limits", "scenario": name, **figures}), flush=True)
    words = "  ".join(f"{key} {figure:,}" for key, figure in figures.items())
    print(f"{name}: {words}", file=sys.stderr, flush=True)
