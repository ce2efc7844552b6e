"""The REST API on a durable PostgreSQL, beside a bare hello-world on the same server.

The load comes from a process of its own; server and client share this machine with the database.
"""

import argparse
import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import uvicorn

from bench.kit.report import Report
from bench.kit.server import a_database, a_server, execute
from betimes.api.application import Application
from betimes.api.routes import ROUTES
from betimes.api.server import Server
from betimes.api.service import Service
from betimes.app.api import make_service
from betimes.app.clock import SystemClock
from betimes.app.demo import TENANT
from betimes.app.dice import Dice
from betimes.app.node import Node
from betimes.app.run import run_to_end
from betimes.config import ApiSettings, Settings
from betimes.domain.ids import NodeId, compose, to_text
from betimes.embedded import EmbeddedPostgres
from betimes.ops.keys import NewKey
from betimes.ops.workers import new_worker, register
from betimes.store.hints import Hints
from betimes.store.nodes import NodeCard
from betimes.telemetry import Telemetry

PEPPER = "a pepper for benches, not for anything else"
FILL = """
INSERT INTO betimes.jobs (shard, id, tenant_id, created_at, updated_at, tzdata, schedule, target,
                          handler, next_fire_at)
SELECT (n % $1)::smallint,
       (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 100000000 + n), 12, '0') || '8'
        || lpad(to_hex(n % $1), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid,
       $2, now(), now(), '2026a', '{"type": "manual", "timezone": "UTC"}', '{}', 'noop', NULL
  FROM generate_series(1, $3) AS n
"""


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench api", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--stored", type=int, default=200_000, help="jobs that are there already")
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Every figure, one after the other."""
    report = Report("api")
    if options.quick:
        options.seconds, options.stored = 1.0, 1_000
    settings = {"seconds": options.seconds, "connections": options.connections}
    async with a_server(options.shards) as server, a_hello() as hello:
        many = options.connections
        report.tell("hello-world", settings, **await load(hello, "-", "hello", many, options))
        # What is measured is what requests cost, not when they are refused: see `bench overload`.
        async with an_api(server, shed_pool_wait=timedelta(minutes=1)) as (service, port):
            key = await a_key(service)
            run = {"port": port, "key": key, "options": options}
            report.tell("GET /healthz", settings, **await load(port, key, "health", many, options))
            for mode, figure, connections in (
                ("jobs", "POST /v1/jobs, one by one", many),
                ("runs", "POST /v1/runs, one by one", many),
                ("batch", "POST /v1/runs/batch, 1000 each", 4),
            ):
                found = await load(connections=connections, mode=mode, **run)
                report.tell(figure, settings, **found)
            worker = await a_worker(service)
            drained = await load(connections=4, mode="drain", subject=worker, **run)
            report.tell("lease and complete, 100 each", settings, **drained)
            await fill(server, options)
            job = await a_job(service)
            got = await load(connections=many, mode="get", subject=job, **run)
            report.tell("GET /v1/jobs/{job}", settings, **got)
            listed = await load(connections=many, mode="list", **run)
            report.tell("GET /v1/jobs, 50 of many", {**settings, "jobs": options.stored}, **listed)
    report.table()
    return 0


async def load(
    port: int,
    key: str,
    mode: str,
    connections: int,
    options: argparse.Namespace,
    subject: str = "-",
) -> dict[str, Any]:
    """The figures of one load, measured by another process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.kit.http_load", str(port), key, mode),
        *(str(connections), str(options.seconds), subject),
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, mode
    found: dict[str, Any] = json.loads(told)
    return found


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
                )
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
            Server(Application(service=service, routes=ROUTES)), Beside(hints, service).run
        ):
            yield service, Ports.last


class Beside:
    """What the role runs beside the server."""

    def __init__(self, hints: Hints, service: Service) -> None:
        self._hints = hints
        self._service = service

    async def run(self) -> None:
        """Hints and groups, until cancelled."""
        async with asyncio.TaskGroup() as group:
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


async def hello(_scope: Any, _receive: Any, send: Any) -> None:
    """The least an application can do."""
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


@asynccontextmanager
async def a_hello() -> AsyncIterator[int]:
    """The same server around nothing."""
    config = uvicorn.Config(
        hello, loop="none", http="httptools", ws="none", lifespan="off", log_config=None,
        access_log=False, interface="asgi3",
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.capture_signals = Server.capture_signals.__get__(server)  # type: ignore[method-assign]
    async with listening(server):
        yield Ports.last


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
    from betimes.ops.listing import JobFilter, find_jobs  # noqa: PLC0415 -- only here

    (job,) = await find_jobs(
        service.desk, TENANT, JobFilter(), after=None, newest_first=False, limit=1
    )
    return to_text("job", job.id)


async def fill(server: EmbeddedPostgres, options: argparse.Namespace) -> None:
    """Many jobs, so that lists have something to page through."""
    await execute(server, FILL, options.shards, TENANT, options.stored)
    await execute(server, "VACUUM ANALYZE betimes.jobs")
