"""A Harness and the real service come to the same ends for the same calls."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from betimes.sdk.client import Client
from betimes.sdk.handle import RunHandle
from betimes.testing import Harness
from betimes.testing.server import BetimesServer
from betimes.wire.runs import Run
from faithful_app import app, calls

pytestmark = [pytest.mark.db, pytest.mark.timeout(120)]
TESTS = Path(__file__).resolve().parents[1]


def facts(run: Run) -> dict[str, Any]:
    """What must be the same; ids and times are not."""
    return {
        "state": run.state,
        "attempt": run.attempt,
        "reason": None if run.state_reason is None else run.state_reason.code,
        "error": None if run.error is None else (run.error.type, run.error.message),
        "result": run.result,
        "payload": run.payload,
        "queue": run.queue,
        "trigger": run.trigger,
    }


def enqueued() -> dict[str, RunHandle[Any]]:
    return {name: call.enqueue(name.split()[0]) for name, call in calls().items()}


def test_every_end_is_the_same(betimes_server: BetimesServer) -> None:
    with Harness(app) as h:
        handles = enqueued()
        h.advance("1m")
        h.run_until_idle()
        ours = {name: facts(app.client.runs.get(run.id)) for name, run in handles.items()}

    environment = {
        **os.environ,
        "BETIMES_URL": betimes_server.url,
        "BETIMES_API_KEY": betimes_server.api_key,
    }
    worker = subprocess.Popen(
        [sys.executable, "-m", "betimes", "worker", "run", "faithful_app:app"],
        cwd=TESTS,
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    client = Client(betimes_server.url, betimes_server.api_key)
    app.__dict__["client"] = client
    try:
        handles = enqueued()
        theirs = {name: facts(run.wait(timeout=60).run) for name, run in handles.items()}
    finally:
        del app.__dict__["client"]
        client.close()
        worker.terminate()
        worker.wait(40)
    assert ours == theirs
    states = {name: one["state"] for name, one in ours.items()}
    assert set(states.values()) == {"succeeded", "dead", "cancelled"}
