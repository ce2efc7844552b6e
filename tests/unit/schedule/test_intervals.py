"""Rates and calendar periods: anchored, multiplied, never drifting."""

import pytest

from betimes.domain.errors import BadSchedule, NeverFires, TooLarge
from betimes.schedule import fire_times
from betimes.schedule.duration import Duration, read_duration
from facts_kit import parse, utc, wall

BERLIN = "Europe/Berlin"


def interval(every: str, anchor: str, start: str, count: int, **more: object) -> list[str]:
    members = {"type": "interval", "every": every, "anchor": anchor, **more}
    schedule = parse(members, timezone=BERLIN)
    return wall([fire.nominal for fire in schedule.fires(utc(start), limit=count)], BERLIN)


def iso(expression: str, start: str, count: int, **more: object) -> list[str]:
    schedule = parse({"type": "iso8601", "expr": expression, **more}, timezone=BERLIN)
    found = schedule.fires(utc(start), limit=count)
    return [fire.local.strftime("%Y-%m-%d %H:%M%z") for fire in found]


def test_a_rate_counts_elapsed_time() -> None:
    """24 hours are 24 hours: over the gap the wall clock moves on by one."""
    assert interval("PT24H", "2026-03-28T09:00:00", "2026-03-28T09:00", 2) == [
        "29 10:00+0200",
        "30 10:00+0200",
    ]


def test_a_day_keeps_the_wall_clock() -> None:
    """P1D is the same time of day, 23 hours later over the gap."""
    assert interval("P1D", "2026-03-28T09:00:00", "2026-03-28T09:00", 2) == [
        "29 09:00+0200",
        "30 09:00+0200",
    ]


def test_an_occurrence_in_the_gap_is_shifted() -> None:
    """Unlike cron, which runs at the end of the gap; the next one is back in its place."""
    assert interval("P1D", "2026-03-28T02:30:00", "2026-03-28T02:00", 2) == [
        "29 03:30+0200",
        "30 02:30+0200",
    ]


@pytest.mark.parametrize(
    ("dst", "expected"),
    [
        ({"gap": "next"}, ["29 03:00+0200", "30 02:30+0200"]),
        ({"gap": "skip"}, ["30 02:30+0200", "31 02:30+0200"]),
    ],
)
def test_the_gap_policy_of_a_period(dst: dict[str, str], expected: list[str]) -> None:
    """The policy may say otherwise."""
    assert interval("P1D", "2026-03-28T02:30:00", "2026-03-28T02:00", 2, dst=dst) == expected


@pytest.mark.parametrize(
    ("dst", "expected"),
    [
        (None, ["25 02:30+0200", "26 02:30+0100"]),
        ({"overlap": "second"}, ["25 02:30+0100", "26 02:30+0100"]),
        ({"overlap": "both"}, ["25 02:30+0200", "25 02:30+0100", "26 02:30+0100"]),
    ],
)
def test_the_overlap_of_a_period(dst: dict[str, str] | None, expected: list[str]) -> None:
    """The first pass, unless told otherwise."""
    start = "2026-10-24T12:00"
    found = interval("P1D", "2026-10-20T02:30:00", start, len(expected), dst=dst)
    assert found == expected


def test_months_are_multiplied_and_clamped() -> None:
    """31 January + k months: the last day where the 31st is missing, and back to the 31st."""
    found = iso("R/2026-01-31T09:00:00/P1M", "2026-01-01T00:00", 6)
    assert [text[:10] for text in found] == [
        "2026-01-31",
        "2026-02-28",
        "2026-03-31",
        "2026-04-30",
        "2026-05-31",
        "2026-06-30",
    ]


def test_months_may_be_skipped_instead() -> None:
    """With month_end skip, short months have no occurrence; the count is of real ones."""
    found = iso("R4/2026-01-31T09:00:00/P1M", "2026-01-01T00:00", 9, month_end="skip")
    assert [text[:10] for text in found] == ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"]
    with pytest.raises(BadSchedule, match=r"clamp\|skip"):
        iso("R4/2026-01-31T09:00:00/P1M", "2026-01-01T00:00", 9, month_end="last")


