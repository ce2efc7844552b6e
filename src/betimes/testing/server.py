"""A real service for tests: `betimes dev` in a process of its own, on a PostgreSQL of its own."""

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

from betimes.sdk.application import App

START_SECONDS, STOP_SECONDS = 60.0, 20.0
LINES_KEPT = 200


@dataclass(frozen=True, slots=True)
class BetimesServer:
    """Where it is, and an administrator's key for its default tenant."""

    url: str
    api_key: str

    def app(self, **options: Any) -> App:
        """An app that speaks to it."""
        return App(self.url, self.api_key, **options)


class _Said:
    """What the process says, read beside it so that it never has to wait for us."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._changed = threading.Condition()
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.url = self.key = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            with self._changed:
                self.lines.append(line)
                if '"api.listening"' in line:
                    self.url = "http://" + line.partition("http://")[2].partition('"')[0]
                if "key for development: in " in line:
                    # What a service says goes into logs: it says where its key is, not what.
                    place = Path(line.rpartition(" in ")[2].strip())
                    self.key = place.read_text(encoding="ascii").strip()
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def started(self) -> BetimesServer:
        """Wait for its address and its key."""
        with self._changed:
            ready = self._changed.wait_for(
                lambda: (self.url and self.key) or self._process.poll() is not None,
                timeout=START_SECONDS,
            )
        if not ready or not (self.url and self.key):
            raise RuntimeError("the service did not start:\n" + "".join(self.lines))
        return BetimesServer(self.url, self.key)


@contextmanager
def running_server() -> Iterator[BetimesServer]:
    """Start a service, stop it afterwards, leave nothing behind."""
    # Not pytest's own folder: root closes that one to the account PostgreSQL runs under.
    folder = Path(tempfile.mkdtemp(prefix="betimes-server-"))
    folder.chmod(0o755)
    ours = {name: value for name, value in environ.items() if not name.startswith("BETIMES_")}
    command = (
        *(sys.executable, "-m", "betimes", "dev", "--no-demo", "--data", str(folder / "data")),
        *("--port", "0", "--log-format", "json", "--set", f"api.pepper_file={folder / 'pepper'}"),
    )
    process = subprocess.Popen(  # noqa: S603 -- our own program
        command, cwd=folder, env=ours, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield _Said(process).started()
    finally:
        _stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _stop(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
