"""What remote workers say about runs beside their outcomes: progress, checkpoints, logs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from betimes.domain.ids import RunId, ShardId, TenantId, shard_of
from betimes.domain.leased import HeldLease
from betimes.store.ask import execute, many, maybe, one
from betimes.store.jobs import from_json, to_json, to_optional_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("remote")


class Note(NamedTuple):
    """What a worker has said about a run."""

    percent: float | None
    message: str | None
    checkpoint: bytes | None
    metrics: Mapping[str, float] = {}
    """What it measured, as told with the end of the run."""


class Measured(NamedTuple):
    """What a worker measured while it executed a run."""

    run: RunId
    fence: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a run's log."""

    at: datetime
    level: str
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    seq: int = 0
    attempt: int = 0
    sealed: str | None = None
    """Message and fields where they are sealed; both are empty then."""


async def note_run(
    connection: Connection, tenant: TenantId, lease: HeldLease, note: Note, *, now: datetime
) -> bool:
    """Keep progress or a checkpoint of a run that the lease holds; whether it does."""
    row = await maybe(
        connection,
        SQL["note_run"],
        shard=lease.shard,
        parcel=lease.parcel,
        worker=lease.worker,
        run=lease.run,
        tenant=tenant,
        fence=lease.fence,
        percent=note.percent,
        message=note.message,
        checkpoint=note.checkpoint,
        now=now,
    )
    return row is not None


async def read_notes(
    connection: Connection, shard: ShardId, runs: Sequence[RunId]
) -> dict[RunId, Note]:
    """What was said about runs."""
    rows = await many(connection, SQL["read_notes"], shard=shard, runs=list(runs))
    return {
        row["run_id"]: Note(
            row["percent"], row["message"], row["checkpoint"], from_json(row["metrics"])
        )
        for row in rows
    }


async def note_metrics(
    connection: Connection,
    tenant: TenantId,
    shard: ShardId,
    measured: Sequence[Measured],
    *,
    now: datetime,
) -> None:
    """Keep what was measured, beside the ends that tell it."""
    if measured:
        await execute(
            connection,
            SQL["note_metrics"],
            shard=shard,
            tenant=tenant,
            runs=[one.run for one in measured],
            fences=[one.fence for one in measured],
            metrics=[to_json(one.metrics) for one in measured],
            now=now,
        )


async def append_logs(
    connection: Connection, tenant: TenantId, lease: HeldLease, lines: Sequence[LogLine]
) -> int:
    """Add lines to the log of a run."""
    row = await one(
        connection,
        SQL["append_logs"],
        shard=lease.shard,
        run=lease.run,
        tenant=tenant,
        attempt=lease.attempt,
        times=[line.at for line in lines],
        levels=[line.level for line in lines],
        messages=[line.message for line in lines],
        fields=[_fields(line) for line in lines],
    )
    return int(row["lines"])


async def read_logs(
    connection: Connection,
    run: RunId,
    *,
    after: int,
    attempt: int | None,
    most: int,
    levels: Sequence[str] = (),
    last: bool = False,
) -> list[LogLine]:
    """A page of lines in order, the first ones or the last."""
    rows = await many(
        connection,
        SQL["read_last_logs" if last else "read_logs"],
        shard=shard_of(run),
        run=run,
        after=after,
        attempt=attempt,
        levels=list(levels) or None,
        most=most,
    )
    if last:
        rows.reverse()
    return [_line_of(row) for row in rows]


def _fields(line: LogLine) -> str | None:
    """A word where the line is sealed: fields are an object otherwise, whoever writes them."""
    return to_optional_json(line.fields) if line.sealed is None else json.dumps(line.sealed)


def _line_of(row: asyncpg.Record) -> LogLine:
    fields: str | None = row["fields"]
    sealed = json.loads(fields) if fields is not None and fields.startswith('"') else None
    return LogLine(
        seq=row["seq"],
        attempt=row["attempt"],
        at=row["at"],
        level=row["level"],
        message=row["message"],
        fields=from_json(fields) if sealed is None else {},
        sealed=sealed,
    )
