"""Rows in bulk, as COPY brings them in: what a measurement needs to find, and the raw limit."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from time import perf_counter
from typing import Any

from bench.kit.report import Bar
from bench.kit.server import TENANT, as_owner
from bench.kit.worker import HANDLER
from betimes.app.dice import Dice
from betimes.domain.ids import random_ids, to_ms
from betimes.embedded import EmbeddedPostgres

RUN_COLUMNS = ("shard", "id", "tenant_id", "due_at", "state", "queue", "handler")
JOB_COLUMNS = (
    "shard",
    "id",
    "tenant_id",
    "next_fire_at",
    "created_at",
    "updated_at",
    "handler",
    "tzdata",
    "schedule",
    "target",
)
CHUNK = 20_000
RAW_BATCH = 500
Row = tuple[Any, ...]


async def copy_rate(server: EmbeddedPostgres, *, rows: int, shards: int) -> int:
    """The raw limit: plain COPY of runs, 500 to a transaction, rows per second. Leaves nothing."""
    dice, seconds = Dice(), 0.0
    async with as_owner(server) as connection:
        for place in range(rows // RAW_BATCH):
            now, shard = datetime.now(UTC), place % shards
            ids = sorted(random_ids(to_ms(now), shard, dice.entropy(8 * RAW_BATCH)))
            records = [(shard, run, TENANT, now, 0, "default", HANDLER) for run in ids]
            began = perf_counter()
            await connection.copy_records_to_table(
                "runs", schema_name="betimes", columns=RUN_COLUMNS, records=records
            )
            seconds += perf_counter() - began
        await connection.execute("TRUNCATE betimes.runs")
    return round(rows // RAW_BATCH * RAW_BATCH / seconds)


async def copy_runs(server: EmbeddedPostgres, rows: Iterator[Row]) -> None:
    """Bring runs in, many to a transaction."""
    async with as_owner(server) as connection:
        while chunk := list(islice(rows, CHUNK)):
            await connection.copy_records_to_table(
                "runs", schema_name="betimes", columns=RUN_COLUMNS, records=chunk
            )


async def copy_jobs(server: EmbeddedPostgres, rows: Iterator[Row], *, count: int) -> float:
    """Bring jobs in, many to a transaction; the seconds it took, making the rows included."""
    bar, done, began = Bar(count, "schedules"), 0, perf_counter()
    async with as_owner(server) as connection:
        while chunk := list(islice(rows, CHUNK)):
            await connection.copy_records_to_table(
                "jobs", schema_name="betimes", columns=JOB_COLUMNS, records=chunk
            )
            done += len(chunk)
            bar.draw(done)
        seconds = perf_counter() - began
        await connection.execute("ANALYZE betimes.jobs")
    return seconds


def interval_jobs(
    count: int,
    *,
    period: timedelta,
    start: datetime,
    phases: int,
    shards: int,
    tzdata: str,
    overlap: str | None = None,
) -> Iterator[Row]:
    """Jobs with a fixed period, their anchors spread evenly over `phases` parts of the period."""
    dice, made = Dice(), datetime.now(UTC)
    every = f"PT{period.total_seconds():g}S"
    schedules = []
    for phase in range(phases):
        anchor = start + period * phase / phases
        text = anchor.isoformat().replace("+00:00", "Z")
        schedule = {"type": "interval", "every": every, "anchor": text, "timezone": "UTC"}
        if overlap is not None:
            schedule["overlap"] = overlap
        schedules.append((anchor, json.dumps(schedule)))
    for number in range(count):
        anchor, told = schedules[number % phases]
        # Neighbours in time go to different shards.
        shard = (number * 7 + number // phases) % shards
        (job,) = random_ids(to_ms(made), shard, dice.entropy(8))
        yield (shard, job, TENANT, anchor, made, made, HANDLER, tzdata, told, "{}")
