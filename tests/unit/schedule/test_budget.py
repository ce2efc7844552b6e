"""Every evaluation has a budget of steps: what is within it is right, what is beyond is refused."""

import sys
from datetime import UTC, datetime, timedelta
from types import FrameType

import pytest

from betimes.domain.errors import Refused, TooExpensive
from betimes.schedule import Budget, Schedule, line_of, parse, preview
from betimes.schedule.bounds import EVALUATION_STEPS_MAX
from betimes.schedule.moment import to_datetime, to_instant
from hostile_schedules import NOW, ask_all, schedules

REVIEWED = "FREQ=SECONDLY;COUNT=99999;BYHOUR=21;BYMINUTE=30;BYSECOND=2"
"""One read-only preview of it took a node 38 seconds."""

EXPENSIVE = {
    "type": "rrule",
    "expr": "FREQ=SECONDLY;INTERVAL=99991;BYHOUR=3;BYMINUTE=7;BYSECOND=9;COUNT=100000",
    "anchor": "2026-01-01T00:00:00",
}
CALLS_MAX = 200_000
"""Calls of functions in everything that is asked of one schedule, however little they do."""


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
def test_a_large_count_of_a_filtered_rate_is_found_by_counting(zone: str) -> None:
    """Once a day until the end of our time: nothing is walked, and the answer is right."""
    budget = Budget()
    schedule = parse(REVIEWED, timezone=zone, now=NOW, budget=budget)
    shown = preview(schedule, NOW, 5, budget=budget)

    assert budget.spent < EVALUATION_STEPS_MAX / 2
    assert {entry["local"][11:] for entry in shown["occurrences"]} == {"21:30:02"}
    assert shown["per_day"] == 1.0


@pytest.mark.parametrize("count", [1, 2, 49, 1_000, 61_000])
def test_the_last_one_of_a_count_has_that_number(count: int) -> None:
    """And there is none after it."""
    rule = f"FREQ=MINUTELY;INTERVAL=7;BYHOUR=1,2,3;BYDAY=SA,SU;BYSECOND=0,30;COUNT={count}"
    schedule = parse(rule, timezone="America/New_York", now=NOW)
    plain = parse(rule.partition(";COUNT")[0], timezone="America/New_York", now=NOW)
    budget = Budget(1_000_000)
    last = plain.instants(to_instant(NOW) - 1_000_000, 1 << 62, count, budget=budget)[-1]

    assert schedule.next_instant(last - 1) == last
    assert schedule.next_instant(last) is None
    total = schedule.count(NOW - timedelta(seconds=1), to_datetime(last), budget=budget)
    assert total == count


def test_what_costs_more_is_refused_with_what_to_do() -> None:
    """With a code of its own; the same on every machine and every time."""
    spent = []
    for _ in range(2):
        budget = Budget()
        with pytest.raises(TooExpensive):
            parse(EXPENSIVE, timezone="UTC", budget=budget)
        spent.append(budget.spent)
    with pytest.raises(TooExpensive) as caught:
        parse(EXPENSIVE, timezone="UTC")
    assert caught.value.code == "schedule_too_expensive"
    assert f"expected a schedule that can be evaluated in {EVALUATION_STEPS_MAX} steps" in str(
        caught.value
    )
    assert "COUNT" in str(caught.value)
    assert spent[0] == spent[1]


def test_without_a_budget_every_question_has_one_of_its_own() -> None:
    """Nobody evaluates without a bound by forgetting to give one."""
    with pytest.raises(TooExpensive):
        Schedule.from_dict({**EXPENSIVE, "timezone": "UTC"})
    rolling = parse(
        {
            "type": "cron",
            "expr": "*/5 * * * *",
            "calendars": {"exclude": [{"weekdays": ["sat"]}], "roll": "next"},
        },
        timezone="UTC",
    )
    assert rolling.count(NOW, NOW + timedelta(days=30)) > 0
    with pytest.raises(TooExpensive):
        rolling.count(NOW, NOW + timedelta(days=20_000))


def test_a_union_of_unions_is_bounded_by_all_its_members() -> None:
    """Thirty-two in each of four levels would be a million schedules."""
    member: dict[str, object] = {"type": "cron", "expr": "0 0 * * *"}
    for _ in range(3):
        member = {"type": "union", "of": [member] * 32}
    with pytest.raises(TooExpensive):
        parse(member, timezone="UTC")


def test_more_dates_than_one_may_cost_are_refused_before_they_are_read() -> None:
    """A calendar may have ten thousand dates; ten such calendars are too many."""
    day = datetime(1970, 1, 1, tzinfo=UTC)
    dates = [(day + timedelta(days=2 * place)).date().isoformat() for place in range(9_000)]
    calendars = [{"dates": dates} for _ in range(10)]
    with pytest.raises(TooExpensive):
        parse(
            {"type": "cron", "expr": "0 0 * * *", "calendars": {"exclude": calendars}},
            timezone="UTC",
        )


def test_a_delay_beyond_our_time_is_refused() -> None:
    """The fuzz found that it failed instead."""
    for after in ("P199Y", "P2399M", "P73000D", "PT1752000H"):
        with pytest.raises(Refused, match="expected a delay that ends before 2200"):
            parse({"type": "delay", "after": after}, timezone="UTC", now=NOW)


@pytest.mark.parametrize("seed", [15, 18, 19])
def test_hostile_schedules_are_answered_or_refused_within_their_budget(seed: int) -> None:
    """A smoke of the fuzz (`make fuzz-schedules`), judged by steps, not by time."""
    kinds = set()
    for kind, members in schedules(seed=seed, number=1_000):
        budget = Budget()
        asked = ask_all(members, budget)
        kinds.add(kind)
        within = asked.steps <= EVALUATION_STEPS_MAX
        assert within or asked.refusal == "schedule_too_expensive", members
    assert len(kinds) == 12


def test_steps_stand_for_all_the_work() -> None:
    """Calls are counted beside the steps: no walk goes unpaid."""
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    for _, members in schedules(seed=16, number=400):
        calls = 0
        sys.setprofile(count)
        try:
            ask_all(members, Budget())
        finally:
            sys.setprofile(None)
        assert calls < CALLS_MAX, members


def test_the_line_of_a_stored_schedule_is_its_canonical_text() -> None:
    """Read off the stored form, without evaluating anything."""
    compared = 0
    for _, members in schedules(seed=17, number=800):
        try:
            schedule = parse(members, now=NOW, timezone="UTC", seed="job")
        except Refused:
            continue
        assert line_of(schedule.to_dict()) == schedule.canonical
        compared += 1
    assert compared > 250
