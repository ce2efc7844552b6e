"""What the tests of the embedded server share: a real clock, a place, psql, bounded waiting."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from betimes.embedded import Binaries, EmbeddedPostgres

PATIENCE_SECONDS = 30.0
MEMORY_DISK = Path("/dev/shm")  # noqa: S108 -- only a place to look for room
ROOM_BYTES = 2 * 2**30
AS_ROOT = os.geteuid() == 0


class RealClock:
    """Processes live in real time, so their tests do too."""

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251

    def monotonic(self) -> float:
        return time.monotonic()  # noqa: TID251

    def stated(self) -> datetime | None:
        return None

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251


@dataclass(frozen=True)
class Place:
    """A directory that every account may reach, with binaries to serve from it."""

    root: Path
    binaries: Binaries
    passwords: "count[int]" = field(default_factory=lambda: count(1))

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def cluster(self) -> Path:
        return self.data / "pg"

    def server(self, **wishes: Any) -> EmbeddedPostgres:
        """A server on this place; not durable unless asked, as most tests need no disk."""
        chosen: dict[str, Any] = {
            "data": self.data,
            "binaries": self.binaries,
            "clock": RealClock(),
            "password_factory": lambda: f"it's no secret {next(self.passwords)}",
            "unsafe_no_fsync": True,
            "patience": 20.0,
            **wishes,
        }
        return EmbeddedPostgres(**chosen)

    def query(self, dsn: str, sql: str) -> str:
        """What psql prints; fails the test when psql fails."""
        finished = subprocess.run(
            [self.binaries.tool("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, dsn],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.strip()


def quick_disk() -> str | None:
    """A file system in memory when there is one with room: clusters are made there in no time."""
    if not MEMORY_DISK.is_dir() or not os.access(MEMORY_DISK, os.W_OK):
        return None
    facts = os.statvfs(MEMORY_DISK)
    has_room = facts.f_bavail * facts.f_frsize >= ROOM_BYTES
    return str(MEMORY_DISK) if has_room and not facts.f_flag & os.ST_NOEXEC else None


def until(happened: Callable[[], bool], *, what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Poll until it happened; fail the test with its name when it does not."""
    deadline = time.monotonic() + seconds  # noqa: TID251
    while not happened():
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what}"  # noqa: TID251
        time.sleep(0.02)  # noqa: TID251


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Owner:
    """Another process, in its own group, that starts the server of a place and then only waits."""

    def __init__(self, place: Place, *flags: str) -> None:
        script = Path(__file__).with_name("embedded_owner.py")
        self.process = subprocess.Popen(
            [sys.executable, script, place.data, place.binaries.directory, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def said(self) -> tuple[str, int]:
        """Its word, `ready` or `attached`, and the postmaster's pid."""
        assert self.process.stdout is not None
        word, pid = self.process.stdout.readline().split()
        return word, int(pid)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill it and everything in its process group."""
        os.killpg(self.process.pid, number)
        self.process.communicate(timeout=PATIENCE_SECONDS)
