"""The whole worker with its loops, in real time: waking, draining, beating beside a busy loop."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from betimes.config.settings import DatabaseSettings, WorkerSettings
from betimes.domain.states import RunState
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.listen import Hear, Listener
from betimes.store.pool import Lane
from betimes.store.workers import WorkerCard
from betimes.telemetry import Telemetry
from betimes.testing import Signal
from betimes.testing.real_clock import RealClock
from betimes.worker import Chance, Context, Handlers, Worker, WorkerSignals
from betimes.worker.builtin import builtin_handlers
from betimes.worker.hints import CHANNEL
from worker_kit import (
    QUEUE,
    SHARD,
    TENANT,
    enqueue,
    entropy,
    half,
    parcels,
    read_run,
    rows,
    state_of,
    worker_id,
)

CLOCK = RealClock()
PATIENCE = 60.0
"""Seconds after which a test has failed."""
RENEWALS = 4


@contextlib.asynccontextmanager
async def opened(dsn: str, *lanes: Lane) -> AsyncIterator[Database]:
    """A database in real time."""
    database = await Database.open(
        DatabaseSettings(), dsn=dsn, clock=CLOCK, roll=half, lanes=lanes or tuple(Lane)
    )
    try:
        yield database
    finally:
        await database.close()


@contextlib.asynccontextmanager
async def working(
    dsn: str,
    database: Database,
    *,
    handlers: Handlers | None = None,
    signals: WorkerSignals,
    drain: float = 5.0,
    listening: asyncio.Event | None = None,
    **settings: timedelta,
) -> AsyncIterator[Stopping]:
    """A worker that runs, and drains at the end."""
    stopping = Stopping()

    def listen(hear: Hear) -> Listener | None:
        if listening is None:
            return None
        listener = Listener(
            dsn=dsn,
            settings=DatabaseSettings(),
            channels=[CHANNEL],
            hear=hear,
            clock=CLOCK,
            roll=half,
        )
        listener.listening = listening
        return listener

    worker = Worker(
        card=WorkerCard(
            id=worker_id(1),
            node=None,
            name="test",
            version="0",
            queues=("*",),
            handlers=(),
            slots=1,
        ),
        database=database,
        open_database=lambda: opened(dsn, Lane.LEASE),
        handlers=handlers or builtin_handlers(CLOCK),
        clock=CLOCK,
        chance=Chance(roll=half, entropy=entropy),
        settings=WorkerSettings(**settings),  # type: ignore[arg-type]
        drain_timeout=timedelta(seconds=drain),
        telemetry=Telemetry(clock=CLOCK),
        listen=listen,
        signals=signals,
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(worker.run(stopping))
        try:
            yield stopping
        finally:
            stopping.request("the test is over")
            await task


async def test_runs_are_executed_without_any_notification(dsn: str) -> None:
    flushed = Signal[int]()
    async with opened(dsn) as database:
        runs = await enqueue(database, datetime.now(UTC), ["noop"] * 300)  # noqa: TID251 -- real
        async with working(dsn, database, signals=WorkerSignals(flushed=flushed.send)):
            total = 0
            while total < 300:
                total += await flushed.wait()
            (late,) = await enqueue(database, datetime.now(UTC), ["echo"])  # noqa: TID251 -- real
            await flushed.wait()
        assert {await state_of(database, run) for run in (*runs[::50], late)} == {
            RunState.SUCCEEDED
        }
        assert await parcels(database) == []


async def test_a_worker_is_listed_while_it_lives(dsn: str) -> None:
    statement = "SELECT count(*) FROM betimes.workers WHERE heartbeat_at IS NOT NULL"
    flushed = Signal[int]()
    async with opened(dsn) as database:
        await enqueue(database, datetime.now(UTC), ["noop"])  # noqa: TID251 -- real
        async with working(dsn, database, signals=WorkerSignals(flushed=flushed.send)):
            await flushed.wait()
            async with database.connection(Lane.ENGINE) as connection:
                assert await connection.fetchval(statement) == 1
        async with database.connection(Lane.ENGINE) as connection:
            assert await connection.fetchval(statement) == 0


async def test_a_notification_wakes_the_worker_long_before_its_poll(dsn: str) -> None:
    flushed, listening = Signal[int](), asyncio.Event()
    async with (
        opened(dsn) as database,
        working(
            dsn,
            database,
            signals=WorkerSignals(flushed=flushed.send),
            listening=listening,
            poll_every=timedelta(hours=1),
        ),
    ):
        async with asyncio.timeout(10):
            await listening.wait()
        (run,) = await enqueue(database, datetime.now(UTC), ["noop"])  # noqa: TID251 -- real
        hint = f"{SHARD}:{QUEUE}:{TENANT}:0"
        await rows(database, "SELECT pg_notify($1, $2)", CHANNEL, hint)
        assert await flushed.wait() == 1
        assert await state_of(database, run) is RunState.SUCCEEDED


async def test_leases_are_kept_while_a_handler_blocks_the_event_loop(dsn: str) -> None:
    """CPU-heavy work on the loop does not stall the heartbeat: it blocks until leases move on."""
    handlers, flushed = Handlers(), Signal[int]()
    begun, renewed = threading.Event(), threading.Event()

    async def compute(_: Context) -> None:
        begun.set()
        limit = time.perf_counter() + PATIENCE
        while not renewed.is_set() and time.perf_counter() < limit:
            sum(range(1000))

    handlers.add("compute", compute)
    async with opened(dsn) as database:
        (run,) = await enqueue(database, datetime.now(UTC), ["compute"])  # noqa: TID251 -- real
        async with working(
            dsn,
            database,
            handlers=handlers,
            signals=WorkerSignals(flushed=flushed.send),
            lease_ttl=timedelta(seconds=PATIENCE),
            heartbeat_every=timedelta(milliseconds=100),
        ):
            watcher = asyncio.create_task(  # noqa: TID251 -- ends with the test
                asyncio.to_thread(asyncio.run, watch_leases(dsn, begun, renewed))
            )
            assert await flushed.wait() == 1
            assert await watcher >= RENEWALS
        assert await state_of(database, run) is RunState.SUCCEEDED


async def watch_leases(dsn: str, begun: threading.Event, renewed: threading.Event) -> int:
    """From another thread: how many ends of the lease are seen while the loop is blocked."""
    begun.wait(PATIENCE)
    limit = time.perf_counter() + PATIENCE
    seen = set[datetime]()
    async with opened(dsn, Lane.ENGINE) as database:
        while len(seen) < RENEWALS and time.perf_counter() < limit:
            found = await rows(database, "SELECT lease_until FROM betimes.parcels")
            seen.update(row["lease_until"] for row in found)
            await asyncio.sleep(0.02)  # noqa: TID251 -- another loop, real time
    renewed.set()
    return len(seen)


async def test_a_drain_gives_back_what_it_cannot_finish(dsn: str) -> None:
    """No attempt and no delivery is counted, and what did end stays done."""
    suspended = Signal[int]()
    async with opened(dsn) as database:
        done, slow = await enqueue(
            database,
            datetime.now(UTC),  # noqa: TID251 -- real
            ["noop", "sleep"],
            payload=b'{"seconds": 600}',
        )
        async with working(
            dsn, database, signals=WorkerSignals(suspended=suspended.send), drain=0.2
        ):
            await suspended.wait()
        (parcel,) = await parcels(database)
        assert (parcel["worker_id"], parcel["deliveries"], parcel["fence"]) == (None, 0, 1)
        assert await state_of(database, done) is RunState.SUCCEEDED
        row = await read_run(database, slow)
        assert (row["state"], row["attempt"], row["finished_at"]) == (RunState.QUEUED, 0, None)
        assert await rows(database, "SELECT FROM betimes.attempts") == []


async def test_a_drain_waits_for_what_ends_in_time(dsn: str) -> None:
    suspended = Signal[int]()
    async with opened(dsn) as database:
        (run,) = await enqueue(
            database,
            datetime.now(UTC),  # noqa: TID251 -- real
            ["sleep"],
            payload=b'{"seconds": 0.3}',
        )
        async with working(dsn, database, signals=WorkerSignals(suspended=suspended.send)):
            await suspended.wait()
        assert await state_of(database, run) is RunState.SUCCEEDED
        assert await parcels(database) == []
