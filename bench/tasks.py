"""Tasks of an app: import time, enqueueing by the client library, and a worker over either line.

The load comes from a process of its own; it, the server and the database share this machine.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from typing import Any

from bench.kit.api import a_key, an_api
from bench.kit.processes import used
from bench.kit.report import Report
from bench.kit.server import a_server, execute
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres

IMPORTS = {
    "import betimes": "import betimes",
    "an app with a task": (
        "from betimes import App, Context\napp = App()\n"
        "@app.task(queue='mail')\ndef f(ctx: Context, n: int) -> int: return n\n"
        "f.prepare(1)"
    ),
    "the client": "from betimes import Client\nClient('http://127.0.0.1:1', 'k')",
}


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench tasks", description=__doc__)
    parser.add_argument("--calls", type=int, default=5_000, help="enqueued one by one")
    parser.add_argument("--runs", type=int, default=30_000, help="done by a worker")
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15, help="fresh interpreters")
    parser.add_argument("--lines", default="http,direct", help="which transports of workers")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick:
        options.calls, options.runs, options.rounds = 50, 200, 2
    return run_to_end(measure(options))


async def measure(options: argparse.Namespace) -> int:
    """Every figure, one after the other."""
    report = Report("tasks")
    bare = median_of("pass", options.rounds)
    for name, program in IMPORTS.items():
        took = median_of(program, options.rounds)
        report.tell(name, {"rounds": options.rounds}, ms=1_000 * (took - bare))
    async with a_server(options.shards) as server, an_api(server) as (service, port):
        place = Place(server, f"http://127.0.0.1:{port}", await a_key(service))
        for mode, width, count in (
            ("blocking", 1, options.calls),
            ("awaited", 50, options.calls),
            ("many", 1, 10 * options.calls),
        ):
            found = await load(place, mode, count, width)
            report.tell(f"enqueue, {mode}", {"callers": width}, per_second=count / found["seconds"])
        await forget(place)
        for kind in ("", " plain"):
            for line in options.lines.split(","):
                await load(place, f"many{kind}", options.runs, 1)
                cpu = Cpu()
                found = await load(place, line, options.runs, options.concurrency)
                settings = {"runs": options.runs, "concurrency": options.concurrency}
                figure = f"worker over {line},{kind or ' async'} tasks"
                rate = options.runs / found["seconds"]
                report.tell(figure, settings, per_second=rate, **cpu.per_run(found, options.runs))
    report.table()
    return 0


class Cpu:
    """What a drain costs by CPU time, which others on the machine do not change much."""

    def __init__(self) -> None:
        self._server, self._used = time.process_time(), used()

    def per_run(self, found: dict[str, Any], runs: int) -> dict[str, float]:
        """Microseconds for each run: of worker, server (this process) and PostgreSQL."""
        spent = used().since(self._used)
        seconds = {
            "worker_us": found["worker_cpu"],
            "server_us": time.process_time() - self._server,
            "postgres_us": spent.postgres,
        }
        return {name: round(one / runs * 1e6, 1) for name, one in seconds.items()}


class Place:
    """Where the service is."""

    def __init__(self, server: EmbeddedPostgres, url: str, key: str) -> None:
        self.server, self.url, self.key = server, url, key


async def forget(place: Place) -> None:
    """What enqueueing has left behind is not to be done."""
    await execute(place.server, "DELETE FROM betimes.parcels")


async def load(place: Place, mode: str, count: int, width: int) -> dict[str, Any]:
    """The figures of one load, measured by another process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.kit.task_load", mode, place.url, place.key),
        *(place.server.dsn(), str(count), str(width)),
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, mode
    found: dict[str, Any] = json.loads(told)
    return found


def median_of(program: str, rounds: int) -> float:
    """Seconds that a fresh interpreter needs for a program."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", program], check=True)  # noqa: S603
        took.append(time.perf_counter() - began)
    return statistics.median(took)
