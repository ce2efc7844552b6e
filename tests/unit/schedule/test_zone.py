"""Zones come from the pinned release, and agree with the standard library about it."""

from datetime import UTC, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

import pytest
import tzdata  # type: ignore[import-untyped]

from betimes.domain.errors import BadZone, Bug
from betimes.schedule import tzdata_release, zone, zone_names
from betimes.schedule.tzif import BEGINNING, Transitions, read
from betimes.schedule.zone import Zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_the_release_is_known() -> None:
    """Its name is stored beside every computed fire time."""
    assert tzdata_release() == tzdata.IANA_VERSION
    assert len(zone_names()) > 590


def test_every_zone_agrees_with_zoneinfo_at_every_change() -> None:
    """Around each change until 2199: one second before it, and at it."""
    for name in sorted(zone_names()):
        with resources.files(tzdata).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            info = ZoneInfo.from_file(file, key=name)
        found = zone(name)
        for start in found.starts[1:]:
            for second in (start - 1, start):
                there = (EPOCH + timedelta(seconds=second)).astimezone(info).utcoffset()
                assert there == timedelta(seconds=found.offset(second)), (name, second)


def test_rules_go_on_beyond_the_file() -> None:
    """Berlin changes twice a year until the end of our time; Tokyo never again."""
    berlin, tokyo = zone("Europe/Berlin"), zone("Asia/Tokyo")
    year_2150 = int(datetime(2150, 1, 1, tzinfo=UTC).timestamp())
    assert len(berlin.changes(year_2150, year_2150 + 366 * 86_400)) == 2
    assert len(tokyo.changes(0, year_2150)) == 0


def test_local_times_have_none_one_or_two_instants() -> None:
    """In a gap, ordinarily, in an overlap."""
    berlin = zone("Europe/Berlin")

    def local(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())

    assert berlin.instants(local("2026-03-29T02:30")) == ()
    assert berlin.instants(local("2026-03-29T01:59:59")) == (local("2026-03-29T00:59:59"),)
    assert berlin.instants(local("2026-03-29T03:00")) == (local("2026-03-29T01:00"),)
    assert len(berlin.instants(local("2026-10-25T02:00"))) == 2
    assert len(berlin.instants(local("2026-10-25T02:59:59"))) == 2
    assert len(berlin.instants(local("2026-10-25T03:00"))) == 1
    assert berlin.starts[berlin.gap_around(local("2026-03-29T02:30"))] == local("2026-03-29T01:00")


def test_zones_are_shared_and_named_as_asked() -> None:
    """An alias is a zone of its own name with the same rules."""
    assert zone("US/Eastern") is zone("US/Eastern")
    assert zone("US/Eastern").starts == zone("America/New_York").starts
    assert repr(zone("US/Eastern")) == "Zone('US/Eastern')"


def test_unknown_zones_say_which_release_was_asked() -> None:
    """The sentence names the release, because the next one may know the zone."""
    with pytest.raises(BadZone, match=rf"tzdata {tzdata_release()}.*got 'Mars/Olympus'"):
        zone("Mars/Olympus")


@pytest.mark.parametrize(
    "content",
    [b"TZif" + b"\0" * 40 + b"nope" + b"\0" * 40, b"x" * 88],
)
def test_broken_zone_data_is_a_bug(content: bytes) -> None:
    """Not a user's fault, and never read half."""
    with pytest.raises(Bug):
        read(content)


def test_two_gaps_on_neighbouring_days() -> None:
    """Each reading belongs to its own gap, from the first second of it to the last."""
    twice = Zone("Twice", Transitions((BEGINNING, 0, 86_400), (-3600, 0, 3600)))

    assert [twice.gap_around(local) for local in (-3600, -1, 86_400, 89_999)] == [1, 1, 2, 2]
    assert twice.instants(-3601) == (-1,)
    assert twice.instants(-3600) == twice.instants(86_400) == twice.instants(89_999) == ()
    assert twice.instants(0) == (0,)
    assert twice.instants(90_000) == (86_400,)


def test_changes_within_a_span() -> None:
    """Later than its beginning, through its end; the beginning of time is no change."""
    twice = Zone("Twice", Transitions((BEGINNING, 0, 86_400), (-3600, 0, 3600)))

    assert list(twice.changes(BEGINNING, 86_400)) == [1, 2]
    assert list(twice.changes(-1, 86_399)) == [1]
    assert list(twice.changes(0, 86_400)) == [2]
    assert list(twice.changes(BEGINNING, -1)) == []
