"""Lines that are on disk before anybody is told that something was done."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any


class Ledger:
    """Appends lines to a file that several processes share, and syncs them.

    Callers that arrive while a sync is under way share the next one.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._state = threading.Condition()
        self._written = 0
        self._synced = 0
        self._syncing = False

    def write(self, fact: dict[str, Any]) -> None:
        """Write one line; return when it is on disk."""
        fact["at"] = time.time()
        line = (json.dumps(fact) + "\n").encode()
        with self._state:
            os.write(self._file, line)  # one write per line: lines of processes do not mix
            self._written += 1
            mine = self._written
            while self._synced < mine:
                if self._syncing:
                    self._state.wait()
                else:
                    self._sync()

    def _sync(self) -> None:
        """Sync with the lock released; the caller holds it."""
        self._syncing = True
        upto = self._written
        self._state.release()
        try:
            os.fdatasync(self._file)
        finally:
            self._state.acquire()
            self._syncing = False
            self._synced = max(self._synced, upto)
            self._state.notify_all()


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Every whole line; a last line that a kill cut short was acknowledged to nobody."""
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1] if line]
