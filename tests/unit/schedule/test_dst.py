"""DST as tables of wall-clock facts: the zone's fact first, then what each job does."""

import pytest

from facts_kit import cron, fire_times, flagged, parse, utc, wall

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 2 * * *", ["29 03:00+0200", "30 02:30+0200"]),
        ("0 30 2 * * *", ["29 03:00+0200", "30 02:30+0200"]),
        ("0,30 2 * * *", ["29 03:00+0200", "30 02:00+0200", "30 02:30+0200"]),
        ("20-50/10 2 * * *", ["29 03:00+0200", "30 02:20+0200"]),
        ("30 1,2,3 * * *", ["29 01:30+0100", "29 03:00+0200", "29 03:30+0200"]),
        ("0,30 2,3 * * *", ["29 03:00+0200", "29 03:30+0200", "30 02:00+0200"]),
        ("30 * * * *", ["29 00:30+0100", "29 01:30+0100", "29 03:30+0200", "29 04:30+0200"]),
        ("*/30 2 * * *", ["30 02:00+0200", "30 02:30+0200"]),
        ("0 */2 * * *", ["29 00:00+0100", "29 04:00+0200", "29 06:00+0200"]),
        ("* 30 2 * * *", ["30 02:30+0200"]),
        ("@daily", ["29 00:00+0100", "30 00:00+0200"]),
        ("@hourly", ["29 00:00+0100", "29 01:00+0100", "29 03:00+0200"]),
    ],
)
def test_the_gap_in_berlin(expression: str, expected: list[str]) -> None:
    """2026-03-29, 02:00 becomes 03:00: fixed jobs run at 03:00 once, wild ones see real time."""
    assert cron(expression, BERLIN, "2026-03-28T22:59", len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 2 * * *", ["25 02:30+0200", "26 02:30+0100"]),
        ("0 30 2 * * *", ["25 02:30+0200", "26 02:30+0100"]),
        ("0,30 2 * * *", ["25 02:00+0200", "25 02:30+0200", "26 02:00+0100"]),
        ("30 1,2,3 * * *", ["25 01:30+0200", "25 02:30+0200", "25 03:30+0100"]),
        ("30 * * * *", ["25 00:30+0200", "25 01:30+0200", "25 02:30+0200", "25 02:30+0100"]),
        ("*/30 2 * * *", ["25 02:00+0200", "25 02:30+0200", "25 02:00+0100", "25 02:30+0100"]),
        ("0 */2 * * *", ["25 00:00+0200", "25 02:00+0200", "25 02:00+0100", "25 04:00+0100"]),
    ],
)
def test_the_overlap_in_berlin(expression: str, expected: list[str]) -> None:
    """2026-10-25, 03:00 becomes 02:00: fixed jobs run in the first pass, wild ones in both."""
    assert cron(expression, BERLIN, "2026-10-24T21:59", len(expected)) == expected


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ("next", ["29 03:00+0200", "30 02:15+0200"]),
        ("skip", ["30 02:15+0200", "30 02:45+0200"]),
        ("shift", ["29 03:15+0200", "29 03:45+0200", "30 02:15+0200"]),
    ],
)
def test_gap_policies(gap: str, expected: list[str]) -> None:
    """At the end of the gap, not at all, or later by its size."""
    found = cron("15,45 2 * * *", BERLIN, "2026-03-28T12:00", len(expected), {"gap": gap})
    assert found == expected


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("first", ["25 02:15+0200", "25 02:45+0200", "26 02:15+0100"]),
        ("second", ["25 02:15+0100", "25 02:45+0100", "26 02:15+0100"]),
        ("both", ["25 02:15+0200", "25 02:45+0200", "25 02:15+0100", "25 02:45+0100"]),
    ],
)
def test_overlap_policies(overlap: str, expected: list[str]) -> None:
    """The first pass, the second, or both."""
    policy = {"overlap": overlap}
    assert cron("15,45 2 * * *", BERLIN, "2026-10-24T12:00", len(expected), policy) == expected


