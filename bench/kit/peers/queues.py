"""Each queue with the same verbs: prepare, work, fill, enqueue, and whether anything is left."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import asyncpg

from bench.kit.app_workers import ASYNC, Crew, Service, app_workers, prepare, release
from bench.kit.peers.installed import call
from bench.kit.processes import ROOT, a_node, stop, until_known, until_ready
from bench.kit.server import as_owner, empty, execute
from betimes.app.demo import TENANT
from betimes.app.dice import Dice
from betimes.domain.ids import random_ids, to_ms
from betimes.embedded import EmbeddedPostgres

LEFT_OF_OURS = "SELECT EXISTS (SELECT FROM betimes.runs WHERE state < 4)"
DUE_COLUMNS = ("shard", "id", "tenant_id", "due_at", "state", "queue", "handler", "payload")


class Queue(Protocol):
    """What is measured."""

    name: str
    left: str
    """Whether something is left, as a statement."""

    async def begin(self) -> None:
        """Empty tables."""
        ...

    def working(self, folder: Path, count: int) -> AbstractAsyncContextManager[Crew]:
        """So many worker processes, ready."""
        ...

    async def ready(self, count: int) -> None:
        """Jobs that can be done now, before the workers start; those may be held back."""
        ...

    async def go(self) -> None:
        """Whatever was held back is free: called when the workers are ready."""
        ...

    async def due_at(self, count: int, due: float) -> None:
        """Jobs that all become due at one time."""
        ...

    async def enqueue(self, count: int, pause: float) -> None:
        """One job after the other, each with the time of its call."""
        ...


class Foreign:
    """A peer that is driven by a program with modes."""

    def __init__(
        self,
        name: str,
        *,
        server: EmbeddedPostgres,
        program: tuple[str, ...],
        table: str,
        concurrency: int,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.left = f"SELECT EXISTS (SELECT FROM {table})"  # noqa: S608 -- a name of ours
        self._server = server
        self._program = program
        self._table = table
        self._concurrency = concurrency
        self._environment = {**os.environ, **(environment or {})}
        self._installed = False
        self._lock: asyncpg.Connection[asyncpg.Record] | None = None

    async def begin(self) -> None:
        """Its tables, empty."""
        if not self._installed:
            await self._call("install")
            self._installed = True
        await execute(self._server, f"TRUNCATE {self._table} CASCADE")
        await execute(self._server, "CHECKPOINT")

    @asynccontextmanager
    async def working(self, folder: Path, count: int) -> AsyncIterator[Crew]:
        """Workers that have said that they are ready."""
        files = [folder / f"notes-{number}" for number in range(count)]
        async with AsyncExitStack() as stack:
            started = [
                await stack.enter_async_context(
                    self._started("work", str(file), str(self._concurrency))
                )
                for file in files
            ]
            yield Crew(files, [one.pid for one in started])

    async def ready(self, count: int) -> None:
        """In bulk; the table is locked until all workers are ready."""
        await self._call("fill", str(count))
        await execute(self._server, f"ANALYZE {self._table}")
        self._lock = await asyncpg.connect(self._server.dsn())
        await self._lock.execute(f"BEGIN; LOCK TABLE {self._table} IN EXCLUSIVE MODE")

    async def go(self) -> None:
        """Its workers wait for the lock."""
        if self._lock is not None:
            await self._lock.close()
            self._lock = None

    async def due_at(self, count: int, due: float) -> None:
        """In bulk."""
        await self._call("fill", str(count), str(due))
        await execute(self._server, f"ANALYZE {self._table}")

    async def enqueue(self, count: int, pause: float) -> None:
        """By its own client."""
        await self._call("enqueue", str(count), str(pause))

    async def _call(self, mode: str, *rest: str) -> None:
        command = (*self._program, mode, self._server.dsn(), *rest)
        await call(*command, environment=self._environment)

    @asynccontextmanager
    async def _started(self, mode: str, *rest: str) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            *(*self._program, mode, self._server.dsn(), *rest),
            stdout=asyncio.subprocess.PIPE,
            env=self._environment,
            cwd=ROOT,
        )
        try:
            assert process.stdout is not None
            said = await process.stdout.readline()
            if said.strip() != b"ready":
                raise RuntimeError(f"{self.name}: expected a worker that is ready, got {said!r}")
            yield process
        finally:
            await stop(process)


class Ours:
    """Betimes, over one of its transports."""

    def __init__(self, service: Service, *, transport: str, shards: int, concurrency: int) -> None:
        self.name = f"betimes, {transport}"
        self.left = LEFT_OF_OURS
        self._service = service
        self._server = service.server
        self._transport = transport
        self._shards = shards
        self._concurrency = concurrency
        self._held_back: list[tuple[object, ...]] = []

    async def begin(self) -> None:
        """No work, no workers."""
        await empty(self._server)
        await execute(self._server, "DELETE FROM betimes.workers")

    @asynccontextmanager
    async def working(self, folder: Path, count: int) -> AsyncIterator[Crew]:
        """Workers that the service knows."""
        async with app_workers(
            self._service,
            folder,
            transport=self._transport,
            count=count,
            concurrency=self._concurrency,
        ) as crew:
            await until_known(self._server, workers=count)
            yield crew

    async def ready(self, count: int) -> None:
        """The runs; their parcels are held back until the workers are ready."""
        self._held_back = await prepare(self._server, ASYNC, runs=count, shards=self._shards)

    async def go(self) -> None:
        """The parcels."""
        await release(self._server, self._held_back)

    async def due_at(self, count: int, due: float) -> None:
        """Runs that the coordinator has to publish."""
        async with as_owner(self._server) as connection:
            await connection.copy_records_to_table(
                "runs",
                schema_name="betimes",
                columns=DUE_COLUMNS,
                records=self._due_rows(count, due),
            )

    def _due_rows(self, count: int, due: float) -> Iterator[tuple[object, ...]]:
        dice, at = Dice(), datetime.fromtimestamp(due, UTC)
        payload = b'{"wanted":%r}' % due
        for number in range(count):
            shard = number % self._shards
            (run,) = random_ids(to_ms(at), shard, dice.entropy(8))
            yield shard, run, TENANT, at, 0, "default", ASYNC, payload

    async def enqueue(self, count: int, pause: float) -> None:
        """By the client library, over HTTP, whatever way the worker takes."""
        environment = {
            **os.environ,
            "BETIMES_URL": self._service.url,
            "BETIMES_API_KEY": self._service.key,
        }
        command = ("-m", "bench.kit.noting_app", str(count), str(pause))
        await call(sys.executable, *command, environment=environment)


@asynccontextmanager
async def publishing(queue: Queue, server: EmbeddedPostgres) -> AsyncIterator[None]:
    """A coordinator, for whoever needs one."""
    if not isinstance(queue, Ours):
        yield
        return
    async with a_node(server, "coordinator,janitor"):
        await until_ready(server, workers=0)
        yield


def soon(seconds: float) -> float:
    """A whole second that is so far away at least."""
    return float(int(time.time() + seconds) + 1)
