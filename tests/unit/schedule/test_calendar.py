"""Calendars: dates kept to, dates kept away from, rolling, and importing them."""

from datetime import date

import pytest

from betimes.domain.errors import BadSchedule, Invalid, TooLarge
from betimes.schedule import Budget, Calendar, Schedule, import_calendar
from betimes.schedule.calendar import CalendarRule, OpenDays
from betimes.schedule.year_days import numbers
from facts_kit import parse, utc

HOLIDAYS = Calendar.of("holidays", ["2026-01-01", "2026-12-24/2026-12-26", date(2026, 5, 1)])
WEEKENDS = Calendar.of("weekends", weekdays=["sat", "SUN"])
KNOWN = {"holidays": HOLIDAYS, "weekends": WEEKENDS}
START = utc("2026-12-22T12:00")


def schedule(expr: str = "0 9 * * *", zone: str = "UTC", **calendars: object) -> Schedule:
    members = {"type": "cron", "expr": expr, "calendars": calendars}
    return parse(members, timezone=zone, calendars=KNOWN)


def days(found: Schedule, count: int, start: str = "2026-12-22T12:00") -> list[str]:
    return [fire.local.strftime("%m-%d") for fire in found.fires(utc(start), limit=count)]


def test_excluded_dates_have_no_fires() -> None:
    """By the date of the wall clock in the schedule's zone."""
    found = schedule(exclude=["holidays", "weekends"])
    assert days(found, 4) == ["12-23", "12-28", "12-29", "12-30"]
    late = schedule("0 23 * * *", "America/New_York", exclude=["holidays"])
    assert days(late, 3) == ["12-22", "12-23", "12-27"]


def test_included_dates_are_the_only_ones() -> None:
    """A fire must be in one of the included calendars and in none of the excluded."""
    assert days(schedule(include=["holidays"]), 3) == ["12-24", "12-25", "12-26"]
    assert days(schedule(include=["holidays"], exclude=["weekends"]), 2) == ["12-24", "12-25"]


@pytest.mark.parametrize(
    ("roll", "expected"),
    [
        ("next", ["12-23", "12-28", "12-29"]),
        ("previous", ["12-23", "12-28", "12-29"]),
        ("none", ["12-23", "12-28", "12-29"]),
    ],
)
def test_rolling_a_daily_job_changes_nothing(roll: str, expected: list[str]) -> None:
    """It lands where there is a fire anyway, and equal instants merge."""
    assert days(schedule(exclude=["holidays", "weekends"], roll=roll), 3) == expected


@pytest.mark.parametrize(
    ("roll", "expected"),
    [("next", "12-28"), ("previous", "12-23"), ("nearest", "12-23"), ("none", "12-25")],
)
def test_rolling_a_yearly_job(roll: str, expected: str) -> None:
    """25 December 2026, a Friday, moves to the Wednesday before or the Monday after."""
    found = schedule("0 9 25 12 *", exclude=["holidays", "weekends"], roll=roll)
    assert days(found, 1) == [expected]
    fire = found.next(START)
    assert fire is not None
    assert fire.flags == (() if roll == "none" else ("calendar_excluded",))
    assert fire.nominal.year == (2028 if roll == "none" else 2026)


def test_a_rolled_fire_is_found_from_everywhere() -> None:
    """Asked after its own date has passed, the fire that rolled back is not given again."""
    found = schedule("0 9 25 12 *", exclude=["holidays", "weekends"], roll="previous")
    fire = found.next(utc("2026-12-23T09:00"))
    assert fire is not None
    assert fire.nominal == utc("2027-12-24T09:00")  # 25 December 2027 is a Saturday
    assert found.count(utc("2026-01-01"), utc("2028-01-01")) == 2


def test_counting_without_the_excluded() -> None:
    """Counts and lists agree, over a change of the clock too."""
    found = schedule("*/10 * * * *", "Europe/Berlin", exclude=["holidays", "weekends"])
    span = utc("2026-03-20T07:00"), utc("2026-05-20T03:00")
    assert found.count(*span) == len(list(found.fires(*span, limit=100_000)))


