"""Durations: what may be written, what it means, how it is written again."""

import pytest

from betimes.domain.errors import BadSchedule
from betimes.schedule.duration import Duration, read_duration, read_period

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("source", "expected", "text"),
    [
        ("PT15M", (0, 0, 15 * MINUTE), "PT15M"),
        ("P1D", (0, 1, 0), "P1D"),
        ("P2W", (0, 14, 0), "P2W"),
        ("P1M", (1, 0, 0), "P1M"),
        ("P1Y", (12, 0, 0), "P1Y"),
        ("P0.5Y", (6, 0, 0), "P6M"),
        ("P1Y2M3W4DT5H6M7S", (14, 25, 5 * HOUR + 6 * MINUTE + 7 * SECOND), "P1Y2M25DT5H6M7S"),
        ("P1M7D", (1, 7, 0), "P1M7D"),
        ("PT1.5H", (0, 0, 90 * MINUTE), "PT1H30M"),
        ("PT0,25S", (0, 0, 250_000), "PT0.25S"),
        ("PT0.000001S", (0, 0, 1), "PT0.000001S"),
        ("PT36H", (0, 0, 36 * HOUR), "PT36H"),
        ("PT0S", (0, 0, 0), "PT0S"),
        ("1h30m", (0, 0, 90 * MINUTE), "PT1H30M"),
        ("2 days", (0, 2, 0), "P2D"),
        ("1 Week, and 2 Days", (0, 9, 0), "P9D"),
        ("1 year 1 month", (13, 0, 0), "P1Y1M"),
        ("1y 2mo 3w 4d 5h 6m 7s 8ms", (14, 25, 18_367_008_000), "P1Y2M25DT5H6M7.008S"),
        ("1 hr 2 mins 3 secs", (0, 0, HOUR + 2 * MINUTE + 3 * SECOND), "PT1H2M3S"),
        ("1.5 hours", (0, 0, 90 * MINUTE), "PT1H30M"),
        ("\t90s ", (0, 0, 90 * SECOND), "PT1M30S"),
        (90, (0, 0, 90 * SECOND), "PT1M30S"),
        (0.5, (0, 0, 500_000), "PT0.5S"),
        (0, (0, 0, 0), "PT0S"),
        ("P200Y", (2400, 0, 0), "P200Y"),
        ("P73200D", (0, 73_200, 0), "P73200D"),
        (73_200 * 86_400, (0, 0, 73_200 * 24 * HOUR), "PT1756800H"),
    ],
)
def test_durations(source: object, expected: tuple[int, int, int], text: str) -> None:
    """Months, days and elapsed time apart; written in one way, and read back the same."""
    duration = read_duration(source)
    assert (duration.months, duration.days, duration.micros) == expected
    assert str(duration) == text
    assert read_duration(text) == duration


@pytest.mark.parametrize(
    "source",
    [
        *(
            "",
            "P",
            "PT",
            "P1DT",
            "P1H",
            "PT1D",
            "P1",
            "1",
            "h",
            "1 x",
            "1h x",
            "x1h",
            "P-1D",
            "-1h",
        ),
        *("PT1.5H30M", "P1.5D", "1.5d", "0.5mo", "\n1h", "P1D\n", "1,5 hours"),
        *("P2401M", "P73201D", "P10458W", "PT1756801H", 73_200 * 86_400 + 1, -1, float("inf")),
        *(None, True, [1], "1h" * 129),
    ],
)
def test_no_durations(source: object) -> None:
    """Refused with the member that they stand in."""
    with pytest.raises(BadSchedule, match=r"^expected ") as caught:
        read_duration(source, "/every")
    assert caught.value.pointer == "/every"


def test_the_length_of_a_duration() -> None:
    """256 characters, of which no more are quoted."""
    assert read_duration("1h".ljust(256)) == Duration(micros=HOUR)
    with pytest.raises(BadSchedule, match=r"got 'x{256}'$"):
        read_duration("x" * 300)


def test_a_period_moves() -> None:
    """Zero does not."""
    assert read_period("1s", "/every") == Duration(micros=SECOND)
    with pytest.raises(BadSchedule, match="longer than zero, got 'P0D'") as caught:
        read_period("P0D", "/every")
    assert caught.value.pointer == "/every"


def test_elapsed_time() -> None:
    """A day is 24 hours here; a month has no length."""
    assert read_duration("P1DT1S").elapsed() == 24 * HOUR + SECOND
    with pytest.raises(BadSchedule, match="without months or years, got P1M1D") as caught:
        read_duration("P1M1D").elapsed("/jitter")
    assert caught.value.pointer == "/jitter"


def test_what_a_stopwatch_can_measure() -> None:
    """Neither days nor months."""
    assert [read_duration(text).is_elapsed for text in ("PT1H", "P1D", "P1M", "PT0S")] == [
        *(True, False, False, True),
    ]
    assert [read_duration(text).is_zero for text in ("PT1S", "P1D", "P1M", "PT0S")] == [
        *(False, False, False, True),
    ]
