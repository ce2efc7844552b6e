"""What happens next in a workflow run, by examples."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.workflow.advance import (
    Cancel,
    Hold,
    Interrupt,
    Items,
    Settle,
    Skip,
    Standing,
    Start,
    StartItems,
    advance,
)
from betimes.workflow.critical import Times, critical_path
from betimes.workflow.graph import Gate, GateType, Graph, read_graph
from betimes.workflow.policy import Origin, Passing, gate_time, reset

WAITING, READY, RUNNING = NodeState.WAITING, NodeState.READY, NodeState.RUNNING
SUCCEEDED, FAILED = NodeState.SUCCEEDED, NodeState.FAILED
SKIPPED, CANCELLED = NodeState.SKIPPED, NodeState.CANCELLED
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def graph(policy: str = "fail_fast", **nodes: dict[str, Any]) -> Graph:
    """A graph whose nodes all have a handler."""
    written = {name: {"handler": "do", **node} for name, node in nodes.items()}
    return read_graph(
        {"nodes": written, "failure_policy": policy}, duration=lambda _, __: timedelta(1)
    )


def standing(**states: NodeState | Standing) -> dict[str, Standing]:
    """What is known of nodes."""
    return {
        name: one if isinstance(one, Standing) else Standing(state=one)
        for name, one in states.items()
    }


CHAIN: dict[str, Any] = {"a": {}, "b": {"needs": ["a"]}, "c": {"needs": ["b"]}}
HANDLED: dict[str, Any] = {
    "a": {},
    "fix": {"needs": ["a"], "when": "any_failed"},
    "end": {"needs": ["a"]},
}


def test_what_needs_nothing_starts() -> None:
    """And what follows waits."""
    turn = advance(graph(**CHAIN), standing(a=WAITING, b=WAITING, c=WAITING))

    assert (turn.moves, turn.stop, turn.end) == ((Start("a"),), None, None)


def test_the_same_question_has_the_same_answer() -> None:
    """While something runs, there is nothing to do."""
    turn = advance(graph(**CHAIN), standing(a=RUNNING, b=WAITING, c=WAITING))

    assert (turn.moves, turn.end) == ((), None)


def test_a_skip_goes_on() -> None:
    """What wants successes is skipped after a skip, in the same turn."""
    turn = advance(graph(**CHAIN), standing(a=SKIPPED, b=WAITING, c=WAITING))

    assert turn.moves == (Skip("b"), Skip("c"))
    assert turn.end is WorkflowState.SUCCEEDED


@pytest.mark.parametrize(
    ("when", "needs", "expected"),
    [
        ("all_success", (SUCCEEDED, SUCCEEDED), Start("n")),
        ("all_success", (SUCCEEDED, SKIPPED), Skip("n")),
        ("all_success", (SUCCEEDED, CANCELLED), Skip("n")),
        ("all_success", (SUCCEEDED, FAILED), Skip("n")),
        ("all_done", (FAILED, SKIPPED), Start("n")),
        ("any_success", (SUCCEEDED, FAILED), Start("n")),
        ("any_success", (SKIPPED, FAILED), Skip("n")),
        ("any_failed", (SUCCEEDED, FAILED), Start("n")),
        ("any_failed", (SKIPPED, CANCELLED), Skip("n")),
    ],
)
def test_conditions(when: str, needs: tuple[NodeState, NodeState], expected: Start | Skip) -> None:
    """Skipped and cancelled are neither successes nor failures."""
    two = graph("continue", a={}, b={}, n={"needs": ["a", "b"], "when": when})

    assert advance(two, standing(a=needs[0], b=needs[1], n=WAITING)).moves == (expected,)


def test_nothing_is_decided_before_all_needs_have_ended() -> None:
    """Not even when the answer is known already."""
    two = graph("continue", a={}, b={}, n={"needs": ["a", "b"], "when": "any_success"})

    assert advance(two, standing(a=SUCCEEDED, b=RUNNING, n=WAITING)).moves == ()


def test_the_first_failure_stops_everything_but_the_cleaning_up() -> None:
    """What has not started is cancelled, what runs is asked to stop."""
    flow = graph(
        a={},
        b={},
        c={},
        later={"needs": ["c"]},
        gated={"gate": {"type": "approval"}},
        clean={"needs": ["a"], "when": "all_done"},
        sorry={"needs": ["a"], "when": "any_failed"},
        sweep={"needs": ["b"], "when": "all_done"},
    )
    turn = advance(
        flow,
        standing(
            a=FAILED,
            b=RUNNING,
            c=Standing(state=RUNNING, is_interrupted=True),
            later=WAITING,
            gated=READY,
            clean=WAITING,
            sorry=WAITING,
            sweep=WAITING,
        ),
    )

    assert set(turn.moves) == {
        Interrupt("b"),
        Cancel("later"),
        Cancel("gated"),
        Start("clean"),
        Start("sorry"),
    }
    assert (turn.stop, turn.end) == (Stop.FAILURE, None)


def test_a_failure_does_not_stop_what_goes_on_regardless() -> None:
    """Branches that do not depend on it run; what wants its success is skipped."""
    flow = graph("continue", a={}, b={}, after={"needs": ["a"]}, other={"needs": ["b"]})
    turn = advance(flow, standing(a=FAILED, b=SUCCEEDED, after=WAITING, other=WAITING))

    assert turn.moves == (Skip("after"), Start("other"))
    assert turn.stop is None


@pytest.mark.parametrize(
    ("policy", "states", "expected"),
    [
        ("continue", (SUCCEEDED, SKIPPED, SUCCEEDED), WorkflowState.SUCCEEDED),
        ("continue", (FAILED, SUCCEEDED, SKIPPED), WorkflowState.SUCCEEDED),
        ("continue", (FAILED, FAILED, SKIPPED), WorkflowState.FAILED),
        ("continue", (FAILED, SKIPPED, SKIPPED), WorkflowState.FAILED),
        ("continue", (SUCCEEDED, SKIPPED, CANCELLED), WorkflowState.CANCELLED),
        ("fail_fast", (FAILED, SUCCEEDED, CANCELLED), WorkflowState.FAILED),
    ],
)
def test_how_it_ends(policy: str, states: tuple[NodeState, ...], expected: WorkflowState) -> None:
    """A failure is forgiven if it was waited for and dealt with, and nothing was stopped by it."""
    turn = advance(graph(policy, **HANDLED), standing(a=states[0], fix=states[1], end=states[2]))

    assert (turn.moves, turn.end) == ((), expected)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        (Stop.CANCEL, WorkflowState.CANCELLED),
        (Stop.ABANDON, WorkflowState.CANCELLED),
        (Stop.TIMEOUT, WorkflowState.FAILED),
    ],
)
def test_whoever_stops_it_decides_how_it_ends(stop: Stop, expected: WorkflowState) -> None:
    """Whatever its nodes have become."""
    turn = advance(graph(a={}), standing(a=SUCCEEDED), stop)

    assert (turn.stop, turn.end) == (stop, expected)


def test_cleaning_up_can_be_given_up() -> None:
    """A cancel leaves it alone, unless it is asked not to."""
    flow = graph(a={}, clean={"needs": ["a"], "when": "all_done"})

    assert advance(flow, standing(a=CANCELLED, clean=RUNNING), Stop.CANCEL).moves == ()
    assert advance(flow, standing(a=CANCELLED, clean=RUNNING), Stop.ABANDON).moves == (
        Interrupt("clean"),
    )
    assert advance(flow, standing(a=CANCELLED, clean=WAITING), Stop.ABANDON).moves == (
        Cancel("clean"),
    )


def test_a_gate_is_waited_for() -> None:
    """Ready, then open, then started."""
    flow = graph(a={"gate": {"type": "approval"}})

    assert advance(flow, standing(a=WAITING)).moves == (Hold("a"),)
    assert advance(flow, standing(a=READY)).moves == ()
    opened = Standing(state=READY, is_open=True)
    assert advance(flow, standing(a=opened)).moves == (Start("a"),)


def test_no_more_items_run_than_may() -> None:
    """The next ones start when earlier ones end."""
    flow = graph(a={"map": {"over": list(range(5)), "max_parallel": 2}})

    def moves(items: Items) -> tuple[Any, ...]:
        return advance(flow, standing(a=Standing(state=RUNNING, items=items))).moves

    assert moves(Items(total=5)) == (StartItems("a", 0, 2),)
    assert moves(Items(total=5, started=2)) == ()
    assert moves(Items(total=5, started=2, succeeded=1)) == (StartItems("a", 2, 1),)
    assert moves(Items(total=5, started=5, succeeded=4)) == ()
    assert moves(Items(total=5, started=5, succeeded=5)) == (Settle("a", SUCCEEDED),)


def test_all_items_run_at_once_without_a_limit() -> None:
    """As many as there are."""
    flow = graph(a={"map": {"over": list(range(5))}})
    turn = advance(flow, standing(a=Standing(state=RUNNING, items=Items(total=5))))

    assert turn.moves == (StartItems("a", 0, 5),)


def test_a_map_over_nothing_has_succeeded() -> None:
    """What follows goes on in the same turn."""
    flow = graph(a={"map": {"over": []}}, b={"needs": ["a"]})
    turn = advance(flow, standing(a=Standing(state=RUNNING, items=Items(total=0)), b=WAITING))

    assert turn.moves == (Settle("a", SUCCEEDED), Start("b"))


def test_a_failed_item_fails_its_node() -> None:
    """At once where the first failure ends it all, else when the others have been done."""
    items = Items(total=5, started=2, failed=1)
    node = Standing(state=RUNNING, items=items)
    asked = Standing(state=RUNNING, items=items, is_interrupted=True)
    ended = Standing(
        state=RUNNING, items=Items(total=5, started=2, failed=1, cancelled=1), is_interrupted=True
    )
    fan: dict[str, Any] = {"a": {"map": {"over": list(range(5)), "max_parallel": 2}}}

    assert advance(graph(**fan), standing(a=node)).moves == (Interrupt("a"),)
    assert advance(graph(**fan), standing(a=asked)).moves == ()
    assert advance(graph(**fan), standing(a=ended)).moves == (Settle("a", FAILED),)
    assert advance(graph("continue", **fan), standing(a=node)).moves == (StartItems("a", 2, 1),)


def test_a_stopped_map_starts_no_more() -> None:
    """It ends when what runs of it has ended, as cancelled."""
    flow = graph(a={"map": {"over": list(range(3)), "max_parallel": 1}})
    running = Standing(state=RUNNING, items=Items(total=3, started=1))
    done = Standing(state=RUNNING, items=Items(total=3, started=1, succeeded=1))

    assert advance(flow, standing(a=running), Stop.CANCEL).moves == (Interrupt("a"),)
    turn = advance(flow, standing(a=done), Stop.CANCEL)
    assert turn.moves == (Settle("a", CANCELLED),)
    assert turn.end is WorkflowState.CANCELLED


def test_an_item_that_was_cancelled_leaves_no_whole_list() -> None:
    """Its node has no output, so it did not succeed."""
    flow = graph("continue", a={"map": {"over": [1, 2]}})
    items = Items(total=2, started=2, succeeded=1, cancelled=1)

    turn = advance(flow, standing(a=Standing(state=RUNNING, items=items)))

    assert turn.moves == (Settle("a", CANCELLED),)


def test_what_is_done_again() -> None:
    """From where it failed, from a node, or all of it; always with everything that follows."""
    flow = graph(
        "continue",
        a={},
        b={"needs": ["a"]},
        c={"needs": ["b"]},
        other={},
        clean={"needs": ["c", "other"], "when": "all_done"},
    )
    states = {"a": SUCCEEDED, "b": FAILED, "c": SKIPPED, "other": SUCCEEDED, "clean": SUCCEEDED}

    assert reset(flow, states, Origin.FAILED) == {"b", "c", "clean"}
    assert reset(flow, states, Origin.NODE, "other") == {"other", "clean"}
    assert reset(flow, states, Origin.NODE, "nobody") == frozenset()
    assert reset(flow, states, Origin.START) == set(flow.nodes)
    assert reset(flow, {**states, "other": CANCELLED}, Origin.FAILED) == {
        "b",
        "c",
        "other",
        "clean",
    }


def test_gates_and_time() -> None:
    """A timer opens, others may close for good, some wait for ever."""
    hour = timedelta(hours=1)

    assert gate_time(Gate(type=GateType.TIMER, delay=hour), NOON) == (NOON + hour, Passing.OPENS)
    assert gate_time(Gate(type=GateType.SIGNAL, timeout=hour), NOON) == (
        NOON + hour,
        Passing.FAILS,
    )
    assert gate_time(Gate(type=GateType.APPROVAL), NOON) is None


def test_the_critical_path_is_what_was_waited_for() -> None:
    """Back from the last end over the needs that ended last."""

    def at(begin: int, end: int | None) -> Times:
        ended = None if end is None else NOON + timedelta(seconds=end)
        return Times(NOON + timedelta(seconds=begin), ended)

    flow = graph(a={}, b={}, c={"needs": ["a", "b"]}, d={"needs": ["c"]}, e={"needs": ["a"]})
    never = Times(None, None)
    times = {"a": at(0, 5), "b": at(0, 3), "c": at(5, 9), "d": never, "e": at(5, 6)}

    assert critical_path(flow, times) == ("a", "c")
    assert critical_path(flow, {**times, "e": at(5, None)}) == ("a", "e")
    assert critical_path(flow, {**times, "a": never, "e": never}) == ("b", "c")
    assert critical_path(flow, dict.fromkeys(flow.nodes, never)) == ()
