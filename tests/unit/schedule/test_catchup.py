"""After an outage: what runs, what is recorded, and how little work it takes."""

from datetime import timedelta

import pytest

from betimes.schedule import Catchup, CatchupPlan, plan_catchup, read_catchup
from facts_kit import parse, utc

HOUR = 3_600_000_000
LAST = utc("2026-01-01T00:00")
NOW = utc("2026-01-01T06:30")
HOURLY = parse("0 * * * *")


def hours(plan: CatchupPlan) -> list[int]:
    return [fire.nominal.hour for fire in plan.runs]


def ranges(plan: CatchupPlan) -> list[tuple[int, int, int, str]]:
    return [(gap.first.hour, gap.last.hour, gap.count, gap.code) for gap in plan.skipped]


def test_latest_runs_the_newest_only() -> None:
    """The others within the window are coalesced into it."""
    plan = plan_catchup(HOURLY, LAST, NOW, Catchup("latest", window=12 * HOUR))
    assert hours(plan) == [6]
    assert ranges(plan) == [(1, 5, 5, "CATCHUP_COALESCED")]


def test_latest_within_a_window() -> None:
    """Older than the window is too old, even for the newest of them."""
    plan = plan_catchup(HOURLY, LAST, NOW, Catchup("latest", window=2 * HOUR))
    assert hours(plan) == [6]
    assert ranges(plan) == [
        (1, 4, 4, "CATCHUP_WINDOW_EXCEEDED"),
        (5, 5, 1, "CATCHUP_COALESCED"),
    ]
    plan = plan_catchup(HOURLY, LAST, NOW, Catchup("latest", window=HOUR // 4))
    assert hours(plan) == []
    assert ranges(plan) == [(1, 6, 6, "CATCHUP_WINDOW_EXCEEDED")]


def test_all_runs_the_newest_up_to_its_maximum() -> None:
    """Oldest first; what is beyond the maximum or the window is recorded."""
    plan = plan_catchup(HOURLY, LAST, NOW, Catchup("all", window=4 * HOUR, max=2))
    assert hours(plan) == [5, 6]
    assert ranges(plan) == [
        (1, 2, 2, "CATCHUP_WINDOW_EXCEEDED"),
        (3, 4, 2, "CATCHUP_MAX_REACHED"),
    ]
    plan = plan_catchup(HOURLY, LAST, NOW, Catchup("all", window=24 * HOUR))
    assert (hours(plan), ranges(plan)) == ([1, 2, 3, 4, 5, 6], [])


def test_none_runs_nothing_late() -> None:
    """Everything missed is recorded."""
    plan = plan_catchup(HOURLY, LAST, NOW, Catchup("none"))
    assert (hours(plan), ranges(plan)) == ([], [(1, 6, 6, "CATCHUP_NONE")])


@pytest.mark.parametrize("policy", ["none", "latest", "all"])
def test_grace_keeps_what_is_simply_on_time(policy: str) -> None:
    """A fire a moment ago is not missed, whatever the policy; `latest` then needs no other."""
    now = utc("2026-01-01T06:00:02")
    plan = plan_catchup(
        HOURLY, LAST, now, Catchup(policy, window=3 * HOUR, max=1), grace=timedelta(seconds=10)
    )
    assert hours(plan)[-1] == 6
    expected = {"none": [6], "latest": [6], "all": [5, 6]}
    assert hours(plan) == expected[policy]
    counted = sum(gap.count for gap in plan.skipped) + len(plan.runs)
    assert counted == 6


def test_nothing_missed() -> None:
    """No fire, no decision."""
    plan = plan_catchup(HOURLY, LAST, utc("2026-01-01T00:59"))
    assert plan == CatchupPlan((), ())
    assert plan_catchup(HOURLY, NOW, LAST) == CatchupPlan((), ())


def test_the_policy_of_the_schedule_is_the_default() -> None:
    """Latest within an hour, unless the schedule says otherwise."""
    assert hours(plan_catchup(HOURLY, LAST, NOW)) == [6]
    everything = parse(
        {"type": "cron", "expr": "0 * * * *", "catchup": {"policy": "all", "window": "1d"}}
    )
    assert len(plan_catchup(everything, LAST, NOW).runs) == 6
    assert read_catchup("none") == Catchup("none")
    assert read_catchup(Catchup("all")) == Catchup("all")


@pytest.mark.parametrize(
    "source",
    [
        "* * * * * *",
        "every 1s",
        "*/7 * * * * *",
        "DTSTART:20200101T000000Z\nRRULE:FREQ=SECONDLY",
        "DTSTART:20200101T090000Z\nRRULE:FREQ=SECONDLY;BYHOUR=9,10,11",
    ],
)
def test_ten_years_of_seconds_are_counted_not_walked(source: str) -> None:
    """Every fire of the outage is accounted for, exactly, within the time of a test."""
    now = utc("2036-01-01T10:00:00")
    schedule = parse(source, timezone="Europe/Berlin", now=LAST)
    plan = plan_catchup(schedule, LAST, now, Catchup("all", window=HOUR, max=50))

    assert len(plan.runs) == 50
    assert plan.runs[-1].nominal <= now
    assert sum(gap.count for gap in plan.skipped) + 50 == schedule.count(LAST, now)
    assert [gap.code for gap in plan.skipped] == ["CATCHUP_WINDOW_EXCEEDED", "CATCHUP_MAX_REACHED"]


def test_calendar_periods_and_unions_over_years() -> None:
    """The other kinds account for every fire too."""
    for source in ("every P1D from 2026-01-01T02:30", "0 0 1 * * ", "FREQ=WEEKLY;BYDAY=MO,WE"):
        schedule = parse(source, timezone="Europe/Berlin", now=LAST)
        now = utc("2046-01-01")
        plan = plan_catchup(schedule, LAST, now, Catchup("all", window=HOUR * 24 * 3000, max=7))
        assert len(plan.runs) == 7
        every = list(schedule.fires(LAST, now, limit=100_000))
        assert list(plan.runs) == every[-7:]
        assert sum(gap.count for gap in plan.skipped) == len(every) - 7
        assert plan.skipped[0].first == every[0].nominal
        assert plan.skipped[-1].last == every[-8].nominal
