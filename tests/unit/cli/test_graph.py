"""Graphs as text, kept as they are drawn."""

from typing import Any

from betimes.cli.graph import run_text, workflow_text
from betimes.cli.looks import Eye
from betimes.cli.times import zone_of
from cli_kit import NOW, golden

EYE = Eye(now=NOW, zone=zone_of(None))
DEFINITION: dict[str, Any] = {
    "name": "daily",
    "version": 3,
    "failure_policy": "fail_fast",
    "nodes": {
        "list_files": {"handler": "list_files"},
        "rates": {"target": {"type": "http", "url": "https://bank.example/rates"}},
        "parse": {
            "handler": "parse",
            "payload": {"file": {"$item": ""}},
            "map": {"over": {"$output": "list_files"}, "max_parallel": 20},
        },
        "merge": {"handler": "merge_all", "payload": {"parts": {"$output": "parse"}}},
        "convert": {"handler": "convert", "needs": ["rates", "merge"]},
        "publish": {"handler": "publish", "needs": ["convert"], "gate": {"type": "approval"}},
        "later": {
            "handler": "tell",
            "needs": ["publish"],
            "gate": {"type": "timer", "delay": "PT1H"},
        },
        "cleanup": {"handler": "cleanup", "needs": ["merge"], "when": "all_done"},
    },
}


def node(name: str, state: str, *needs: str, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "node": name, "state": state, "needs": list(needs), "needs_left": 0, "when": "all_success",
        "handler": name, "run_id": None, "gate": None, "items": None, "ready_at": None,
        "started_at": None, "finished_at": None, "wait_ms": None, "run_ms": None, "reason": None,
        "error": None, "is_critical": False,
    }  # fmt: skip
    if state in ("succeeded", "failed"):
        usual |= {"finished_at": "2026-11-16T08:59:00Z", "is_critical": True}
    return {**usual, **more}


def items(total: int, *, succeeded: int = 0, failed: int = 0) -> dict[str, int]:
    started = succeeded + failed
    return {
        "total": total, "started": started, "running": 0, "succeeded": succeeded,
        "failed": failed, "cancelled": 0,
    }  # fmt: skip


RUN: dict[str, Any] = {
    "id": "wfr_01JD",
    "workflow": "daily",
    "version": 3,
    "state": "running",
    "started_at": "2026-11-16T08:55:00Z",
    "run_ms": None,
    "error": None,
    "graph": {
        "nodes": [
            node("list_files", "succeeded", run_ms=120.0),
            node("parse", "succeeded", "list_files", run_ms=3_250.0, items=items(3, succeeded=3)),
            node("merge", "succeeded", "parse", run_ms=80.0),
            node("check", "running", "merge", "list_files"),
            node("publish", "ready", "merge",
                 gate={"type": "approval", "is_open": False, "until": None}),
            node("told", "ready", "merge",
                 gate={"type": "signal", "is_open": False, "until": None}),
            node("tell", "waiting", "publish"),
            node("cleanup", "skipped", "merge", when="any_failed"),
        ],
        "critical_path": ["list_files", "parse", "merge"],
    },
}  # fmt: skip
FAILED: dict[str, Any] = {
    **RUN,
    "state": "failed",
    "run_ms": 65_000.0,
    "error": {"type": "NODE_FAILED", "message": "the node 'parse' failed: 1 of 3\x1b[2J items"},
    "graph": {
        "nodes": [
            node("list_files", "succeeded", run_ms=120.0),
            node("parse", "failed", "list_files", run_ms=3_250.0,
                 items=items(3, succeeded=1, failed=1),
                 error={"type": "ITEMS_FAILED", "message": "1 of 3 items failed"}),
            node("merge", "cancelled", "parse", finished_at="2026-11-16T08:59:00Z"),
        ],
        "critical_path": ["list_files", "parse"],
    },
}  # fmt: skip


def test_a_workflow_is_drawn() -> None:
    golden("graph-workflow.txt", workflow_text(DEFINITION, EYE))


def test_who_may_not_see_payloads_sees_what_is_written_down() -> None:
    shown = {
        name: {key: one for key, one in said.items() if key != "payload"}
        for name, said in DEFINITION["nodes"].items()
    }
    shown["parse"]["map"] = {"max_parallel": 20}
    drawn = workflow_text({**DEFINITION, "nodes": shown}, EYE).splitlines()
    assert "  parse            for each item, 20 at once" in drawn, "nothing says what it is after"
    assert "  │  └─ publish    waits for approval" in drawn


def test_runs_are_drawn_with_their_states() -> None:
    golden("graph-run.txt", run_text(RUN, EYE))
    golden("graph-failed.txt", run_text(FAILED, EYE))


def test_states_are_painted_and_what_others_wrote_is_not_obeyed() -> None:
    seen = run_text(FAILED, Eye(now=NOW, zone=zone_of(None), colours=True))
    assert "\x1b[31mfailed\x1b[0m" in seen
    assert "\x1b[2J" not in seen
