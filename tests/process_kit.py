"""What tests of real processes share: a running `betimes`, read line by line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

PATIENCE_SECONDS = 30.0


class Process:
    """A running `betimes`, read line by line."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.said: list[str] = []
        self._reader: Thread | None = None
        self.popen = subprocess.Popen(
            command(*arguments), cwd=home, env=environment(home), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def until(self, marker: str) -> str:
        """Read until a line contains the marker; its end without one is a failure."""
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.said.append(line)
            if marker in line:
                return line
        pytest.fail(f"{marker!r} was never said:\n{''.join(self.said)}")

    def read_on(self) -> None:
        """Keep reading beside the test, so that a talkative process is never held up."""
        out = self.popen.stdout
        assert out is not None
        self._reader = Thread(target=lambda: self.said.extend(out), daemon=True)
        self._reader.start()

    def end(self) -> int:
        """Read what is left and wait."""
        if self._reader is not None:
            self._reader.join(PATIENCE_SECONDS)
            return self.popen.wait(PATIENCE_SECONDS)
        rest, _ = self.popen.communicate(timeout=PATIENCE_SECONDS)
        self.said.append(rest)
        return self.popen.returncode


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "betimes", *arguments]


def environment(home: Path) -> dict[str, str]:
    known = dict(os.environ)  # noqa: TID251 -- of the process that runs the tests
    kept: dict[str, str] = {name: known[name] for name in ("PATH", "LANG") if name in known}
    return {
        **kept,
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "share"),
        "BETIMES_API_PORT": "0",  # several nodes on one machine
    }


@contextmanager
def running(home: Path, *arguments: str) -> Iterator[Process]:
    process = Process(home, *arguments)
    try:
        yield process
    finally:
        if process.popen.poll() is None:
            process.popen.kill()
            process.end()
        assert process.popen.stdout is not None
        process.popen.stdout.close()


def betimes(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=home, env=environment(home), text=True, capture_output=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


def key_said_in(line: str) -> str:
    """The key that a node says the place of: what it says goes into logs, so never the key."""
    assert "btm_" not in line
    return Path(line.rsplit(" in ", 1)[1].strip()).read_text(encoding="ascii").strip()
