"""Corners where kinds, wrappers and limits meet."""

from datetime import UTC, datetime

import pytest

from betimes.domain.errors import BadSchedule, Bug
from betimes.schedule import Calendar, Schedule
from betimes.schedule.budget import Budget
from betimes.schedule.dst import Dst, read_dst
from betimes.schedule.fire import spread
from betimes.schedule.moment import read_moment, to_datetime
from betimes.schedule.rrule import RuleClock
from betimes.schedule.rrule_syntax import read_rule
from betimes.schedule.tzif import _change, _unroll
from facts_kit import parse, utc

BERLIN = "Europe/Berlin"
SPRING = utc("2026-03-01"), utc("2026-04-30")


def test_a_union_loses_what_no_member_gives() -> None:
    """Skipped by one member and fired by another is not lost."""
    skipping = {"type": "cron", "expr": "30 2 * * *", "dst": {"gap": "skip"}}
    alone = parse({"type": "union", "of": [skipping]}, timezone=BERLIN)
    covered = parse({"type": "union", "of": [skipping, "30 3 * * *"]}, timezone=BERLIN)

    assert [drop.local for drop in alone.dropped(*SPRING)] == ["2026-03-29T02:30:00"]
    assert covered.dropped(*SPRING) == []


def test_a_union_of_dense_members_is_counted_by_its_sum() -> None:
    """Beyond a hundred thousand, an upper bound, at once."""
    union = parse({"type": "union", "of": ["* * * * * *", "*/2 * * * * *"]})
    assert union.count(utc("2026-01-01"), utc("2027-01-01")) == 365 * 86_400 * 3 // 2
    assert union.count(utc("2026-01-01"), utc("2026-01-01T01:00")) == 3600


def test_limits_apply_to_what_is_lost_too() -> None:
    """Nothing is dropped outside start_at and end_at; flags pass through."""
    members = {"type": "cron", "expr": "30 2 * * *", "dst": {"gap": "skip"}}
    late = parse({**members, "start_at": "2026-04-01T00:00"}, timezone=BERLIN)
    early = parse({**members, "start_at": "2026-03-01T00:00"}, timezone=BERLIN)
    caught = parse(
        {"type": "cron", "expr": "30 2 * * *", "start_at": "2026-03-01"}, timezone=BERLIN
    )
    fire = caught.next(utc("2026-03-28T12:00"))

    assert late.dropped(*SPRING) == []
    assert len(early.dropped(*SPRING)) == 1
    assert fire is not None
    assert fire.flags == ("dst_gap_shifted",)
    assert caught.intended(fire) == "2026-03-29T02:30:00"
    assert late.count(*SPRING) == 29
    assert late.count(utc("2026-01-01"), utc("2026-03-01")) == 0


def test_amended_rules_list_count_and_flag() -> None:
    """Added and removed instants, in lists as in steps."""
    text = (
        "DTSTART;TZID=Europe/Berlin:20260327T023000\nRRULE:FREQ=DAILY\n"
        "EXDATE;TZID=Europe/Berlin:20260328T023000\nRDATE:20260401T120000Z"
    )
    schedule = parse(text)
    fires = list(schedule.fires(*SPRING))
    instants = schedule.instants(*(int(when.timestamp()) * 1_000_000 for when in SPRING))

    assert [to_datetime(instant) for instant in instants] == [fire.nominal for fire in fires]
    assert [fire.flags for fire in fires[:2]] == [(), ("dst_gap_shifted",)]
    assert schedule.intended(fires[1]) == "2026-03-29T02:30:00"
    added = next(fire for fire in fires if fire.nominal == utc("2026-04-01T12:00"))
    assert (added.flags, schedule.intended(added)) == ((), None)
    skipping = parse({"type": "rrule", "expr": text, "dst": {"gap": "skip"}})
    assert [drop.local for drop in skipping.dropped(*SPRING)] == ["2026-03-29T02:30:00"]


