# ruff: noqa: E501 -- tables: one rule, one line
"""More examples of RFC 5545, and the edges of periods, positions and counts.

Every set is asked from all sides: one after the other, from between, and by counting.
"""

from datetime import date, timedelta

import pytest

from betimes.domain.errors import BadSchedule
from betimes.schedule import fire_times
from betimes.schedule.budget import Budget
from betimes.schedule.civil import date_of, day_of
from betimes.schedule.rrule_days import allowed_days
from betimes.schedule.rrule_syntax import Rule
from betimes.schedule.series import Listed
from betimes.schedule.year_days import kind_of, numbers, year_start
from facts_kit import parse, utc

SECOND = timedelta(seconds=1)


def days(month: str, *numbers: int) -> list[str]:
    return [f"{month}-{number:02}" for number in numbers]


# fmt: off
RULES = [
    ("19970902T090000", "FREQ=DAILY;COUNT=10", days("1997-09", *range(2, 12))),
    ("19970902T090000", "FREQ=DAILY;INTERVAL=10;COUNT=5", [*days("1997-09", 2, 12, 22), *days("1997-10", 2, 12)]),
    ("19970902T090000", "FREQ=DAILY;INTERVAL=3;COUNT=4", days("1997-09", 2, 5, 8, 11)),
    ("19971222T090000", "FREQ=DAILY;UNTIL=19971224T090000Z", days("1997-12", 22, 23, 24)),
    ("19971222T090000", "FREQ=DAILY;UNTIL=19971224T085959Z", days("1997-12", 22, 23)),
    ("19980101T090000", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1;INTERVAL=15", ["1998-01-01", "1998-01-16", "1998-01-31", "1999-01-11", "1999-01-26", "2000-01-06", "2000-01-21"]),
    ("19970902T090000", "FREQ=WEEKLY;COUNT=10", [*days("1997-09", 2, 9, 16, 23, 30), *days("1997-10", 7, 14, 21, 28), "1997-11-04"]),
    ("19970902T090000", "FREQ=WEEKLY;INTERVAL=2;WKST=SU;COUNT=6", [*days("1997-09", 2, 16, 30), *days("1997-10", 14, 28), "1997-11-11"]),
    ("19970903T090000", "FREQ=WEEKLY;INTERVAL=3;COUNT=4", [*days("1997-09", 3, 24), "1997-10-15", "1997-11-05"]),
    ("19970902T090000", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", [*days("1997-09", 2, 4, 9, 11, 16, 18, 23, 25, 30), "1997-10-02"]),
    ("19970901T090000", "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,WE,FR;COUNT=9", [*days("1997-09", 1, 3, 5, 15, 17, 19, 29), *days("1997-10", 1, 3)]),
    ("19970907T090000", "FREQ=MONTHLY;INTERVAL=2;COUNT=6;BYDAY=1SU,-1SU", ["1997-09-07", "1997-09-28", "1997-11-02", "1997-11-30", "1998-01-04", "1998-01-25"]),
    ("19970902T090000", "FREQ=MONTHLY;COUNT=4;BYMONTHDAY=2,15", ["1997-09-02", "1997-09-15", "1997-10-02", "1997-10-15"]),
    ("19970930T090000", "FREQ=MONTHLY;COUNT=6;BYMONTHDAY=1,-1", ["1997-09-30", "1997-10-01", "1997-10-31", "1997-11-01", "1997-11-30", "1997-12-01"]),
    ("19970910T090000", "FREQ=MONTHLY;INTERVAL=18;COUNT=8;BYMONTHDAY=10,11,12,13,14,15", [*days("1997-09", *range(10, 16)), "1999-03-10", "1999-03-11"]),
    ("19970902T090000", "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU;COUNT=7", [*days("1997-09", 2, 9, 16, 23, 30), "1997-11-04", "1997-11-11"]),
    ("19970113T090000", "FREQ=MONTHLY;INTERVAL=5;COUNT=3", ["1997-01-13", "1997-06-13", "1997-11-13"]),
    ("19970610T090000", "FREQ=YEARLY;COUNT=4;BYMONTH=6,7", ["1997-06-10", "1997-07-10", "1998-06-10", "1998-07-10"]),
    ("19970310T090000", "FREQ=YEARLY;INTERVAL=2;COUNT=5;BYMONTH=1,2,3", ["1997-03-10", "1999-01-10", "1999-02-10", "1999-03-10", "2001-01-10"]),
    ("19970310T090000", "FREQ=YEARLY;INTERVAL=3;COUNT=3", ["1997-03-10", "2000-03-10", "2003-03-10"]),
    ("19970313T090000", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH;COUNT=5", [*days("1997-03", 13, 20, 27), *days("1998-03", 5, 12)]),
    ("19970605T090000", "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8;COUNT=5", [*days("1997-06", 5, 12, 19, 26), "1997-07-03"]),
    ("19970913T090000", "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13;COUNT=5", ["1997-09-13", "1997-10-11", "1997-11-08", "1997-12-13", "1998-01-10"]),
    # The last Saturday of a month that ends on one is its last day alone.
    ("20260131T090000", "FREQ=MONTHLY;BYDAY=-1SA;COUNT=3", ["2026-01-31", "2026-02-28", "2026-03-28"]),
    ("20260103T090000", "FREQ=MONTHLY;BYDAY=-5SA;COUNT=3", ["2026-01-03", "2026-05-02", "2026-08-01"]),
    ("20261228T090000", "FREQ=YEARLY;BYDAY=-1MO;COUNT=3", ["2026-12-28", "2027-12-27", "2028-12-25"]),
    ("20261231T090000", "FREQ=YEARLY;BYYEARDAY=-1;COUNT=3", ["2026-12-31", "2027-12-31", "2028-12-31"]),
    ("20240101T090000", "FREQ=YEARLY;BYYEARDAY=-366;COUNT=2", ["2024-01-01", "2028-01-01"]),
    ("20261228T090000", "FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO;COUNT=3", ["2026-12-28", "2027-12-27", "2028-12-25"]),
    ("20261228T090000", "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;COUNT=2", ["2026-12-28", "2032-12-27"]),
    ("20241230T090000", "FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO;COUNT=3", ["2024-12-30", "2025-12-29", "2027-01-04"]),
    ("20260109T090000", "FREQ=YEARLY;BYWEEKNO=-52;BYDAY=FR;COUNT=3", ["2026-01-09", "2027-01-08", "2028-01-07"]),
]
TIMES = [
    # From the middle of a day on, several times a day.
    ("20260101T170000", "FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,30;COUNT=6", ["01 17:00:00", "01 17:30:00", "02 09:00:00", "02 09:30:00", "02 17:00:00", "02 17:30:00"]),
    ("20260101T170000", "FREQ=DAILY;INTERVAL=2;BYHOUR=9,17;COUNT=4", ["01 17:00:00", "03 09:00:00", "03 17:00:00", "05 09:00:00"]),
    ("20260101T090001", "FREQ=DAILY;BYSECOND=0,1,59;COUNT=3", ["01 09:00:01", "01 09:00:59", "02 09:00:00"]),
    ("20260101T091530", "FREQ=WEEKLY;COUNT=2", ["01 09:15:30", "08 09:15:30"]),
    # Positions count inside a day, a week, a month, a year.
    ("20260101T170000", "FREQ=DAILY;BYHOUR=9,13,17;BYSETPOS=-1;COUNT=3", ["01 17:00:00", "02 17:00:00", "03 17:00:00"]),
    ("20260101T130000", "FREQ=DAILY;BYHOUR=9,13,17;BYSETPOS=2,-1;COUNT=3", ["01 13:00:00", "01 17:00:00", "02 13:00:00"]),
    ("20251221T090000", "FREQ=WEEKLY;BYDAY=MO,SU;BYSETPOS=-1;COUNT=4", ["21 09:00:00", "28 09:00:00", "04 09:00:00", "11 09:00:00"]),
    ("20251225T090000", "FREQ=WEEKLY;BYDAY=FR,TH;WKST=FR;BYSETPOS=-1;COUNT=3", ["25 09:00:00", "01 09:00:00", "08 09:00:00"]),
    ("20260105T090000", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1,-1;COUNT=3", ["05 09:00:00", "26 09:00:00", "02 09:00:00"]),
    ("20251231T090000", "FREQ=YEARLY;BYYEARDAY=1,-1;BYSETPOS=-1;COUNT=3", ["31 09:00:00", "31 09:00:00", "31 09:00:00"]),
    ("20260105T090000", "FREQ=YEARLY;BYMONTH=1,12;BYDAY=MO;BYSETPOS=1,-1;COUNT=4", ["05 09:00:00", "28 09:00:00", "04 09:00:00", "27 09:00:00"]),
    ("20260101T090000", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,18;BYSETPOS=1,-1;COUNT=4", ["01 09:00:00", "30 18:00:00", "02 09:00:00", "27 18:00:00"]),
]
# fmt: on


def asked_from_all_sides(text: str, number: int) -> list[str]:
    """The whole set; it is the same from wherever one asks, and counts what it lists."""
    schedule = parse({"type": "rrule", "expr": text})
    fires = [fire.nominal for fire in schedule.fires(utc("1990-01-01"))]
    before = utc("1990-01-01")
    for index, moment in enumerate(fires):
        for asked in (before, before + (moment - before) / 2, moment - SECOND):
            fire = schedule.next(asked)
            assert fire is not None
            assert fire.nominal == moment
            assert schedule.count(asked, moment) == 1
            assert schedule.count(moment, asked) == 0
            assert schedule.count(asked, fires[-1]) == len(fires) - index
        assert schedule.count(before, moment - SECOND) == 0
        before = moment
    assert schedule.next(fires[-1]) is None
    assert len(fires) == number
    return [moment.isoformat() for moment in fires]


@pytest.mark.parametrize(("start", "rule", "expected"), RULES)
def test_dates_of_rules(start: str, rule: str, expected: list[str]) -> None:
    """As the RFC lists them."""
    found = asked_from_all_sides(f"DTSTART:{start}Z\nRRULE:{rule}", len(expected))
    assert [moment[:10] for moment in found] == expected


@pytest.mark.parametrize(("start", "rule", "expected"), TIMES)
def test_times_of_rules(start: str, rule: str, expected: list[str]) -> None:
    """Days and times together."""
    found = asked_from_all_sides(f"DTSTART:{start}Z\nRRULE:{rule}", len(expected))
    assert [moment[8:19].replace("T", " ") for moment in found] == expected


def days_of_weeks(year: int, weeks: tuple[int, ...], week_start: int) -> list[int]:
    """The days of a year that a rule with these numbers of weeks allows."""
    rule = Rule("YEARLY", by_week_number=weeks, week_start=week_start)
    return [year_start(year) + place for place in numbers(allowed_days(kind_of(year), rule))]


def test_weeks_are_numbered_as_in_iso_8601() -> None:
    """Forty years, week by week, from either end; the last one is as many as its year has."""
    for year in range(1990, 2030):
        days = [date_of(day) for day in range(day_of(year, 1, 1), day_of(year + 1, 1, 1))]
        for week in range(1, 54):
            expected = [day for day in days if day.isocalendar().week == week]
            assert [date_of(day) for day in days_of_weeks(year, (week,), 1)] == expected
            ends = {y: date(y, 12, 28).isocalendar().week for y in (year - 1, year, year + 1)}
            back = [
                day
                for day in days
                if day.isocalendar().week - ends[day.isocalendar().year] - 1 == -week
            ]
            assert [date_of(day) for day in days_of_weeks(year, (-week,), 1)] == back


@pytest.mark.parametrize("week_start", range(7))
def test_weeks_that_begin_on_any_day(week_start: int) -> None:
    """A week belongs to the year of its fourth day."""
    for year in range(2016, 2027):
        found = {week: days_of_weeks(year, (week,), week_start) for week in range(1, 54)}
        for day in range(day_of(year, 1, 1), day_of(year + 1, 1, 1)):
            first = day - (date_of(day).isoweekday() - week_start) % 7
            fourth = date_of(first + 3)
            week = (fourth.timetuple().tm_yday - 1) // 7 + 1
            assert [number for number, days in found.items() if day in days] == [week]


def test_a_list_of_instants_has_open_beginnings_and_closed_ends() -> None:
    """(after, until], as everywhere."""
    listed = Listed((30, 10, 20, 20))

    assert listed.between(10, 30, 9, Budget()) == [20, 30]
    assert listed.between(9, 29, 9, Budget()) == [10, 20]
    assert listed.between(9, 30, 2, Budget()) == [10, 20]
    assert [
        listed.count(9, 30, Budget()),
        listed.count(10, 30, Budget()),
        listed.count(10, 29, Budget()),
    ] == [3, 2, 1]
    assert [listed.next(9, Budget()), listed.next(10, Budget()), listed.next(30, Budget())] == [
        10,
        20,
        None,
    ]


def test_a_start_that_is_taken_away_again() -> None:
    """Friday the 13th, as the RFC writes it: DTSTART is no Friday, and EXDATE says so."""
    rule = "RRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13"
    start = "DTSTART;TZID=America/New_York:19970902T090000"
    gone = "EXDATE;TZID=America/New_York:19970902T090000"
    found = fire_times(f"{start}\n{gone}\n{rule}", "UTC", utc("1997-01-01"), 4, kind="rrule")

    assert [f"{moment:%Y-%m-%d %H}" for moment in found] == [
        *("1998-02-13 14", "1998-03-13 14", "1998-11-13 14", "1999-08-13 13"),
    ]
    for text in (f"{start}\n{rule}", f"{start}\n{gone}\n{rule};COUNT=3"):
        with pytest.raises(BadSchedule, match="DTSTART to be an occurrence of its rule"):
            parse({"type": "rrule", "expr": text})


def test_a_date_ends_what_a_date_began() -> None:
    """UNTIL has the type of DTSTART; the date itself is included."""
    text = "DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;UNTIL={}"
    for until in ("20260107", "20260107T000000Z"):
        found = fire_times(text.format(until), "UTC", utc("2026-01-01"), 9, kind="rrule")
        assert [moment.day for moment in found] == [5, 6, 7]
    kolkata = fire_times(
        text.format("20260106"), "Asia/Kolkata", utc("2026-01-01"), 9, kind="rrule"
    )
    assert kolkata == [utc("2026-01-04T18:30"), utc("2026-01-05T18:30")]
