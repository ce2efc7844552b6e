"""Describing workflows: what a function becomes."""

from datetime import timedelta
from typing import Any

import pytest

from betimes import App, Unfit
from flow_kit import (
    Total,
    Wish,
    anything,
    app,
    cleanup,
    list_files,
    made,
    merge,
    no_builder,
    nodes,
    nothing,
    parse,
    publish,
    timed,
    too_much,
    wish,
)


def test_example_seven_is_this_graph() -> None:
    def daily(w: Any) -> None:
        files = w.run(list_files)
        parts = w.map(parse, over=files, max_parallel=20)
        total = w.run(merge, parts)
        w.run(publish, total, gate="approval")
        w.run(cleanup, needs=[total], when="all_done")

    assert made(daily, failure_policy="continue", timeout="2h").definition() == {
        "failure_policy": "continue",
        "timeout": "2h",
        "nodes": {
            "list_files": {"handler": "list_files"},
            "parse": {
                "handler": "parse",
                "payload": {"file": {"$item": ""}},
                "map": {"over": {"$output": "list_files"}, "max_parallel": 20},
                "needs": ["list_files"],
                "queue": "parsing",
                "priority": 7,
                "timeout": 120.0,
                "retry": {"max_attempts": 3},
            },
            "merge": {
                "handler": "merge",
                "payload": {"parts": {"$output": "parse"}},
                "needs": ["parse"],
            },
            "publish": {
                "handler": "publish",
                "payload": {"total": {"$output": "merge"}},
                "gate": {"type": "approval"},
                "needs": ["merge"],
            },
            "cleanup": {"handler": "cleanup", "needs": ["merge"], "when": "all_done"},
        },
    }


def test_it_is_described_when_it_is_needed_and_once() -> None:
    calls: list[Any] = []

    def flow(w: Any) -> None:
        calls.append(w)
        w.run(cleanup)

    workflow = made(flow)
    assert not calls, "decorating describes nothing"
    first = workflow.definition()
    first["nodes"].clear()
    assert workflow.definition()["nodes"], "what was given away is a copy"
    assert len(calls) == 1
    with pytest.raises(RuntimeError, match="inside the function of 'flow'"):
        calls[0].run(cleanup)


def test_references_go_wherever_values_go() -> None:
    def flow(w: Any) -> None:
        files = w.run(list_files)
        total = w.run(merge, [1, 2])
        w.run(
            anything, {"all": files, "some": [files[0], total["lines"][1], total.path("/amount")]}
        )
        w.run(wish, Wish(day="today", part=total.output.amount), id="wish")
        w.run(publish, Total.model_construct(amount=total.output.amount, lines=["a"]))
        w.run(anything, total["a/b~c"])

    found = nodes(flow)
    assert found["anything"]["payload"]["value"] == {
        "all": {"$output": "list_files"},
        "some": [
            {"$output": "list_files", "path": "/0"},
            {"$output": "merge", "path": "/lines/1"},
            {"$output": "merge", "path": "/amount"},
        ],
    }
    assert found["anything"]["needs"] == ["list_files", "merge"]
    assert found["wish"]["payload"]["wanted"] == {
        "day": "today",
        "part": {"$output": "merge", "path": "/amount"},
    }
    assert found["publish"]["payload"]["total"]["amount"] == {"$output": "merge", "path": "/amount"}


def test_objects_that_look_like_references_are_escaped() -> None:
    def flow(w: Any) -> None:
        w.run(anything, {"query": {"$output": "no node", "$gt": 1}, "plain": [{"$literal": 1}]})

    assert nodes(flow)["anything"]["payload"]["value"] == {
        "query": {"$literal": {"$output": "no node", "$gt": 1}},
        "plain": [{"$literal": {"$literal": 1}}],
    }

    def mixed(w: Any) -> None:
        w.run(anything, {"$gt": w.run(list_files)})

    with pytest.raises(Unfit, match=r"an object with \$gt to be known"):
        nodes(mixed)


def test_names_of_nodes_are_numbered_and_may_be_chosen() -> None:
    def flow(w: Any) -> None:
        w.run(cleanup, id="cleanup_2")
        assert [w.run(cleanup).id for _ in range(3)] == ["cleanup", "cleanup_3", "cleanup_4"]
        assert w.run(app.task(name="mail/send: ä")(lambda: None)).id == "mail_send___"

    assert len(nodes(flow)) == 5


