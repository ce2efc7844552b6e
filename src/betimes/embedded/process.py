"""Is that pid really our server?

A pid in a file is a rumour: after a restart of the machine or container it may belong to anybody.
It is believed, and signalled, only while the process it names is alive (a zombie is not), is
called postgres, and was started for this very directory.
"""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# No process can have this pid: Linux ends at 2**22, the others far below.
NOBODY = 2**31 - 2
LINES_WHEN_LISTENING, STATUS_LINE = 6, 7


@dataclass(frozen=True, slots=True)
class PidFile:
    """What postmaster.pid says; everything but the pid appears when the server listens."""

    pid: int
    port: int | None = None
    socket_directory: Path | None = None
    listen: str = ""
    ready: bool = False

    @classmethod
    def read(cls, cluster: Path) -> "PidFile | None":
        """The file's words, or None when it is missing or makes no sense."""
        try:
            lines = (cluster / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
            if len(lines) < LINES_WHEN_LISTENING:
                return cls(pid)
            sockets = Path(lines[4]) if lines[4] else None
            ready = [line.strip() for line in lines[STATUS_LINE:]] == ["ready"]
            return cls(pid, int(lines[3]), sockets, lines[5], ready)
        except (FileNotFoundError, IndexError, ValueError):
            return None


def postmaster_of(cluster: Path) -> PidFile | None:
    """The words of the running server of this directory, or None when none runs."""
    words = PidFile.read(cluster)
    return words if words and is_postmaster(words.pid, cluster) else None


def is_postmaster(pid: int, cluster: Path) -> bool:
    """Whether the process is alive, is postgres, and serves this directory."""
    if pid <= 0:
        return False
    arguments = _arguments_of(pid)
    if not arguments or Path(arguments[0]).name != "postgres" or "-D" not in arguments[:-1]:
        return False
    serves = Path(arguments[arguments.index("-D") + 1])
    return os.path.realpath(serves) == os.path.realpath(cluster)


def signal_postmaster(pid: int, cluster: Path, number: signal.Signals) -> bool:
    """Signal the server of this directory; nothing happens to anybody else."""
    try:
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return False
    try:
        # Checked after the handle is taken: from here on the pid cannot pass to another process.
        if not is_postmaster(pid, cluster):
            return False
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    else:
        return True
    finally:
        if handle is not None:
            os.close(handle)


def leftovers_of(cluster: Path) -> list[int]:
    """Server processes that still work in this directory, with or without their postmaster.

    Known by their working directory, which is the cluster for all of them. Empty where there is
    no /proc; PostgreSQL's own check of its shared memory then refuses the start.
    """
    if not PROC.is_dir():
        return []
    return [
        int(entry.name)
        for entry in PROC.iterdir()
        if entry.name.isdigit() and _works_in(entry, cluster)
    ]


def work_of(cluster: Path) -> int:
    """Processor time that the living server processes have used, in ticks; 0 without /proc."""
    ticks = 0
    for pid in leftovers_of(cluster):
        try:
            fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks


def quit_leftovers(cluster: Path) -> None:
    """Tell backends that have lost their postmaster to end at once."""
    for pid in leftovers_of(cluster):
        handle = os.pidfd_open(pid)
        try:
            if _works_in(PROC / str(pid), cluster):
                signal.pidfd_send_signal(handle, signal.SIGQUIT)
        except ProcessLookupError:
            continue
        finally:
            os.close(handle)


def _works_in(process: Path, cluster: Path) -> bool:
    try:
        name = (process / "comm").read_text().strip()
        return name == "postgres" and (process / "cwd").samefile(cluster)
    except OSError:  # gone, a zombie, or somebody else's
        return False


def _arguments_of(pid: int) -> list[str]:
    """The command line of a living process; empty for the dead and for zombies."""
    if not PROC.is_dir():
        return _arguments_by_ps(pid)
    try:
        stat = (PROC / str(pid) / "stat").read_text()
        if stat.rpartition(")")[2].split()[0] in "ZXx":
            return []
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).split("\0")[:-1]
    except OSError:
        return []


def _arguments_by_ps(pid: int) -> list[str]:
    """The same where there is no /proc. Spaces in paths are lost: then nothing is believed."""
    answer = subprocess.run(  # noqa: S603 -- a fixed command
        ["/bin/ps", "-ww", "-o", "stat=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    ).stdout.split()
    return [] if not answer or answer[0].startswith("Z") else answer[1:]
