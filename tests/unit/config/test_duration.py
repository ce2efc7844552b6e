"""Durations read as people write them and show as the shortest text that reads back."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.config.duration import read_duration, show_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("250ms", 0.25),
        ("2d", 172_800),
        ("1w", 604_800),
        ("PT15M", 900),
        ("pt0.5s", 0.5),
        ("P1DT12H", 129_600),
        ("P2W", 1_209_600),
        ("900", 900),
        ("0.1", 0.1),
        ("0", 0),
        (" 15s ", 15),
    ],
)
def test_every_way_of_writing_is_understood(text: str, seconds: float) -> None:
    assert read_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["", "s", "-5s", "15 parsecs", "P", "PT", "P1M", "P1Y", "1e9", "nan", "5m5", "٣s", "9" * 70],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        read_duration(text)


def test_more_than_a_timedelta_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not a duration"):
        read_duration("999999999999w")


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_shown_durations_read_back(duration: timedelta) -> None:
    assert read_duration(show_duration(duration)) == duration


@given(st.text(max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        assert read_duration(text) >= timedelta(0)
    except ValueError as error:
        assert str(error) == "not a duration"  # noqa: PT017 -- either answer is fine, a crash is not
