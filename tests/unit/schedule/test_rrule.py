"""Recurrence rules: examples of RFC 5545, zones, exceptions, refusals."""

import pytest

from betimes.domain.errors import BadSchedule, NeverFires, TooLarge
from betimes.schedule import fire_times
from facts_kit import parse, utc

NEW_YORK = "America/New_York"


def rule(text: str, count: int = 10, zone: str = NEW_YORK, start: str = "1997-01-01") -> list[str]:
    schedule = parse({"type": "rrule", "expr": text}, timezone=zone, now=utc(start))
    found = schedule.fires(utc(start), limit=count)
    return [fire.local.strftime("%Y-%m-%d %H:%M") for fire in found]


def dates(text: str, count: int = 10) -> list[str]:
    return [when[:10] for when in rule(text, count)]


START = "DTSTART;TZID=America/New_York:19970902T090000\nRRULE:"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{START}FREQ=WEEKLY;INTERVAL=2;COUNT=4;WKST=SU;BYDAY=TU,TH",
            ["1997-09-02", "1997-09-04", "1997-09-16", "1997-09-18"],
        ),
        (
            "DTSTART;TZID=America/New_York:19970905T090000\nRRULE:FREQ=MONTHLY;COUNT=3;BYDAY=1FR",
            ["1997-09-05", "1997-10-03", "1997-11-07"],
        ),
        (
            "DTSTART;TZID=America/New_York:19970922T090000\nRRULE:FREQ=MONTHLY;COUNT=3;BYDAY=-2MO",
            ["1997-09-22", "1997-10-20", "1997-11-17"],
        ),
        (
            "DTSTART;TZID=America/New_York:19970928T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-3",
            ["1997-09-28", "1997-10-29", "1997-11-28", "1997-12-29", "1998-01-29", "1998-02-26"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:19970101T090000\n"
                "RRULE:FREQ=YEARLY;INTERVAL=3;COUNT=5;BYYEARDAY=1,100,200"
            ),
            ["1997-01-01", "1997-04-10", "1997-07-19", "2000-01-01", "2000-04-09"],
        ),
        (
            "DTSTART;TZID=America/New_York:19970519T090000\nRRULE:FREQ=YEARLY;BYDAY=20MO",
            ["1997-05-19", "1998-05-18", "1999-05-17"],
        ),
        (
            "DTSTART;TZID=America/New_York:19970512T090000\nRRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
            ["1997-05-12", "1998-05-11", "1999-05-17"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:19980213T090000\n"
                "RRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13"
            ),
            ["1998-02-13", "1998-03-13", "1998-11-13", "1999-08-13", "2000-10-13"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:19961105T090000\n"
                "RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8"
            ),
            ["2000-11-07", "2004-11-02", "2008-11-04"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:19970904T090000\n"
                "RRULE:FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3"
            ),
            ["1997-09-04", "1997-10-07", "1997-11-06"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:19970929T090000\n"
                "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2"
            ),
            ["1997-09-29", "1997-10-30", "1997-11-27", "1997-12-30"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:19970805T090000\n"
                "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO"
            ),
            ["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:19970805T090000\n"
                "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU"
            ),
            ["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"],
        ),
        (
            (
                "DTSTART;TZID=America/New_York:20070115T090000\n"
                "RRULE:FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5"
            ),
            ["2007-01-15", "2007-01-30", "2007-02-15", "2007-03-15", "2007-03-30"],
        ),
        (
            "DTSTART:20260102T090000\nRRULE:FREQ=MONTHLY;BYDAY=1FR,-1MO;COUNT=4",
            ["2026-01-02", "2026-01-26", "2026-02-06", "2026-02-23"],
        ),
        (
            "DTSTART:20260102T090000\nRRULE:FREQ=MONTHLY;BYDAY=1FR,SU;COUNT=4",
            ["2026-01-02", "2026-01-04", "2026-01-11", "2026-01-18"],
        ),
        (
            "DTSTART:20260131T090000\nRRULE:FREQ=MONTHLY;COUNT=3",
            ["2026-01-31", "2026-03-31", "2026-05-31"],
        ),
        (
            "DTSTART:20260101T090000\nRRULE:FREQ=DAILY;BYMONTHDAY=1,15,-1;COUNT=4",
            ["2026-01-01", "2026-01-15", "2026-01-31", "2026-02-01"],
        ),
    ],
)
def test_examples_of_the_rfc(text: str, expected: list[str]) -> None:
    """The RFC's own dates, and what follows from its rules."""
    assert dates(text, len(expected)) == expected


def test_until_is_inclusive_and_in_utc() -> None:
    """24 December 1997 at 00:00Z is the evening before in New York."""
    found = dates(f"{START}FREQ=DAILY;UNTIL=19970905T130000Z")
    assert found == ["1997-09-02", "1997-09-03", "1997-09-04", "1997-09-05"]
    assert len(dates(f"{START}FREQ=DAILY;UNTIL=19970905T125959Z")) == 3


