"""The API as its role serves it, on a server of its own, and the load that others put on it."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import process_time
from typing import Any, NamedTuple

import uvicorn

from bench.kit.processes import used
from bench.kit.server import a_database
from betimes.api.application import Application
from betimes.api.routes import ROUTES
from betimes.api.server import Server
from betimes.api.service import Service
from betimes.app.api import Ear, make_service
from betimes.app.clock import SystemClock
from betimes.app.demo import TENANT
from betimes.app.dice import Dice
from betimes.app.listening import listener
from betimes.app.node import Node
from betimes.config import ApiSettings, Settings
from betimes.config.vault import VaultSettings
from betimes.domain.ids import NodeId, compose, to_text
from betimes.embedded import EmbeddedPostgres
from betimes.ops.keys import NewKey
from betimes.ops.listing import JobFilter, find_jobs
from betimes.ops.workers import new_worker, register
from betimes.store.hints import READY, Hints
from betimes.store.nodes import NodeCard
from betimes.store.seal import KEY_BYTES
from betimes.telemetry import Telemetry

PEPPER = "a pepper for benches, not for anything else"
SHOWN = ("per_second", "requests", "refused_per_second", "p50_ms", "p99_ms")


class Spent(NamedTuple):
    """CPU seconds: of the API, which is this process, of the database, of clients, of all."""

    api: float
    postgres: float
    clients: float
    machine: float

    @classmethod
    def now(cls) -> "Spent":
        """So far; clients count when they have ended."""
        times, everything = os.times(), used()
        clients = times.children_user + times.children_system
        return cls(process_time(), everything.postgres, clients, everything.machine)

    def per(self, before: "Spent", count: int) -> dict[str, float]:
        """Microseconds for each of so many, and which part of the CPU time was not ours."""
        api, postgres, clients, machine = (
            now - then for now, then in zip(self, before, strict=True)
        )
        others = max(0.0, machine - api - postgres - clients)
        count = max(count, 1)
        return {
            "api_us": round(api / count * 1e6, 1),
            "postgres_us": round(postgres / count * 1e6, 1),
            "client_us": round(clients / count * 1e6, 1),
            "others_share": round(others / machine, 2) if machine else 0.0,
        }


async def measured(port: int, key: str, mode: str, **more: Any) -> dict[str, Any]:
    """The figures of one load, with what it cost whom."""
    before = Spent.now()
    found = await load(port, key, mode, **more)
    costs = Spent.now().per(before, found["done"])
    return {name: found[name] for name in SHOWN} | costs


async def load(
    port: int, key: str, mode: str, *, connections: int, seconds: float, subject: str = ""
) -> dict[str, Any]:
    """The figures of one load, measured by another process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.kit.http_load", str(port), key, mode),
        *(str(connections), str(seconds), subject),
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the load {mode} ended with {process.returncode}")
    found: dict[str, Any] = json.loads(told)
    return found


async def ask(port: int, key: str, method: str, path: str, body: Any) -> Any:
    """One request of our own; what it was answered."""
    content = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n"
            f"content-type: application/json\r\nidempotency-key: {os.urandom(8).hex()}\r\n"
            f"connection: close\r\ncontent-length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head, _, answer = (await reader.read(-1)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(f"{method} {path}: {head[:20]!r} {answer[:300]!r}")
    return json.loads(answer)


@asynccontextmanager
async def an_api(server: EmbeddedPostgres, **wishes: Any) -> AsyncIterator[tuple[Service, int]]:
    """The API as the role serves it."""
    async with a_database(server) as database:
        clock, dice = SystemClock(), Dice()
        plenty = 1_000_000_000
        node = Node(
            card=NodeCard(
                id=NodeId(compose(0, 0, 1)), name="bench", version="0", tzdata="2026a", roles=()
            ),
            settings=Settings(
                api=ApiSettings(
                    pepper=PEPPER,
                    requests_per_minute=plenty,
                    creates_per_minute=plenty,
                    leases_per_minute=plenty,
                    bulk_per_minute=1_000_000,
                    **wishes,
                ),
                # Given, so that none is made and kept in the home of whoever measures.
                vault=VaultSettings(keys=("00" * KEY_BYTES,)),
            ),
            clock=clock,
            dice=dice,
            telemetry=Telemetry(clock=clock),
            database=database,
            listen_dsn=server.dsn(),
        )
        hints = Hints(database=database, clock=clock)
        service = await make_service(node, hints, None)
        async with listening(
            Server(Application(service=service, routes=ROUTES)), Beside(node, hints, service).run
        ):
            yield service, Ports.last


class Beside:
    """What the role runs beside the server."""

    def __init__(self, node: Node, hints: Hints, service: Service) -> None:
        self._node = node
        self._hints = hints
        self._service = service

    async def run(self) -> None:
        """Hints, sent and heard, and groups, until cancelled."""
        async with asyncio.TaskGroup() as group:
            if (ear := listener(self._node, [READY], Ear(self._service.waiters).hear)) is not None:
                group.create_task(ear.run())
            group.create_task(self._hints.run())
            group.create_task(self._service.run())


class Ports:
    """The port of the server that was started last."""

    last = 0


@asynccontextmanager
async def listening(
    server: uvicorn.Server, beside: Callable[[], Awaitable[None]] | None = None
) -> AsyncIterator[None]:
    """A server on a free port."""
    with socket.socket(proto=socket.IPPROTO_TCP) as free:
        free.bind(("127.0.0.1", 0))
        free.listen(1024)
        free.setblocking(False)
        Ports.last = free.getsockname()[1]
        async with asyncio.TaskGroup() as group:
            helper = None if beside is None else group.create_task(_run(beside))
            serving = group.create_task(server.serve(sockets=[free]))
            yield
            server.should_exit = True
            await serving
            if helper is not None:
                helper.cancel()


async def _run(beside: Callable[[], Awaitable[None]]) -> None:
    await beside()


async def a_key(service: Service) -> str:
    """A key that may do everything."""
    made = await service.keys.create(service.desk, TENANT, NewKey(name="bench", kind="ak"), by=None)
    return made.text


async def a_worker(service: Service) -> str:
    """A remote worker for the batches."""
    worker = new_worker(
        service.desk,
        TENANT,
        name="bench",
        version="",
        queues=["bench"],
        handlers=["noop"],
        slots=1_000,
        labels={},
        details={},
    )
    return to_text("wrk", (await register(service.desk, worker)).id)


async def a_job(service: Service) -> str:
    """One of the jobs."""
    (job,) = await find_jobs(
        service.desk, TENANT, JobFilter(), after=None, newest_first=False, limit=1
    )
    return to_text("job", job.id)
