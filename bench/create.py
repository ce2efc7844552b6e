"""How fast work gets into the store: runs in bulk, runs one by one, jobs; beside plain COPY.

Everything is durable (fsync on) and goes through the verbs of `ops` as a tenant, row-level security
included. One JSON line for each figure on stdout, a table on stderr. `ratio` is the share of what
plain COPY of the same rows reached in the same run, measured before and after.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import count
from statistics import quantiles
from time import perf_counter
from typing import Any
from uuid import UUID

import asyncpg
import uvloop

from bench._store import SHARDS, entropy, fresh_store
from betimes.domain.ids import TenantId, random_ids, shard_of, to_ms, to_text
from betimes.domain.job import Definition
from betimes.domain.run import NewRun
from betimes.ops import Desk, NewJob, create_job, create_jobs, enqueue_runs
from betimes.ops.acting import Answer, Intent, Told
from betimes.ops.dedupe import MadeJob
from betimes.ops.idempotency import IdempotencyKey
from betimes.ops.making import Enqueued, make_jobs, make_runs
from betimes.ops.together import Together
from betimes.schedule import parse
from betimes.store.database import Database
from betimes.store.hints import NoHints
from betimes.testing.real_clock import RealClock

TENANT = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
PAYLOAD = b'{"to": "somebody@example.org", "template": "welcome"}'
COLUMNS = (
    "shard",
    "id",
    "tenant_id",
    "due_at",
    "created_at",
    "state",
    "queue",
    "handler",
    "payload",
)

Step = Callable[[int], Awaitable[int]]
"""One turn of one of several workers; returns how many it has made."""


def main(arguments: list[str]) -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="bench create", description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0, help="how long each part lasts")
    options.add_argument("--batch", type=int, default=500, help="runs per transaction")
    options.add_argument("--quick", action="store_true", help="a moment only")
    chosen = options.parse_args(arguments)
    uvloop.run(measure(0.2 if chosen.quick else chosen.seconds, chosen.batch))
    return 0


async def measure(seconds: float, batch: int) -> None:
    """Every part in one store, plain COPY first and last."""
    async with fresh_store(connections=8) as (database, dsn):
        desk = make_desk(database)
        copy = await asyncpg.create_pool(dsn, min_size=2, max_size=2)
        before = await rate(lambda place: copy_runs(copy, place, batch), 2, seconds)
        await part("warm up", lambda _: bulk(desk, batch), 1, seconds / 4)
        figures = [
            await part("bulk runs, 1 caller", lambda _: bulk(desk, batch), 1, seconds),
            await part("bulk runs, 2 callers", lambda _: bulk(desk, batch), 2, seconds),
            await part("bulk runs, 4 callers", lambda _: bulk(desk, batch), 4, seconds),
            await grouped("single runs", single_runs(desk), a_run(), told_run, 50, seconds),
            await grouped("single jobs", single_jobs(desk), a_job(), told_job, 50, seconds),
            await part("jobs without a group, 50 callers", lambda _: one_job(desk), 50, seconds),
            await part("jobs in bulk, 2 callers", lambda _: many_jobs(desk, batch), 2, seconds),
        ]
        after = await rate(lambda place: copy_runs(copy, place, batch), 2, seconds)
        await copy.close()
    limit = (before + after) / 2
    print(json.dumps({"part": "plain COPY, 2 connections", "per_second": round(limit)}))
    for figure in figures:
        figure |= {"ratio": round(figure["per_second"] / limit, 2), "batch": batch}
        print(json.dumps(figure))
        print(
            f"{figure['part']:32} {figure['per_second']:>9,}/s  {figure['ratio']:.2f} of COPY",
            file=sys.stderr,
        )
    print(
        f"{'plain COPY':32} {limit:>9,.0f}/s  ({before:,.0f} before, {after:,.0f} after)",
        file=sys.stderr,
    )


async def part(name: str, step: Step, workers: int, seconds: float) -> dict[str, Any]:
    """One figure."""
    return {"part": name, "per_second": round(await rate(step, workers, seconds))}


async def rate(step: Step, workers: int, seconds: float) -> float:
    """How many per second several workers make together."""
    made, began = 0, perf_counter()

    async def work(place: int) -> None:
        nonlocal made
        while perf_counter() - began < seconds:
            more = await step(place)  # not in one line: others add to it while we wait
            made += more

    await asyncio.gather(*(work(place) for place in range(workers)))
    return made / (perf_counter() - began)


async def grouped(
    name: str,
    group: Together[Any, Any],
    asked: object,
    tell: Callable[[Any], Told],
    callers: int,
    seconds: float,
) -> dict[str, Any]:
    """Single acts by many callers in the group commit of the API, with the time each one waits.

    Each has an idempotency key, an audit row and an event, as a request has.
    """
    waits = list[float]()

    async def one(_: int) -> int:
        began = perf_counter()
        await group.act(asked, an_intent(), refuse_alone, tell)
        waits.append(perf_counter() - began)
        return 1

    async with asyncio.TaskGroup() as tasks:
        loop = tasks.create_task(group.run())
        await asyncio.sleep(0)
        figure = await part(f"{name}, {callers} callers", one, callers, seconds)
        loop.cancel()
    cuts = quantiles(waits, n=100)
    return figure | {
        "per_commit": round(group.items / group.commits, 1),
        "p50_ms": round(cuts[49] * 1000, 2),
        "p99_ms": round(cuts[98] * 1000, 2),
    }


def single_runs(desk: Desk) -> Together[NewRun, Enqueued]:
    """The group commit of runs, as the API has it."""
    return Together(desk=desk, make=make_runs)


def single_jobs(desk: Desk) -> Together[NewJob, MadeJob]:
    """The group commit of jobs."""
    return Together(desk=desk, make=make_jobs)


def an_intent() -> Intent:
    """A request of its own."""
    key = entropy(16)
    return Intent(
        tenant=TENANT,
        actor={"type": "bench"},
        action="bench",
        request_id=key.hex(),
        key=IdempotencyKey(key=key.hex(), fingerprint=key),
    )


async def refuse_alone(_: Desk) -> Any:
    """Nothing here goes without company: that would be another figure."""
    raise RuntimeError("a group was refused, and its members went alone")


def told_run(made: Enqueued) -> Told:
    """What is written about a run that was made."""
    text = to_text("run", made.made.id)
    return Told(
        answer=Answer(status=202, body=b'{"id":"%s"}' % text.encode(), headers={}),
        resource=text,
        shard=shard_of(made.made.id),
        event="run.queued",
    )


def told_job(made: MadeJob) -> Told:
    """What is written about a job that was made."""
    text = to_text("job", made.job.id)
    return Told(
        answer=Answer(status=201, body=b'{"id":"%s"}' % text.encode(), headers={}),
        resource=text,
        shard=made.job.shard,
        event="job.created",
    )


async def bulk(desk: Desk, batch: int) -> int:
    """One batch of ad-hoc runs."""
    await enqueue_runs(
        desk, TENANT, [NewRun(handler="noop", payload=PAYLOAD) for _ in range(batch)]
    )
    return batch


def a_run() -> NewRun:
    """Ad-hoc work, due now."""
    return NewRun(handler="noop", payload=PAYLOAD)


def a_job() -> NewJob:
    """A job that fires daily."""
    return NewJob(definition=DAILY)


async def one_job(desk: Desk) -> int:
    """One job that fires daily."""
    await create_job(desk, TENANT, NewJob(definition=DAILY))
    return 1


async def many_jobs(desk: Desk, batch: int) -> int:
    """A batch of jobs."""
    await create_jobs(desk, TENANT, [NewJob(definition=DAILY)] * batch)
    return batch


async def copy_runs(pool: "asyncpg.Pool[asyncpg.Record]", place: int, batch: int) -> int:
    """The same rows by plain COPY, as a superuser, without parcels: the limit."""
    now = datetime.now(UTC)
    shard = next(TURNS) % SHARDS if place else 0
    rows = [
        (shard, run, TENANT, now, now, 1, "default", "noop", PAYLOAD)
        for run in random_ids(to_ms(now), shard, entropy(batch * 8))
    ]
    async with pool.acquire() as connection:
        await connection.copy_records_to_table(
            "runs", schema_name="betimes", columns=COLUMNS, records=rows
        )
    return batch


def make_desk(database: Database) -> Desk:
    """A desk that tells nobody."""
    return Desk(
        database=database,
        clock=RealClock(),
        hints=NoHints(),
        entropy=entropy,
        shards=SHARDS,
        tzdata="bench",
    )


TURNS = count()
DAILY = Definition(
    schedule=parse("0 2 * * *", timezone="Europe/Berlin").to_dict(), handler="noop", payload=PAYLOAD
)