def test_leap_days() -> None:
    """29 February + k years is 28 February in common years, or nothing with skip."""
    found = iso("R/2024-02-29T12:00:00/P1Y", "2024-01-01T00:00", 5)
    assert [text[:10] for text in found][1:] == [
        "2025-02-28",
        "2026-02-28",
        "2027-02-28",
        "2028-02-29",
    ]
    found = iso("R/2024-02-29T12:00:00/P1Y", "2024-03-01T00:00", 2, month_end="skip")
    assert [text[:10] for text in found] == ["2028-02-29", "2032-02-29"]


def test_mixed_durations_go_calendar_first_then_elapsed() -> None:
    """P1DT12H from Friday 27 March: one day on the wall clock, then twelve hours by stopwatch."""
    found = iso("R/2026-03-27T09:00:00/P1DT12H", "2026-03-27T12:00", 3)
    assert found == ["2026-03-28 21:00+0100", "2026-03-30 09:00+0200", "2026-03-31 21:00+0200"]


def test_weeks_and_months_together() -> None:
    """All calendar parts multiply together."""
    found = iso("R/2026-01-31T00:00:00/P1M1W", "2026-01-01T00:00", 3)
    assert [text[:10] for text in found] == ["2026-01-31", "2026-03-07", "2026-04-14"]


def test_repetitions_count_the_first() -> None:
    """Rn is n occurrences in all, the first at the start; an end bounds them too."""
    assert len(iso("R3/2026-01-01T00:00:00Z/PT1H", "2025-01-01T00:00", 9)) == 3
    assert len(iso("R1/2026-01-01T00:00:00Z/PT1H", "2025-01-01T00:00", 9)) == 1
    assert len(iso("R/2026-01-01T00:00:00Z/PT1H", "2025-01-01T00:00", 9)) == 9
    ended = iso("R/2026-01-01T00:00:00Z/PT1H/2026-01-01T02:00:00Z", "2025-01-01T00:00", 9)
    assert len(ended) == 3
    assert (
        fire_times("R0/2026-01-01T00:00:00Z/PT1H", "UTC", utc("2025-01-01"), 9, kind="iso8601")
        == []
    )
    with pytest.raises(NeverFires):
        parse("R0/2026-01-01T00:00:00Z/PT1H")


@pytest.mark.parametrize(
    "start",
    [
        "2026-01-05T09:30:00",
        "20260105T093000",
        "2026-W02-1T09:30",
        "2026-005T09:30",
        "2026005T0930",
    ],
)
def test_spellings_of_the_start(start: str) -> None:
    """Extended and basic, calendar, week and ordinal dates."""
    assert iso(f"R/{start}/P1W", "2026-01-01T00:00", 1) == ["2026-01-05 09:30+0100"]


def test_a_start_with_an_offset_is_read_in_the_zone() -> None:
    """An instant is an instant; the calendar runs on the wall clock of the schedule's zone."""
    found = iso("R/2026-03-01T08:00:00Z/P1M", "2026-01-01T00:00", 2)
    assert found == ["2026-03-01 09:00+0100", "2026-04-01 09:00+0200"]
    found = iso("R/2026-03-01T08:00:00+05:30/PT1H", "2026-01-01T00:00", 1)
    assert found == ["2026-03-01 03:30+0100"]


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("R/P1M/2026-01-01T00:00:00Z", "counts back from its end"),
        ("R/2026-01-01T00:00:00Z/2026-02-01T00:00:00Z", "expected a duration"),
        ("R/2026-01-01T00:00:00Z/P0D", "longer than zero"),
        ("R/2026-01-01T00:00:00Z/PT0S", "longer than zero"),
        ("R/2026-01-01T00:00:00Z/-PT1S", "expected a duration"),
        ("R/2026-01-01T00:00:00Z/P-1D", "expected a duration"),
        ("R/2026-01-01T00:00:00Z/PT0.5S", "at least 1 s"),
        ("R/2026-01-01T00:00:00Z", "expected R[n]/start/duration"),
        ("2026-01-01T00:00:00Z/P1D", "expected R[n]/start/duration"),
        ("R-1/2026-01-01T00:00:00Z/P1D", "expected R[n]/start/duration"),
        ("R/2026-02-30T00:00:00Z/P1D", "a time that exists"),
        ("R/2026-01-01T24:00:00Z/P1D", "a time that exists"),
        ("R/2026-01-01T23:59:60Z/P1D", "a time that exists"),
        ("R/2026-366T00:00/P1D", "a time that exists"),
        ("R/9999-12-31T23:59:59Z/P1D", "a time that exists"),
        ("R/2026-01-01T00:00:00+24:00/P1D", "a time that exists"),
        ("R/2026-01-01T00:00:00Z/P1000Y", "at most 200 years"),
        ("R/2026-01-01T00:00:00Z/P1.5M", "whole days, weeks, months"),
        ("R/2026-01-01T00:00:00Z/PT1.5H30M", "a fraction in the last part"),
    ],
)
def test_repeating_intervals_refuse(expression: str, part: str) -> None:
    """Backwards, empty, negative, impossible."""
    with pytest.raises(BadSchedule) as caught:
        parse({"type": "iso8601", "expr": expression})
    assert part in caught.value.sentence


