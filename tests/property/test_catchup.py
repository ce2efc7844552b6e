"""However late a planner comes: every fire is planned, caught up or on record, and none twice."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from betimes.coordinator.plan import LATE_AFTER, Pass, Settling
from betimes.domain.ids import JobId, TenantId, compose, to_us
from betimes.domain.parcel import Lane, rank_of
from betimes.fairness.pace import paced, share_of, unapproved
from betimes.schedule import Budget, ScheduleCache, parse
from betimes.store.catchup import Gap
from betimes.store.plan import DueJob

START = datetime(2026, 3, 27, tzinfo=UTC)
HORIZON = timedelta(minutes=5)
MICROSECOND = timedelta(microseconds=1)
SCHEDULES = st.sampled_from(
    [
        {"type": "interval", "every": "PT7S", "anchor": "1970-01-01T00:00:00Z"},
        {"type": "interval", "every": "PT20S", "anchor": "1970-01-01T00:00:00Z", "jitter": "PT30S"},
        {"type": "cron", "expr": "*/5 * * * *", "timezone": "Europe/Stockholm"},
        {"type": "cron", "expr": "30 2 * * *", "timezone": "Europe/Stockholm"},
        {
            "type": "cron",
            "expr": "*/10 2 * * *",
            "timezone": "Europe/Stockholm",
            "dst": {"gap": "skip"},
        },
        {"type": "once", "at": "2026-03-27T05:00:00Z"},
    ]
)
CATCHUPS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["none", "latest", "all"]),
        "window": st.sampled_from(["PT10S", "PT1H", "P3D"]),
        "max": st.sampled_from([1, 3, 100]),
    }
)


@given(
    SCHEDULES,
    CATCHUPS,
    st.integers(0, 3 * 86_400_000_000),
    st.integers(0, 3 * 86_400_000_000),
)
def test_planned_caught_up_and_dropped_are_all_fires(
    schedule: dict[str, Any], catchup: dict[str, Any], after_us: int, late_us: int
) -> None:
    after = START + timedelta(microseconds=after_us)
    timetable = parse({"timezone": "UTC", **schedule, "catchup": catchup})
    first = timetable.next(after)
    if first is None:
        return
    now = first.nominal + timedelta(microseconds=late_us)
    text = msgspec.json.encode(timetable.to_dict()).decode()
    job = DueJob(
        JobId(compose(1, 0, 1)), TenantId(UUID(int=1)), 1, first.nominal, 0, "q", 5, "h", text, None
    )
    cache = ScheduleCache(10)
    step = Pass(cache, now=now, until=now + HORIZON).step(job, Budget())
    runs, dropped, gap = list(step.fires), list(step.dropped), step.gap
    assert (gap is not None) == (late_us >= to_us(now) - to_us(now - LATE_AFTER))
    if gap is not None:
        settled = Settling(cache).settle(Gap(job, gap.last, gap.completes))
        assert (
            len(settled.ids)
            == len(settled.fires)
            <= {"none": 0, "latest": 1}.get(catchup["policy"], catchup["max"])
        )
        assert all(gap.first <= fire <= gap.last for fire in settled.fires)
        runs += settled.fires
        dropped += settled.dropped
        assert not step.completed

    until = now + HORIZON if step.next_fire_at is None else step.next_fire_at - MICROSECOND
    expected = timetable.count(first.nominal - MICROSECOND, until)
    # What DST takes away is written down as far as the horizon, not up to the next fire.
    seen = min(until, now + HORIZON)
    denied = len(timetable.dropped(first.nominal - MICROSECOND, seen, 100_000))
    assert len(set(runs)) == len(runs)
    assert len(runs) + sum(one.fires for one in dropped) == expected + denied
    spans = sorted(
        [(fire, fire) for fire in runs]
        + [(one.fire_at, one.until_at or one.fire_at) for one in dropped]
    )
    fires = {one.nominal for one in timetable.fires(first.nominal - MICROSECOND, until, limit=500)}
    for fire in fires:
        assert sum(begin <= fire <= end for begin, end in spans) >= 1
    assert not fires & {one.fire_at for one in dropped} & set(runs)


@given(st.integers(0, 500), st.floats(0.5, 5_000), st.integers(1, 50))
def test_turns_never_come_faster_than_the_share(count: int, rate: float, tenants: int) -> None:
    share = share_of(rate, tenants)
    turns = list(paced(count, start=START, per_second=share))
    assert turns == sorted(turns)
    for place, turn in enumerate(turns):
        assert (turn - START).total_seconds() * share >= place - 1e-6


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 200))
def test_no_more_goes_without_approval_than_is_allowed(batches: list[int], most: int) -> None:
    so_far = free = 0
    waiting = False
    for fresh in batches:
        admitted = unapproved(so_far, fresh, most=most, waiting=waiting)
        assert 0 <= admitted <= fresh
        assert not (waiting and admitted)
        waiting = waiting or admitted < fresh
        so_far, free = so_far + fresh, free + admitted
    assert free <= most
    if sum(batches) <= most:
        assert free == sum(batches)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 600))
def test_late_work_stands_behind_and_ages(late: int, on_time: int, waited: int) -> None:
    """Of one priority it stands behind what came up to five minutes later, and before the rest."""
    old = rank_of(START, late, Lane.CATCH_UP)
    fresh = rank_of(START + timedelta(seconds=waited), on_time)
    if late == on_time:
        assert (fresh < old) == (waited < 300)
    if waited > 300 + 90:
        assert old < fresh