def test_a_said_policy_rules_wild_jobs_too() -> None:
    """Real time is only what a wild job does when nothing is said."""
    gap = cron("*/30 2 * * *", BERLIN, "2026-03-28T12:00", 2, {"gap": "next"})
    overlap = cron("*/30 2 * * *", BERLIN, "2026-10-24T12:00", 3, {"overlap": "first"})

    assert gap == ["29 03:00+0200", "30 02:00+0200"]
    assert overlap == ["25 02:00+0200", "25 02:30+0200", "26 02:00+0100"]


def test_shifted_and_natural_times_merge_in_order() -> None:
    """`shift` puts 02:30 at 03:30, between what runs there anyway, and never twice."""
    found = cron("0,30 2,3 * * *", BERLIN, "2026-03-29T00:00", 3, {"gap": "shift"})
    assert found == ["29 03:00+0200", "29 03:30+0200", "30 02:00+0200"]
    found = cron("15 2 * * *", BERLIN, "2026-03-29T01:10", 1, {"gap": "shift"})
    assert found == ["29 03:15+0200"]


@pytest.mark.parametrize(
    ("zone", "start", "expression", "expected"),
    [
        # New York, 2026-03-08 02:00 -> 03:00 and 2026-11-01 02:00 -> 01:00.
        ("America/New_York", "2026-03-08T00:00", "30 2 * * *", ["08 03:00-0400", "09 02:30-0400"]),
        ("America/New_York", "2026-11-01T00:00", "30 1 * * *", ["01 01:30-0400", "02 01:30-0500"]),
        # St John's, half past: 2010-03-14 00:01 -> 01:01, 2010-11-07 00:01 -> 23:01.
        ("America/St_Johns", "2010-03-14T03:00", "0 1 * * *", ["14 01:01-0230", "15 01:00-0230"]),
        (
            "America/St_Johns",
            "2010-11-07T00:28",
            "30 */2 * * *",
            ["06 22:30-0230", "07 00:30-0330", "07 02:30-0330"],
        ),
        # Lord Howe, half an hour: 2026-10-04 02:00 -> 02:30, 2026-04-05 02:00 -> 01:30.
        ("Australia/Lord_Howe", "2026-10-03T12:00", "15 2 * * *", ["04 02:30+1100"]),
        (
            "Australia/Lord_Howe",
            "2026-10-03T15:00",
            "*/20 * * * *",
            ["04 01:40+1030", "04 02:40+1100", "04 03:00+1100"],
        ),
        (
            "Australia/Lord_Howe",
            "2026-04-04T14:20",
            "*/20 * * * *",
            ["05 01:40+1100", "05 01:40+1030", "05 02:00+1030"],
        ),
        (
            "Australia/Lord_Howe",
            "2026-04-04T12:00",
            "45 1 * * *",
            ["05 01:45+1100", "06 01:45+1030"],
        ),
        # Santiago, midnight: 2026-09-06 00:00 -> 01:00, 2026-04-05 00:00 -> 23:00.
        ("America/Santiago", "2026-09-05T12:00", "0 0 * * *", ["06 01:00-0300", "07 00:00-0300"]),
        ("America/Santiago", "2026-04-04T12:00", "30 23 * * *", ["04 23:30-0300", "05 23:30-0400"]),
        # Auckland: 2026-09-27 02:00 -> 03:00, 2026-04-05 03:00 -> 02:00.
        ("Pacific/Auckland", "2026-09-26T10:00", "30 2 * * *", ["27 03:00+1300", "28 02:30+1300"]),
        ("Pacific/Auckland", "2026-04-04T10:00", "30 2 * * *", ["05 02:30+1300", "06 02:30+1200"]),
        # Chatham, quarter to: 2026-09-27 02:45 -> 03:45.
        ("Pacific/Chatham", "2026-09-26T10:00", "0 3 * * *", ["27 03:45+1345", "28 03:00+1345"]),
        # Cairo, midnight: 2026-04-24 00:00 -> 01:00.
        ("Africa/Cairo", "2026-04-23T12:00", "0 0 * * *", ["24 01:00+0300", "25 00:00+0300"]),
        # Casey, three hours: 2020-10-04 00:01 -> 03:01, and back on 2021-03-14 00:00 -> 21:00.
        ("Antarctica/Casey", "2020-10-03T12:00", "30 1 * * *", ["04 03:01+1100", "05 01:30+1100"]),
        ("Antarctica/Casey", "2021-03-13T10:30", "0 22 * * *", ["13 22:00+1100", "14 22:00+0800"]),
        # Troll, two hours: 2026-03-29 01:00 -> 03:00.
        ("Antarctica/Troll", "2026-03-28T12:00", "30 2 * * *", ["29 03:00+0200", "30 02:30+0200"]),
        # Dublin, negative DST: only the offset matters.
        ("Europe/Dublin", "2026-03-28T12:00", "30 1 * * *", ["29 02:00+0100", "30 01:30+0100"]),
        # Caracas moved its base by half an hour for good, 2016-05-01 02:30 -> 03:00.
        ("America/Caracas", "2016-04-30T12:00", "45 2 * * *", ["01 03:00-0400", "02 02:45-0400"]),
        ("America/Caracas", "2016-05-01T05:00", "0 */3 * * *", ["01 03:00-0400", "01 06:00-0400"]),
        # Pyongyang, 2015-08-15 00:00 -> 23:30: a fixed job in the half hour runs once.
        ("Asia/Pyongyang", "2015-08-14T10:00", "45 23 * * *", ["14 23:45+0900", "15 23:45+0830"]),
        # Kathmandu, 1986-01-01 00:00 -> 00:15.
        ("Asia/Kathmandu", "1985-12-31T12:00", "5 0 * * *", ["01 00:15+0545", "02 00:05+0545"]),
        # Sao Paulo abolished DST in 2019: midnight is midnight again.
        ("America/Sao_Paulo", "2018-11-03T12:00", "0 0 * * *", ["04 01:00-0200", "05 00:00-0200"]),
        ("America/Sao_Paulo", "2019-11-02T12:00", "0 0 * * *", ["03 00:00-0300", "04 00:00-0300"]),
    ],
)
def test_facts_of_many_zones(zone: str, start: str, expression: str, expected: list[str]) -> None:
    """North and south, half-hour, two- and three-hour shifts, midnight, moved bases."""
    assert cron(expression, zone, start, len(expected)) == expected