def test_the_wall_clock_is_kept_over_the_change() -> None:
    """Nine o'clock stays nine o'clock; Monday 27 October 1997 is after the clocks went back."""
    schedule = parse({"type": "rrule", "expr": f"{START}FREQ=DAILY"}, timezone="UTC")
    fires = list(schedule.fires(utc("1997-10-25"), limit=3))
    assert [fire.nominal.hour for fire in fires] == [13, 14, 14]
    assert [fire.local.hour for fire in fires] == [9, 9, 9]


@pytest.mark.parametrize(
    ("dst", "expected"),
    [
        (None, ["2026-03-29 03:30", "2026-03-30 02:30"]),
        ({"gap": "skip"}, ["2026-03-30 02:30", "2026-03-31 02:30"]),
        ({"gap": "next"}, ["2026-03-29 03:00", "2026-03-30 02:30"]),
    ],
)
def test_a_time_that_does_not_exist_is_shifted(
    dst: dict[str, str] | None, expected: list[str]
) -> None:
    """RFC 5545 3.3.5: the offset before the gap; the policy may skip."""
    text = "DTSTART;TZID=Europe/Berlin:20260301T023000\nRRULE:FREQ=DAILY"
    schedule = parse({"type": "rrule", "expr": text, "dst": dst} if dst else text)
    found = schedule.fires(utc("2026-03-28T12:00"), limit=2)
    assert [fire.local.strftime("%Y-%m-%d %H:%M") for fire in found] == expected


def test_an_ambiguous_time_is_its_first_pass() -> None:
    """As everywhere but in wild cron jobs."""
    text = "DTSTART;TZID=Europe/Berlin:20261001T023000\nRRULE:FREQ=DAILY"
    found = fire_times(text, "UTC", utc("2026-10-24T12:00"), 2, kind="rrule")
    assert found == [utc("2026-10-25T00:30"), utc("2026-10-26T01:30")]


def test_dates_added_and_taken_away() -> None:
    """RDATE adds, EXDATE removes, by time or by date; what is removed still counts for COUNT."""
    text = (
        "DTSTART;TZID=Europe/Berlin:20260105T090000\n"
        "RRULE:FREQ=DAILY;COUNT=5\n"
        "EXDATE;TZID=Europe/Berlin:20260106T090000\n"
        "EXDATE;VALUE=DATE:20260108\n"
        "RDATE;TZID=Europe/Berlin:20260120T100000,20260107T090000\n"
        "RDATE:20260121T090000Z"
    )
    schedule = parse({"type": "rrule", "expr": text})
    fires = [fire.local.strftime("%d %H:%M") for fire in schedule.fires(utc("2026-01-01"))]

    assert fires == ["05 09:00", "07 09:00", "09 09:00", "20 10:00", "21 10:00"]
    assert schedule.count(utc("2026-01-01"), utc("2026-02-01")) == 5
    assert schedule.count(utc("2026-01-08"), utc("2026-01-20T09:00")) == 2


def test_a_rule_that_excludes_everything_is_refused() -> None:
    """In a sentence, and soon."""
    text = "DTSTART:20260105T090000Z\nRRULE:FREQ=DAILY;COUNT=1\nEXDATE:20260105T090000Z"
    with pytest.raises(NeverFires):
        parse({"type": "rrule", "expr": text})
    with pytest.raises(NeverFires):
        parse("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", now=utc("2026-01-01"))
    with pytest.raises(NeverFires):
        parse("FREQ=MINUTELY;INTERVAL=60;BYMINUTE=30", now=utc("2026-01-01"))
    with pytest.raises(NeverFires):
        parse("FREQ=SECONDLY;BYSECOND=1;BYSETPOS=2", now=utc("2026-01-01"))


def test_sub_daily_rules_are_fixed_rates() -> None:
    """An hourly rule stays hourly on both nights."""
    text = "DTSTART;TZID=Europe/Berlin:20260101T003000\nRRULE:FREQ=HOURLY"
    spring = fire_times(text, "UTC", utc("2026-03-29T00:00"), 3, kind="rrule")
    autumn = fire_times(text, "UTC", utc("2026-10-25T00:00"), 3, kind="rrule")

    assert [moment.hour for moment in spring] == [0, 1, 2]
    assert [moment.hour for moment in autumn] == [0, 1, 2]


def test_sub_daily_filters_read_the_wall_clock() -> None:
    """Every 90 minutes, weekdays from nine to eleven, in the zone."""
    text = (
        "DTSTART;TZID=Europe/Berlin:20260330T090000\n"
        "RRULE:FREQ=MINUTELY;INTERVAL=90;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11"
    )
    found = [w[5:] for w in rule(text, 5, "UTC", "2026-01-01")]
    assert found == ["03-30 09:00", "03-30 10:30", "03-31 09:00", "03-31 10:30", "04-01 09:00"]


def test_sub_daily_counts_are_bounded_work() -> None:
    """Ten years of working hours, counted without visiting every second."""
    text = "DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY;BYHOUR=9;BYDAY=TH"
    schedule = parse("DTSTART:20260101T090000Z\nRRULE:FREQ=SECONDLY;BYHOUR=9;BYDAY=TH")
    with pytest.raises(BadSchedule, match="occurrence of its rule"):
        parse(text)
    assert schedule.count(utc("2026-01-01"), utc("2036-01-03")) == 3600 * 522


