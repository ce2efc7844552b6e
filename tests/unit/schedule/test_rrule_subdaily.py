# ruff: noqa: E501 -- tables: one rule, one line
"""Rules by the hour, minute and second: a stopwatch counts, the wall clock filters."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from betimes.domain.errors import TooExpensive
from betimes.schedule.rrule_rate import passing
from betimes.schedule.rrule_syntax import read_rule
from betimes.schedule.year_days import comb
from facts_kit import parse, utc

SECOND = timedelta(seconds=1)

# fmt: off
RULES = [
    ("19970902T090000", "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", ["02 09:00:00", "02 12:00:00", "02 15:00:00"]),
    ("19970902T090000", "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10;COUNT=8", ["02 09:00:00", "02 09:20:00", "02 09:40:00", "02 10:00:00", "02 10:20:00", "02 10:40:00", "03 09:00:00", "03 09:20:00"]),
    ("20260101T091530", "FREQ=HOURLY;BYMINUTE=15,45;BYSECOND=30;COUNT=4", ["01 09:15:30", "01 09:45:30", "01 10:15:30", "01 10:45:30"]),
    ("20260101T091545", "FREQ=HOURLY;INTERVAL=5;BYDAY=TH,SA;COUNT=5", ["01 09:15:45", "01 14:15:45", "01 19:15:45", "03 01:15:45", "03 06:15:45"]),
    ("20260101T091545", "FREQ=HOURLY;INTERVAL=7;BYMONTHDAY=1,15;COUNT=4", ["01 09:15:45", "01 16:15:45", "01 23:15:45", "15 02:15:45"]),
    ("20260101T091530", "FREQ=MINUTELY;BYSECOND=0,30;BYHOUR=9;COUNT=4", ["01 09:15:30", "01 09:16:00", "01 09:16:30", "01 09:17:00"]),
    ("20260101T095930", "FREQ=MINUTELY;INTERVAL=2;BYHOUR=9,11;COUNT=4", ["01 09:59:30", "01 11:01:30", "01 11:03:30", "01 11:05:30"]),
    ("20260101T090000", "FREQ=MINUTELY;BYMINUTE=0,59;COUNT=4", ["01 09:00:00", "01 09:59:00", "01 10:00:00", "01 10:59:00"]),
    ("20260101T090010", "FREQ=SECONDLY;INTERVAL=7;BYMINUTE=0,30;BYSECOND=10,17,24;COUNT=6", ["01 09:00:10", "01 09:00:17", "01 09:00:24", "01 12:30:10", "01 12:30:17", "01 12:30:24"]),
    ("20260101T090000", "FREQ=SECONDLY;BYHOUR=9;BYMINUTE=0,30;BYSECOND=0;COUNT=4", ["01 09:00:00", "01 09:30:00", "02 09:00:00", "02 09:30:00"]),
    ("20260101T090000", "FREQ=HOURLY;BYMINUTE=0,20,40;BYSETPOS=1,-1;COUNT=4", ["01 09:00:00", "01 09:40:00", "01 10:00:00", "01 10:40:00"]),
    ("20260101T092000", "FREQ=HOURLY;BYMINUTE=0,20,40;BYSETPOS=2;COUNT=3", ["01 09:20:00", "01 10:20:00", "01 11:20:00"]),
    ("20260101T094000", "FREQ=HOURLY;BYMINUTE=0,20,40;BYSETPOS=3;COUNT=3", ["01 09:40:00", "01 10:40:00", "01 11:40:00"]),
    ("20260101T090030", "FREQ=MINUTELY;BYSECOND=0,30;BYSETPOS=-1;BYHOUR=9;COUNT=3", ["01 09:00:30", "01 09:01:30", "01 09:02:30"]),
    ("20260131T220000", "FREQ=HOURLY;BYMONTH=1,3;BYMONTHDAY=31;COUNT=4", ["31 22:00:00", "31 23:00:00", "31 00:00:00", "31 01:00:00"]),
    ("20260228T235958", "FREQ=SECONDLY;BYMONTHDAY=-1;COUNT=4", ["28 23:59:58", "28 23:59:59", "31 00:00:00", "31 00:00:01"]),
    # What the rule names before DTSTART is no occurrence.
    ("20260101T093000", "FREQ=HOURLY;BYMINUTE=0,30;COUNT=3", ["01 09:30:00", "01 10:00:00", "01 10:30:00"]),
    ("20260101T090001", "FREQ=MINUTELY;BYSECOND=0,1;COUNT=3", ["01 09:00:01", "01 09:01:00", "01 09:01:01"]),
]
# fmt: on


@pytest.mark.parametrize(("start", "rule", "expected"), RULES)
def test_times_of_rules(start: str, rule: str, expected: list[str]) -> None:
    """One set, listed, asked from between and counted."""
    schedule = parse({"type": "rrule", "expr": f"DTSTART:{start}Z\nRRULE:{rule}"})
    fires = [fire.nominal for fire in schedule.fires(utc("1990-01-01"))]
    before = utc("1990-01-01")

    assert [moment.strftime("%d %H:%M:%S") for moment in fires] == expected
    for index, moment in enumerate(fires):
        for asked in (before, before + (moment - before) / 2, moment - SECOND):
            fire = schedule.next(asked)
            assert fire is not None
            assert fire.nominal == moment
            assert schedule.count(asked, moment) == 1
            assert schedule.count(asked, fires[-1]) == len(fires) - index
        assert schedule.count(before, moment - SECOND) == 0
        before = moment
    assert schedule.next(fires[-1]) is None


FILTERS = {
    3600: ["HOUR", "DAY"],
    60: ["HOUR", "DAY", "MINUTE"],
    1: ["HOUR", "DAY", "MINUTE", "SECOND"],
}
WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


def by_hand(rule: str, begin: datetime, zone: ZoneInfo, until: datetime) -> list[datetime]:
    """Every unit on a stopwatch, the parts inside it, and what the wall clock then reads."""
    parts = dict(part.removeprefix("BY").split("=") for part in rule.split(";"))
    unit = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}[parts["FREQ"]]
    local = begin.astimezone(zone)
    minutes = parts.get("MINUTE", f"{local.minute}").split(",") if unit == 3600 else ["0"]
    seconds = parts.get("SECOND", f"{local.second}").split(",") if unit > 1 else ["0"]
    inside = [int(m) * 60 + int(s) for m in minutes for s in seconds]
    cursor = begin - timedelta(seconds=(local.minute * 60 + local.second) % unit)
    found = []
    while cursor <= until:
        for rest in inside:
            wall = (cursor + rest * SECOND).astimezone(zone)
            reads: dict[str, object] = {
                "HOUR": wall.hour,
                "MINUTE": wall.minute,
                "SECOND": wall.second,
            }
            reads |= {"DAY": WEEKDAYS[wall.weekday()]}
            wanted = {name: parts[name].split(",") for name in FILTERS[unit] if name in parts}
            if all(str(reads[name]) in values for name, values in wanted.items()):
                found.append(cursor + rest * SECOND)
        cursor += timedelta(seconds=unit * int(parts.get("INTERVAL", "1")))
    return [moment for moment in found if begin <= moment <= until]


@pytest.mark.parametrize(
    ("zone", "begin"),
    [
        ("Europe/Berlin", "2026-03-27T10:15:20"),
        ("Europe/Berlin", "2026-10-23T22:45:00"),
        ("America/New_York", "2026-10-30T09:05:00"),
        ("Australia/Lord_Howe", "2026-04-03T13:20:00"),
        ("Asia/Kathmandu", "2026-01-01T00:00:07"),
    ],
)
@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=HOURLY;INTERVAL=5;BYMINUTE=10,50",
        "FREQ=HOURLY;BYHOUR=1,2,3,23",
        "FREQ=HOURLY;INTERVAL=2;BYDAY=SU,MO",
        "FREQ=MINUTELY;INTERVAL=35;BYHOUR=0,1,2,3,4",
        "FREQ=MINUTELY;INTERVAL=7;BYMINUTE=0,7,20,45",
        "FREQ=MINUTELY;INTERVAL=45;BYSECOND=0,20,59",
        "FREQ=SECONDLY;INTERVAL=601;BYDAY=SU,SA,FR",
        "FREQ=SECONDLY;INTERVAL=77;BYMINUTE=5,15;BYHOUR=2,3",
    ],
)
def test_filtered_rates_in_zones(rule: str, zone: str, begin: str) -> None:
    """Over changes of the clock, some of half an hour, and in odd offsets."""
    start, end = utc(begin), utc(begin) + timedelta(days=4, hours=7)
    expected = by_hand(rule, start, ZoneInfo(zone), end)
    schedule = parse({"type": "rrule", "expr": rule, "anchor": begin + "Z"}, timezone=zone)

    assert [fire.nominal for fire in schedule.fires(start - SECOND, end)] == expected
    for index in range(0, len(expected), max(len(expected) // 5, 1)):
        assert schedule.count(start - SECOND, expected[index]) == index + 1
        assert schedule.count(expected[index], end) == len(expected) - index - 1


def test_seconds_of_a_day_as_bits() -> None:
    """A comb, and what the parts of a rule let pass."""
    every_seventh = comb(1 << 3, 7, 86_400)
    assert every_seventh.bit_count() == len(range(3, 86_400, 7))
    assert [second for second in range(30) if every_seventh >> second & 1] == [3, 10, 17, 24]
    assert comb(1, 86_400, 86_400) == 1
    assert comb(1 << 5, 90_000, 86_400) == 32
    for text, expected in (
        ("FREQ=SECONDLY;BYHOUR=1;BYMINUTE=2;BYSECOND=3,4", [3723, 3724]),
        ("FREQ=MINUTELY;BYHOUR=23;BYMINUTE=59;BYSECOND=3", list(range(86_340, 86_400))),
        ("FREQ=HOURLY;BYHOUR=0;BYMINUTE=5;BYSECOND=3", list(range(3600))),
    ):
        bits = passing(read_rule(text))
        assert [second for second in range(86_400) if bits >> second & 1] == expected
        assert bits < 1 << 86_400
    assert passing(read_rule("FREQ=HOURLY")) == (1 << 86_400) - 1


def test_a_schedule_may_be_evaluated_by_several_threads() -> None:
    """Equal schedules are shared, also by tenants; what is expensive is evaluated in a thread."""
    shared = parse(
        {
            "type": "rrule",
            "expr": "DTSTART:20260101T030000Z\nRRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3",
        }
    )

    def evaluate(first: int) -> None:
        for day in range(first, 700, 30):
            with suppress(TooExpensive):
                next(iter(shared.fires(utc("2026-01-01") + timedelta(days=day), limit=1)))

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(evaluate, range(8)))
    finally:
        sys.setswitchinterval(often)
