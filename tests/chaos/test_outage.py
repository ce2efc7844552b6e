"""A target dies under steady load and comes back: real processes, sockets and time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
BEFORE, OUTAGE, AFTER = 15, 40, 45
WINDOWS = f"--before {BEFORE} --outage {OUTAGE} --after {AFTER}".split()
RATE_PER_SECOND = 1_000 / 60


def test_a_dead_target_is_left_alone_and_comes_back_slowly() -> None:
    """No run is lost or sent twice; the origin that is well gets every run meanwhile."""
    said = subprocess.run(
        [sys.executable, "-m", "bench", "outage", *WINDOWS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stderr.write(said.stderr)
    assert said.returncode == 0, said.stderr
    figures: dict[str, dict[str, Any]] = {}
    for line in said.stdout.splitlines():
        told = json.loads(line)
        figures[told["figure"]] = told
    dying = figures["dying origin"]
    assert dying["lost"] == 0
    assert dying["twice_delivered"] == 0
    assert dying["requests_during"] <= 1.1 * RATE_PER_SECOND * OUTAGE
    ramp = figures["requests per second when it is back"]
    assert ramp["second_1"] <= 2 * 10 + RATE_PER_SECOND
    assert ramp["second_1"] < ramp["second_20"], "it is asked for more and more"
