"""Reading the definition of a workflow."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.errors import CyclicGraph, Invalid
from betimes.workflow.graph import (
    ITEMS_MAX,
    NODES_MAX,
    FailurePolicy,
    Gate,
    GateType,
    Graph,
    When,
    read_graph,
)


def seconds(given: object, pointer: str) -> timedelta:
    """Durations of these tests are numbers."""
    if not isinstance(given, int):
        raise Invalid(f"expected seconds, got {given!r}", pointer=pointer)
    return timedelta(seconds=given)


def read(nodes: Mapping[str, Any], **more: Any) -> Graph:
    """The graph of these nodes."""
    return read_graph({"nodes": nodes, **more}, duration=seconds)


def test_a_node_is_work_and_nothing_else_by_default() -> None:
    """Whatever is not said has the plainest meaning."""
    graph = read({"one": {"handler": "do"}})
    node = graph.nodes["one"]

    assert (node.handler, node.target, node.payload) == ("do", None, None)
    assert (node.needs, node.when, node.fan, node.gate) == ((), When.ALL_SUCCESS, None, None)
    assert (graph.failure_policy, graph.timeout) == (FailurePolicy.FAIL_FAST, None)
    assert graph.input_schema is None


def test_everything_that_is_said_is_read() -> None:
    """Members of runs are kept as they are; the graph's own are understood."""
    graph = read(
        {
            "a": {"target": {"type": "http", "url": "https://a.example"}, "queue": "x"},
            "b": {
                "handler": "b",
                "needs": ["a", "a"],
                "when": "any_failed",
                "retry": {"max_attempts": 2},
                "timeout": 5,
                "priority": 9,
                "map": {"over": [1, 2], "max_parallel": 1},
                "gate": {"type": "signal", "timeout": 60},
            },
        },
        failure_policy="continue",
        timeout=3600,
        input_schema={"type": "object"},
    )

    assert graph.failure_policy is FailurePolicy.CONTINUE
    assert graph.timeout == timedelta(hours=1)
    assert graph.input_schema == {"type": "object"}
    assert graph.nodes["a"].options == {"queue": "x"}
    second = graph.nodes["b"]
    assert second.needs == ("a",)
    assert second.when is When.ANY_FAILED
    assert second.options == {"retry": {"max_attempts": 2}, "timeout": 5, "priority": 9}
    assert second.gate == Gate(type=GateType.SIGNAL, timeout=timedelta(minutes=1))
    assert second.fan is not None
    assert (second.fan.over, second.fan.max_parallel) == ([1, 2], 1)


def test_whose_output_is_used_is_needed() -> None:
    """References at any depth, and that of the map, are needs without being named."""
    graph = read(
        {
            "last": {
                "handler": "do",
                "payload": {"deep": [{"er": {"$output": "first", "path": "/x"}}]},
                "map": {"over": {"$output": "middle"}},
            },
            "middle": {"handler": "do", "needs": ["first"]},
            "first": {"handler": "do"},
        }
    )

    assert set(graph.nodes["last"].needs) == {"first", "middle"}
    assert list(graph.nodes) == ["first", "middle", "last"]


def test_a_timer_has_its_delay() -> None:
    """And opens by itself."""
    node = read({"a": {"handler": "do", "gate": {"type": "timer", "delay": 30}}}).nodes["a"]

    assert node.gate == Gate(type=GateType.TIMER, delay=timedelta(seconds=30))


def test_a_cycle_is_told() -> None:
    """Only those that wait for each other are named, not those that wait for them."""
    with pytest.raises(CyclicGraph, match=r"a needs b needs c needs a|b needs c") as caught:
        read(
            {
                "z": {"handler": "do", "needs": ["a"]},
                "a": {"handler": "do", "needs": ["b", "free"]},
                "b": {"handler": "do", "payload": {"$output": "c"}},
                "c": {"handler": "do", "needs": ["a"]},
                "free": {"handler": "do"},
            }
        )

    assert set(caught.value.cycle) == {"a", "b", "c"}
    assert caught.value.cycle[0] == caught.value.cycle[-1]
    assert len(caught.value.cycle) == 4
    assert caught.value.code == "workflow_cycle"


def test_a_node_that_needs_itself_is_a_cycle() -> None:
    """The shortest one."""
    with pytest.raises(CyclicGraph) as caught:
        read({"a": {"handler": "do", "needs": ["a"]}})

    assert caught.value.cycle == ("a", "a")


def test_as_many_nodes_as_may_be_are_read() -> None:
    """A chain of them, without running out of stack."""
    nodes = {
        f"n{n}": {"handler": "do", "needs": [f"n{n - 1}"] if n else []} for n in range(NODES_MAX)
    }

    assert len(read(nodes).nodes) == NODES_MAX
    with pytest.raises(Invalid, match="1 to 1000 nodes, got 1001"):
        read({**nodes, "more": {"handler": "do"}})


