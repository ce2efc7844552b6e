"""Describing workflows: what is refused, before anything is sent."""

from collections.abc import Callable
from typing import Any

import pytest

from betimes import Node, Unfit
from flow_kit import anything, cleanup, list_files, made, merge, nothing, parse, timed, told


@pytest.mark.parametrize(
    ("describe", "error", "sentence"),
    [
        (nothing, ValueError, "at least one node in the workflow 'flow'"),
        (lambda w: w.run(len), TypeError, "expected a task .* got <built-in function len>"),
        (lambda w: w.run(parse), TypeError, "missing a required argument: 'file'"),
        (lambda w: w.run(parse, "a", strictly=1), TypeError, "unexpected keyword .*'strictly'"),
        (lambda w: w.run(parse, 7), Unfit, "parse: file: .*str"),
        (lambda w: w.run(merge, [1, "two"]), Unfit, "merge: parts: .*int"),
        (lambda w: w.run(merge, [w.run(anything, 1), "two"]), Unfit, "parts: at 1: .*int"),
        (lambda w: w.run(merge, w.run(cleanup)), Unfit, "a list, got <node 'cleanup'.* nothing"),
        (
            lambda w: w.run(parse, w.run(merge, [1])["lines"]),
            Unfit,
            "expected a text, got <output of 'merge' at /lines>, which will be a list",
        ),
        (
            lambda w: w.run(parse, w.run(merge, [1])["line"]),
            Unfit,
            "one of its members amount, lines, got 'line'",
        ),
        (
            lambda w: w.run(told, {"text": w.run(list_files), "number": 1}),
            Unfit,
            "about: at text: expected a text",
        ),
        (lambda w: w.run(anything, object()), Unfit, "anything: value: expected something JSON"),
        (lambda w: w.map(parse, over="abc"), Unfit, "expected a list to map over, got str"),
        (lambda w: w.map(parse, over=w.run(cleanup)), Unfit, "a list to map over, .* be nothing"),
        (lambda w: w.map(parse, over=["a", 2]), Unfit, "parse: over: 1: .*str"),
        (lambda w: w.map(merge, over=w.run(list_files)), Unfit, "a list, got <item>.* a text"),
        (lambda w: w.map(cleanup, over=[1]), TypeError, "a parameter of 'cleanup' for the element"),
        (lambda w: w.map(parse, over=["a"], fill=1), TypeError, "'parse' has no parameter fill"),
        (lambda w: w.map(parse, over=["a"], max_parallel=0), ValueError, "1 or more, got 0"),
        (lambda w: w.run(cleanup, when="sometimes"), ValueError, "all_success, .*'sometimes'"),
        (lambda w: w.run(cleanup, when="any_failed"), ValueError, "it could never run"),
        (lambda w: w.run(cleanup, gate="door"), ValueError, "approval, timer, signal, got 'door'"),
        (lambda w: w.run(cleanup, gate="timer"), ValueError, "a delay for a timer"),
        (lambda w: w.run(cleanup, gate=7), TypeError, "expected a gate such as approval"),
        (lambda w: w.run(cleanup, gate={"typ": "timer"}), TypeError, "a member of a gate .*'typ'"),
        (lambda w: w.run(cleanup, needs=w.run(cleanup)), TypeError, "a list of nodes in needs"),
        (lambda w: w.run(cleanup, needs=["x"]), TypeError, "expected nodes in needs, got 'x'"),
        (lambda w: w.run(cleanup, id="a b"), ValueError, "letters, digits"),
        (lambda w: [w.run(cleanup, id="x") for _ in "ab"], ValueError, "one node 'x' in 'flow'"),
        (lambda w: w.run(timed, 1, timeout=5), TypeError, "the argument 'timeout' of 'timed' by"),
        (lambda w: w.run(parse.configure(delay=1), "a"), TypeError, "to be configured .*'delay'"),
        (lambda w: w.run(anything, w.item), TypeError, r"expected w.item in the arguments of"),
        (lambda w: w.run(anything, w.signal), TypeError, "expected w.signal in a node with gate"),
    ],
)
def test_what_makes_no_sense_is_refused(
    describe: Callable[[Any], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        made(describe).definition()


@pytest.mark.parametrize(
    "look",
    [
        bool,
        len,
        list,
        lambda later: 1 in later,
        lambda later: later == 7,
        lambda later: later != 7,
        lambda later: later[-1],
        lambda later: later[True],
    ],
)
@pytest.mark.parametrize("part", [lambda node: node, lambda node: node["some"]])
def test_outputs_cannot_be_looked_at(
    look: Callable[[Any], object], part: Callable[[Node[Any]], Any]
) -> None:
    def flow(w: Any) -> None:
        look(part(w.run(anything, 1)))

    with pytest.raises(TypeError, match=r"expected .*(passed on to a task|a place from 0 on)"):
        made(flow).definition()


def test_nodes_of_another_workflow_are_refused() -> None:
    kept: list[Node[Any]] = []
    made(lambda w: kept.append(w.run(list_files))).definition()

    def needs(w: Any) -> None:
        w.run(cleanup, needs=kept)

    def takes(w: Any) -> None:
        w.run(anything, [kept[0]])

    for function in (needs, takes):
        with pytest.raises(ValueError, match="belongs to the workflow 'flow', got <node"):
            made(function).definition()
