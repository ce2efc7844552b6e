"""A short fuzz of the whole document; `make fuzz` is the long one."""

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz" / "run.py"


@pytest.mark.db
@pytest.mark.timeout(240)
def test_nothing_in_the_document_breaks_the_service() -> None:
    done = subprocess.run(
        [sys.executable, FUZZ, "--phases", "fuzzing", "--max-examples", "1", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
        timeout=220,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " 0 failed on our side" in done.stderr