def test_options_come_from_the_task_the_call_and_the_node() -> None:
    def flow(w: Any) -> None:
        w.run(parse, "a")
        w.run(parse.configure(queue="quick", priority=1), "b", True)
        w.run(parse, "c", strict=True, queue="slow", retry={"max_attempts": 9})
        w.run(timed, 1, 2, timeout="9s", gate={"type": "timer", "delay": timedelta(hours=1)})
        w.run(anything, w.signal["who"], gate={"type": "signal", "timeout": "2 days"})

    one, two, three, four, five = nodes(flow).values()
    assert (one["queue"], two["queue"], two["priority"], three["queue"]) == (
        "parsing", "quick", 1, "slow",
    )  # fmt: skip
    assert two["payload"] == three["payload"] | {"file": "b"} == {"file": "b", "strict": True}
    assert three["retry"] == {"max_attempts": 9}
    assert (four["payload"], four["timeout"]) == ({"number": 1, "timeout": 2}, "9s")
    assert four["gate"] == {"type": "timer", "delay": 3600.0}
    assert (five["payload"], five["gate"]) == (
        {"value": {"$signal": "/who"}}, {"type": "signal", "timeout": "2 days"},
    )  # fmt: skip


def test_mapping_fixes_arguments_and_takes_elements_apart() -> None:
    def flow(w: Any) -> None:
        w.map(parse, over=["a", "b"], strict=True)
        w.map(parse, over=[{"name": "a"}], file=w.item["name"])
        w.map(timed, over=w.run(anything, 1), number=3)

    one, two, _, four = nodes(flow).values()
    assert (one["map"], one["payload"]) == (
        {"over": ["a", "b"]}, {"file": {"$item": ""}, "strict": True},
    )  # fmt: skip
    assert two["payload"] == {"file": {"$item": "/name"}}
    assert four["payload"] == {"number": 3, "timeout": {"$item": ""}}


def test_an_input_is_a_reference_and_has_a_schema() -> None:
    def flow(w: Any, wanted: Wish) -> None:
        w.run(wish, wanted)
        w.run(parse, wanted.day)

    workflow = made(flow)
    definition = workflow.definition()
    assert definition["nodes"]["wish"]["payload"] == {"wanted": {"$input": ""}}
    assert definition["nodes"]["parse"]["payload"] == {"file": {"$input": "/day"}}
    assert definition["input_schema"]["$defs"]["Wish"]["required"] == ["day", "part"]
    assert workflow.encode(Wish(day="today", part=2)) == b'{"day":"today","part":2}'
    with pytest.raises(Unfit, match=r"flow: .*part"):
        workflow.encode({"day": "today", "part": "two"})
    with pytest.raises(TypeError, match="wanted"):
        workflow.encode()
    assert made(nothing).encode() is None
    with pytest.raises(TypeError, match="too many"):
        made(nothing).encode(1)


def test_an_input_may_have_a_default() -> None:
    def flow(w: Any, part: int = 3) -> None:
        w.run(anything, part)

    assert made(flow).encode() == b"3"


def test_the_decorator_is_particular() -> None:
    own = App("http://127.0.0.1:1", "key", name="tests")

    @own.workflow
    def flow(w: Any) -> None:
        w.run(cleanup)

    assert (own.workflows["flow"], flow.name, flow.__name__) == (flow, "flow", "flow")
    with pytest.raises(ValueError, match="one workflow of the name 'flow', got a second"):
        own.workflow(name="flow")(nothing)
    with pytest.raises(ValueError, match="one workflow of the name 'flow', got a task of it"):
        own.task(name="flow")(lambda: None)
    with pytest.raises(TypeError, match=r"an option of a workflow .*'quue'"):
        own.workflow(quue="mail")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="fail_fast, continue, got 'stop'"):
        own.workflow(name="a", failure_policy="stop")(nothing)  # type: ignore[call-overload]

    async def waits(w: Any) -> None:
        """Cannot be described."""

    with pytest.raises(TypeError, match="a plain function"):
        own.workflow(waits)
    with pytest.raises(TypeError, match="`w` and perhaps one input"):
        made(no_builder).definition()
    with pytest.raises(TypeError, match="`w` and perhaps one input"):
        made(too_much).definition()
    other = App("http://127.0.0.1:1", "key", name="other")
    other.include(own)
    assert other.workflows["flow"] is flow
