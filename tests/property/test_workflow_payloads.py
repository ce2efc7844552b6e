"""Payloads of nodes mean what was written, whatever it looks like."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from betimes.sdk.builder import WorkflowBuilder
from betimes.sdk.payloads import argument_of
from betimes.sdk.reference import OUTPUT, Reference
from betimes.workflow.reference import Values, references, resolve

NAMES = st.sampled_from(["a", "path", "$output", "$input", "$literal", "$", "~/", ""])
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
PLAIN = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from(["a", "b/c", "~"]) | st.integers(0, 2), max_size=3)


def nobody_knows(_later: Any) -> None:
    """What it will be."""


@given(PLAIN)
def test_a_literal_is_itself_again(value: Any) -> None:
    written, found = argument_of(value, Any, "it", nobody_knows)
    assert not found
    assert list(references(written)) == []
    assert resolve(written, Values()) == value


@given(STEPS, st.lists(PLAIN, max_size=3))
def test_a_reference_leads_to_its_part_wherever_it_stands(
    steps: list[str | int], beside: list[Any]
) -> None:
    reference = Reference(WorkflowBuilder("flow"), OUTPUT, "node")
    output: Any = "found"
    for step in reversed(steps):
        output = [output] * 3 if isinstance(step, int) else {step: output, "other": 1}
    for step in steps:
        reference = reference[step]
    value = {"beside": beside, "in": [reference, {"deep": reference}]}
    written, found = argument_of(value, Any, "it", nobody_knows)
    assert len(found) == 2
    sent = msgspec.json.decode(msgspec.json.encode(written))
    told = resolve(sent, Values(outputs={"node": output}))
    assert told == {"beside": beside, "in": ["found", {"deep": "found"}]}
