"""The REST API on a durable PostgreSQL, beside a bare hello-world on the same server.

The load comes from a process of its own; server and client share this machine with the database.
Lists are measured by `bench lists`.
"""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import uvicorn

from bench.kit.api import Ports, a_job, a_key, a_worker, an_api, listening, load, measured
from bench.kit.report import Report
from bench.kit.server import a_server
from betimes.api.server import Server
from betimes.api.service import Service
from betimes.app.run import run_to_end

FEW = 4
FIGURES = {
    "hello": "hello-world",
    "health": "GET /healthz",
    "jobs": "POST /v1/jobs, one by one",
    "runs": "POST /v1/runs, one by one",
    "batch": "POST /v1/runs/batch, 1000 each",
    "drain": "lease and complete, 100 each",
    "get": "GET /v1/jobs/{job}",
}


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench api", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--only", nargs="+", choices=sorted(FIGURES), default=list(FIGURES))
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Every figure that is wanted, one after the other."""
    report = Report("api")
    if options.quick:
        options.seconds = 1.0
    async with a_server(options.shards) as server:
        if "hello" in options.only:
            async with a_hello() as port:
                await tell(report, options, port, "", "hello")
        # What is measured is what requests cost, not when they are refused: see `bench overload`.
        async with an_api(server, shed_pool_wait=timedelta(minutes=1)) as (service, port):
            key = await a_key(service)
            for mode in FIGURES:
                if mode in options.only and mode != "hello":
                    subject = await prepared(service, port, key, mode, options)
                    await tell(report, options, port, key, mode, subject, service)
    report.table()
    return 0


async def prepared(
    service: Service, port: int, key: str, mode: str, options: argparse.Namespace
) -> str:
    """What a figure acts on; what an earlier one would have left is made if that was not wanted."""
    if mode == "drain":
        if "batch" not in options.only:
            await load(port, key, "batch", connections=FEW, seconds=options.seconds)
        return await a_worker(service)
    if mode == "get":
        if "jobs" not in options.only:
            await load(port, key, "jobs", connections=FEW, seconds=1.0)
        return await a_job(service)
    return ""


async def tell(
    report: Report,
    options: argparse.Namespace,
    port: int,
    key: str,
    mode: str,
    subject: str = "",
    service: Service | None = None,
) -> None:
    """One figure; for creations also how many shared a commit."""
    connections = FEW if mode in ("batch", "drain") else options.connections
    settings: dict[str, object] = {"seconds": options.seconds, "connections": connections}
    group = {"jobs": service.jobs, "runs": service.runs}.get(mode) if service else None
    before = (group.items, group.commits) if group else (0, 0)
    found: dict[str, Any] = await measured(
        port, key, mode, connections=connections, seconds=options.seconds, subject=subject
    )
    if group:
        items, commits = group.items - before[0], group.commits - before[1]
        found["per_commit"] = round(items / max(commits, 1), 1)
    report.tell(FIGURES[mode], settings, **found)


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
