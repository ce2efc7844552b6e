"""Fires per step agree with a plain count of the fires themselves."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.ids import to_us
from betimes.schedule import ScheduleCache, parse
from betimes.schedule.load import Alike, Steps, tally

START = datetime(2026, 3, 29, tzinfo=UTC)
MINUTE_US = 60_000_000
MANY = 1_000_000

EXPRESSIONS = st.sampled_from(
    ["* * * * *", "*/7 1-5 * * *", "0 2 * * *", "30 2 29 3 *", "0 0 1 1 *", "*/15 * * * 1-5"]
)


def alike(source: dict[str, str], jobs: float, *seeds: str) -> Alike:
    stored = json.dumps(parse(source, seed=seeds[0] if seeds else "").to_dict())
    return Alike(stored, jobs, list(seeds) or ["nobody"])


@given(EXPRESSIONS, st.integers(1, 500), st.integers(1, 90), st.integers(1, 200))
def test_the_same_fires_as_one_by_one(expr: str, jobs: int, minutes: int, count: int) -> None:
    source = {"type": "cron", "expr": expr, "timezone": "Europe/Stockholm"}
    steps = Steps(to_us(START), minutes * MINUTE_US, count)
    told = tally(alike(source, jobs), steps, ScheduleCache(), fires_max=MANY)
    plain = [0.0] * count
    for instant in parse(source).instants(steps.start - 1, steps.end - 1, MANY):
        plain[(instant - steps.start) // steps.step] += jobs
    assert (told.fires, told.exact) == (plain, True)


def test_what_is_too_much_to_count_goes_on_as_it_began() -> None:
    source = {"type": "interval", "every": "PT1S", "anchor": "1970-01-01T00:00:00Z"}
    steps = Steps(to_us(START), MINUTE_US, 60)
    told = tally(alike(source, 2.0), steps, ScheduleCache(), fires_max=300)
    assert not told.exact
    assert all(abs(fires - 120) <= 4 for fires in told.fires)
    assert abs(sum(told.fires) - 7200) <= 4


def test_some_stand_for_the_others_where_starts_depend_on_the_job() -> None:
    source = {"type": "cron", "expr": "H H(0-3) * * *", "timezone": "UTC"}
    seeds = [f"job {number}" for number in range(32)]
    steps = Steps(to_us(START), 60 * MINUTE_US, 24)
    told = tally(alike(source, 3200.0, *seeds), steps, ScheduleCache(), fires_max=MANY)
    assert not told.exact
    assert sum(told.fires) == 3200.0
    assert sum(told.fires[4:]) == 0
    assert all(fires > 0 for fires in told.fires[:4])


def test_what_fired_before_the_span_may_start_inside_it() -> None:
    source = {"type": "cron", "expr": "0 0 * * *", "timezone": "UTC", "window": "PT1H"}
    seeds = [f"job {number}" for number in range(60)]
    half_past = Steps(to_us(START) + 30 * MINUTE_US, MINUTE_US, 30)
    told = tally(alike(source, 60.0, *seeds), half_past, ScheduleCache(), fires_max=MANY)
    assert told.exact
    assert 15 <= sum(told.fires) <= 45
    whole = Steps(to_us(START), 60 * MINUTE_US, 1)
    assert tally(alike(source, 60.0, *seeds), whole, ScheduleCache(), fires_max=MANY).fires == [60]


def test_a_fixed_delay_counts_by_its_delay() -> None:
    source = {
        "type": "interval",
        "every": "PT30S",
        "mode": "fixed_delay",
        "anchor": "1970-01-01T00:00:00Z",
    }
    steps = Steps(to_us(START), MINUTE_US, 3)
    told = tally(alike(source, 1.0), steps, ScheduleCache(), fires_max=MANY)
    assert [round(fires, 6) for fires in told.fires] == [2.0, 2.0, 2.0]


def test_what_cannot_be_read_counts_nothing() -> None:
    told = tally(
        Alike('{"type": "no such kind"}', 9.0, ["a"]),
        Steps(to_us(START), MINUTE_US, 2),
        ScheduleCache(),
        fires_max=10,
    )
    assert (told.fires, told.exact) == ([0.0, 0.0], False)