def test_dropped_fires_say_calendar_excluded() -> None:
    """So that a decision can be recorded for each."""
    found = schedule("0 9,17 * * *", exclude=["holidays"])
    lost = found.dropped(START, utc("2027-01-01"))
    assert [(drop.code, drop.local) for drop in lost] == [
        ("CALENDAR_EXCLUDED", f"2026-12-{day}T{hour}:00:00")
        for day in (24, 25, 26)
        for hour in ("09", "17")
    ]
    assert len(found.dropped(START, utc("2027-01-01"), limit=2)) == 2


def test_excluding_everything_ends_soon() -> None:
    """Refused as never firing, after a bounded search, however dense the schedule."""
    everything = {"name": "all", "dates": ["1970-01-01/2300-01-01"]}
    for expr in ("* * * * * *", "0 0 29 2 *"):
        with pytest.raises(BadSchedule):
            parse(
                {
                    "type": "cron",
                    "expr": expr,
                    "start_at": "2026-01-01",
                    "calendars": {"exclude": [everything]},
                }
            )


@pytest.mark.parametrize(
    "calendars",
    [
        5,
        {"only": []},
        {"exclude": "holidays"},
        {"exclude": ["unknown"]},
        {"exclude": [5]},
        {"exclude": [{"dates": "2026-01-01"}]},
        {"exclude": [{"dates": ["2026-02-30"]}]},
        {"exclude": [{"dates": ["2026-02-02/2026-02-01"]}]},
        {"exclude": [{"dates": ["2026-02-01/2026-02-02/2026-02-03"]}]},
        {"exclude": [{"dates": [5]}]},
        {"exclude": [{"weekdays": ["someday"]}]},
        {"exclude": ["holidays"], "roll": "sideways"},
    ],
)
def test_wrong_calendars_are_refused(calendars: object) -> None:
    """Each in a sentence."""
    with pytest.raises(BadSchedule, match="expected") as caught:
        parse({"type": "cron", "expr": "* * * * *", "calendars": calendars}, calendars=KNOWN)
    assert caught.value.pointer.startswith("/calendars")


def test_ranges_merge() -> None:
    """Overlapping and neighbouring dates are one range."""
    calendar = Calendar.of("x", ["2026-01-03/2026-01-05", "2026-01-01/2026-01-03", "2026-01-06"])
    assert calendar.to_dict()["dates"] == ["2026-01-01/2026-01-06"]
    with pytest.raises(TooLarge):
        Calendar.of("x", ["2026-01-01"] * 10_001)


ICS = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
SUMMARY:Christmas
DTSTART;VALUE=DATE:20201224
DTEND;VALUE=DATE:20201227
RRULE:FREQ=YEARLY
END:VEVENT
BEGIN:VEVENT
SUMMARY:Company day, a long name that is
 folded