def test_single_moments_have_nothing_special() -> None:
    """Once and rates: no flags, nothing lost, nothing moved."""
    for source in ("2026-03-29T02:30", "every PT1H from 2026-03-29T00:00:00Z"):
        schedule = parse(source, timezone=BERLIN)
        fire = schedule.next(utc("2026-03-28T12:00"))
        assert fire is not None
        assert (fire.flags, schedule.intended(fire), schedule.dropped(*SPRING)) == ((), None, [])


def test_filtered_rates_have_nothing_special_either() -> None:
    """A stopwatch knows no jump; with positions it is counted by walking."""
    schedule = parse("DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY;BYMINUTE=0,20,40;BYSETPOS=-1,1")
    fires = list(schedule.fires(utc("2026-01-01"), limit=3))

    assert [fire.nominal.strftime("%H:%M") for fire in fires] == ["00:40", "01:00", "01:40"]
    assert (fires[0].flags, schedule.intended(fires[0])) == ((), None)
    assert schedule.dropped(*SPRING) == []
    assert schedule.count(utc("2026-01-01"), utc("2026-01-02")) == 48
    assert schedule.count(utc("2020-01-01"), utc("2021-01-01")) == 0


def test_filtered_rates_stop_at_their_count() -> None:
    """COUNT is counted in occurrences that pass."""
    schedule = parse(
        "DTSTART:20260101T090000Z\nRRULE:FREQ=SECONDLY;INTERVAL=30;BYMINUTE=0,1;BYSECOND=0,30;COUNT=5"
    )
    found = [f.nominal.strftime("%H:%M:%S") for f in schedule.fires(utc("2025-01-01"))]
    assert found == ["09:00:00", "09:00:30", "09:01:00", "09:01:30", "10:00:00"]


def test_positions_in_every_period() -> None:
    """BYSETPOS in years, months, weeks and days; counted from DTSTART."""
    start = int(utc("2026-01-01T09:00").timestamp())
    rules = {
        "FREQ=YEARLY;BYDAY=MO;BYSETPOS=1,-1": ["2026-01-05", "2026-12-28", "2027-01-04"],
        "FREQ=MONTHLY;BYDAY=MO,FR;BYSETPOS=2": ["2026-01-05", "2026-02-06", "2026-03-06"],
        "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1": ["2026-01-02", "2026-01-09", "2026-01-16"],
        "FREQ=DAILY;BYHOUR=9,17;BYSETPOS=2": ["2026-01-01", "2026-01-02", "2026-01-03"],
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=5;COUNT=2": ["2026-03-30", "2026-06-29"],
    }
    for text, expected in rules.items():
        clock = RuleClock(read_rule(text), start, Budget())
        found = clock.between(start - 1, start + 400 * 86_400, 3, Budget())
        shown = [to_datetime(second * 1_000_000).strftime("%Y-%m-%d") for second in found]
        assert shown == expected, text
        assert clock.count(start - 1, found[-1], Budget()) == len(expected)


def test_counts_that_cannot_be_reached() -> None:
    """More occurrences than our time has: the rule simply goes on to its end."""
    schedule = parse("DTSTART:20260101T000000Z\nRRULE:FREQ=YEARLY;COUNT=100000")
    assert schedule.count(utc("2025-01-01"), utc("2199-12-31")) == 174
    by_position = parse(
        "DTSTART:20260101T000000Z\nRRULE:FREQ=YEARLY;BYMONTHDAY=1;BYSETPOS=1;COUNT=9999"
    )
    assert by_position.count(utc("2025-01-01"), utc("2199-12-31")) == 174


def test_forms_of_shorthand_that_go_wrong() -> None:
    """Each in a sentence."""
    for line in ("rate(5 parsecs)", "cron: @reboot", "every: soon", "R5"):
        with pytest.raises(BadSchedule, match="expected"):
            parse(line, now=utc("2026-01-01"))
    assert parse("cron: @every 90m", now=utc("2026-01-01")).kind == "interval"
    assert parse({"type": "cron", "expr": "@every 90m", "dialect": "unix"}, now=SPRING[0]).kind == (
        "interval"
    )


