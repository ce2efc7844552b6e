"""A coordinator far from its database, or with a twentieth of a core: less, never nothing.

Prints a line of figures for each case, as they stand in the review that found the fault.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from betimes.domain import ids
from betimes.schedule import parse
from betimes.testing.postgres import PostgresKit, socket_of, through
from betimes.testing.proxy import FaultProxy
from process_kit import Process, running

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]
SHARDS = 64
JOBS = 20
PERIOD = 2
WARM_UP_SECONDS, WATCHED_SECONDS = 25.0, 40.0
CPU = Path("/sys/fs/cgroup/cpu")
TENANT = "00000000-0000-8000-8000-000000000001"


@contextmanager
def little_cpu(share: float) -> Iterator[Path]:
    """A control group with a share of one core."""
    group = CPU / f"betimes-chaos-{os.getpid()}"
    group.mkdir()
    (group / "cpu.cfs_period_us").write_text("100000")
    (group / "cpu.cfs_quota_us").write_text(str(int(100_000 * share)))
    try:
        yield group
    finally:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.1)
            else:
                return


async def prepare(dsn: str) -> None:
    """A cell of 64 shards with a few busy jobs in it."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO betimes.shards (shard) SELECT generate_series(0, 63) ON CONFLICT DO NOTHING"
    )
    await connection.execute("UPDATE betimes.cluster SET shards = 64")
    now = await connection.fetchval("SELECT now()")
    for number in range(JOBS):
        shard = number * 3 % SHARDS
        job = ids.compose(ids.to_ms(now), shard, number + 1)
        schedule = parse(f"every {PERIOD}s", now=now, seed=str(job), timezone="UTC")
        fire = schedule.next(now)
        assert fire is not None
        await connection.execute(
            "INSERT INTO betimes.jobs (shard, id, tenant_id, next_fire_at, created_at, updated_at, "
            "queue, handler, tzdata, schedule, target) "
            "VALUES ($1, $2, $3, $4, $5, $5, 'default', 'noop', 'test', $6, '{}')",
            shard, job, TENANT, fire.nominal, now, json.dumps(schedule.to_dict()),
        )  # fmt: skip
    await connection.close()


async def figures(dsn: str) -> tuple[float, int]:
    """How far the slowest cursor of a shard with work is behind, and how many runs have ended."""
    connection = await asyncpg.connect(dsn)
    try:
        behind = await connection.fetchval(
            "SELECT coalesce(extract(epoch FROM max(now() - published_through)), 1e6)::float8 "
            "FROM betimes.shards WHERE shard IN (SELECT shard FROM betimes.jobs)"
        )
        ended = await connection.fetchval("SELECT count(*) FROM betimes.runs WHERE state >= 4")
    finally:
        await connection.close()
    return behind, ended


def lost(process: Process) -> int:
    return sum("shard.lost" in line for line in process.said)


@pytest.mark.parametrize(
    "case",
    ["0 ms", "5 % of a core", "100 ms", "250 ms"],
)
async def test_a_slow_coordinator_keeps_its_shards_and_publishes(
    postgres: PostgresKit, case: str
) -> None:
    if case.endswith("core") and not os.access(CPU / "cpu.cfs_quota_us", os.W_OK):
        pytest.skip("no control group for the processor can be made here")
    name = await postgres.create()
    dsn = postgres.dsn(name)
    await prepare(dsn)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        async with FaultProxy(socket_of(dsn)) as proxy:

            def node(role: str, address: str) -> Process:
                arguments = ["server", "start", "--unsafe", "--dsn", address, "--roles", role]
                settings: list[str] = [
                    "--node",
                    role,
                    "--log-level",
                    "info",
                    "--log-format",
                    "json",
                ]
                started: Process = stack.enter_context(running(home, *arguments, *settings))
                started.read_on()
                return started

            node("worker", dsn)
            coordinator = node("coordinator", through(dsn, proxy.port))
            await asyncio.sleep(10)
            if case.endswith("ms"):
                # Half on the way there and half on the way back.
                one_way = int(case.split(maxsplit=1)[0]) / 2000
                proxy.change(latency=(one_way, 0.0) if one_way else None)
                for link in proxy.links:
                    link.change(latency=(one_way, 0.0) if one_way else None)
            else:
                group = stack.enter_context(little_cpu(0.05))
                (group / "cgroup.procs").write_text(str(coordinator.popen.pid))
                stack.callback(
                    lambda: (CPU / "cgroup.procs").write_text(str(coordinator.popen.pid))
                )
            await asyncio.sleep(WARM_UP_SECONDS)
            lost_before, (_, ended_before) = lost(coordinator), await figures(dsn)
            await asyncio.sleep(WATCHED_SECONDS)
            behind, ended = await figures(dsn)
            told: dict[str, Any] = {
                "lost": lost(coordinator) - lost_before,
                "behind": behind,
                "ended": ended - ended_before,
                "expected": JOBS * int(WATCHED_SECONDS / PERIOD),
            }
            sys.stdout.write(
                f"\n| {case} | {told['lost']} | {behind:.1f} s | "
                f"{told['ended']} of {told['expected']} |\n"
            )
            assert coordinator.popen.poll() is None
    await postgres.drop(name)
    assert told["lost"] == 0
    assert told["behind"] < 30
    assert told["ended"] > 0
