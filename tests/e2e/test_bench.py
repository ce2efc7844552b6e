"""Every part of the bench runs with tiny sizes, so that none can rot. Nothing is judged by time."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEW = ["--quick", "--shards", "4"]
PARTS = {
    "api": ["--quick"],
    "burst": FEW,
    "catchup": FEW,
    "command": ["--quick"],
    "coordinate": [*FEW, "--phases", "10"],
    "create": ["--quick"],
    "deliver": FEW,
    "dispatch": FEW,
    "drain": FEW,
    "enqueue": [*FEW, "--runs", "10"],
    "idle": ["--quick"],
    "limits": ["--quick"],
    "lists": FEW,
    "outage": ["--quick"],
    "overload": [*FEW, "--quick"],
    "peers": [*FEW, "--only", "betimes", "--workers", "1"],
    "pinned": FEW,
    "recurring": [*FEW, "--schedules", "20", "--period", "1", "--seconds", "2"],
    "stored": FEW,
    "tasks": FEW,
    "time": ["--quick"],
    "transact": FEW,
    "workers": [*FEW, "--workers", "2"],
}


def test_every_part_is_here() -> None:
    """Whoever adds a part adds it to this list."""
    parts = {file.stem for file in (ROOT / "bench").glob("[!_]*.py")}
    assert parts == PARTS.keys()


@pytest.mark.bench
@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_part_measures_something(part: str) -> None:
    """JSON lines with figures that are numbers come out."""
    said = subprocess.run(
        [sys.executable, "-m", "bench", part, *PARTS[part]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    figures = [json.loads(line) for line in said.stdout.splitlines()]
    numbers = [one for line in figures for one in line.values() if isinstance(one, float)]
    assert figures
    assert not any(map(math.isnan, numbers))
