"""The quickstart as it is written: every block is taken from the page and run, in order.

What is prepared beforehand is what a reader has: a machine without us, and an index from which the
wheel of this tree can be installed. Its dependencies lie there already, so that nothing is asked of
any network.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"<!-- (?P<what>[^>]*) -->\n```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
PATIENCE_SECONDS = 90.0
STAYS = "run, and leave it running until it says: "

pytestmark = [pytest.mark.db, pytest.mark.timeout(240)]


class Block(NamedTuple):
    what: str
    kind: str
    text: str


class Terminal:
    """A shell that goes on saying things."""

    def __init__(self, script: str, *, home: Path, environment: dict[str, str]) -> None:
        self.said = ""
        self._changed = threading.Condition()
        self.popen = subprocess.Popen(
            ["bash", "-ec", script], cwd=home, env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.popen.stdout or ():
            with self._changed:
                self.said += line
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def until(self, marker: str) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: marker in self.said or self.popen.poll() is not None, PATIENCE_SECONDS
            )
        assert marker in self.said, f"{marker!r} was never said:\n{self.said}"

    def end(self) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGTERM)
        try:
            self.popen.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        self._reader.join(5)
        if self.popen.stdout is not None:
            self.popen.stdout.close()


def blocks() -> list[Block]:
    return [Block(*found.groups()) for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that every account may enter, since PostgreSQL does not run as root."""
    with tempfile.TemporaryDirectory(prefix="betimes-quick-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """A machine of its own: a fresh virtual environment, an index with our wheel."""
    wheels, packages = home / "wheels", home / "packages"
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    subprocess.run(
        [*build, "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)], check=True
    )
    venv.create(home / "venv", with_pip=False)
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        # Everything but ourselves: neither the package nor the note that it is installed.
        if "betimes" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    site = next((home / "venv" / "lib").glob("python*")) / "site-packages"
    (site / "packages.pth").write_text(f"{packages}\n", encoding="utf-8")
    pip = home / "venv" / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec {home}/venv/bin/python -m pip "$@"\n', encoding="utf-8")
    pip.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {
        "PATH": f"{home}/venv/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # Several services on one machine: the page's port is somebody else's here.
        "BETIMES_API_PORT": str(port),
        "BETIMES_URL": f"http://127.0.0.1:{port}",
    }


@contextmanager
def ended(terminals: list[Terminal]) -> Iterator[None]:
    try:
        yield
    finally:
        for terminal in reversed(terminals):
            terminal.end()


def test_the_quickstart_works_as_written(home: Path, environment: dict[str, str]) -> None:
    terminals: list[Terminal] = []
    printed, kept = "", ""
    with ended(terminals):
        for block in blocks():
            if block.what.startswith("file: "):
                (home / block.what.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
            elif block.what.startswith(STAYS):
                terminals.append(Terminal(block.text, home=home, environment=environment))
                terminals[-1].until(block.what.removeprefix(STAYS))
            elif block.what == "run":
                # What a terminal was told to export, it still knows in the next block.
                script = kept + block.text
                kept += "".join(f"{line}\n" for line in exports(block.text))
                done = subprocess.run(
                    ["bash", "-ec", script], cwd=home, env=environment, text=True,
                    capture_output=True, timeout=PATIENCE_SECONDS, check=False,
                )  # fmt: skip
                said = "\n".join(terminal.said[-3_000:] for terminal in terminals)
                assert done.returncode == 0, f"{block.text}\n{done.stderr}\n{said}"
                printed = done.stdout
            elif block.what == "it printed":
                assert printed == block.text
            elif block.what == "the worker says":
                terminals[-1].until(f"\n{block.text.strip()} ")
            else:
                pytest.fail(f"nobody knows what {block.what!r} means")
    installed = home / "venv" / "lib"
    assert list(installed.glob("python*/site-packages/betimes/__init__.py"))


def exports(script: str) -> list[str]:
    return [line for line in script.splitlines() if line.startswith("export ")]


def test_every_block_of_the_page_is_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(blocks()) == text.count("```") // 2 >= 10