def test_unions_inside_unions() -> None:
    """Allowed to a depth, with the zone handed down."""
    inner = {"type": "union", "of": ["every day at 9:00"]}
    schedule = parse({"type": "union", "of": [inner, "manual"]}, timezone=BERLIN)
    fire = schedule.next(utc("2026-06-01"))
    assert fire is not None
    assert fire.nominal == utc("2026-06-01T07:00")
    with pytest.raises(BadSchedule):
        parse({"type": "union", "of": "0 9 * * *"})


def test_datetimes_may_stand_for_text() -> None:
    """In members given from Python."""
    moment = datetime(2026, 12, 24, 15, tzinfo=UTC)
    assert parse({"type": "once", "at": moment}).to_dict()["at"] == "2026-12-24T15:00:00Z"
    assert read_moment(moment.replace(tzinfo=None)).offset is None
    assert read_dst(Dst("skip", None)) == Dst("skip", None)
    assert spread("a", "b", 999) == 0


def test_limits_at_times_that_do_not_exist_are_shifted() -> None:
    """start_at inside a gap is the moment after it."""
    schedule = parse(
        {"type": "cron", "expr": "* * * * *", "start_at": "2026-03-29T02:30"}, timezone=BERLIN
    )
    fire = schedule.next(utc("2026-01-01"))
    assert fire is not None
    assert fire.nominal == utc("2026-03-29T01:30")


def test_rolling_that_finds_no_day() -> None:
    """More than a month closed: the fire is dropped after all."""
    closed = Calendar.of("closed", ["2026-06-01/2026-12-31"])
    schedule = parse(
        {
            "type": "cron",
            "expr": "0 9 1 9 *",
            "calendars": {"exclude": ["closed"], "roll": "nearest"},
        },
        calendars={"closed": closed},
    )
    fire = schedule.next(utc("2026-05-01"))
    assert fire is not None
    assert fire.nominal == utc("2027-09-01T09:00")
    assert schedule.intended(fire) is None


def test_calendars_and_gaps_together() -> None:
    """What the zone did shows through a calendar, and both kinds of loss are listed in order."""
    sundays = {"exclude": [{"name": "s", "weekdays": ["mon"]}]}
    schedule = parse({"type": "cron", "expr": "30 2 * * *", "calendars": sundays}, timezone=BERLIN)
    fire = schedule.next(utc("2026-03-28T12:00"))
    assert fire is not None
    assert schedule.intended(fire) == "2026-03-29T02:30:00"
    skipping = parse(
        {"type": "cron", "expr": "30 2 * * *", "calendars": sundays, "dst": {"gap": "skip"}},
        timezone=BERLIN,
    )
    lost = skipping.dropped(utc("2026-03-28T12:00"), utc("2026-03-31T12:00"))
    assert [drop.code for drop in lost] == ["DST_GAP_SKIPPED", "CALENDAR_EXCLUDED"]


def test_only_included_dates_that_have_passed() -> None:
    """Nothing is left, and nobody searches for ever."""
    past = {"include": [{"name": "p", "dates": ["2020-01-01"]}]}
    schedule = parse({"type": "cron", "expr": "0 9 * * *", "calendars": past})
    assert schedule.next(utc("2026-01-01")) is None


def test_rules_of_zone_files() -> None:
    """Days counted with and without the leap day, and a broken rule."""
    assert _change("J60", 2024) == int(utc("2024-03-01T02:00").timestamp())
    assert _change("J60", 2026) == int(utc("2026-03-01T02:00").timestamp())
    assert _change("J59/0", 2024) == int(utc("2024-02-28").timestamp())
    assert _change("59/0", 2024) == int(utc("2024-02-29").timestamp())
    assert _change("M2.5.4/-1", 2024) == int(utc("2024-02-28T23:00").timestamp())
    with pytest.raises(Bug, match="POSIX"):
        _unroll("nonsense", [])


def test_schedules_show_themselves() -> None:
    """In a debugger and in a set."""
    schedule = parse("0 9 * * *")
    assert repr(schedule) == "Schedule('cron: 0 9 * * * @ UTC')"
    assert {schedule, Schedule.from_dict(schedule.to_dict())} == {schedule}
    assert schedule.overlap == "skip"
    assert schedule.catchup.policy == "latest"
