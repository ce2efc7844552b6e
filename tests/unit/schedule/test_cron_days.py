"""Days of cron: L, W, #, both fields together, dialects."""

import pytest

from betimes.domain.errors import BadSchedule
from betimes.schedule import parse
from facts_kit import days, fire_times, utc

START = "2026-01-01T12:00"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]),
        ("0 0 L 2 *", ["2026-02-28", "2027-02-28", "2028-02-29"]),
        ("0 0 LW * *", ["2026-01-30", "2026-02-27", "2026-03-31"]),
        # 1 August 2026 is a Saturday, 1 February and 1 March are Sundays, 1 May is a Friday.
        ("0 0 1W 2,3,5,8 *", ["2026-02-02", "2026-03-02", "2026-05-01", "2026-08-03"]),
        # 15 August is a Saturday, 15 November a Sunday.
        ("0 0 15W 8,11 *", ["2026-08-14", "2026-11-16"]),
        # 31 January is a Saturday, 31 May a Sunday; months without a 31st are passed over.
        ("0 0 31W * *", ["2026-01-30", "2026-03-31", "2026-05-29", "2026-07-31"]),
        ("0 0 30W 2,8 *", ["2026-08-31", "2027-08-30"]),
        ("0 0 1,15,L * *", ["2026-01-15", "2026-01-31", "2026-02-01", "2026-02-15"]),
        ("0 0 * * MON#1", ["2026-01-05", "2026-02-02", "2026-03-02"]),
        ("0 0 * * FRI#5", ["2026-01-30", "2026-05-29", "2026-07-31"]),
        ("0 0 * * 5L", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 * * 0#L", ["2026-01-25", "2026-02-22", "2026-03-29"]),
        ("0 0 * * 7L", ["2026-01-25", "2026-02-22", "2026-03-29"]),
        ("0 0 * * MON#1,WED#3,FRI", ["2026-01-02", "2026-01-05", "2026-01-09", "2026-01-16"]),
        ("0 0 31 * *", ["2026-01-31", "2026-03-31", "2026-05-31"]),
        # OR of both day fields.
        ("0 0 13 * FRI", ["2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"]),
        ("0 0 13 * +FRI", ["2026-02-13", "2026-03-13", "2026-11-13"]),
        ("0 0 31 2 MON", ["2026-02-02", "2026-02-09", "2026-02-16", "2026-02-23", "2027-02-01"]),
        ("0 0 L * THU#1", ["2026-01-31", "2026-02-05", "2026-02-28", "2026-03-05"]),
        # A stepped star is no star: OR.
        ("0 0 */10 * MON", ["2026-01-05", "2026-01-11", "2026-01-12", "2026-01-19", "2026-01-21"]),
        ("0 0 5 * */3", ["2026-01-03", "2026-01-04", "2026-01-05", "2026-01-07"]),
        ("0 0 1-31 * MON", ["2026-01-02", "2026-01-03"]),
        ("0 0 ? * MON", ["2026-01-05", "2026-01-12"]),
        ("0 0 15 * ?", ["2026-01-15", "2026-02-15"]),
    ],
)
def test_days(expression: str, expected: list[str]) -> None:
    """Tables of dates, checked with a calendar on the wall."""
    assert days(expression, START, len(expected)) == expected


