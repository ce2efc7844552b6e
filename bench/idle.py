"""What a service costs that has nothing to do: transactions and CPU, for each role and for all.

Each set of roles runs as a process of its own on an empty database. After a while for starting up,
a window is measured: transactions from `pg_stat_database`, CPU of the process, and beside it that
of PostgreSQL. `presence`, the duty of every node, is part of each figure.
"""

import argparse
import asyncio
import tempfile
from time import perf_counter

from bench.kit.processes import a_node, cpu_seconds, used
from bench.kit.report import Report
from bench.kit.server import a_server, value
from betimes.app.run import run_to_end
from betimes.embedded import EmbeddedPostgres

ROLES = ("api", "coordinator", "worker", "janitor", "dispatcher")
ALL = ",".join(ROLES)
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1"


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench idle", description=__doc__)
    parser.add_argument("--roles", nargs="*", default=[ALL, *ROLES], help="sets, as --roles takes")
    parser.add_argument("--seconds", type=float, default=60.0, help="measured for each set")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds before that")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Each set of roles on one server, one after the other."""
    report = Report("idle")
    if options.quick:
        options.roles, options.seconds, options.settle = [ALL], 2.0, 2.0
    with tempfile.TemporaryDirectory(prefix="betimes-idle-") as folder:
        async with a_server(options.shards) as server:
            for roles in options.roles:
                await one_set(server, report, options, roles, folder)
    report.table()
    return 0


async def one_set(
    server: EmbeddedPostgres, report: Report, options: argparse.Namespace, roles: str, folder: str
) -> None:
    """Start the roles and look at a quiet window."""
    # Beside the data lie the files with the node's secrets, which all sets share.
    settings = {"embedded__data": f"{folder}/data", "api__port": "0"}
    async with a_node(server, roles, **settings) as process:
        await window(server, report, options, roles, process.pid)


async def window(
    server: EmbeddedPostgres, report: Report, options: argparse.Namespace, roles: str, pid: int
) -> None:
    """Wait until it has settled, then measure."""
    await asyncio.sleep(options.settle)
    transactions, python, before = await _transactions(server), cpu_seconds(pid), used()
    began = perf_counter()
    await asyncio.sleep(options.seconds)
    seconds = perf_counter() - began
    spent = used().since(before)
    report.tell(
        "all roles" if roles == ALL else roles,
        {"shards": options.shards, "seconds": options.seconds},
        transactions_per_second=round((await _transactions(server) - transactions) / seconds, 1),
        cpu_percent=round((cpu_seconds(pid) - python) / seconds * 100, 2),
        postgres_cpu_percent=round(spent.postgres / seconds * 100, 2),
    )


async def _transactions(server: EmbeddedPostgres) -> int:
    name = await value(server, "SELECT current_database()")
    # Backends tell what they did at most once a second, and idle ones after ten.
    return int(await value(server, TRANSACTIONS, name))
