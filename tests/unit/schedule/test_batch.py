"""The planner's memo: shared tuples, bounded memory."""

import json

import pytest

from betimes.domain.errors import BadSchedule
from betimes.schedule import FireTable, ScheduleCache, Window
from betimes.schedule.moment import to_instant
from facts_kit import parse, utc

AFTER = to_instant(utc("2026-01-01T00:00"))
UNTIL = to_instant(utc("2026-01-01T00:05"))


def test_equal_specifications_share_one_tuple() -> None:
    """The second job costs a look-up."""
    table = FireTable()
    first = table.fires_between(parse("*/2 * * * *", seed="a"), AFTER, UNTIL)
    second = table.fires_between(parse("*/2 * * * *", seed="b"), AFTER, UNTIL)

    assert first is second
    assert first == (AFTER + 120_000_000, AFTER + 240_000_000)
    assert table.fires_between(parse("0 3 * * *"), AFTER, UNTIL) == ()


def test_the_next_fire_after_the_window() -> None:
    """Where the job sleeps until; None when it never fires again."""
    window = FireTable().window(AFTER, UNTIL)
    assert window.following(parse("*/2 * * * *")) == to_instant(utc("2026-01-01T00:06"))
    assert window.following(parse("*/2 * * * *")) == to_instant(utc("2026-01-01T00:06"))
    assert window.following(parse("2026-01-01T00:01Z")) is None


def test_windows_are_few() -> None:
    """Old windows go; a used one stays."""
    table = FireTable(windows_max=2)
    first = table.window(0, 1)
    table.window(1, 2)
    assert table.window(0, 1) is first
    table.window(2, 3)
    assert table.window(0, 1) is first
    assert len(table._windows) == 2


def test_a_window_is_bounded() -> None:
    """In specifications and in fires of each."""
    window = Window(AFTER, UNTIL, fires_max=3, specs_max=2)
    assert len(window.fires(parse("* * * * * *"))) == 3
    for minute in range(5):
        schedule = parse(f"{minute} * * * *")
        window.fires(schedule)
        window.following(schedule)
    assert len(window._fires) <= 2
    assert len(window._following) <= 2


def test_stored_forms_are_read_once() -> None:
    """Equal texts share a schedule; only H keeps jobs apart."""
    cache = ScheduleCache(size_max=3)
    plain = json.dumps(parse("0 2 * * *").to_dict())
    hashed = json.dumps(parse("H 2 * * *").to_dict())

    assert cache.get(plain, "a") is cache.get(plain, "b")
    assert cache.get(hashed, "a") is cache.get(hashed, "a")
    assert cache.get(hashed, "a") is not cache.get(hashed, "b")
    assert cache.get(hashed, "a").seed == "a"
    for minute in range(5):
        cache.get(json.dumps(parse(f"{minute} * * * *").to_dict()))
    assert len(cache) == 3
    with pytest.raises(BadSchedule):
        cache.get("[]")


def test_jitter_and_window_are_by_digest() -> None:
    """Stable for a job and a fire, within bounds, never early, different between jobs."""
    members = {"type": "cron", "expr": "0 * * * *", "jitter": "5m"}
    fires = list(parse(members, seed="job_1").fires(utc("2026-01-01"), limit=50))
    again = list(parse(members, seed="job_1").fires(utc("2026-01-01"), limit=50))
    other = list(parse(members, seed="job_2").fires(utc("2026-01-01"), limit=50))
    delays = [(fire.effective - fire.nominal).total_seconds() for fire in fires]

    assert fires == again
    assert [f.nominal for f in fires] == [f.nominal for f in other]
    assert fires != other
    assert all(0 <= delay < 300 for delay in delays)
    assert max(delays) > 200
    assert all(fire.flags == ("jittered",) for fire in fires if fire.effective != fire.nominal)

    spread = parse({"type": "cron", "expr": "0 * * * *", "window": "15m"}, seed="job_1")
    shifts = {f.effective - f.nominal for f in spread.fires(utc("2026-01-01"), limit=20)}
    assert len(shifts) == 1
    assert spread.effective(AFTER, seed="job_2") != spread.effective(AFTER)
    assert spread.effective(AFTER, seed="job_1") == spread.effective(AFTER)


def test_the_digest_never_changes() -> None:
    """Stored plans depend on these very values."""
    schedule = parse(
        {"type": "cron", "expr": "0 * * * *", "jitter": "5m", "window": "15m"}, seed="job_1"
    )
    assert schedule.effective(AFTER) - AFTER == 763_840_000