DTSTART:20260612T090000Z
DTEND:20260612T170000Z
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20190101
END:VEVENT
END:VCALENDAR
"""


def test_importing_an_icalendar() -> None:
    """All-day events, repeated ones, and events with a time, within the years asked for."""
    calendar = import_calendar("company", ICS.replace("\n", "\r\n"), 2026, 2027)
    assert calendar.to_dict()["dates"] == [
        "2026-06-12",
        "2026-12-24/2026-12-26",
        "2027-12-24/2027-12-26",
    ]


@pytest.mark.parametrize(
    "text", ["", "BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT", "BEGIN:VEVENT\nDTSTART:x"]
)
def test_bad_icalendars_are_refused(text: str) -> None:
    """No event, or an event without a start."""
    with pytest.raises(BadSchedule):
        import_calendar("x", text, 2026, 2027)


def test_large_icalendars_are_refused() -> None:
    """By size, and by the number of dates."""
    with pytest.raises(TooLarge):
        import_calendar("x", "x" * 1_048_577, 2026, 2027)
    daily = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:19700101\nRRULE:FREQ=DAILY\nEND:VEVENT\n" * 2
    with pytest.raises(TooLarge):
        import_calendar("x", daily, 1970, 2027)


def event(*lines: str) -> str:
    return "\n".join(["BEGIN:VEVENT", *lines, "END:VEVENT"])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["DTSTART:20260101"], ["2026-01-01"]),
        (["DTSTART:20251231", "DTEND:20260103"], ["2025-12-31/2026-01-02"]),
        (["DTSTART:20271231", "DTEND:20280103"], ["2027-12-31/2028-01-02"]),
        (["DTSTART:20251230", "DTEND:20260101"], []),
        (["DTSTART:20280101"], []),
        (["DTSTART:20260501T220000Z", "DTEND:20260502T000000Z"], ["2026-05-01"]),
        (["DTSTART:20260501T220000Z", "DTEND:20260502T000001Z"], ["2026-05-01/2026-05-02"]),
        (["DTSTART:20260501", "DTEND:20260501"], ["2026-05-01"]),
        (
            ["DTSTART:20200704", "RRULE:FREQ=YEARLY;UNTIL=20260704"],
            ["2026-07-04"],
        ),
        (["DTSTART:20200704", "RRULE:FREQ=YEARLY;UNTIL=20260703"], []),
        (
            ["DTSTART:20200704T100000Z", "RRULE:FREQ=YEARLY;UNTIL=20270704T100000Z"],
            ["2026-07-04", "2027-07-04"],
        ),
        (
            ["DTSTART:20251231", "DTEND:20260102", "RRULE:FREQ=YEARLY;COUNT=1"],
            ["2025-12-31/2026-01-01"],
        ),
        (
            ["DTSTART:20251231", "DTEND:20260102", "RRULE:FREQ=YEARLY"],
            ["2025-12-31/2026-01-01", "2026-12-31/2027-01-01", "2027-12-31/2028-01-01"],
        ),
        (["dtstart;value=date:20260101", "SUMMARY:x:y"], ["2026-01-01"]),
    ],
)
def test_dates_of_events(lines: list[str], expected: list[str]) -> None:
    """Ends are exclusive, UNTIL is not; what reaches into the years asked for is kept whole."""
    calendar = import_calendar("x", event(*lines), 2026, 2027)
    assert calendar.to_dict() == {"name": "x", "dates": expected, "weekdays": []}


def test_refusals_of_icalendars() -> None:
    """No event; an event without a start; too much of it."""
    for text, sentence in (
        ("BEGIN:VCALENDAR", "expected an iCalendar text with at least one VEVENT, got none"),
        (event("SUMMARY:x"), "expected DTSTART in every VEVENT, got one without"),
        ("x" * 1_048_577, "expected an iCalendar text of at most 1048576 characters, got 1048577"),
    ):
        with pytest.raises(Invalid) as caught:
            import_calendar("x", text, 2026, 2027)
        assert str(caught.value) == sentence
    padded = event("DTSTART:20260101").ljust(1_048_576)
    imported = import_calendar("x", padded, 2026, 2027)
    assert (imported.firsts, imported.lasts) == ((20_454,), (20_454,))


def test_dates_of_a_calendar() -> None:
    """Days as bits of their year, the next one that is in, the next that is out, the last one."""
    calendar = Calendar.of("x", ["1970-01-05/1970-01-07", "1970-01-20"], ["sun"])
    budget = Budget()

    assert numbers(calendar.of_year(1970, budget), 7) == [3, 4, 5, 6, 10, 17, 19]
    dates = OpenDays(CalendarRule(include=(calendar,)))
    following = [dates.following(day, budget, allowed=True) for day in (0, 4, 7, 11, 18, 20)]
    assert following == [3, 4, 10, 17, 19, 24]
    following = [dates.following(day, budget, allowed=False) for day in (0, 3, 6, 10, 19)]
    assert following == [0, 7, 7, 11, 20]
    assert [dates.preceding(day, budget) for day in (3, 4, 9, 16)] == [3, 4, 6, 10]
    once = OpenDays(CalendarRule(include=(Calendar.of("y", ["1970-01-05"]),)))
    assert once.following(5, budget, allowed=True) is None
    assert [once.preceding(day, budget) for day in (3, 4, 365 + 364)] == [None, 4, 4]
