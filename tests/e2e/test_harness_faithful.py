"""A Harness and the real service come to the same ends for the same calls."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from betimes.sdk.client import Client
from betimes.sdk.handle import RunHandle
from betimes.sdk.workflow_handle import graph_of
from betimes.testing import Harness
from betimes.testing.server import BetimesServer
from betimes.wire.runs import Run
from betimes.wire.workflows import WorkflowRun
from faithful_app import WORKFLOWS, app, calls

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


@contextmanager
def served(server: BetimesServer) -> Iterator[None]:
    """The app speaks to the real service, and a worker does its runs."""
    environment = {**os.environ, "BETIMES_URL": server.url, "BETIMES_API_KEY": server.api_key}
    worker = subprocess.Popen(
        [sys.executable, "-m", "betimes", "worker", "run", "faithful_app:app"],
        cwd=TESTS,
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    client = Client(server.url, server.api_key)
    app.__dict__["client"] = client
    try:
        yield
    finally:
        del app.__dict__["client"]
        client.close()
        worker.terminate()
        worker.wait(40)


def test_every_end_is_the_same(betimes_server: BetimesServer) -> None:
    with Harness(app) as h:
        handles = enqueued()
        h.advance("1m")
        h.run_until_idle()
        ours = {name: facts(app.client.runs.get(run.id)) for name, run in handles.items()}

    with served(betimes_server):
        handles = enqueued()
        theirs = {name: facts(run.wait(timeout=60).run) for name, run in handles.items()}
    assert ours == theirs
    states = {name: one["state"] for name, one in ours.items()}
    assert set(states.values()) == {"succeeded", "dead", "cancelled"}


def graph_facts(run: WorkflowRun) -> dict[str, Any]:
    """What must be the same of a workflow run."""
    nodes = {
        node.node: (node.state, node.needs, None if node.items is None else asdict(node.items))
        for node in graph_of(run).nodes
    }
    return {"state": run.state, "stopping": run.stopping, "nodes": nodes}


def test_workflows_end_the_same(betimes_server: BetimesServer) -> None:
    with Harness(app) as h:
        begun = {one.name: one.start() for one in WORKFLOWS}
        h.advance("1m")
        ours = {name: graph_facts(run.fetch()) for name, run in begun.items()}
        outputs = {run.name: run.outputs for run in h.workflow_runs()}
    with served(betimes_server):
        for one in WORKFLOWS:
            one.put()
        begun = {one.name: one.start() for one in WORKFLOWS}
        ended = {name: run.wait(timeout=60) for name, run in begun.items()}
        theirs = {name: graph_facts(one.run) for name, one in ended.items()}
        assert begun["fine"].output("last") == outputs["fine"]["last"]
    assert ours == theirs
    assert {one["state"] for one in ours.values()} == {"succeeded", "failed"}
    seen = {node[0] for one in ours.values() for node in one["nodes"].values()}
    assert seen == {"succeeded", "failed", "skipped", "cancelled"}
