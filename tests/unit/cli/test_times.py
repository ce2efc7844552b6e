"""Times as people write and read them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import click
import pytest

from betimes.cli.times import exact, milliseconds, moment_of, read_time, relative, span, zone_of

NOW = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
STOCKHOLM = ZoneInfo("Europe/Stockholm")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("now", "2026-03-28T12:00:00Z"),
        ("10m", "2026-03-28T12:10:00Z"),
        ("in 2h", "2026-03-28T14:00:00Z"),
        ("+1h30m", "2026-03-28T13:30:00Z"),
        ("-2h", "2026-03-28T10:00:00Z"),
        ("3d ago", "2026-03-25T12:00:00Z"),
        ("2026-03-28T20:00", "2026-03-28T19:00:00Z"),
        ("2026-03-30T20:00", "2026-03-30T18:00:00Z"),
        ("2026-03-30", "2026-03-29T22:00:00Z"),
        ("2026-03-28T20:00+05:30", "2026-03-28T14:30:00Z"),
        ("2026-03-28T20:00:00.5Z", "2026-03-28T20:00:00.500000Z"),
    ],
)
def test_a_time_is_read_as_it_is_meant(said: str, meant: str) -> None:
    assert read_time(said, now=NOW, zone=STOCKHOLM) == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("1h", "2026-03-28T11:00:00Z"),
        ("-1h", "2026-03-28T11:00:00Z"),
        ("1h ago", "2026-03-28T11:00:00Z"),
        ("+1h", "2026-03-28T13:00:00Z"),
        ("in 1h", "2026-03-28T13:00:00Z"),
        ("now", "2026-03-28T12:00:00Z"),
    ],
)
def test_where_one_looks_back_a_plain_span_lies_behind(said: str, meant: str) -> None:
    assert read_time(said, now=NOW, zone=UTC, behind=True) == meant


@pytest.mark.parametrize("said", ["", "tomorrow", "10", "10 m", "2026-13-01", "1h -"])
def test_what_is_no_time_is_refused_with_examples(said: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a time such as"):
        read_time(said, now=NOW, zone=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "now"), (0.4, "now"), (5, "in 5s"), (-65, "1m5s ago"), (3600, "in 1h"),
     (-7260, "2h1m ago"),
     (50 * 3600, "in 2d2h"), (-36 * 3600 * 24, "5w1d ago"), (400 * 86400, "in 400d"),
     (15 * 60, "in 15m")],
)  # fmt: skip
def test_distances_are_told_in_at_most_two_units(seconds: float, text: str) -> None:
    assert relative(NOW + timedelta(seconds=seconds), NOW) == text


def test_spans_and_milliseconds() -> None:
    assert span(0.5) == "0s"
    assert [milliseconds(value) for value in (3.4, 999, 1500, 61_000, 7_200_000)] == [
        "3ms", "999ms", "1.5s", "1m1s", "2h",
    ]  # fmt: skip


def test_a_moment_in_full_has_its_zone() -> None:
    assert exact(NOW, UTC) == "2026-03-28 12:00:00Z"
    assert exact(NOW, STOCKHOLM) == "2026-03-28 13:00:00+01:00"


def test_only_aware_times_are_moments() -> None:
    assert moment_of("2026-03-28T12:00:00Z") == NOW
    assert moment_of("2026-03-28T12:00:00") is None
    assert moment_of("not a time") is None
    assert moment_of(7) is None


def test_an_unknown_zone_is_refused() -> None:
    assert zone_of(None) is UTC
    with pytest.raises(click.BadParameter, match="expected an IANA time zone"):
        zone_of("Mars/Olympus")
