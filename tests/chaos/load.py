"""The client: asks for work while everything breaks, and keeps a log of what it was promised."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import Conflict, NotFound, Unavailable
from betimes.domain.ids import JobId, RunId, TenantId
from betimes.domain.job import Definition
from betimes.domain.run import NewRun
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.enqueue import Order
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.runs import cancel_run
from betimes.schedule import parse
from betimes.store.database import Database
from betimes.store.hints import NoHints
from chaos.stage import SHARDS, Stage
from embedded_kit import RealClock

TENANT = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
RETRY = {"initial_ms": 500, "backoff": "fixed", "jitter": "none"}
PATIENT = {"retry": {**RETRY, "max_attempts": 10}}
POISON_ATTEMPTS = 3
POISON = {"retry": {**RETRY, "max_attempts": POISON_ATTEMPTS}}


def half() -> float:
    """A die that always shows the middle."""
    return 0.5


@dataclass
class Client:
    """Creates jobs and ad-hoc runs; `every` are the periods of the jobs it made."""

    desk: Desk
    every: dict[UUID, int] = field(default_factory=dict)
    acknowledged: set[UUID] = field(default_factory=set)
    unknown: set[UUID] = field(default_factory=set)
    poison: set[UUID] = field(default_factory=set)
    cancelled: dict[UUID, float] = field(default_factory=dict)
    paused: list[tuple[UUID, float, float]] = field(default_factory=list)
    refused: int = 0

    async def create_jobs(self, *periods: int) -> None:
        """Jobs that fire at whole multiples of their period; they work for a little while."""
        for number, period in enumerate(periods):
            schedule = parse(
                {
                    "type": "interval",
                    "every": f"PT{period}S",
                    "anchor": "1970-01-01T00:00:00Z",
                    "timezone": "UTC",
                }
            )
            definition = Definition(
                schedule=schedule.to_dict(),
                handler="flaky" if number % 3 == 2 else "witness",
                payload=b"0" if number % 2 else b"0.4",
                options=PATIENT,
            )
            job = await create_job(self.desk, TENANT, NewJob(definition=definition))
            self.every[job.id] = period
            self.acknowledged.add(job.id)

    async def enqueue(self, new: Sequence[NewRun]) -> list[UUID]:
        """One batch; when it is not known whether it happened, that is what is noted."""
        order = Order(self.desk, TENANT, new, shard=self.desk.next_shard())
        try:
            await self.desk.transact(order.place, tenant=TENANT)
        except Unavailable:
            self.refused += 1
            self.unknown |= set(order.ids)
        else:
            self.acknowledged |= set(order.ids)
        return list(order.ids)

    async def poison_some(self, innocents: int = 20) -> None:
        """One run that kills its worker, in the middle of others that would not hurt a fly."""
        harmless = NewRun(handler="witness", options=PATIENT)
        killer = NewRun(handler="poison", options=POISON)
        half_of = innocents // 2
        ids = await self.enqueue([*[harmless] * half_of, killer, *[harmless] * half_of])
        self.poison.add(ids[half_of])

    async def keep_asking(self, seconds: float) -> None:
        """A small batch every half second: some at once, some soon, some slow."""
        until = time.monotonic() + seconds
        kinds = [
            NewRun(handler="witness", options=PATIENT),
            NewRun(handler="witness", payload=b"2.5", options=PATIENT),
            NewRun(handler="flaky", options=PATIENT),
        ]
        while time.monotonic() < until:
            await self.enqueue(kinds)
            await asyncio.sleep(0.5)

    async def keep_meddling(self) -> None:
        """Cancel runs that wait and runs under way; pause the first job for a while, again."""
        job = JobId(next(iter(self.every)))
        while True:
            waits = NewRun(handler="witness", delay=timedelta(seconds=2), options=PATIENT)
            under_way = NewRun(handler="witness", payload=b"2.5", options=PATIENT)
            runs = await self.enqueue([waits, under_way])
            await asyncio.sleep(1.0)
            with suppress(Unavailable, Conflict, NotFound):
                for run in runs:
                    await cancel_run(self.desk, TENANT, RunId(run))
                    self.cancelled[run] = time.time()
            with suppress(Unavailable):
                await pause_job(self.desk, TENANT, job)
                acknowledged_at = time.time()
                await asyncio.sleep(3.0)
                resumed_at = time.time()
                self.paused.append((job, acknowledged_at, resumed_at))
            await self.resume()
            await asyncio.sleep(2.0)

    async def resume(self) -> None:
        """Let the first job go on, whatever it takes."""
        job = JobId(next(iter(self.every)))
        for _ in range(100):
            try:
                await resume_job(self.desk, TENANT, job)
            except Unavailable:
                await asyncio.sleep(0.3)
            else:
                return


@asynccontextmanager
async def a_client(stage: Stage) -> AsyncIterator[Client]:
    """A client with connections of its own."""
    database = await Database.open(DatabaseSettings(), dsn=stage.dsn, clock=RealClock(), roll=half)
    try:
        yield Client(
            Desk(
                database=database,
                clock=RealClock(),
                hints=NoHints(),
                entropy=os.urandom,
                shards=SHARDS,
                tzdata="test",
            )
        )
    finally:
        await database.close()
