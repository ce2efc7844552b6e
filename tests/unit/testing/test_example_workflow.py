"""The example of a workflow, as the documentation shows it; only its tasks are placeholders."""

import subprocess
import sys
from pathlib import Path

from betimes import App
from betimes.testing import Harness

app = App()
published: list[int] = []
cleaned: list[str] = []


@app.task
def list_files() -> list[str]:
    """A placeholder."""
    return ["a.csv", "bb.csv", "ccc.csv"]


@app.task
def parse(file: str) -> int:
    """A placeholder."""
    return len(file)


@app.task
async def merge(parts: list[int]) -> int:
    """A placeholder."""
    return sum(parts)


@app.task
def publish(total: int) -> None:
    """A placeholder."""
    published.append(total)


@app.task
def cleanup() -> None:
    """A placeholder."""
    cleaned.append("cleaned")


@app.workflow(failure_policy="fail_fast", schedule="every weekday at 06:00")
def daily(w):  # type: ignore[no-untyped-def]
    files = w.run(list_files)
    parts = w.map(parse, over=files, max_parallel=20)
    total = w.run(merge, parts)
    w.run(publish, total, gate="approval")
    w.run(cleanup, needs=[total], when="all_done")


def test_every_weekday_it_runs_and_waits_for_approval() -> None:
    published.clear()
    cleaned.clear()
    with Harness(app, now="2026-03-27T00:00Z") as h:  # a Friday
        h.advance("1 day")
        (run,) = h.workflow_runs("daily")
        assert run.states == {
            "list_files": "succeeded",
            "parse": "succeeded",
            "merge": "succeeded",
            "publish": "ready",
            "cleanup": "succeeded",
        }
        assert (run.state, run.outputs["parse"], published) == ("running", [5, 6, 7], [])
        h.approve("daily", "publish")
        h.run_until_idle()
        assert (run.state, published, cleaned) == ("succeeded", [18], ["cleaned"])
        h.travel("2026-03-31T00:00Z")
        assert h.fires("daily") == ["2026-03-27T06:00Z", "2026-03-30T06:00Z"]
        assert h.workflow_runs(daily)[1].waiting_for == ["publish"]
        h.assert_no_lost_runs()


def test_a_failure_ends_it_and_cleaning_up_is_done() -> None:
    cleaned.clear()
    with Harness(app, now="2026-03-27T00:00Z") as h, h.failing(parse, error=ValueError):
        h.advance("1 day")
        (run,) = h.workflow_runs("daily")
    assert run.state == "failed"
    assert run.states == {
        "list_files": "succeeded",
        "parse": "failed",
        "merge": "cancelled",
        "publish": "cancelled",
        "cleanup": "succeeded",
    }
    assert cleaned == ["cleaned"]


def test_the_program_among_the_examples_works() -> None:
    program = Path(__file__).parents[3] / "examples" / "workflow.py"
    told = subprocess.run(
        [sys.executable, str(program), "--try"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == "monday: 285 sold, most of it in the north"