def test_a_long_repeating_interval_is_refused() -> None:
    """By its length, before it is read."""
    with pytest.raises(TooLarge):
        parse({"type": "iso8601", "expr": "R/" + "1" * 1000})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("PT15M", Duration(micros=900_000_000)),
        ("P1Y2M3W4DT5H6M7.5S", Duration(14, 25, 18_367_500_000)),
        ("PT0,5H", Duration(micros=1_800_000_000)),
        ("1h30m", Duration(micros=5_400_000_000)),
        ("1h 30m", Duration(micros=5_400_000_000)),
        ("2 days", Duration(days=2)),
        ("1 week and 2 days", Duration(days=9)),
        ("1.5h", Duration(micros=5_400_000_000)),
        ("500ms", Duration(micros=500_000)),
        ("3mo", Duration(months=3)),
        ("2y", Duration(months=24)),
        (90, Duration(micros=90_000_000)),
        (0.5, Duration(micros=500_000)),
    ],
)
def test_durations(source: object, expected: Duration) -> None:
    """ISO 8601, short, words, and seconds."""
    assert read_duration(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "",
        "P",
        "PT",
        "P1",
        "1",
        "h",
        "5 parsecs",
        "PT5",
        "1h-",
        "\u0663h",
        True,
        None,
        [],
        -1,
        float("nan"),
        float("inf"),
        1e400,
        "1" * 300,
        "P1DT",
    ],
)
def test_what_is_no_duration(source: object) -> None:
    """Refused in a sentence."""
    with pytest.raises(BadSchedule, match="expected a duration"):
        read_duration(source)


@pytest.mark.parametrize("text", ["PT15M", "P1Y2M3DT4H5M6S", "P2W", "PT0.25S", "P1M", "PT0S"])
def test_durations_are_shown_as_they_are_read(text: str) -> None:
    """The canonical form reads back as itself."""
    assert str(read_duration(text)) == text


def test_the_anchor_is_kept_and_nothing_drifts() -> None:
    """The fires are anchor + k x period however late one asks; none lies before the anchor."""
    schedule = parse("every 90m", now=utc("2026-01-01T00:10:07.5"))

    assert schedule.to_dict()["anchor"] == "2026-01-01T00:10:07Z"
    later = schedule.next(utc("2026-01-05T23:59"))
    assert later is not None
    assert later.nominal == utc("2026-01-06T00:10:07")
    first = schedule.next(utc("2020-01-01"))
    assert first is not None
    assert first.nominal == utc("2026-01-01T00:10:07")
    with pytest.raises(BadSchedule, match="expected `anchor`"):
        parse("every 90m")


def test_start_at_is_the_anchor_when_none_is_given() -> None:
    """A rate begins where the schedule does."""
    schedule = parse({"type": "interval", "every": "PT1H", "start_at": "2026-06-01T00:20:00Z"})
    first = schedule.next(utc("2026-01-01"))
    assert first is not None
    assert first.nominal == utc("2026-06-01T00:20")


