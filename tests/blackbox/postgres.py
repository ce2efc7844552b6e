"""A PostgreSQL of our own, with a clock that can be stepped and a disk that can be filled.

Stepping needs libfaketime, a small disk needs root; what the machine lacks is told, not faked.
"""

import asyncio
import ctypes
import ctypes.util
import mmap
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from betimes.embedded import find_binaries
from betimes.embedded.account import Account
from betimes.embedded.binaries import Binaries, executable_for

DISK_BYTES = 3 * 2**30
MAX_CONNECTIONS = 180
SETTINGS = {
    "listen_addresses": "",
    "max_connections": str(MAX_CONNECTIONS),
    "shared_buffers": "256MB",
    "max_wal_size": "512MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "log_min_messages": "warning",
    "max_prepared_transactions": "0",
}
FAKETIME_PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
)
SEMAPHORE_BYTES = 32
ORPHANED_LOOKS = 4
"""So many looks in a row at a lock that nobody holds for long."""
AS_ROOT = os.geteuid() == 0
AWAY = (
    OSError,
    EOFError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""What a connection to a server that is being broken may say."""


def faketime_library() -> str | None:
    """Where libfaketime is, if it is installed."""
    found = [place for place in FAKETIME_PLACES if Path(place).exists()]
    return found[0] if found else ctypes.util.find_library("faketime")


class Postgres:
    """One server below `root`; restarted by hand or, after a death, by `keep`."""

    def __init__(self, root: Path, *, offset_seconds: float = 0.0) -> None:
        self._user = _account() if AS_ROOT else None
        self._binaries = _binaries(self._user, root / "postgres").directory
        self._disk = root / "disk"
        self._data = self._disk / "pg"
        self._sockets = root / "sockets"
        self._log = root / "postgres.log"
        self._clock = root / "clock"
        self._filler = self._disk / "filler"
        self._library = faketime_library()
        self._mounted = False
        self._frozen: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._wanted = False
        self.offset = offset_seconds
        self.deaths = 0

    @property
    def dsn(self) -> str:
        """Straight to the server, past every proxy."""
        return f"postgresql://betimes@/betimes?host={self._sockets}"

    @property
    def socket(self) -> Path:
        """The socket that proxies relay to."""
        return self._sockets / ".s.PGSQL.5432"

    @property
    def can_step(self) -> bool:
        """Whether the clock can be stepped."""
        return self._library is not None

    @property
    def can_fill(self) -> bool:
        """Whether the disk is small enough to be filled."""
        return self._mounted

    @property
    def pid(self) -> int:
        """Of the postmaster."""
        assert self._process is not None
        return self._process.pid

    def create(self) -> None:
        """Make the cluster, on a disk of its own where that is possible."""
        for place in (self._disk, self._sockets):
            place.mkdir()
        if AS_ROOT:
            options = f"size={DISK_BYTES},mode=755"
            mounting = ["mount", "-t", "tmpfs", "-o", options, "betimes-chaos", str(self._disk)]
            self._mounted = (
                subprocess.run(mounting, check=False, capture_output=True).returncode == 0
            )
        for place in (self._disk, self._sockets):
            if self._user is not None:
                shutil.chown(place, self._user.pw_uid, self._user.pw_gid)
        self._run("initdb", "-D", str(self._data), "-U", "betimes", "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync")  # fmt: skip
        self.step(self.offset)

    def start(self) -> None:
        """Start the server; it may need a while to accept connections."""
        self._wanted = True
        arguments = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, "-k", self._sockets, *arguments],
                stdout=log, stderr=log, env=self._environment(), **self._as_user(),
            )  # fmt: skip

    async def until_ready(self, seconds: float = 60.0) -> None:
        """Wait until it answers, starting it again if it died meanwhile."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                connection = await asyncpg.connect(self.dsn, database="postgres", timeout=5)
            except AWAY:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.1)
            else:
                connection.terminate()
                return

    async def keep(self) -> None:
        """What a service manager does."""
        orphaned = 0
        while True:
            await asyncio.sleep(0.5)
            # Only libfaketime holds it, for microseconds; who is killed meanwhile, for ever.
            orphaned = orphaned + 1 if self._clock_is_locked() else 0
            if orphaned == ORPHANED_LOOKS:
                self._unlock_clock()
            if self._wanted and self._process is not None and self._process.poll() is not None:
                self.deaths += 1
                self._end_orphans()
                (self._data / "postmaster.pid").unlink(missing_ok=True)
                self.start()

    @contextmanager
    def _clock_lock(self) -> Iterator[mmap.mmap]:
        """The semaphore that libfaketime shares among the processes of the server.

        Its name is gone with the first process that ended, so it is found where it is mapped.
        """
        maps = Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        (span,) = [line.split()[0] for line in maps if "/sem.faketime_sem_" in line]
        with Path(f"/proc/{self.pid}/map_files/{span}").open("r+b") as file:
            yield mmap.mmap(file.fileno(), SEMAPHORE_BYTES)

    def _clock_is_locked(self) -> bool:
        """Whether somebody holds it now, and no process that is stopped."""
        if self._library is None or self._process is None or self._frozen:
            return False
        with suppress(OSError, ValueError), self._clock_lock() as lock:
            return int.from_bytes(lock[:4], sys.byteorder) == 0
        return False

    def _unlock_clock(self) -> None:
        """Release it in the place of whoever was killed while holding it."""
        with suppress(OSError, ValueError), self._clock_lock() as lock:
            semaphore = (ctypes.c_char * SEMAPHORE_BYTES).from_buffer(lock)
            ctypes.CDLL(None).sem_post(ctypes.byref(semaphore))

    def _end_orphans(self) -> None:
        """Sessions that outlived the postmaster keep its shared memory; frozen ones for ever."""
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (place / "cwd").readlink() == self._data:
                    os.kill(int(place.name), signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Send the postmaster a signal; dead it is started again by `keep`."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def backends(self) -> list[int]:
        """The processes of the server."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(child) for child in children]

    def freeze(self, *, frozen: bool) -> None:
        """Stop or continue every process of the server at once."""
        if frozen:
            self._frozen = [self.pid, *self.backends()]
        # Those that were stopped, whoever is the postmaster by now.
        number = signal.SIGSTOP if frozen else signal.SIGCONT
        for pid in self._frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if not frozen:
            self._frozen = []

    def step(self, offset: float) -> None:
        """Let the clock of the server be so many seconds ahead of the machine's."""
        self.offset = offset
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(f"{offset:+f}\n")
        fresh.chmod(0o644)
        fresh.rename(self._clock)

    def fill(self) -> None:
        """Leave no byte on the disk."""
        with self._filler.open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(b"\0" * 2**20)
        with self._filler.open("ab", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(b"\0" * 512)

    def empty(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop the server and take its disk away."""
        self._wanted = False
        if self._process is not None and self._process.poll() is None:
            self.freeze(frozen=False)
            self.signal(signal.SIGINT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._mounted:
            subprocess.run(["umount", "-l", str(self._disk)], check=False)

    def _environment(self) -> dict[str, str]:
        kept = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
        if self._library is not None:
            kept |= {
                "LD_PRELOAD": self._library,
                "FAKETIME_TIMESTAMP_FILE": str(self._clock),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_DONT_RESET": "1",
            }
        return kept

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid}

    def _run(self, tool: str, *arguments: str) -> None:
        subprocess.run(
            [self._binaries / tool, *arguments],
            check=True, capture_output=True,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            **self._as_user(),
        )  # fmt: skip


def _binaries(user: pwd.struct_passwd | None, private: Path) -> Binaries:
    """PostgreSQL where its account may execute it, wherever this tree lies."""
    found = find_binaries()
    if user is None:
        return found
    account = Account(user.pw_name, user.pw_uid, user.pw_gid, switch=True)
    return executable_for(found, account, private)


def _account() -> pwd.struct_passwd:
    """PostgreSQL does not run as root."""
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("expected an account called postgres or nobody to run PostgreSQL with")
