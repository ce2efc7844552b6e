"""The error tree is as drawn, and every refusal has a stable code."""

import inspect
import re

import pytest

from betimes.domain import errors
from betimes.domain.errors import Refused, SchedulerError

CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, SchedulerError)
}


def test_the_drawing_names_every_class() -> None:
    assert errors.__doc__ is not None
    tree = errors.__doc__.split("What happened")[0]
    drawn = {word for word in re.findall(r"[A-Z]\w+", tree) if word in CLASSES}
    assert drawn == set(CLASSES)


@pytest.mark.parametrize("kind", [k for k in CLASSES.values() if issubclass(k, Refused)])
def test_a_refusal_has_its_own_stable_code(kind: type[Refused]) -> None:
    codes = [other.default_code for other in CLASSES.values() if issubclass(other, Refused)]
    assert re.fullmatch(r"[a-z_]+", kind.default_code)
    assert codes.count(kind.default_code) == 1


def test_a_refusal_carries_sentence_code_and_pointer() -> None:
    refusal = errors.BadSchedule("expected x, got y", code="cron_field_range", pointer="/schedule")
    assert str(refusal) == refusal.sentence == "expected x, got y"
    assert (refusal.code, refusal.pointer) == ("cron_field_range", "/schedule")
    ambiguous = errors.AmbiguousText("which?", alternatives=("a", "b"))
    assert ambiguous.alternatives == ("a", "b")
    assert ambiguous.code == "ambiguous_text"
