"""Runs a worker as a child process, and runs it anew whenever the code of the project changes."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from betimes.runtime.reload import fingerprint

LOOK_SECONDS = 0.5
END_SECONDS = 30.0


def run_reloading(
    arguments: Sequence[str], *, folder: Path, announce: Callable[[str], None]
) -> int:
    """Until this process is told to end; the exit code of the last child."""
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    while True:
        known = fingerprint(folder)
        child = subprocess.Popen([sys.executable, "-m", "betimes", *arguments])  # noqa: S603 -- ourselves
        while not ending.is_set() and child.poll() is None and fingerprint(folder) == known:
            ending.wait(LOOK_SECONDS)
        if child.poll() is not None and not ending.is_set():
            announce(f"the worker ended with {child.returncode}; waiting for a change")
            while not ending.is_set() and fingerprint(folder) == known:
                ending.wait(LOOK_SECONDS)
        code = _ended(child)
        if ending.is_set():
            return code
        announce("the code has changed: starting anew")


def _ended(child: "subprocess.Popen[bytes]") -> int:
    """Let it finish what it holds; one that does not is killed."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        return child.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
