"""References in payloads."""

from typing import Any

import pytest

from betimes.domain.errors import Invalid
from betimes.workflow.reference import (
    DEPTH_MAX,
    Missing,
    Reference,
    Source,
    Values,
    references,
    resolve,
)

VALUES = Values(
    input={"who": "me", "a/b": {"~": 7}},
    outputs={"list": [{"n": 1}, {"n": 2}], "none": None},
    ended_without=frozenset({"gone"}),
    item=["x", "y"],
    signal={"ok": True},
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        ("$output", "$output"),
        ({"$input": ""}, VALUES.input),
        ({"$input": "/who"}, "me"),
        ({"$input": "/a~1b/~0"}, 7),
        ({"$output": "list"}, [{"n": 1}, {"n": 2}]),
        ({"$output": "list", "path": "/1/n"}, 2),
        ({"$output": "none"}, None),
        ({"$output": "gone", "path": "/any/where"}, None),
        ({"$item": "/0"}, "x"),
        ({"$signal": "/ok"}, True),
        ({"a": [{"b": {"$item": ""}}, 1]}, {"a": [{"b": ["x", "y"]}, 1]}),
        ({"$literal": {"$output": "list"}}, {"$output": "list"}),
        ({"a": {"$literal": {"$any": 1}}}, {"a": {"$any": 1}}),
    ],
)
def test_references_are_replaced(value: Any, expected: Any) -> None:
    """By what they lead to, at any depth; everything else stays."""
    assert resolve(value, VALUES) == expected


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"$input": "/nobody"}, "expected '/nobody' in the input, found nothing at 'nobody'"),
        ({"$output": "list", "path": "/2"}, "in the output of 'list', found nothing at '2'"),
        ({"$output": "list", "path": "/01"}, "found nothing at '01'"),
        ({"$output": "list", "path": "/-"}, "found nothing at '-'"),
        ({"$output": "list", "path": "/0/n/x"}, "found nothing at 'x'"),
        ({"$item": "/x"}, "in the item, found nothing"),
    ],
)
def test_a_reference_to_nothing_is_told(value: Any, sentence: str) -> None:
    """Which, and where it stopped."""
    with pytest.raises(Missing, match=sentence):
        resolve({"deep": value}, VALUES)


def test_references_are_found_with_their_places() -> None:
    """But not inside of literals."""
    found = list(
        references({"a": [{"$output": "n", "path": "/p"}], "b": {"$literal": {"$item": ""}}}, "/x")
    )

    assert found == [Reference(Source.OUTPUT, "n", "/p", "/x/a/0")]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"$output": "a", "more": 1}, "a reference alone, got"),
        ({"$input": "", "path": "/a"}, "a reference alone"),
        ({"$output": "a", "$input": ""}, "a reference alone"),
        ({"$literal": 1, "a": 1}, "literal alone"),
        ({"$output": 5}, "expected text"),
        ({"$input": "a"}, "begins with /"),
        ({"$output": "a", "path": 5}, "begins with /"),
        ({"$ref": "a"}, "got '\\$ref'"),
    ],
)
def test_what_is_nearly_a_reference_is_refused(value: Any, sentence: str) -> None:
    """A slip of the pen is no payload."""
    with pytest.raises(Invalid, match=sentence) as caught:
        list(references([value], "/payload"))

    assert caught.value.pointer == "/payload/0"


def test_what_is_nested_too_deep_is_refused() -> None:
    """With a sentence and not with an exhausted stack."""
    value: Any = 1
    for _ in range(DEPTH_MAX):
        value = [value]
    assert list(references(value)) == []

    with pytest.raises(Invalid, match="at most 64 levels"):
        list(references([value]))
