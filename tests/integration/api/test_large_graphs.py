"""Large graphs and bodies: read beside the event loop, shown in pages of bounded size."""

import threading
from typing import Any

import pytest

from api_kit import Client
from betimes.domain.kept import Kept
from betimes.ops import workflows
from betimes.rhythm.aside import LARGE_BYTES
from betimes.workflow.graph import read_graph

LARGE = [f"n{place}" for place in range(1_000)]


def graph(needs: int = 100) -> dict[str, Any]:
    """A thousand nodes that need so many before them."""
    return {
        "nodes": {
            name: {"handler": "h", "needs": LARGE[max(0, place - needs) : place]}
            for place, name in enumerate(LARGE)
        }
    }


async def test_large_graphs_are_read_beside_the_loop(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding S8: a thousand nodes of a hundred needs each, put, started, shown, cancelled."""
    threads: list[str] = []

    def noted(*given: Any, **more: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read_graph(*given, **more)

    monkeypatch.setattr("betimes.ops.workflows.read_graph", noted)
    monkeypatch.setattr(workflows, "_PLANS", Kept(workflows.PLANS_BYTES_MAX))
    assert (await admin("PUT", "/v1/workflows/large", graph())).status == 201
    started = await admin("POST", "/v1/workflows/large/runs")
    assert started.status == 202
    place = f"/v1/workflow-runs/{started.json['id']}"
    shown = (await admin("GET", f"{place}?include=graph")).json["graph"]["nodes"]
    assert [one["needs_left"] for one in shown[:3]] == [0, 1, 2]
    assert (await admin("POST", f"{place}/cancel")).status == 202
    # Once when it was put and once when it was started; never on the thread that serves.
    assert len(threads) == 2
    assert all(name.startswith("betimes-aside") for name in threads)


async def test_small_graphs_need_no_thread(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for one would take longer."""
    threads: list[str] = []

    def noted(*given: Any, **more: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read_graph(*given, **more)

    monkeypatch.setattr("betimes.ops.workflows.read_graph", noted)
    assert (
        await admin("PUT", "/v1/workflows/small", {"nodes": {"a": {"handler": "h"}}})
    ).status < 300
    assert threads == [threading.main_thread().name]


async def test_pages_of_large_workflows_are_bounded(admin: Client) -> None:
    """By their size; the cursor leads on, and nothing is left out."""
    for number in range(6):
        assert (await admin("PUT", f"/v1/workflows/w{number}", graph())).status == 201
    names: list[str] = []
    path, sizes = "/v1/workflows?limit=50", []
    while path:
        page = (await admin("GET", path)).json
        sizes.append(len(page["items"]))
        names += [one["name"] for one in page["items"]]
        cursor = page.get("next_cursor")
        path = f"/v1/workflows?limit=50&cursor={cursor}" if cursor else ""
    assert names == [f"w{number}" for number in range(6)]
    assert max(sizes) < 6


def test_plans_are_kept_within_a_bound() -> None:
    assert LARGE_BYTES < workflows.PLANS_BYTES_MAX
