"""Workflows on the command line, against a real service."""

import asyncio
import json
from typing import Any

import pytest

from api_kit import Served
from cli_kit import acall

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("home")]
FLOW = {
    "nodes": {
        "ask": {"handler": "ask", "gate": {"type": "approval"}},
        "told": {"handler": "tell", "payload": {"what": {"$output": "ask"}}},
        "clean": {"handler": "clean", "needs": ["told"], "when": "all_done"},
    }
}


async def begun(served: Served) -> str:
    admin = await served.admin()
    assert (await admin("PUT", "/v1/workflows/daily", FLOW)).status == 201
    started = await acall("workflow", "start", "daily", "--input", '{"day": 1}', "-o", "json")
    found: str = json.loads(started.out)["id"]
    return found


async def test_a_workflow_and_its_runs_are_drawn(served: Served) -> None:
    run = await begun(served)
    drawn = await acall("workflow", "graph", "daily")
    assert drawn.out.splitlines() == [
        "daily (version 1): 3 nodes, fail fast",
        "  ask           waits for approval",
        "  └─ told       calls tell",
        "     └─ clean   when all done",
    ], drawn.err
    waits = await acall("workflow", "graph", run)
    assert f"betimes workflow approve {run} ask" in waits.out, waits.err
    assert "ready" in waits.out
    plain = await acall("workflow", "graph", run, "--query", "graph.nodes[].state", "-o", "json")
    assert json.loads(plain.out) == ["ready", "waiting", "waiting"]
    assert (await acall("workflow", "graph", "daily", "--version", "1")).out == drawn.out
    assert (await acall("workflow", "graph", "daily", "--version", "9")).code == 3
    assert (await acall("workflow", "graph", "nightly")).code == 3
    for wrong in ((run, "--version", "1"), ("daily", "--watch")):
        assert (await acall("workflow", "graph", *wrong)).code == 2


async def test_who_may_not_see_payloads_is_told_so(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(served)
    monkeypatch.setenv("BETIMES_API_KEY", await served.key(scopes=["jobs:read"]))
    drawn = await acall("workflow", "graph", "daily")
    assert "Without payloads:read" in drawn.err
    assert "  told       calls tell" in drawn.out.splitlines(), "nothing says what it is after"


async def test_a_run_is_watched_until_it_is_over(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await begun(served)
    loop, done = asyncio.get_running_loop(), list[int]()
    steps: list[tuple[str, ...]] = [
        ("workflow", "run", run),
        ("workflow", "skip", run, "ask"),
        ("workflow", "cancel", run, "--no-cleanup", "--yes"),
    ]

    def meanwhile(_seconds: float) -> None:
        """Instead of waiting: somebody does something."""
        coroutine = acall(*steps[len(done)])
        done.append(asyncio.run_coroutine_threadsafe(coroutine, loop).result(30).code)

    monkeypatch.setattr("betimes.sdk.ambient.pause", meanwhile)
    told = await acall("workflow", "graph", run, "--watch=1s")
    assert (done, told.code) == ([0, 0, 0], 7), told.err
    assert _pictures(told.out) == ["running", "running", "cancelled"], "nothing new is not drawn"


def _pictures(out: str) -> list[Any]:
    return [
        line.partition(": ")[2].partition(",")[0]
        for line in out.splitlines()
        if line.startswith("daily")
    ]
