"""Traces of callers and of runs."""

from uuid import UUID

import pytest

from betimes.domain.trace import read_traceparent, read_tracestate, trace_of, traceparent_of

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
RUN = UUID("019b76da-a800-8000-8000-000000000001")


def test_a_parent_is_read_and_later_versions_too() -> None:
    assert read_traceparent(PARENT) == PARENT
    assert read_traceparent(f" {PARENT[:-2]}00 ") == PARENT
    assert read_traceparent(f"cc{PARENT[2:]}-more") == PARENT


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "x",
        PARENT.upper(),
        PARENT[:-1],
        f"ff{PARENT[2:]}",
        f"{PARENT}-more",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        f"cc{PARENT[2:]}-{'x' * 200}",
    ],
)
def test_what_is_none_is_ignored(text: str | None) -> None:
    assert read_traceparent(text) is None


def test_attempts_are_spans_of_one_trace() -> None:
    first, second = traceparent_of(RUN, 1), traceparent_of(RUN, 2)
    assert first != second
    assert first == traceparent_of(RUN, 1)
    assert {read_traceparent(one) for one in (first, second)} == {first, second}
    assert first.split("-")[1] == second.split("-")[1] == trace_of(RUN)


def test_a_state_is_kept_whole_or_not_at_all() -> None:
    assert read_tracestate(" a=1 ,, b@c=2 ") == "a=1,b@c=2"
    wrong = (
        None,
        "",
        "a",
        "A=1",
        "a=1,b",
        "a=" + "x" * 512,
        ",".join(f"k{n}=1" for n in range(33)),
    )
    assert [read_tracestate(text) for text in wrong] == [None] * len(wrong)