def test_without_dtstart_it_counts_from_creation() -> None:
    """A bare rule takes its times from the creation, in the zone."""
    found = rule("FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0", 2, NEW_YORK, "2026-01-01")
    assert found == ["2026-01-05 09:00", "2026-01-12 09:00"]
    found = rule("RRULE:FREQ=DAILY;COUNT=2", 5, "UTC", "2026-01-01")
    assert found == ["2026-01-02 00:00"]


def test_a_start_in_utc_is_a_rule_in_utc() -> None:
    """The form of DTSTART decides, as the RFC says."""
    text = "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY"
    found = fire_times(text, NEW_YORK, utc("2026-06-01"), 1, kind="rrule")
    assert found == [utc("2026-06-01T09:00")]


def test_folded_lines_and_lower_case() -> None:
    """As calendars are mailed."""
    text = "dtstart:20260101T090000Z\r\nrrule:freq=daily;by\r\n hour=9\r\n"
    assert fire_times(text, "UTC", utc("2026-06-01"), 1, kind="rrule") == [utc("2026-06-01T09:00")]


REFUSED = [
    "FREQ=FORTNIGHTLY",
    "INTERVAL=2",
    "FREQ=DAILY;INTERVAL=0",
    "FREQ=DAILY;INTERVAL=-1",
    "FREQ=DAILY;COUNT=0",
    "FREQ=DAILY;COUNT=5;UNTIL=20270101T000000Z",
    "FREQ=DAILY;UNTIL=20270101",
    "FREQ=DAILY;UNTIL=tomorrow",
    "FREQ=DAILY;FREQ=WEEKLY",
    "FREQ=DAILY;BYHOUR=24",
    "FREQ=DAILY;BYMINUTE=60",
    "FREQ=DAILY;BYSECOND=60",
    "FREQ=DAILY;BYHOUR=\u0663",
    "FREQ=DAILY;BYHOUR=",
    "FREQ=DAILY;BYMONTH=13",
    "FREQ=DAILY;BYMONTH=-1",
    "FREQ=DAILY;BYMONTHDAY=0",
    "FREQ=DAILY;BYDAY=1MO",
    "FREQ=WEEKLY;BYDAY=-1FR",
    "FREQ=MONTHLY;BYDAY=0MO",
    "FREQ=MONTHLY;BYDAY=54MO",
    "FREQ=MONTHLY;BYDAY=XX",
    "FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO",
    "FREQ=MONTHLY;BYWEEKNO=20",
    "FREQ=WEEKLY;BYMONTHDAY=1",
    "FREQ=DAILY;BYYEARDAY=1",
    "FREQ=YEARLY;BYYEARDAY=367",
    "FREQ=DAILY;BYSETPOS=1",
    "FREQ=DAILY;WKST=XX",
    "FREQ=DAILY;RSCALE=GREGORIAN",
    "FREQ=DAILY;SKIP=OMIT",
    "FREQ=DAILY;;X",
    "EXRULE:FREQ=DAILY",
    "RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY",
    "DTSTART:20260101T000000Z",
    "DTSTART:20260101T000000Z\nDTSTART:20260101T000000Z\nRRULE:FREQ=DAILY",
    "DTSTART:2026-01-01\nRRULE:FREQ=DAILY",
    "DTSTART;TZID=Europe/Berlin:20260101T000000Z\nRRULE:FREQ=DAILY",
    "DTSTART;VALUE=DATE:20260101T000000\nRRULE:FREQ=DAILY",
    "DTSTART;X-Y=1:20260101T000000\nRRULE:FREQ=DAILY",
    "DTSTART:20260102T000000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO",
    "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY\nRDATE;VALUE=PERIOD:20260101T000000Z/PT1H",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_rfc_forbids_is_refused(text: str) -> None:
    """Each with the code invalid_rrule."""
    with pytest.raises(BadSchedule) as caught:
        parse({"type": "rrule", "expr": text}, now=utc("2026-01-01"))
    assert caught.value.code == "invalid_rrule"
    assert caught.value.sentence.startswith("expected ")


def test_long_texts_are_refused() -> None:
    """By length, and by the number of dates."""
    many = ",".join(["20260101T000000Z"] * 501)
    with pytest.raises(TooLarge):
        parse({"type": "rrule", "expr": "FREQ=DAILY;" + "X" * 20_000}, now=utc("2026-01-01"))
    with pytest.raises(TooLarge):
        parse(f"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY\nEXDATE:{many}")


def test_properties_on_one_line() -> None:
    """A space between properties does as well as a line end."""
    text = "DTSTART;TZID=Europe/Berlin:20260101T090000 RRULE:FREQ=DAILY;COUNT=2"
    assert len(fire_times(text, "UTC", utc("2025-06-01"), 9, kind="rrule")) == 2


def test_a_date_start_is_midnight() -> None:
    """DTSTART;VALUE=DATE means the beginning of the day in the zone."""
    text = "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY"
    found = fire_times(text, "Europe/Berlin", utc("2026-06-01T12:00"), 1, kind="rrule")
    assert found == [utc("2026-06-01T22:00")]
