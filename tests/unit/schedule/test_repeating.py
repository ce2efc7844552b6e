"""ISO 8601 repeating intervals: their parts, and what is wrong with them."""

import pytest

from betimes.domain.errors import Invalid, TooLarge
from betimes.schedule import fire_times
from betimes.schedule.iso8601 import read_repeating
from facts_kit import utc


@pytest.mark.parametrize(
    "text",
    [
        "R/2026-13-01/P1D",
        "R/2026-01-01/P1",
        "R/2026-01-01/P1D/soon",
        "\nR/2026-01-01/P1D",
        "XR/2026-01-01/P1D",
        "R/2026-01-01/P1D/2026-02-01/2026-03-01",
    ],
)
def test_every_part_is_looked_at(text: str) -> None:
    """Wherever the mistake stands, it stands in the expression."""
    with pytest.raises(Invalid) as caught:
        read_repeating(text)
    assert caught.value.pointer == "/expr"


def test_the_length_of_an_interval() -> None:
    """256 characters, blanks included."""
    longest = "R2/2026-01-01T00:00Z/P1D".ljust(256)
    assert read_repeating(longest).count == 2
    with pytest.raises(TooLarge, match=r"^expected at most 256 characters, got 257$") as caught:
        read_repeating(longest + " ")
    assert caught.value.pointer == "/expr"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R1/2026-01-01T00:00Z/PT1H", ["01 00:00"]),
        ("R3/2026-01-01T00:00Z/PT1H", ["01 00:00", "01 01:00", "01 02:00"]),
        ("R/2026-01-01T00:00Z/PT1H/2026-01-01T01:00Z", ["01 00:00", "01 01:00"]),
        ("R9/2026-01-01T00:00Z/P1DT12H/2026-01-05T00:00Z", ["01 00:00", "02 12:00", "04 00:00"]),
        ("R0/2026-01-01T00:00Z/PT1H", []),
    ],
)
def test_how_often(text: str, expected: list[str]) -> None:
    """`Rn` is n occurrences in all, an end is the last instant that counts."""
    found = fire_times(text, "UTC", utc("2025-12-31"), 9, kind="iso8601")
    assert [moment.strftime("%d %H:%M") for moment in found] == expected