@pytest.mark.parametrize(
    ("zone", "start", "expression", "expected"),
    [
        ("Pacific/Apia", "2011-12-29T12:00", "0 12 * * *", ["29 12:00-1000", "31 12:00+1400"]),
        (
            "Pacific/Kiritimati",
            "1994-12-30T12:00",
            "0 12 * * *",
            ["30 12:00-1000", "01 12:00+1400"],
        ),
        ("Pacific/Kwajalein", "1993-08-20T12:00", "0 12 * * *", ["20 12:00-1200", "22 12:00+1200"]),
        ("Pacific/Apia", "2011-12-01T12:00", "0 12 30 * *", ["30 12:00+1400"]),
        ("Pacific/Apia", "2011-12-20T12:00", "0 0 * * FRI", ["23 00:00-1000", "06 00:00+1400"]),
    ],
)
def test_a_date_that_does_not_exist_has_no_occurrence(
    zone: str, start: str, expression: str, expected: list[str]
) -> None:
    """Where a whole day was skipped at the date line, nothing is caught up."""
    assert cron(expression, zone, start, len(expected)) == expected
    for gap in ("next", "shift", "skip"):
        assert cron(expression, zone, start, len(expected), {"gap": gap}) == expected


def test_asking_inside_the_second_pass() -> None:
    """What was fired in the first pass is not fired again, nor is anything before the start."""
    assert cron("30 2 * * *", BERLIN, "2026-10-25T01:10", 1) == ["26 02:30+0100"]
    assert cron("30 * * * *", BERLIN, "2026-10-25T00:50", 2) == ["25 02:30+0100", "25 03:30+0100"]


