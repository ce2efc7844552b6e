"""More than the API can do: how much it still gets done, and whether what is vital gets through.

Clients that ignore `Retry-After` create jobs over ever more connections, with room for a hundred
requests at a time; beside them somebody pauses and resumes a job. Then the load goes back.
"""

import argparse
import asyncio
from typing import Any

from bench.api import a_job, a_key, an_api, load
from bench.kit.report import Report
from bench.kit.server import a_server
from betimes.app.run import run_to_end

ROOM = 100
SHAPE = (50, 150, 500, 50)
VITAL_CONNECTIONS = 1


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each step")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Every step of the load, one after the other."""
    report = Report("overload")
    shape = (2, 8) if options.quick else SHAPE
    if options.quick:
        options.seconds = 1.0
    async with (
        a_server(options.shards) as server,
        an_api(server, busy_max=ROOM if not options.quick else 4) as (service, port),
    ):
        key = await a_key(service)
        await load(port, key, "jobs", 2, argparse.Namespace(seconds=1.0))
        job = await a_job(service)
        for connections in shape:
            found, vital = await asyncio.gather(
                load(port, key, "pressing", connections, options),
                load(port, key, "vital", VITAL_CONNECTIONS, options, subject=job),
            )
            report.tell(
                f"{connections} connections",
                {"seconds": options.seconds, "room": ROOM},
                goodput_per_second=float(found["per_second"]),
                refused_per_second=found["refused_per_second"],
                p99_ms=found["p99_ms"],
                **told(vital),
            )
    report.table()
    return 0


def told(vital: dict[str, Any]) -> dict[str, Any]:
    """What became of those who pause and resume."""
    return {
        "vital_per_second": vital["per_second"],
        "vital_p99_ms": vital["p99_ms"],
        "vital_refused_per_second": vital["refused_per_second"],
    }
