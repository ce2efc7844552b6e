"""A workflow on a real service: real processes, the program of the examples, the command line."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from process_kit import betimes, environment, running

EXAMPLE = Path(__file__).parents[2] / "examples" / "workflow.py"
PATIENCE_SECONDS = 40.0
BEGIN = """
from betimes import WorkflowBuilder
from workflow import Day, app, cleanup, list_files, sales


@app.workflow(schedule="every day at 06:00")
def nightly(w: WorkflowBuilder) -> None:
    w.run(cleanup, w.run(list_files, "tuesday").output[0])


app.sync_schedules(prune=True)
print(sales.start(Day("monday", smallest=20)).id)
"""
pytestmark = [pytest.mark.db, pytest.mark.timeout(180)]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every account may enter, since PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-e2e-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def told(home: Path, *arguments: str) -> str:
    """What a command says; it must succeed."""
    answer = betimes(home, *arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def until(look: Callable[[], Any]) -> Any:
    """The first answer that is true."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < give_up, "it never came"
        time.sleep(0.3)
    return found


def test_the_example_runs_waits_is_approved_and_ends(home: Path) -> None:
    (home / "workflow.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    (home / "begin.py").write_text(BEGIN, encoding="utf-8")
    with running(home, "dev", "--no-demo", "--port", free_port()) as dev:
        dev.until("api.listening")
        dev.read_on()
        begun = subprocess.run(
            [sys.executable, "begin.py"], cwd=home, env=environment(home), text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert begun.returncode == 0, begun.stderr
        run = begun.stdout.strip()
        with running(home, "worker", "run", "workflow:app") as worker:
            worker.read_on()
            graph = until(lambda: _waits(told(home, "workflow", "graph", run)))
            assert "3 of 3 items" in graph
            assert f"betimes workflow approve {run} publish" in graph
            told(home, "workflow", "approve", run, "publish")
            assert until(lambda: _state(home, run) == "succeeded")
            assert "└─ parse" in told(home, "workflow", "graph", "sales")
            names = json.loads(told(home, "workflow", "list", "-o", "json"))
            assert {one["name"] for one in names} == {"nightly", "sales"}
            # Its schedule has a job, and a run of that job is over when the workflow run is.
            told(home, "job", "run", "nightly", "--wait")
            runs = json.loads(told(home, "workflow", "runs", "--workflow", "nightly", "-o", "json"))
            assert [one["state"] for one in runs] == ["succeeded"]
            worker.popen.send_signal(signal.SIGTERM)
            assert worker.end() == 0, worker.said
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0, dev.said


def _waits(graph: str) -> str:
    return graph if "waits for approval" in graph else ""


def _state(home: Path, run: str) -> Any:
    return json.loads(told(home, "workflow", "run", run, "-o", "json"))["state"]
