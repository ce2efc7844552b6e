"""Real processes: nodes of the service, workers that note lags, and what the CPU was used for."""

import asyncio
import os
import signal
import sys
from array import array
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.kit.server import as_owner
from betimes.embedded import EmbeddedPostgres

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 30.0
READY_SECONDS = 60.0
READY = """
SELECT (SELECT count(*) FROM betimes.workers) >= $1
   AND NOT EXISTS (SELECT FROM betimes.shards WHERE owner IS NULL OR lease_until < now())
"""
ROOT = Path(__file__).parents[2]


class Used(NamedTuple):
    """CPU seconds: ours, and those of the whole machine."""

    python: float
    postgres: float
    machine: float

    @property
    def others(self) -> float:
        """What was used by whoever else was there: how quiet the machine was."""
        return max(0.0, self.machine - self.python - self.postgres)

    def since(self, before: "Used") -> "Used":
        """What was used between two looks."""
        return Used(*(now - then for now, then in zip(self, before, strict=True)))

    def per(self, count: int) -> dict[str, float]:
        """Microseconds for each of so many, and which part of the CPU time was not ours."""
        count = max(count, 1)
        return {
            "python_us": round(self.python / count * 1e6, 1),
            "postgres_us": round(self.postgres / count * 1e6, 1),
            "others_share": round(self.others / self.machine, 2) if self.machine else 0.0,
        }


def used() -> Used:
    """CPU seconds so far of everything we started, of the ended children of those included."""
    python = postgres = 0
    for pid in descendants(os.getpid()):
        try:
            name, fields = _stat(pid)
        except OSError:
            continue
        ticks = sum(int(field) for field in fields[11:15])
        if name == "postgres":
            postgres += ticks
        else:
            python += ticks
    return Used(python / TICKS_PER_SECOND, postgres / TICKS_PER_SECOND, _machine_seconds())


def cpu_seconds(pid: int) -> float:
    """CPU seconds so far of one process, without its children."""
    _, fields = _stat(pid)
    return sum(int(field) for field in fields[11:13]) / TICKS_PER_SECOND


def _machine_seconds() -> float:
    """CPU seconds since the machine started, without idling and waiting for disks."""
    line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, line.split()[1:])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def resident_mb(pid: int) -> float:
    """Memory of a process in MB."""
    # Gone already? The process that ended early is told by whoever runs it.
    if not Path(f"/proc/{pid}").exists():
        return 0.0
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def descendants(root: int) -> set[int]:
    """Every process below one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(_stat(int(entry.name))[1][1])
            except OSError:
                continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def _stat(pid: int) -> tuple[str, list[str]]:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    before, _, after = text.rpartition(")")
    return before.partition("(")[2], after.split()


@asynccontextmanager
async def running(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A Python process of ours, asked to stop at the end and waited for; it warns on our stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=sys.stderr, stderr=sys.stderr, cwd=ROOT
    )
    try:
        yield process
        if process.returncode is not None:
            raise RuntimeError(f"{' '.join(command[:2])} ended early: {process.returncode}")
    finally:
        await stop(process)


async def stop(process: asyncio.subprocess.Process) -> None:
    """Ask, wait, insist."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


@asynccontextmanager
async def a_node(
    server: EmbeddedPostgres, roles: str, **settings: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`betimes server start` with some roles; `coordinator__horizon="60s"` sets what it says."""
    chosen = [
        part
        for name, one in settings.items()
        for part in ("--set", f"{name.replace('__', '.')}={one}")
    ]
    command = ["-m", "betimes", "server", "start", "--roles", roles, "--dsn", server.dsn()]
    level = ["--log-level", "warning", "--log-format", "json"]
    async with running(*command, *level, *chosen) as process:
        yield process


@dataclass(frozen=True, slots=True)
class Noted:
    """What a worker has noted of every run: when it was due and how late it started."""

    due: "array[float]"
    lag: "array[float]"

    @classmethod
    def read(cls, files: list[Path]) -> "Noted":
        """All notes of some workers that have ended."""
        both = array("d")
        for file in files:
            both.frombytes(file.read_bytes())
        return cls(both[0::2], both[1::2])

    def between(self, first: float, last: float) -> list[float]:
        """The lags of runs due in [first, last)."""
        return [lag for due, lag in zip(self.due, self.lag, strict=True) if first <= due < last]


@asynccontextmanager
async def noting_workers(
    server: EmbeddedPostgres, folder: Path, *, count: int, slots: int
) -> AsyncIterator[list[Path]]:
    """Workers as processes of their own; their notes are complete after the block."""
    files = [folder / f"notes-{number}" for number in range(count)]
    async with AsyncExitStack() as stack:
        for file in files:
            command = ("-m", "bench.kit.worker", server.dsn(), str(slots), str(file))
            await stack.enter_async_context(running(*command))
        yield files


async def until_ready(server: EmbeddedPostgres, *, workers: int) -> None:
    """Return when so many workers have said that they are there and every shard has an owner."""
    async with asyncio.timeout(READY_SECONDS), as_owner(server) as connection:
        while not await connection.fetchval(READY, workers):
            await connection.execute("SELECT pg_sleep(0.05)")
