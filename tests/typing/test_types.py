"""Both type checkers read the public API alike: as users write it."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WRITTEN = [str(HERE / f"{name}_as_written.py") for name in ("tasks", "tx", "workflows")]

pytestmark = pytest.mark.timeout(180)


def test_mypy_reads_it() -> None:
    told = run("mypy", "--config-file", str(ROOT / "pyproject.toml"), *WRITTEN)
    assert told.returncode == 0, told.stdout


def test_pyright_reads_it() -> None:
    """By basedpyright: the same engine, with a node of its own instead of a download."""
    told = run("basedpyright", "--pythonpath", sys.executable, "--project", str(HERE))
    assert told.returncode == 0, told.stdout


def run(tool: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(Path(sys.executable).parent / tool), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
