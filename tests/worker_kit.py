"""What tests of the worker share: runs and parcels in the database, a worker cranked by hand."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg

from betimes.config.settings import WorkerSettings
from betimes.domain.clock import Clock
from betimes.domain.ids import RunId, ShardId, TenantId, WorkerId, compose, to_ms
from betimes.domain.parcel import rank_of
from betimes.domain.states import RunState
from betimes.domain.terms import BARE, Terms
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.telemetry import Recorder, Telemetry
from betimes.worker import Chance, Handlers, WorkerSignals
from betimes.worker.builtin import builtin_handlers
from betimes.worker.hints import CHANNEL
from betimes.worker.service import Large, Parts

TENANT = TenantId(UUID("00000000-0000-8000-8000-00000000000a"))
SHARD = ShardId(1)
QUEUE = "default"
_numbers = count(1)


def worker_id(number: int = 1) -> WorkerId:
    """An identity."""
    return WorkerId(compose(0, 0, number))


def half() -> float:
    """A die that always shows the middle."""
    return 0.5


def entropy(length: int) -> bytes:
    """Bytes that differ from call to call, in order."""
    return next(_numbers).to_bytes(length, "big")


def run_id(due_at: datetime, *, shard: int = SHARD) -> RunId:
    """A new run id."""
    return RunId(compose(to_ms(due_at), shard, next(_numbers)))


@dataclass
class Bench:
    """A worker whose parts a test cranks by hand."""

    parts: Parts
    database: Database
    telemetry: Telemetry
    recorder: Recorder

    async def once(self) -> int:
        """Claim once, execute what does not wait, write what ended."""
        leased = await self.parts.lookout.tick()
        await settle_down()
        await self.parts.reporter.flush()
        return leased

    async def poll_once(self) -> int:
        """Look everywhere and claim until nothing is left; runs leased."""
        self.parts.lookout.hear(CHANNEL, "")
        total = 0
        while leased := await self.once():
            total += leased
        return total

    def counted(self, name: str, **labels: str) -> float:
        """The value of a counter."""
        return self.telemetry.reading(name, **labels)


async def settle_down() -> None:
    """Let every task go as far as it can without time passing."""
    for _ in range(20):
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait


@asynccontextmanager
async def a_worker(
    database: Database,
    clock: Clock,
    *,
    number: int = 1,
    handlers: Handlers | None = None,
    signals: WorkerSignals | None = None,
    large: Large | None = None,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """A worker without loops of its own; ends whatever is still running at the end."""
    recorder = Recorder()
    telemetry = Telemetry(clock=clock, handlers=[recorder])
    async with asyncio.TaskGroup() as group:
        parts = Parts(
            worker=worker_id(number),
            database=database,
            handlers=handlers or builtin_handlers(clock),
            clock=clock,
            chance=Chance(roll=half, entropy=entropy),
            settings=WorkerSettings(**settings),
            telemetry=telemetry,
            group=group,
            signals=signals or WorkerSignals(),
            large=large,
        )
        try:
            yield Bench(parts, database, telemetry, recorder)
        finally:
            for running in parts.executor.running:
                running.carrier.cancel()
            parts.close()


async def enqueue(
    database: Database,
    due_at: datetime,
    handlers: Sequence[str],
    *,
    shard: ShardId = SHARD,
    queue: str = QUEUE,
    tenant: TenantId = TENANT,
    payload: bytes | None = None,
    options: dict[str, Any] | None = None,
    deliveries: int = 0,
    terms: Terms = BARE,
    **columns: Any,
) -> list[RunId]:
    """Put runs into the database, queued, in one parcel, or each in its own if they are gated."""
    columns |= {"fair": terms.fair, "gate": terms.gate, "when_full": terms.when_full}
    columns |= {"rate_key": terms.rate}
    runs = [run_id(due_at, shard=shard) for _ in handlers]
    extra = "".join(f", {name}" for name in columns)
    places = "".join(f", ${number}" for number in range(9, 9 + len(columns)))
    async with database.connection(Lane.ENGINE) as connection, connection.transaction():
        await connection.executemany(
            "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, state, queue, handler,"
            f" payload, options{extra})"
            f" VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8::text::jsonb{places})",
            [
                (
                    shard,
                    run,
                    tenant,
                    due_at,
                    queue,
                    handler,
                    payload,
                    None if options is None else json.dumps(options),
                    *columns.values(),
                )
                for run, handler in zip(runs, handlers, strict=True)
            ],
        )
        for some in [[run] for run in runs] if terms.is_gated else [runs]:
            await put_parcel(
                connection,
                some,
                due_at,
                shard,
                queue,
                tenant=tenant,
                deliveries=deliveries,
                terms=terms,
            )
    return runs


async def put_parcel(
    connection: Any,
    runs: Sequence[UUID],
    visible_at: datetime,
    shard: int = SHARD,
    queue: str = QUEUE,
    *,
    tenant: UUID = TENANT,
    deliveries: int = 0,
    terms: Terms = BARE,
) -> None:
    """Put runs that exist into one parcel."""
    await connection.execute(
        "INSERT INTO betimes.parcels (shard, id, tenant_id, queue, rank, visible_at, deliveries,"
        " run_ids, fair, gate, when_full, line, rate_key)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        shard,
        compose(to_ms(visible_at), shard, next(_numbers)),
        tenant,
        queue,
        rank_of(visible_at, 5),
        visible_at,
        deliveries,
        list(runs),
        terms.fair,
        terms.gate,
        terms.when_full,
        terms.line,
        terms.rate,
    )


async def rows(database: Database, statement: str, *arguments: Any) -> list[asyncpg.Record]:
    """Whatever a test wants to know."""
    async with database.connection(Lane.ENGINE) as connection:
        return await connection.fetch(statement, *arguments)


async def read_run(database: Database, run: UUID) -> asyncpg.Record:
    """One run as it is stored."""
    (row,) = await rows(database, "SELECT * FROM betimes.runs WHERE id = $1", run)
    return row


async def state_of(database: Database, run: UUID) -> RunState:
    """The state of one run."""
    return RunState((await read_run(database, run))["state"])


async def parcels(database: Database) -> list[asyncpg.Record]:
    """Every parcel there is, best rank first."""
    return await rows(database, "SELECT * FROM betimes.parcels ORDER BY rank, id")


async def reap(database: Database, now: datetime) -> int:
    """What the janitor does to leases that ran out."""
    freed = await rows(
        database,
        "UPDATE betimes.parcels SET worker_id = NULL, lease_until = NULL, slot = false"
        " WHERE lease_until < $1 RETURNING id",
        now,
    )
    return len(freed)


SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