def test_fixed_delay_follows_the_end_of_the_last_run() -> None:
    """The one schedule that depends on its runs, and says so."""
    schedule = parse(
        {"type": "interval", "every": "10m", "mode": "fixed_delay"}, now=utc("2026-01-01T00:00")
    )
    first = schedule.next(utc("2026-01-01T00:00"))
    then = schedule.next(utc("2026-01-01T00:12"), last_end=utc("2026-01-01T00:13"))
    late = schedule.next(utc("2026-01-01T05:00"), last_end=utc("2026-01-01T00:13"))

    assert schedule.is_fixed_delay
    assert first is not None
    assert first.nominal == utc("2026-01-01T00:10")
    assert then is not None
    assert then.nominal == utc("2026-01-01T00:23")
    assert late is not None
    assert late.nominal > utc("2026-01-01T05:00")
    assert not parse("every 10m", now=utc("2026-01-01")).is_fixed_delay
    with pytest.raises(BadSchedule, match="mode out of"):
        parse({"type": "interval", "every": "10m", "mode": "x", "anchor": "2026-01-01T00:00Z"})
    ended = parse(
        {"type": "interval", "every": "10m", "mode": "fixed_delay", "end_at": "2026-01-02T00:00Z"},
        now=utc("2026-01-01T00:00"),
    )
    assert ended.next(utc("2026-01-01T05:00"), last_end=utc("2026-01-02T00:00")) is None


def test_too_frequent_is_refused() -> None:
    """A period under a second."""
    with pytest.raises(BadSchedule) as caught:
        parse("every 500ms", now=utc("2026-01-01"))
    assert caught.value.code == "schedule_too_frequent"


def test_once() -> None:
    """One moment, in the zone, and never again."""
    schedule = parse({"type": "once", "at": "2026-12-24T15:00"}, timezone=BERLIN)
    fire = schedule.next(utc("2026-01-01"))

    assert fire is not None
    assert fire.nominal == utc("2026-12-24T14:00")
    assert schedule.next(fire.nominal) is None
    in_gap = parse({"type": "once", "at": "2026-03-29T02:30"}, timezone=BERLIN)
    assert wall([f.nominal for f in in_gap.fires(utc("2026-01-01"))], BERLIN) == ["29 03:30+0200"]
    twice = parse({"type": "once", "at": "2026-10-25T02:30"}, timezone=BERLIN)
    assert wall([f.nominal for f in twice.fires(utc("2026-01-01"))], BERLIN) == ["25 02:30+0200"]
    with pytest.raises(NeverFires):
        parse({"type": "once", "at": "2026-03-29T02:30", "dst": {"gap": "skip"}}, timezone=BERLIN)


def test_microseconds_are_kept() -> None:
    """A delay is exact; only rates begin on a whole second."""
    schedule = parse("in 1500ms", now=utc("2026-01-01T00:00:00.250001"))
    fire = schedule.next(utc("2026-01-01"))
    assert fire is not None
    assert fire.nominal == utc("2026-01-01T00:00:01.750001")


def test_period_flags_and_drops() -> None:
    """A calendar period tells what the zone did, as cron does."""
    daily = parse("every P1D from 2026-03-28T02:30", timezone=BERLIN)
    fires = list(daily.fires(utc("2026-03-28T12:00"), limit=2))

    assert [fire.flags for fire in fires] == [("dst_gap_shifted",), ()]
    assert daily.intended(fires[0]) == "2026-03-29T02:30:00"
    autumn = parse("every P1D from 2026-10-24T02:30", timezone=BERLIN, dst={"overlap": "both"})
    flags = [fire.flags for fire in autumn.fires(utc("2026-10-24T12:00"), limit=3)]
    assert flags == [("dst_overlap_first",), ("dst_overlap_second",), ()]
    skipping = parse("every P1D from 2026-03-28T02:30", timezone=BERLIN, dst={"gap": "skip"})
    drops = skipping.dropped(utc("2026-03-01"), utc("2026-04-30"))
    assert [(drop.code, drop.local) for drop in drops] == [
        ("DST_GAP_SKIPPED", "2026-03-29T02:30:00")
    ]