def test_rule_changes_of_the_pinned_release() -> None:
    """British Columbia stays at -07 after 2026 in the release we pin, whatever the host says."""
    assert cron("0 9 * * *", "America/Vancouver", "2026-12-01T00:00", 1)[0].endswith("-0700")


def test_flags_tell_what_the_zone_did() -> None:
    """Moved out of a gap, first pass, second pass, or nothing."""
    daily = parse("30 2 * * *", timezone=BERLIN)
    hourly = parse("30 * * * *", timezone=BERLIN)

    assert flagged(daily, "2026-03-28T12:00", 2) == [("dst_gap_shifted",), ()]
    assert flagged(daily, "2026-10-24T12:00", 2) == [("dst_overlap_first",), ()]
    assert flagged(hourly, "2026-10-24T23:45", 3) == [
        ("dst_overlap_first",),
        ("dst_overlap_second",),
        (),
    ]


def test_the_time_that_was_meant_is_known() -> None:
    """A fire moved out of a gap can name the wall clock it stands for."""
    for gap in ("next", "shift"):
        schedule = parse("30 2 * * *", timezone=BERLIN, dst={"gap": gap})
        moved, ordinary = schedule.fires(utc("2026-03-28T12:00"), limit=2)
        assert schedule.intended(moved) == "2026-03-29T02:30:00"
        assert schedule.intended(ordinary) is None


def test_what_is_dropped_has_a_reason() -> None:
    """Skipped in the gap, merged in the overlap; each with the instant it would have had."""
    skipping = parse("30 2 * * *", timezone=BERLIN, dst={"gap": "skip"})
    lost = skipping.dropped(utc("2026-01-01T00:00"), utc("2027-01-01T00:00"))

    assert [(drop.code, drop.local) for drop in lost] == [
        ("DST_GAP_SKIPPED", "2026-03-29T02:30:00"),
        ("DST_OVERLAP_MERGED", "2026-10-25T02:30:00"),
    ]
    assert lost[0].nominal == utc("2026-03-29T01:30")
    assert lost[1].nominal == utc("2026-10-25T01:30")


def test_wild_jobs_lose_nothing() -> None:
    """What the clock never showed was never promised, unless a policy was asked for."""
    whole_year = utc("2026-01-01T00:00"), utc("2027-01-01T00:00")

    assert parse("*/30 * * * *", timezone=BERLIN).dropped(*whole_year) == []
    asked = parse("*/30 2 * * *", timezone=BERLIN, dst={"gap": "skip"})
    assert [drop.local[11:16] for drop in asked.dropped(*whole_year)] == ["02:00", "02:30"]


def test_a_missing_date_is_recorded_as_dropped() -> None:
    """The default policy too denies a day that never was, and says so."""
    schedule = parse("0 12 * * *", timezone="Pacific/Apia")
    lost = schedule.dropped(utc("2011-12-01T00:00"), utc("2012-01-31T00:00"))

    assert [(drop.code, drop.local) for drop in lost] == [
        ("DST_GAP_SKIPPED", "2011-12-30T12:00:00")
    ]


def test_sub_minute_offsets() -> None:
    """Monrovia was 44 min 30 s behind until 1972-01-07; its midnight is read to the second."""
    found = fire_times("0 0 * * *", "Africa/Monrovia", utc("1972-01-05T12:00"), 3)

    assert [moment.isoformat() for moment in found] == [
        "1972-01-06T00:44:30+00:00",
        "1972-01-07T00:44:30+00:00",
        "1972-01-08T00:00:00+00:00",
    ]
    assert wall(found, "Africa/Monrovia")[1] == "07 00:44+0000"
