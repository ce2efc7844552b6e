"""What handlers return and raise, as outcomes."""

import json

import pytest

from betimes.domain.outcome import Cancelled, ErrorFacts, Failed, Outcome, Released, Succeeded
from betimes.executing.returned import RESULT_BYTES_MAX, failure_of, outcome_of


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (None, Succeeded(None)),
        (b"raw", Succeeded(b"raw")),
        ({"a": [1, True]}, Succeeded(b'{"a":[1,true]}')),
        ("text", Succeeded(b'"text"')),
        (Cancelled("enough"), Cancelled("enough")),
        (Failed(ErrorFacts("A", "b")), Failed(ErrorFacts("A", "b"))),
    ],
)
def test_values_become_outcomes(value: object, outcome: Outcome) -> None:
    assert outcome_of(value) == outcome


def test_what_json_cannot_hold_is_a_failure_for_good() -> None:
    outcome = outcome_of(object())
    assert isinstance(outcome, Failed)
    assert not outcome.retryable


def test_a_handler_cannot_release_itself() -> None:
    assert isinstance(outcome_of(Released()), Failed)


def test_a_large_result_is_dropped_with_a_note() -> None:
    outcome = outcome_of(Succeeded(b"x" * (RESULT_BYTES_MAX + 1)))
    assert isinstance(outcome, Succeeded)
    assert outcome.result is not None
    assert json.loads(outcome.result)["bytes"] == RESULT_BYTES_MAX + 1


def test_an_error_carries_type_message_and_stack() -> None:
    with pytest.raises(KeyError) as caught:
        json.loads("{}")["missing"]
    facts = failure_of(caught.value).error
    assert (facts.type, facts.message) == ("KeyError", "'missing'")
    assert "test_returned.py" in facts.stack


def test_an_error_without_words_is_an_error_all_the_same() -> None:
    assert failure_of(Unreadable()).error.message == "(its message could not be read)"