@pytest.mark.parametrize(
    ("dialect", "expression", "expected"),
    [
        ("quartz", "0 0 0 ? * 2", ["2026-01-05"]),
        ("quartz", "0 0 0 ? * 1", ["2026-01-04"]),
        ("quartz", "0 0 0 ? * MON-FRI", ["2026-01-02", "2026-01-05"]),
        ("quartz", "0 0 0 ? * FRI-MON", ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]),
        ("quartz", "0 0 0 ? * SAT-SUN", ["2026-01-03", "2026-01-04", "2026-01-10"]),
        ("quartz", "0 0 0 ? NOV-FEB/2 SUN#1", ["2026-01-04", "2026-11-01", "2027-01-03"]),
        ("quartz", "0 0 0 L-3 * ?", ["2026-01-28", "2026-02-25"]),
        ("quartz", "0 0 0 L-3W * ?", ["2026-01-28", "2026-02-25", "2026-03-27"]),
        ("quartz", "0 0 0 LW * ?", ["2026-01-30"]),
        ("quartz", "0 0 0 ? * L", ["2026-01-03", "2026-01-10"]),
        ("quartz", "0 0 0 ? * 6L", ["2026-01-30"]),
        ("quartz", "0 0 0 ? * 2#1 2027", ["2027-01-04"]),
        ("aws", "0 0 ? * 2 *", ["2026-01-05"]),
        ("aws", "0 0 L * ? 2026-2027", ["2026-01-31"]),
        ("aws", "0 0 ? * MON-SUN *", ["2026-01-02", "2026-01-03"]),
        ("aws", "0 0 ? * SAT-MON *", ["2026-01-03", "2026-01-04", "2026-01-05", "2026-01-10"]),
        ("celery", "0 0 * * 0", ["2026-01-04"]),
        ("celery", "0 0 13 * 5", ["2026-02-13", "2026-03-13"]),
        ("celery", "0 0 * * 5-1", ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]),
        ("apscheduler3", "0 0 * * 0", ["2026-01-05"]),
        ("apscheduler3", "0 0 * * 6", ["2026-01-04"]),
        ("apscheduler3", "0 0 * * sun", ["2026-01-04"]),
        ("apscheduler3", "0 0 13 * 4", ["2026-02-13", "2026-03-13"]),
        ("apscheduler3", "0 0 * * MON-FRI", ["2026-01-02", "2026-01-05"]),
        ("kubernetes", "0 0 * * 0", ["2026-01-04"]),
        ("kubernetes", "0 0 13 * 5", ["2026-01-02", "2026-01-09", "2026-01-13"]),
        ("kubernetes", "@weekly", ["2026-01-04"]),
    ],
)
def test_dialects(dialect: str, expression: str, expected: list[str]) -> None:
    """The same numbers mean other weekdays, and both day fields another set."""
    assert days(expression, START, len(expected), dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "expression", "part"),
    [
        ("quartz", "0 0 0 * * *", "`?` in exactly one"),
        ("quartz", "0 0 0 ? * ?", "`?` in exactly one"),
        ("quartz", "0 0 0 1 * MON", "`?` in exactly one"),
        ("quartz", "0 0 * * ?", "expected 6 or 7 cron fields in dialect quartz, got 5"),
        ("quartz", "0 0 0 ? * 0", 'field "weekday" within 1-7, got 0'),
        ("quartz", "0 0 0 ? * 8", 'field "weekday" within 1-7, got 8'),
        ("quartz", "0 0 0 L-31 * ?", "n within 0-30"),
        ("quartz", "0 0 0 1 1 ? 2030-2020", "does not run backwards"),
        ("aws", "0 0 * * *", "expected 6 cron fields in dialect aws, got 5"),
        ("aws", "0 0 * * * *", "`?` in exactly one"),
        ("aws", "0 0 1 1 ? 2030-2020", "does not run backwards"),
        ("kubernetes", "0 0 * * 7", 'field "weekday" within 0-6, got 7'),
        ("kubernetes", "0 0 0 * * *", "expected 5 cron fields in dialect kubernetes, got 6"),
        ("celery", "0 0 * * 7", 'field "weekday" within 0-6, got 7'),
        ("apscheduler3", "0 0 * * 7", 'field "weekday" within 0-6, got 7'),
        ("vixie", "* * * * *", "expected a cron dialect out of unix"),
    ],
)
def test_dialects_refuse(dialect: str, expression: str, part: str) -> None:
    """What a dialect's own program refuses, we refuse under its name."""
    with pytest.raises(BadSchedule) as caught:
        parse({"type": "cron", "expr": expression, "dialect": dialect})
    assert part in caught.value.sentence


def test_day_match_policy() -> None:
    """Either day field is enough, unless the schedule asks for both."""
    both = parse({"type": "cron", "expr": "0 0 13 * FRI", "day_match": "and"})
    either = parse({"type": "cron", "expr": "0 0 13 * 5", "dialect": "celery", "day_match": "or"})
    start = utc(START)

    assert [fire.nominal.day for fire in both.fires(start, limit=3)] == [13, 13, 13]
    assert [fire.nominal.day for fire in either.fires(start, limit=3)] == [2, 9, 13]
    with pytest.raises(BadSchedule, match=r"or\|and"):
        parse({"type": "cron", "expr": "0 0 13 * FRI", "day_match": "xor"})
    with pytest.raises(BadSchedule, match="`and` with `\\+`"):
        parse({"type": "cron", "expr": "0 0 13 * +FRI", "day_match": "or"})


def test_next_is_strictly_later() -> None:
    """A fire at the very start is not counted; a fraction of a second changes nothing."""
    on_the_dot = fire_times("0 9 * * *", "UTC", utc("2026-01-01T09:00"), 1)
    just_before = fire_times("0 9 * * *", "UTC", utc("2026-01-01T08:59:59.999999"), 1)

    assert on_the_dot == [utc("2026-01-02T09:00")]
    assert just_before == [utc("2026-01-01T09:00")]


def test_seconds() -> None:
    """Seconds stand first; several of them, and across the end of a minute."""
    found = fire_times("10,50 59 23 31 12 *", "UTC", utc("2026-12-31T23:59:10"), 3)
    assert [moment.isoformat()[:19] for moment in found] == [
        "2026-12-31T23:59:50",
        "2027-12-31T23:59:10",
        "2027-12-31T23:59:50",
    ]
    assert len(fire_times("*/7 * * * * *", "UTC", utc("2026-01-01T00:00"), 9)) == 9


def test_hours_of_aws_run_over_midnight() -> None:
    """Its own documentation has `0/30 20-2`: from eight in the evening to half past two."""
    found = fire_times("0/30 20-2 ? * MON-FRI *", "UTC", utc("2026-01-01T02:00"), 4, dialect="aws")
    assert [moment.strftime("%d %H:%M") for moment in found] == [
        *("01 02:30", "01 20:00", "01 20:30", "01 21:00"),
    ]