MISTAKES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"handler": "a", "needs": ["x"]}, "got 'x'", "/nodes/n/needs", "workflow_unknown_node"),
    (
        {"handler": "a", "payload": {"$output": "x"}},
        "'x'",
        "/nodes/n/needs",
        "workflow_unknown_node",
    ),
    ({}, "a handler or a target", "/nodes/n", "invalid_parameter"),
    ({"handler": "a", "target": {}}, "not both", "/nodes/n", "invalid_parameter"),
    ({"handler": ""}, "name of a handler", "/nodes/n", "invalid_parameter"),
    ({"handler": 5}, "name of a handler", "/nodes/n", "invalid_parameter"),
    ({"target": 5}, "expected an object", "/nodes/n/target", "invalid_parameter"),
    ({"handler": "a", "need": []}, "got 'need'", "/nodes/n/need", "unknown_field"),
    ({"handler": "a", "needs": "x"}, "list of node ids", "/nodes/n/needs", "invalid_parameter"),
    ({"handler": "a", "needs": [1]}, "list of node ids", "/nodes/n/needs", "invalid_parameter"),
    ({"handler": "a", "needs": ["m"] * 1001}, "at most", "/nodes/n/needs", "invalid_parameter"),
    ({"handler": "a", "when": "never"}, "all_success", "/nodes/n/when", "invalid_parameter"),
    ({"handler": "a", "when": "any_failed"}, "never run", "/nodes/n/when", "invalid_parameter"),
    ({"handler": "a", "when": "any_success"}, "never run", "/nodes/n/when", "invalid_parameter"),
    ({"handler": "a", "map": []}, "an object", "/nodes/n/map", "invalid_parameter"),
    ({"handler": "a", "map": {}}, "a list or a ref", "/nodes/n/map/over", "invalid_parameter"),
    (
        {"handler": "a", "map": {"over": {"x": 1}}},
        "a list",
        "/nodes/n/map/over",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "map": {"over": [0] * (ITEMS_MAX + 1)}},
        "at most",
        "/nodes/n/map/over",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "map": {"over": [], "max_parallel": 0}},
        "whole number",
        "/nodes/n/map/max_parallel",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "map": {"over": [], "max_parallel": True}},
        "whole number",
        "/nodes/n/map/max_parallel",
        "invalid_parameter",
    ),
    ({"handler": "a", "map": {"over": [], "x": 1}}, "got 'x'", "/nodes/n/map/x", "unknown_field"),
    ({"handler": "a", "gate": "approval"}, "an object", "/nodes/n/gate", "invalid_parameter"),
    ({"handler": "a", "gate": {}}, "approval", "/nodes/n/gate/type", "invalid_parameter"),
    ({"handler": "a", "gate": {"type": "timer"}}, "a delay", "/nodes/n/gate", "invalid_parameter"),
    (
        {"handler": "a", "gate": {"type": "approval", "delay": 1}},
        "a delay for a timer",
        "/nodes/n/gate",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "gate": {"type": "timer", "delay": 1, "timeout": 1}},
        "no timeout",
        "/nodes/n/gate",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "gate": {"type": "timer", "delay": 0}},
        "more than nothing",
        "/nodes/n/gate/delay",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "gate": {"type": "signal", "timeout": "soon"}},
        "expected seconds",
        "/nodes/n/gate/timeout",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "payload": [{"$item": ""}]},
        "with a map",
        "/nodes/n/payload/0",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "map": {"over": {"$item": ""}}},
        "with a map",
        "/nodes/n/map/over",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "gate": {"type": "approval"}, "payload": {"$signal": ""}},
        "signal gate",
        "/nodes/n/payload",
        "invalid_parameter",
    ),
    (
        {"handler": "a", "payload": {"a/b": {"$out": "m"}}},
        r"\$output, \$input",
        "/nodes/n/payload/a~1b",
        "invalid_parameter",
    ),
]


@pytest.mark.parametrize(("node", "sentence", "pointer", "code"), MISTAKES)
def test_a_mistake_is_told_where_it_is(
    node: dict[str, Any], sentence: str, pointer: str, code: str
) -> None:
    """What was expected, what was got, and where."""
    with pytest.raises(Invalid, match=sentence) as caught:
        read({"n": node, "m": {"handler": "b"}})

    assert (caught.value.pointer, caught.value.code) == (pointer, code)


@pytest.mark.parametrize(
    ("definition", "pointer"),
    [
        ({}, "/nodes"),
        ({"nodes": []}, "/nodes"),
        ({"nodes": {}}, "/nodes"),
        ({"nodes": {"-a": {"handler": "a"}}}, "/nodes/-a"),
        ({"nodes": {"a" * 101: {"handler": "a"}}}, f"/nodes/{'a' * 101}"),
        ({"nodes": {"a": 1}}, "/nodes/a"),
        ({"nodes": {"a": {"handler": "a"}}, "node": 1}, "/node"),
        ({"nodes": {"a": {"handler": "a"}}, "failure_policy": "hope"}, "/failure_policy"),
        ({"nodes": {"a": {"handler": "a"}}, "timeout": "long"}, "/timeout"),
        ({"nodes": {"a": {"handler": "a"}}, "timeout": -1}, "/timeout"),
        ({"nodes": {"a": {"handler": "a"}}, "input_schema": 1}, "/input_schema"),
    ],
)
def test_a_definition_that_is_none_is_refused(definition: dict[str, Any], pointer: str) -> None:
    """The same for what is not in a node."""
    with pytest.raises(Invalid) as caught:
        read_graph(definition, duration=seconds)

    assert caught.value.pointer == pointer
