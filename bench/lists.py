"""Pages of fifty out of a million jobs (ten with `--ten-million`), over HTTP.

The first page, one in the middle and the last one, asked for by one client and by fifty; and how
the database finds each. A small store is measured beside the large one: a page costs what is on
it, not what lies around it.
"""

import argparse
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from bench.kit.api import a_key, an_api, measured
from bench.kit.report import Report
from bench.kit.rows import copy_jobs
from bench.kit.server import a_server, empty, execute, value
from bench.stored import daily_jobs
from betimes.api.paging import FORTH, scope_of
from betimes.api.service import Service
from betimes.app.demo import TENANT
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres
from betimes.ops.listing import LOOKED_AT_MAX
from betimes.store.listing import SQL
from betimes.store.pool import Connection
from betimes.wire.jobs import ListJobs

PAGE = 50
FIRST = UUID(int=0)
NTH = "SELECT id FROM betimes.jobs WHERE tenant_id = $1 ORDER BY id OFFSET $2 LIMIT 1"


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench lists", description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--ten-million", action="store_true")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 50])
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Each number of jobs on one server."""
    report = Report("lists")
    if options.ten_million:
        options.jobs = [10_000, 10_000_000]
    if options.quick:
        options.jobs, options.seconds = [500], 0.5
    async with a_server(options.shards) as server:
        for jobs in options.jobs:
            await empty(server)
            rows = daily_jobs(jobs, options.shards, TENANT)
            seconds = await copy_jobs(server, rows, count=jobs)
            await execute(server, "VACUUM ANALYZE betimes.jobs")
            report.progress(f"{jobs:,} jobs stored in {seconds:.0f} s")
            async with an_api(server, shed_pool_wait=timedelta(minutes=1)) as (service, port):
                await pages(server, report, options, service, port, jobs)
    report.table()
    return 0


async def pages(
    server: EmbeddedPostgres,
    report: Report,
    options: argparse.Namespace,
    service: Service,
    port: int,
    jobs: int,
) -> None:
    """The pages of one store."""
    key = await a_key(service)
    for name, skipped in (("first", 0), ("middle", jobs // 2), ("last", jobs - PAGE)):
        place = await value(server, NTH, TENANT, skipped) if skipped else None
        found = await read_plan(service, place or FIRST)
        report.tell(f"plan of the {name} page of {jobs:,}", {"jobs": jobs}, **found)
        for connections in options.connections:
            told = await measured(
                port,
                key,
                "list",
                connections=connections,
                seconds=options.seconds,
                subject="" if place is None else f"&cursor={cursor_at(service, place)}",
            )
            report.tell(
                f"{PAGE} of {jobs:,}, {name} page, {connections} at a time",
                {"jobs": jobs, "connections": connections, "seconds": options.seconds},
                **told,
            )


def cursor_at(service: Service, place: UUID) -> str:
    """What the page before a job says where to go on."""
    scope = scope_of("jobs", TENANT, ListJobs())
    return service.cursors.write(scope, [str(place), FORTH])


async def read_plan(service: Service, after: UUID) -> dict[str, Any]:
    """How the database reads a page, as the tenant: the index, the rows it looked at, the time."""
    query = SQL["list_jobs_where"]
    given = dict.fromkeys(query.parameters) | {"tenant": TENANT, "after": after, "most": PAGE}
    given |= {"scan": LOOKED_AT_MAX, "payloads": False}

    async def work(connection: Connection) -> str:
        told: str = await connection.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query.text}", *query.arguments(given)
        )
        return told

    (explained,) = msgspec.json.decode(await service.desk.transact(work, tenant=TENANT))
    node = explained["Plan"]
    blocks = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    while "Plans" in node:
        (node,) = node["Plans"]
    return {
        "by": f"{node['Node Type']} {node.get('Index Name', '')}".strip(),
        "rows": node["Actual Rows"],
        "rows_thrown_away": node.get("Rows Removed by Filter", 0),
        "blocks": blocks,
        "milliseconds": explained["Execution Time"],
    }
