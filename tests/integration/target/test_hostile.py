"""Hostile URLs through every door, with a witness below our own code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostile_kit import CONTROL, corpus

KIT = Path(__file__).parents[2] / "hostile_kit.py"
# An unprivileged user is root inside a namespace of its own, where the kernel allows it.
UNSHARE = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]


def can_isolate() -> bool:
    try:
        script = "ip link set lo up"
        done = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def test_the_corpus_is_large() -> None:
    """Each URL once."""
    assert len(corpus()) == len(set(corpus())) >= 500


@pytest.mark.skipif(not can_isolate(), reason="needs a network namespace and `ip`")
@pytest.mark.timeout(300)
def test_no_packet_reaches_a_denied_range() -> None:
    """Created, stored unchecked, redirected, rebound: refused, and nothing leaves for there."""
    said = subprocess.run(
        [*UNSHARE, sys.executable, str(KIT)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert told["denied_packets"] == {}
    assert told["stored.refused"] == told["urls"] >= 500
    assert told["create.refused"] >= 500
    assert told["redirect.refused"] >= 500
    assert told["unchecked.refused"] >= 400, "read carelessly, and stopped on the way out"
    for turn in (1, 2, 3):
        assert told[f"rebind.{turn}.refused"] >= 400
    assert told["allowed_packets"] > 1_000, "the witness sees what is allowed"
    assert told["control_packets"].keys() >= set(CONTROL), "and what the guard would have stopped"
