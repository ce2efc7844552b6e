"""Catching up around fires that have an account: every other one gets one, and none gets two."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from betimes.coordinator.plan import MICROSECOND, catch_up
from betimes.schedule import Accounted, Budget, parse
from betimes.schedule.catchup import CATCHUP_STEPS_MAX

START = datetime(2026, 3, 28, tzinfo=UTC)
POLICIES = st.sampled_from(
    [
        {"policy": "none"},
        {"policy": "latest", "window": "PT1H"},
        {"policy": "latest", "window": "PT30S"},
        {"policy": "all", "window": "PT1H", "max": 1000},
        {"policy": "all", "window": "PT1H", "max": 3},
    ]
)
SCHEDULES = st.sampled_from(
    [
        {"type": "interval", "every": "PT7S", "anchor": "1970-01-01T00:00:00Z"},
        {"type": "cron", "expr": "*/2 * * * *"},
        {"type": "cron", "expr": "30 2 * * *", "timezone": "Europe/Stockholm"},
    ]
)


@given(
    schedule=SCHEDULES,
    policy=POLICIES,
    after=st.integers(0, 100_000),
    length=st.integers(0, 2_000),
    marks=st.lists(st.sampled_from("-rd"), max_size=60),
)
def test_every_fire_has_one_account(
    schedule: dict[str, str], policy: dict[str, object], after: int, length: int, marks: list[str]
) -> None:
    """`r` is a fire with a run, `d` one that was decided; neighbours are one decision."""
    parsed = parse({"timezone": "UTC", "catchup": policy, **schedule})
    first = START + timedelta(seconds=after)
    last = first + timedelta(seconds=length)
    every = [fire.nominal for fire in parsed.fires(first - MICROSECOND, last)]
    marked = list(zip(every, marks, strict=False))
    runs = {fire for fire, mark in marked if mark == "r"}
    decided: list[tuple[datetime, datetime]] = []
    before = ""
    for fire, mark in marked:
        if mark == "d":
            joined = (decided.pop()[0], fire) if before == "d" else (fire, fire)
            decided.append(joined)
        before = mark
    accounted = Accounted(runs, decided)

    caught = catch_up(parsed, first, last, Budget(CATCHUP_STEPS_MAX), accounted)

    accounts = [fire for fire in every if accounted.covers(fire)] + list(caught.fires)
    for one in caught.dropped:
        if one.code.startswith("CATCHUP_"):
            until = one.until_at or one.fire_at
            inside = [fire for fire in every if one.fire_at <= fire <= until]
            assert one.fires == len(inside)
            accounts += inside
    assert sorted(accounts) == every
    if policy["policy"] == "latest":
        assert len(caught.fires) <= 1
