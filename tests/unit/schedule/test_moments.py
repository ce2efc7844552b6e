"""Points in time: what may be written, what it means, how it is written again."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from betimes.domain.errors import BadSchedule, BadZone
from betimes.schedule import tzdata_release, zone
from betimes.schedule.dst import Dst
from betimes.schedule.fire import spread
from betimes.schedule.moment import Moment, moment_text, read_moment, resolve, to_datetime, to_local
from facts_kit import parse, utc

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-24T15:00:00Z", "2026-12-24T15:00"),
        ("2026-12-24t15:00:00z", "2026-12-24T15:00"),
        ("2026-12-24 15:00Z", "2026-12-24T15:00"),
        ("20261224T150000Z", "2026-12-24T15:00"),
        ("2026-12-24T15Z", "2026-12-24T15:00"),
        ("2026-W52-4T15:00Z", "2026-12-24T15:00"),
        ("2026W524T15Z", "2026-12-24T15:00"),
        ("2026-358T15:00Z", "2026-12-24T15:00"),
        ("2024-366T00:00Z", "2024-12-31T00:00"),
        ("2026-12-24T15:00:00+01:00", "2026-12-24T14:00"),
        ("2026-12-24T15:00:00+0130", "2026-12-24T13:30"),
        ("2026-12-24T15:00:00+01", "2026-12-24T14:00"),
        ("2026-12-24T15:00:00-05:00", "2026-12-24T20:00"),
        ("2026-12-24T15:00:00-03:30", "2026-12-24T18:30"),
        ("2026-12-24T15:00:00-00:30", "2026-12-24T15:30"),
        ("2026-12-24T00:00:00+23:59", "2026-12-23T00:01"),
        ("2026-12-24T15:00:00.5Z", "2026-12-24T15:00:00.5"),
        ("2026-12-24T15:00:00,25Z", "2026-12-24T15:00:00.25"),
        ("2026-12-24T15:00:00.000001Z", "2026-12-24T15:00:00.000001"),
        ("2026-12-24T15:00:00.1234567Z", "2026-12-24T15:00:00.123456"),
        ("\t2026-12-24T15:00Z ", "2026-12-24T15:00"),
        ("1900-01-01T00:00Z", "1900-01-01T00:00"),
        ("2199-12-31T00:00Z", "2199-12-31T00:00"),
        ("2026-12-24T23:59:59Z", "2026-12-24T23:59:59"),
    ],
)
def test_times_with_an_offset(text: str, expected: str) -> None:
    """Calendar, week and ordinal dates; hours alone; offsets on both sides of Greenwich."""
    instant = read_moment(text).instant(zone(BERLIN))
    assert instant is not None
    assert to_datetime(instant) == utc(expected)


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-24T24:00Z",
        "2026-12-24T15:60Z",
        "2026-12-24T15:00:60Z",
        "2026-366T00:00Z",
        "2026-000T00:00Z",
        "2026-W54-1T00:00Z",
        "2026-W52-8T00:00Z",
        "2026-02-29",
        "1899-12-31T00:00Z",
        "2200-01-01T00:00Z",
        "2026-12-24T15:00+24:00",
        "2026-12-24T15:00+01:60",
        "\n2026-12-24T15:00Z",
        "X2026-12-24T15:00Z",
        "",
    ],
)
def test_times_that_are_none(text: str) -> None:
    """Out of range, out of shape."""
    with pytest.raises(BadSchedule):
        read_moment(text)


def test_a_long_text_is_not_quoted_whole() -> None:
    """Sixty-four characters show what was meant."""
    with pytest.raises(BadSchedule, match=r"got 'x{64}'$") as caught:
        read_moment("x" * 100)
    assert caught.value.pointer == ""


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("2026-12-24", "2026-12-24T00:00:00"),
        ("2026-12-24T15:00:00.25", "2026-12-24T15:00:00.250000"),
        ("2026-12-24T15:00+00:00", "2026-12-24T15:00:00Z"),
        ("2026-12-24T15:00+05:45", "2026-12-24T15:00:00+05:45"),
        ("2026-12-24T15:00-09:30", "2026-12-24T15:00:00-09:30"),
        ("2026-12-24T15:00+00:01", "2026-12-24T15:00:00+00:01"),
    ],
)
def test_times_are_written_as_they_were_meant(text: str, again: str) -> None:
    """With an offset if there was one, and read back the same."""
    moment = read_moment(text)
    assert moment_text(moment) == again
    assert read_moment(again) == moment


def test_datetimes_are_moments() -> None:
    """An aware one brings its offset, a naive one leaves it to the zone."""
    eastern = timezone(timedelta(hours=-5))
    aware = read_moment(datetime(2026, 12, 24, 15, tzinfo=eastern))
    naive = read_moment(datetime(2026, 12, 24, 15))  # noqa: DTZ001 -- a wall clock

    assert aware == read_moment("2026-12-24T15:00-05:00")
    assert naive == read_moment("2026-12-24T15:00")


def test_microseconds_are_kept_in_a_zone() -> None:
    """A wall clock reading with a fraction, to the microsecond."""
    instant = read_moment("2026-07-01T12:00:00.25").instant(zone(BERLIN))
    assert instant is not None
    assert to_datetime(instant) == utc("2026-07-01T10:00:00.25")


def test_the_epoch_and_what_came_before() -> None:
    """Negative instants are times like any other."""
    assert to_datetime(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert to_datetime(1_000_000) == utc("1970-01-01T00:00:01")
    assert to_datetime(-1) == utc("1969-12-31T23:59:59.999999")
    assert to_local(0, zone("Asia/Kolkata")).isoformat() == "1970-01-01T05:30:00+05:30"


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [("first", ["00:30"]), ("second", ["01:30"]), ("both", ["00:30", "01:30"])],
)
def test_a_reading_the_clock_shows_twice(overlap: str, expected: list[str]) -> None:
    """Half past two in Berlin, in summer time, in winter time, or both."""
    found = resolve(zone(BERLIN), _local("2026-10-25T02:30"), Dst("skip", overlap))
    assert [to_datetime(second * 1_000_000).strftime("%H:%M") for second in found] == expected


@pytest.mark.parametrize(
    ("name", "local", "gap", "expected"),
    [
        (BERLIN, "2026-03-29T02:30", "shift", ["2026-03-29T01:30"]),
        (BERLIN, "2026-03-29T02:30", "next", ["2026-03-29T01:00"]),
        (BERLIN, "2026-03-29T02:30", "skip", []),
        ("America/New_York", "2026-03-08T02:00", "shift", ["2026-03-08T07:00"]),
        ("America/New_York", "2026-03-08T02:59", "shift", ["2026-03-08T07:59"]),
        ("America/New_York", "2026-03-08T02:30", "next", ["2026-03-08T07:00"]),
        # For good: the offset before the gap is not the one after the next change.
        ("Asia/Pyongyang", "2018-05-04T23:45", "shift", ["2018-05-04T15:15"]),
        ("Europe/Moscow", "2011-03-27T02:30", "shift", ["2011-03-26T23:30"]),
        ("Asia/Singapore", "1981-12-31T23:45", "shift", ["1981-12-31T16:15"]),
    ],
)
def test_out_of_a_gap(name: str, local: str, gap: str, expected: list[str]) -> None:
    """Shifted by the size of the gap, to its end, or nowhere."""
    found = resolve(zone(name), _local(local), Dst(gap, "first"))
    assert [to_datetime(second * 1_000_000) for second in found] == [utc(e) for e in expected]


def _local(text: str) -> int:
    return read_moment(text).local // 1_000_000


def test_a_zone_nobody_knows() -> None:
    """The release is part of the answer, for a name may be younger than it."""
    with pytest.raises(BadZone) as caught:
        parse("0 9 * * *", timezone="Mars/Base")
    assert str(caught.value) == (
        f"expected an IANA time zone of tzdata {tzdata_release()}, such as Europe/Stockholm, "
        "got 'Mars/Base'"
    )
    assert caught.value.pointer == "/timezone"


def test_a_pick_stays_in_its_width() -> None:
    """Whole milliseconds below the width, the same everywhere and always."""
    assert [spread("job", "window", width) for width in (0, 999, 1000, 1999)] == [0, 0, 0, 0]
    picks = {spread("job", str(n), 3_000) for n in range(40)}
    assert picks == {0, 1000, 2000}
    assert spread("job", "window", 60_000_000) == 25_261_000


def test_a_moment_without_a_policy_shifts() -> None:
    """As RFC 5545 3.3.5 says."""
    assert Moment(read_moment("2026-03-29T02:30").local, None).instant(zone(BERLIN)) == (
        read_moment("2026-03-29T01:30Z").instant(zone("UTC"))
    )
